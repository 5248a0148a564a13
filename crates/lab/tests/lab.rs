//! The lab is made of real parts: each test here fails if one of them were fake.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says where"
)]

#[path = "common/shared.rs"]
mod shared;

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use shared::{PATIENCE, apply, kubectl, lab, lab_alone, until_says, web};
use steward_lab::{
    Error, HostId, Lab, Nudge, Unit, dns::Mood, faults::Allowed, images::Image, poll,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_steward-lab");

#[tokio::test]
async fn a_service_answers_by_name_from_another_pod_and_logs_and_exec_work() {
    let lab = lab().await;
    apply(&lab.mgmt(), &web("named", "ClusterIP"))
        .await
        .unwrap();
    lab.cluster()
        .unwrap()
        .wait_deployment("default", "named", PATIENCE)
        .await
        .unwrap();
    let ask = [
        "kubectl",
        "exec",
        "deploy/named",
        "--",
        "curl",
        "-sS",
        "-m5",
        "http://named.default.svc",
    ];
    until_says(&lab, &lab.mgmt(), &ask, "hello from named").await;
    let logs = kubectl(&lab, "logs deploy/named").await.unwrap();
    assert!(logs.contains("started"), "{logs}");
    let inside = kubectl(&lab, "exec deploy/named -- cat /etc/hostname")
        .await
        .unwrap();
    assert!(inside.starts_with("named-"), "{inside}");
}

#[tokio::test]
async fn a_load_balancer_answers_from_every_host_and_gives_its_address_back() {
    let lab = lab().await;
    apply(&lab.mgmt(), &web("balanced", "LoadBalancer"))
        .await
        .unwrap();
    let services =
        Api::<Service>::namespaced(lab.cluster().unwrap().client().await.unwrap(), "default");
    let address = lab.wait_for("an address", PATIENCE, async || {
        let service = services.get("balanced").await.map_err(|e| e.to_string())?;
        let ingress = service
            .status
            .and_then(|s| s.load_balancer?.ingress)
            .unwrap_or_default();
        ingress
            .first()
            .and_then(|i| i.ip.clone())
            .ok_or_else(|| "no address yet".into())
    });
    let address: Ipv4Addr = address.await.unwrap().parse().unwrap();
    assert_eq!(address.octets()[..3], [10, 40, 0]);
    let url = format!("http://{address}/");
    for host in lab.hosts() {
        until_says(
            &lab,
            &host,
            &["curl", "-sS", "-m5", &url],
            "hello from balanced",
        )
        .await;
    }
    // A class of somebody else's is not touched.
    let foreign = web("foreign", "LoadBalancer").replace(
        "type: LoadBalancer",
        "type: LoadBalancer\n  loadBalancerClass: example.com/other",
    );
    apply(&lab.mgmt(), &foreign).await.unwrap();
    kubectl(&lab, "delete service balanced").await.unwrap();
    lab.wait_for("the address to be gone", PATIENCE, async || {
        let addresses = lab.mgmt().run(&["ip", "-o", "addr", "show", "lo"]).await;
        let addresses = addresses.map_err(|e| e.chain())?;
        if addresses.contains(&address.to_string()) {
            Err(addresses)
        } else {
            Ok(())
        }
    })
    .await
    .unwrap();
    let foreign = services.get("foreign").await.unwrap();
    assert_eq!(foreign.status.and_then(|s| s.load_balancer?.ingress), None);
}

#[tokio::test]
async fn helm_installs_a_small_chart() {
    let lab = lab().await;
    let chart = tempfile::tempdir().unwrap();
    std::fs::create_dir(chart.path().join("templates")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(chart.path().join(name), text).unwrap();
    write(
        "Chart.yaml",
        "apiVersion: v2\nname: small\nversion: 0.1.0\n",
    );
    write("values.yaml", "word: none\n");
    write(
        "templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {word: {{ .Values.word }}}\n",
    );
    let chart = chart.path().to_str().unwrap();
    let words = [
        "helm",
        "install",
        "tiny",
        chart,
        "--set",
        "word=hello",
        "--wait",
    ];
    lab.mgmt().run(&words).await.unwrap();
    let word = kubectl(&lab, "get configmap tiny -o jsonpath={.data.word}")
        .await
        .unwrap();
    assert_eq!(word, "hello");
}

/// The second cluster's control plane is on worker-1; worker-2 joins it, leaves it,
/// and its kubelet follows.
#[tokio::test]
async fn a_worker_joins_a_second_cluster_with_plain_kubeadm_and_leaves_it_again() {
    let lab = lab_alone().await;
    let (first, second) = (lab.worker(1).unwrap(), lab.worker(2).unwrap());
    let cluster = lab.make_cluster(first.id()).await.unwrap();
    let command = first
        .run(&["kubeadm", "token", "create", "--print-join-command"])
        .await
        .unwrap();
    let mut words: Vec<&str> = command.split_whitespace().collect();
    words.push("--ignore-preflight-errors=all");
    second.run(&words).await.unwrap();
    cluster.wait_node(second.id(), true).await.unwrap();

    // A pod on the new node talks to the API server by its name in the cluster.
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: asks, namespace: default}
spec:
  nodeName: worker-2
  containers:
  - name: asks
    image: steward.lab/toolbox:1
    command: [sleep, infinity]
";
    apply(&first, pod).await.unwrap();
    let ask = "curl -sS -m5 --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt \
               https://kubernetes.default.svc/version";
    let words = ["kubectl", "exec", "asks", "--", "sh", "-c", ask];
    cluster
        .wait_for("an answer from the API server", PATIENCE, async || {
            let said = first.run(&words).await.map_err(|error| error.chain())?;
            if said.contains("gitVersion") {
                Ok(())
            } else {
                Err(said)
            }
        })
        .await
        .unwrap();

    second.run(&["kubeadm", "reset", "--force"]).await.unwrap();
    poll(PATIENCE, async || {
        let units = second.units().unwrap();
        let kubelet = units
            .into_iter()
            .find(|unit| unit.name == "kubelet")
            .unwrap();
        if kubelet.pid.is_none() {
            Ok(())
        } else {
            Err(kubelet)
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_partition_between_two_hosts_is_seen_and_heals() {
    let lab = lab_alone().await;
    let (client, mgmt) = (HostId::Client, HostId::Mgmt);
    let api = SocketAddr::new(mgmt.address().into(), 6443);
    assert!(reaches(&lab, client, api).await);
    let cut = lab.cut(client, mgmt).unwrap();
    assert!(!reaches(&lab, client, api).await);
    // Only these two: everybody else still talks to both.
    assert!(reaches(&lab, HostId::Worker(1), api).await);
    assert!(
        reaches(
            &lab,
            client,
            SocketAddr::new(HostId::Router.address().into(), 53)
        )
        .await
    );
    cut.heal().unwrap();
    assert!(reaches(&lab, client, api).await);

    // Hosts on one network, whose traffic is not routed.
    let (one, other) = (HostId::Worker(1), lab.worker(2).unwrap());
    let command = ["socat", "TCP-LISTEN:7000,fork,reuseaddr", "SYSTEM:true"];
    let command = command.map(String::from).into();
    let listener = Unit {
        name: "listener".into(),
        command,
        restart: true,
        when: None,
    };
    other.start(listener).unwrap();
    let listener = SocketAddr::new(other.address(), 7000);
    lab.wait_for("the listener", PATIENCE, async || {
        if reaches(&lab, one, listener).await {
            Ok(())
        } else {
            Err("closed".into())
        }
    })
    .await
    .unwrap();
    let cut = lab.cut(one, other.id()).unwrap();
    assert!(!reaches(&lab, one, listener).await);
    drop(cut);
    assert!(reaches(&lab, one, listener).await);
    other.stop("listener").unwrap();
}

#[tokio::test]
async fn a_fenced_in_host_reaches_one_address_and_port_only() {
    let lab = lab_alone().await;
    let worker = HostId::Worker(2);
    let api = SocketAddr::new(HostId::Mgmt.address().into(), 6443);
    let etcd = SocketAddr::new(HostId::Mgmt.address().into(), 2379);
    let names = SocketAddr::new(worker.network().gateway().into(), 53);
    assert!(reaches(&lab, worker, etcd).await);
    let allowed = Allowed {
        tcp: vec![api],
        names: false,
    };
    let fence = lab.fence_in(worker, &allowed).unwrap();
    assert!(reaches(&lab, worker, api).await);
    assert!(!reaches(&lab, worker, etcd).await);
    assert!(!reaches(&lab, worker, names).await);
    drop(fence);
    assert!(reaches(&lab, worker, names).await);
}

#[tokio::test]
async fn traffic_can_be_delayed_and_lost() {
    let lab = lab_alone().await;
    let (client, mgmt) = (HostId::Client, HostId::Mgmt);
    let api = SocketAddr::new(mgmt.address().into(), 6443);
    let by = Duration::from_millis(400);
    let delay = lab.delay(client, mgmt, by).unwrap();
    let start = Instant::now();
    assert!(reaches(&lab, client, api).await);
    assert!(
        start.elapsed() >= 2 * by,
        "a handshake takes a round trip: {:?}",
        start.elapsed()
    );
    delay.heal().unwrap();

    let loss = lab.lose(client, mgmt, 100).unwrap();
    assert!(!reaches(&lab, client, api).await);
    drop(loss);
    assert!(reaches(&lab, client, api).await);
    drop(lab.throttle(client, mgmt, 100).unwrap());
    let error = lab
        .delay(HostId::Worker(1), HostId::Worker(2), by)
        .unwrap_err()
        .to_string();
    assert!(error.contains("one network"), "{error}");
}

#[tokio::test]
async fn the_name_server_answers_what_it_is_told_and_fails_when_told() {
    let lab = lab_alone().await;
    lab.dns_set("*.Names.Example.com", Ipv4Addr::new(10, 40, 0, 77))
        .unwrap();
    let words = ["getent", "ahostsv4", "t1.names.example.com"];
    let client = lab.client_host();
    until_says(&lab, &client, &words, "10.40.0.77").await;
    let mgmt = client.run(&["getent", "ahostsv4", "mgmt"]).await.unwrap();
    assert!(mgmt.contains("10.10.0.2"), "{mgmt}");
    lab.dns_mood(Mood::Fails).unwrap();
    let failed = client.exec(&words).await;
    lab.dns_mood(Mood::Answers).unwrap();
    assert!(!failed.unwrap().status.success());
    until_says(&lab, &client, &words, "10.40.0.77").await;
    let error = lab.dns_set("not a name", Ipv4Addr::LOCALHOST).unwrap_err();
    assert_eq!(error.exit_code(), 2);
}

#[tokio::test]
async fn a_killed_program_comes_back_and_a_frozen_one_does_nothing() {
    let lab = lab_alone().await;
    let router = lab.router();
    let pid = || {
        router
            .units()
            .unwrap()
            .into_iter()
            .find(|u| u.name == "dns")
            .unwrap()
            .pid
    };
    let before = pid().unwrap();
    router.nudge("dns", Nudge::Kill).unwrap();
    poll(PATIENCE, async || {
        if pid().is_some_and(|now| now != before) {
            Ok(())
        } else {
            Err(())
        }
    })
    .await
    .unwrap();
    let frozen = lab.worker(1).unwrap();
    frozen.nudge("containerd", Nudge::Freeze).unwrap();
    let words = ["timeout", "2", "ctr", "--namespace", "k8s.io", "version"];
    let stuck = frozen.exec(&words).await.unwrap();
    frozen.nudge("containerd", Nudge::Thaw).unwrap();
    assert!(!stuck.status.success());
    until_says(&lab, &frozen, &words, "Server:").await;
    // In pods, too.
    assert_eq!(lab.mgmt().nudge_all("coredns", Nudge::Kill), 1);
    let cluster = lab.cluster().unwrap();
    cluster
        .wait_deployment("kube-system", "coredns", PATIENCE)
        .await
        .unwrap();
    let error = router
        .nudge("nothing", Nudge::Kill)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no program nothing"), "{error}");
}

#[tokio::test]
async fn an_image_that_is_loaded_is_known_to_every_node() {
    let lab = lab().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.tar");
    let image = Image::builder("steward.lab/loaded:1").text("hello", "/hello", 0o644);
    image.build().unwrap().write(&path).unwrap();
    lab.load(&[path]).await.unwrap();
    for host in lab.hosts().into_iter().filter(|host| host.id().is_node()) {
        let known = host
            .run(&["ctr", "--namespace", "k8s.io", "images", "ls", "-q"])
            .await
            .unwrap();
        assert!(
            known.contains("steward.lab/loaded:1"),
            "{}: {known}",
            host.id()
        );
    }
}

#[tokio::test]
async fn exec_passes_files_and_the_exit_code_through() {
    let lab = lab().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "the caller's own").unwrap();
    let exec = |host: &str, words: &[&str]| {
        let output = Command::new(PROGRAM)
            .args(["exec", "--name", lab.name().as_str(), host, "--"])
            .args(words)
            .current_dir(file.path().parent().unwrap())
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let name = file.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(
        exec("client", &["cat", name]),
        (Some(0), "the caller's own".into())
    );
    assert_eq!(
        exec("worker-1", &["sh", "-c", "hostname; exit 7"]),
        (Some(7), "worker-1\n".into())
    );
    assert_eq!(
        exec("mgmt", &["sh", "-c", "echo $KUBECONFIG"]).1,
        "/etc/kubernetes/admin.conf\n"
    );
    let (code, nodes) = exec("mgmt", &["kubectl", "get", "nodes", "-o", "name"]);
    assert_eq!((code, nodes.as_str()), (Some(0), "node/mgmt\n"));
    let kubeconfig = lab.cluster().unwrap().kubeconfig().display().to_string();
    let (code, nodes) = exec(
        "client",
        &[
            "kubectl",
            "--kubeconfig",
            &kubeconfig,
            "get",
            "nodes",
            "-o",
            "name",
        ],
    );
    assert_eq!((code, nodes.as_str()), (Some(0), "node/mgmt\n"));
}

#[tokio::test]
async fn status_tells_what_runs_and_what_it_takes() {
    let lab = lab().await;
    let output = Command::new(PROGRAM)
        .args(["status", "-o", "json", "--name", lab.name().as_str()])
        .output()
        .unwrap();
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let hosts = status["hosts"].as_array().unwrap();
    let names: Vec<_> = hosts
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["router", "mgmt", "client", "worker-1", "worker-2"]);
    let programs = hosts[1]["programs"].as_array().unwrap();
    let apiserver = programs
        .iter()
        .find(|p| p["name"] == "kube-apiserver")
        .unwrap();
    assert!(
        apiserver["memory_bytes"].as_u64().unwrap() > 50 << 20,
        "{apiserver}"
    );
    assert!(
        apiserver["cpu_seconds"].as_f64().unwrap() > 0.1,
        "{apiserver}"
    );
}

#[tokio::test]
async fn waiting_in_vain_tells_what_was_there_instead() {
    let lab = lab().await;
    let never = lab.wait_for("a miracle", Duration::from_secs(1), async || {
        Err::<(), _>("none".into())
    });
    let Err(Error::Timeout { what, last, .. }) = never.await else {
        panic!("it happened")
    };
    assert_eq!(what, "a miracle");
    assert!(
        last.starts_with("none\n") && last.contains("newest events"),
        "{last}"
    );
    assert!(last.contains("errors in logs:\nmgmt/"), "{last}");
}

#[tokio::test]
async fn bad_input_gets_a_sentence_and_changes_nothing() {
    let lab = lab().await;
    let name = lab.name().as_str();
    let file = tempfile::NamedTempFile::new().unwrap();
    let tar = file.path().to_str().unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["up", "--name", name], "use another --name"),
        (
            &["exec", "--name", name, "worker-9", "--", "true"],
            "was made with 2 workers",
        ),
        (&["load", "--name", name, tar], "is not an image"),
        (&["logs", "--name", name, "mgmt/nothing"], "has no log of"),
    ];
    for (words, expected) in cases {
        let output = Command::new(PROGRAM).args(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn two_labs_run_side_by_side() {
    let first = lab().await;
    let name = format!("{}-too", first.name());
    let second = Lab::builder().name(&name).up().await.unwrap();
    let nodes = Api::<Node>::all(second.cluster().unwrap().client().await.unwrap());
    let here = nodes.get("mgmt").await.unwrap().metadata.uid;
    let nodes = Api::<Node>::all(first.cluster().unwrap().client().await.unwrap());
    let there = nodes.get("mgmt").await.unwrap().metadata.uid;
    assert_ne!(here, there);
    drop(second);
    assert!(
        !std::path::Path::new("/var/lib/steward-lab")
            .join(&name)
            .exists()
    );
    nodes.get("mgmt").await.unwrap();
}

/// Whether a TCP connection can be made from a host; waits no longer than 3 s.
async fn reaches(lab: &Lab, from: HostId, to: SocketAddr) -> bool {
    let script = format!("timeout 3 bash -c '</dev/tcp/{}/{}'", to.ip(), to.port());
    lab.host(from)
        .unwrap()
        .exec(&["sh", "-c", &script])
        .await
        .unwrap()
        .status
        .success()
}
