use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use futures::{StreamExt, stream};
use serde_json::Value;

use crate::scene::{alone, create, server, steward, tenant};

/// KiB that listing a thousand tenants may take at most, even unoptimised.
const MEMORY: u64 = 128 * 1024;

/// Runs it and watches its memory: lines printed, milliseconds, and KiB at most.
fn measured(kubeconfig: &std::path::Path, words: &[String]) -> (usize, u128, u64) {
    let printed = tempfile::NamedTempFile::new().unwrap();
    let began = std::time::Instant::now();
    let mut child = alone()
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(words)
        .stdout(printed.reopen().unwrap())
        .spawn()
        .unwrap();
    let file = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        // The kernel keeps the highest mark itself: the last look before the end counts.
        let status = std::fs::read_to_string(&file).unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let mark = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
        most = most.max(mark.unwrap_or(0));
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::yield_now();
    };
    let took = began.elapsed().as_millis();
    assert!(ended.success());
    let text = std::fs::read_to_string(printed.path()).unwrap();
    (text.lines().count(), took, most)
}

#[tokio::test]
async fn a_thousand_tenants_are_all_listed() {
    let server = server().await;
    let namespace = server.namespace("many").await.unwrap();
    let client = server.client().await.unwrap();
    stream::iter(0..1000)
        .map(async |number| {
            create(&client, &namespace, &tenant(&format!("t{number}")), false)
                .await
                .unwrap();
        })
        .buffer_unordered(16)
        .collect::<Vec<_>>()
        .await;
    let kubeconfig = server.kubeconfig();
    let words = ["get".to_owned(), "-n".to_owned(), namespace.clone()];
    let measured = tokio::task::spawn_blocking(move || measured(&kubeconfig, &words));
    let (lines, milliseconds, kibibytes) = measured.await.unwrap();
    println!("steward get with 1000 tenants: {milliseconds} ms, {kibibytes} KiB at most");
    assert_eq!(lines, 1001);
    // Some 2 MiB of JSON come in; holding it several times over would be another matter.
    assert!(kibibytes < MEMORY, "{kibibytes} KiB");
    let ended = steward(
        server.kubeconfig(),
        &["get", "-n", &namespace, "-o", "json"],
    )
    .await;
    let list: Vec<Value> = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(list.len(), 1000);
}

#[tokio::test]
async fn one_tenant_is_an_object_and_a_list_is_a_list() {
    let server = server().await;
    let namespace = server.namespace("one").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    let ended = steward(
        server.kubeconfig(),
        &["get", "blue", "-n", &namespace, "-o", "json"],
    )
    .await;
    let row: Value = serde_json::from_str(&ended.out).unwrap();
    for key in [
        "namespace",
        "name",
        "version",
        "installedVersion",
        "state",
        "paused",
        "available",
        "endpoint",
        "mode",
        "readyReplicas",
        "replicas",
        "workers",
        "certificateDaysLeft",
        "datastore",
        "waitingFor",
        "ageSeconds",
    ] {
        assert!(
            row.get(key).is_some(),
            "docs/json-output.md promises {key}: {row}"
        );
    }
    let ended = steward(
        server.kubeconfig(),
        &["get", "-n", &namespace, "-o", "yaml"],
    )
    .await;
    let list: Value = serde_saphyr::from_str(&ended.out).unwrap();
    assert_eq!(list[0]["name"], "blue", "{}", ended.out);
}

#[tokio::test]
async fn nothing_in_a_pipe_has_colour_and_narrow_is_no_matter() {
    let server = server().await;
    let namespace = server.namespace("pipe").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    for words in [
        &["get"][..],
        &["get", "-o", "wide"],
        &["tree", "blue"],
        &["doctor", "blue", "--all"],
    ] {
        let mut words = words.to_vec();
        words.extend(["-n", &namespace]);
        let ended = steward(server.kubeconfig(), &words).await;
        assert!(!ended.out.contains('\u{1b}'), "{words:?}: {:?}", ended.out);
        assert!(
            ended.out.contains("blue"),
            "{words:?}: {}{}",
            ended.out,
            ended.err
        );
    }
}

#[tokio::test]
async fn doctor_speaks_of_a_tenant_that_nobody_has_made_yet() {
    let server = server().await;
    let namespace = server.namespace("fresh").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    let ended = steward(
        server.kubeconfig(),
        &["doctor", "blue", "-n", &namespace, "-o", "json"],
    )
    .await;
    assert_eq!(ended.code, 1, "{}{}", ended.out, ended.err);
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report[0]["tenant"], format!("{namespace}/blue"));
    assert_eq!(report[0]["severity"], "problem");
    assert_eq!(report[0]["findings"][0]["check"], "datastore", "{report:#}");
}

#[tokio::test]
async fn a_watch_prints_what_changes_and_ends_with_130() {
    let server = server().await;
    let namespace = server.namespace("watch").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    let mut child = alone()
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .args(["get", "-w", "-n", &namespace])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("NAME "));
    assert!(lines.next().unwrap().unwrap().contains("blue"));
    create(&client, &namespace, &tenant("green"), false)
        .await
        .unwrap();
    assert!(lines.next().unwrap().unwrap().contains("green"));
    let interrupt = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
