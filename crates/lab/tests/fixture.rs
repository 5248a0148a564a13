//! The light fixture is a real API server, shared, and gone afterwards.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::{path::Path, process::Command, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use steward_lab::{fixture::ApiServer, poll};

#[tokio::test]
async fn two_tests_share_a_server_and_keep_apart_by_namespace() {
    let server = ApiServer::shared().await.unwrap();
    let (one, two) = (
        server.namespace("one").await.unwrap(),
        server.namespace("one").await.unwrap(),
    );
    assert_ne!(one, two);
    let client = server.client().await.unwrap();
    let mut object = ConfigMap::default();
    object.metadata.name = Some("same".into());
    for namespace in [one, two] {
        Api::<ConfigMap>::namespaced(client.clone(), &namespace)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn the_shared_server_answers_from_another_runtime() {
    let server = ApiServer::shared().await.unwrap();
    let version = server
        .client()
        .await
        .unwrap()
        .apiserver_version()
        .await
        .unwrap();
    assert_eq!(version.major, "1");
}

#[tokio::test]
async fn an_own_server_writes_its_audit_log_and_is_gone_when_dropped() {
    let server = ApiServer::builder().audit().start().await.unwrap();
    server.namespace("audited").await.unwrap();
    let log = server.audit_log();
    poll(Duration::from_secs(30), async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let written = text.lines().any(|line| {
            line.contains(r#""verb":"create""#) && line.contains(r#""resource":"namespaces""#)
        });
        if written { Ok(()) } else { Err(text) }
    })
    .await
    .unwrap();
    let folder = log.parent().unwrap().to_owned();
    drop(server);
    assert!(!folder.exists());
    assert!(!mentioned_by_a_process(&folder));
}

/// Runs this test binary again as the victim, and kills it with -9.
#[tokio::test]
async fn a_killed_test_leaves_nothing() {
    let exe = std::env::current_exe().unwrap();
    let note = tempfile::NamedTempFile::new().unwrap();
    let mut victim = Command::new(exe)
        .args(["--exact", "victim", "--ignored", "--nocapture"])
        .env("VICTIM_NOTE", note.path())
        .spawn()
        .unwrap();
    let folder = poll(Duration::from_mins(3), async || {
        assert_eq!(
            victim.try_wait().unwrap(),
            None,
            "the victim ended by itself"
        );
        let text = std::fs::read_to_string(note.path()).unwrap();
        if text.is_empty() { Err(()) } else { Ok(text) }
    })
    .await
    .unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    let folder = Path::new(&folder);
    poll(Duration::from_secs(30), async || {
        if folder.exists() || mentioned_by_a_process(folder) {
            Err("still there")
        } else {
            Ok(())
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
#[ignore = "only run by the test that kills it"]
async fn victim() {
    let server = ApiServer::start().await.unwrap();
    let folder = server.kubeconfig().parent().unwrap().display().to_string();
    std::fs::write(std::env::var("VICTIM_NOTE").unwrap(), folder).unwrap();
    std::future::pending::<()>().await;
}

fn mentioned_by_a_process(folder: &Path) -> bool {
    let folder = folder.display().to_string();
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&folder))
    })
}
