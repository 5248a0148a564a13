//! What the program's commands do, on a lab that runs.

use std::{process::Command, time::Duration};

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use steward_lab::{Error, Lab, images::Image};

use crate::shared::lab;

const PROGRAM: &str = env!("CARGO_BIN_EXE_steward-lab");

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
