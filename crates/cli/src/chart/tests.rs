use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;

fn release(served: &[String]) -> Release<'_> {
    Release {
        name: "steward",
        namespace: "steward-system",
        served,
    }
}

fn given(set: &[&str]) -> Given {
    Given {
        set: set.iter().map(|s| (*s).to_owned()).collect(),
        ..Given::default()
    }
}

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/steward")
}

#[test]
fn every_file_of_the_chart_is_in_the_program() {
    let mut there: Vec<String> = std::fs::read_dir(chart().join("templates"))
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .filter(|f| f != "NOTES.txt")
        .collect();
    there.sort();
    let known: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        known, there,
        "a template was added or removed: change TEMPLATES"
    );
    assert_eq!(
        std::fs::read_dir(chart().join("crds")).unwrap().count(),
        CRDS.len()
    );
    assert_eq!(crds().unwrap().len(), CRDS.len());
}

/// What the lab builds for everyone; a machine that has never run the lab builds it here.
fn helm() -> PathBuf {
    use steward_lab::{parts, progress::Progress};
    let options = parts::Options::from_env().unwrap();
    let programs = parts::ensure(parts::Part::Helm, &options, &Progress::stderr()).unwrap();
    programs.path("helm").unwrap().to_owned()
}

/// Helm's own output for the same values, in the same order as ours.
fn by_helm(helm: &Path, set: &[&str], served: &[String]) -> Vec<Value> {
    let mut command = std::process::Command::new(helm);
    command
        .args(["template", "steward"])
        .arg(chart())
        .args(["--namespace", "steward-system"]);
    for one in set {
        command.args([flag(one), one]);
    }
    for one in served {
        command.args(["--api-versions", one]);
    }
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    documents("helm", &String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// A port alone is a number to --set, and the chart wants text there.
fn flag(one: &str) -> &'static str {
    if one.ends_with("Address=0") {
        "--set-string"
    } else {
        "--set"
    }
}

fn by_name(mut objects: Vec<Value>) -> Vec<Value> {
    for object in &mut objects {
        let annotations = object["metadata"]["annotations"].as_object_mut();
        if let Some(map) = annotations {
            map.retain(|key, _| !key.starts_with("meta.helm.sh/"));
        }
        if object["metadata"]["annotations"]
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
            || object["metadata"]["annotations"].is_null()
        {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("annotations");
        }
    }
    objects.sort_by_key(|o| format!("{} {}", o["kind"], o["metadata"]["name"]));
    objects
}

#[test]
fn the_same_values_give_what_helm_gives() {
    let gateway_api = vec!["gateway.networking.k8s.io/v1/GatewayClass".to_owned()];
    let cases: &[(&[&str], &[String])] = &[
        (&[], &[]),
        (&["gateway.enabled=true"], &[]),
        (
            &[
                "gateway.enabled=true",
                "gateway.kind=DaemonSet,gateway.hostNetwork=true",
            ],
            &gateway_api,
        ),
        (
            &[
                "gateway.enabled=true",
                "gateway.replicas=1",
                "gateway.trustProxy={10.0.0.0/8,192.0.2.0/24}",
            ],
            &gateway_api,
        ),
        (
            &[
                "gateway.enabled=true,gateway.gatewayClass.create=false",
                "gateway.service.nodePort=30443",
            ],
            &gateway_api,
        ),
        (
            &[
                "defaultDataStore.replicas=1",
                "defaultDataStore.emptyDir.enabled=true",
            ],
            &[],
        ),
        (
            &[
                "steward-etcd.deploy=false",
                "serviceMonitor.enabled=true",
                "metricsBindAddress=:9999",
            ],
            &[],
        ),
        (
            &[
                "extraArgs[0]=--log=debug",
                "podLabels.a\\.b/c=d",
                "images.gate=r.example.com/gate:1",
            ],
            &[],
        ),
        (
            &[
                "nameOverride=butler",
                "serviceAccount.create=false",
                "tolerations[0].operator=Exists",
            ],
            &[],
        ),
        (
            &[
                "imagePullSecrets[0].name=pull",
                "admissionPolicies.enabled=false",
                "metricsBindAddress=0",
            ],
            &[],
        ),
    ];
    let helm = helm();
    for (set, served) in cases {
        let (text, typed): (Vec<&str>, Vec<&str>) =
            set.iter().partition(|s| flag(s) == "--set-string");
        let given = Given {
            set: typed.into_iter().map(str::to_owned).collect(),
            set_string: text.into_iter().map(str::to_owned).collect(),
            ..Given::default()
        };
        let ours = by_name(render(&release(served), &given).unwrap());
        let theirs = by_name(by_helm(&helm, set, served));
        let names = |all: &[Value]| -> Vec<String> {
            all.iter()
                .map(|o| format!("{} {}", o["kind"], o["metadata"]["name"]))
                .collect()
        };
        assert_eq!(names(&ours), names(&theirs), "{set:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{set:?}");
        }
    }
}

#[test]
fn objects_carry_the_marks_by_which_helm_can_take_over() {
    for object in render(&release(&[]), &Given::default()).unwrap() {
        let metadata = &object["metadata"];
        assert_eq!(
            metadata["annotations"]["meta.helm.sh/release-name"],
            "steward"
        );
        assert_eq!(
            metadata["labels"]["app.kubernetes.io/managed-by"], "Helm",
            "{object}"
        );
    }
}

#[test]
fn values_that_the_chart_does_not_know_get_a_sentence() {
    let error = |set: &str| {
        render(&release(&[]), &given(&[set]))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error("gateway.enabeld=true"),
        "--set gateway.enabeld: the chart has no such value; did you mean gateway.enabled?"
    );
    assert_eq!(
        error("gateway.enabled=yes"),
        "gateway.enabled: \"yes\" is not of type boolean"
    );
    assert_eq!(
        error("logFormat=xml"),
        "logFormat: \"xml\" is not one of \"text\", \"json\""
    );
    assert_eq!(error("replicaCount=-1"), "replicaCount: -1 is less than 0");
    assert!(error("gateway").contains("name=value"));
    assert_eq!(
        error("metricsBindAddress=everywhere"),
        "metricsBindAddress: \"everywhere\" does not look like ^(0|.*:[0-9]+)$"
    );
    assert!(error("extraArgs={v=2}").contains("extraArgs[0]: \"v=2\" does not look like ^-"));
}

#[test]
fn files_lie_under_what_is_set() {
    let given = Given {
        files: vec![json!({ "gateway": { "enabled": true, "replicas": 5 } })],
        set: vec!["gateway.replicas=7".into()],
        set_string: Vec::new(),
    };
    let objects = render(&release(&[]), &given).unwrap();
    let gateway = objects
        .iter()
        .find(|o| o["metadata"]["name"] == "steward-gateway" && o["kind"] == "Deployment");
    assert_eq!(gateway.unwrap()["spec"]["replicas"], 7);
}

#[test]
fn on_a_nodes_network_only_what_listens_is_root_and_routes_are_not_shown() {
    let given = Given {
        files: Vec::new(),
        set: vec!["gateway.enabled=true,gateway.kind=DaemonSet,gateway.hostNetwork=true".into()],
        set_string: Vec::new(),
    };
    let objects = render(&release(&[]), &given).unwrap();
    let gateway = objects.iter().find(|o| o["kind"] == "DaemonSet").unwrap();
    let pod = &gateway["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let [listens, holds] = pod["containers"].as_array().unwrap().as_slice() else {
        panic!("two containers: {pod}");
    };
    assert_eq!(listens["securityContext"]["runAsUser"], 0);
    let kept = &listens["securityContext"]["capabilities"];
    assert_eq!(
        kept,
        &json!({ "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] })
    );
    assert_eq!(holds["securityContext"].get("runAsUser"), None);
    let flags = listens["args"].as_array().unwrap();
    for flag in ["--private-metrics", "--route-share=50", "--source-share=50"] {
        assert!(flags.contains(&json!(flag)), "{flag} in {flags:?}");
    }
}
