//! What needs a person: an own kubeconfig file, a terminal, an answer, a change of mind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::Ingress;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{alone, create, server, steward, tenant};

/// A kubeconfig as tenants have it: of a cluster, with credentials.
fn kubeconfig_of(server: &str, authority: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{ name: x, cluster: {{ server: '{server}', certificate-authority-data: {authority} }} }}]\nusers: [{{ name: admin, user: {{ client-certificate-data: YQ==, client-key-data: Yg== }} }}]\ncontexts: [{{ name: x, context: {{ cluster: x, user: admin }} }}]\ncurrent-context: x\n"
    )
}

#[tokio::test]
async fn merging_keeps_what_is_there_and_takes_nobodys_name() {
    let server = server().await;
    let namespace = server.namespace("merge").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "blue-admin-kubeconfig" },
        "stringData": { "admin.conf": kubeconfig_of("https://blue.example.com:443", "Y2E=") },
    });
    create(&client, &namespace, &secret, false).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("config");
    let before = "apiVersion: v1\nkind: Config\npreferences: { colors: true }\nclusters: [{ name: work, cluster: { server: 'https://work', extensions: [{ name: mine, extension: { kept: yes-really } }] } }]\nusers: [{ name: work, user: { exec: { apiVersion: v1, command: login, installHint: ask Ada } } }]\ncontexts: [{ name: work, context: { cluster: work, user: work, namespace: n } }]\ncurrent-context: work\n";
    std::fs::write(&own, before).unwrap();
    std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o644)).unwrap();
    let merge = async |words: &[&str]| {
        let mut command = alone();
        command.env("KUBECONFIG", &own).arg("--kubeconfig");
        command.arg(server.kubeconfig()).arg("kubeconfig");
        command.args(words).args(["--merge", "-n", &namespace]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = output.await.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let text = std::fs::read_to_string(&own).unwrap();
        (said, serde_saphyr::from_str::<Value>(&text).unwrap())
    };
    // Twice: the second time replaces, and adds nothing.
    merge(&["blue"]).await;
    let (_, file) = merge(&["blue"]).await;
    assert_eq!(file["current-context"], "blue");
    assert_eq!(file["clusters"].as_array().unwrap().len(), 2);
    assert_eq!(file["preferences"]["colors"], true);
    let work = &file["clusters"][0]["cluster"];
    assert_eq!(work["extensions"][0]["extension"]["kept"], "yes-really");
    assert_eq!(file["users"][0]["user"]["exec"]["installHint"], "ask Ada");
    let mode = std::fs::metadata(&own).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Somebody else's cluster of the same name keeps it.
    let other = before.replace("work", "blue");
    std::fs::write(&own, other).unwrap();
    let (said, file) = merge(&["blue"]).await;
    let name = format!("{namespace}-blue");
    assert!(said.contains(&format!("context {name} is in")), "{said}");
    assert_eq!(file["clusters"][0]["cluster"]["server"], "https://blue");
    assert_eq!(file["current-context"], name.as_str());
    // What is no kubeconfig is left alone.
    std::fs::write(&own, "- a\n").unwrap();
    let mut command = alone();
    command.env("KUBECONFIG", &own).arg("--kubeconfig");
    command.arg(server.kubeconfig());
    command.args(["kubeconfig", "blue", "--merge", "-n", &namespace]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    assert_eq!(output.await.unwrap().status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "- a\n");
}

/// Runs a command line at a terminal of its own and answers what it asks.
async fn at_a_terminal(line: String, answer: &'static str) -> String {
    let seen = tokio::task::spawn_blocking(move || {
        let mut child = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keyboard = child.stdin.take().unwrap();
        keyboard.write_all(answer.as_bytes()).unwrap();
        let mut seen = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut seen)
            .unwrap();
        drop(keyboard);
        child.wait().unwrap();
        seen
    });
    seen.await.unwrap()
}

/// A tenant of HAProxy's whose route lost its annotation, and an operator that is said to
/// run: there is something safe to do.
async fn route_without_passthrough(namespace: &str) -> Api<Ingress> {
    let client = server().await.client().await.unwrap();
    let mut manifest = tenant("blue");
    manifest["spec"]["controlPlane"] = json!({
        "service": { "serviceType": "ClusterIP" },
        "ingress": { "hostname": "blue.invalid", "controllerType": "haproxy", "ingressClassName": "h" },
    });
    create(&client, namespace, &manifest, false).await.unwrap();
    let route = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "blue" },
        "spec": { "rules": [{ "host": "blue.invalid" }] },
    });
    create(&client, namespace, &route, false).await.unwrap();
    let marks = json!({ "app.kubernetes.io/name": "steward", "app.kubernetes.io/component": "controller-manager" });
    let operator = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "steward", "labels": marks },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "o", "image": "o" }] } },
        },
    });
    create(&client, namespace, &operator, false).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let status = json!({ "status": { "replicas": 1, "readyReplicas": 1 } });
    deployments
        .patch_status("steward", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    Api::namespaced(client, namespace)
}

#[tokio::test]
async fn doctor_asks_at_a_terminal_before_it_fixes_and_takes_no_for_an_answer() {
    let server = server().await;
    let namespace = server.namespace("fix").await.unwrap();
    let routes = route_without_passthrough(&namespace).await;
    let line = format!(
        "stty cols 60 rows 40; {} --kubeconfig {} doctor blue -n {namespace} --fix",
        env!("CARGO_BIN_EXE_steward"),
        server.kubeconfig().display()
    );
    let seen = at_a_terminal(line.clone(), "n\n").await;
    assert!(
        seen.contains("which the operator makes anew? [y/N]"),
        "{seen}"
    );
    assert!(routes.get_opt("blue").await.unwrap().is_some(), "{seen}");
    // In colour, and no line that is not to be pasted wider than the terminal.
    assert!(seen.contains("\u{1b}[31m✗"), "{seen}");
    let plain = anstream::adapter::strip_str(&seen).to_string();
    let pasted = |line: &str| line.trim_start().starts_with("$ ") || line.contains("[y/N]");
    for line in plain.lines().filter(|l| !pasted(l)) {
        assert!(line.trim_end().chars().count() <= 60, "{line:?}\n{seen}");
    }
    // Nobody there to ask: nothing is done.
    let words = ["doctor", "blue", "-n", &namespace, "--fix"];
    let ended = steward(server.kubeconfig(), &words).await;
    assert!(
        ended.code == 2 && ended.err.contains("add --yes"),
        "{}",
        ended.err
    );
    let seen = at_a_terminal(line, "y\n").await;
    assert!(seen.contains(": done"), "{seen}");
    assert!(routes.get_opt("blue").await.unwrap().is_none(), "{seen}");
}

#[tokio::test]
async fn a_change_of_mind_while_waiting_leaves_a_whole_tenant_and_ends_with_130() {
    let server = server().await;
    let namespace = server.namespace("ctrlc").await.unwrap();
    let mut child = alone()
        .arg("--kubeconfig")
        .arg(server.kubeconfig())
        .args([
            "create",
            "blue",
            "-n",
            &namespace,
            "--hostname",
            "b.invalid",
        ])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|l| l.unwrap().contains("waiting for the operator")));
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    let ended = steward(server.kubeconfig(), &["get", "blue", "-n", &namespace]).await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    let secrets: Api<Secret> = Api::namespaced(server.client().await.unwrap(), &namespace);
    let secrets = secrets.list(&ListParams::default()).await.unwrap();
    assert!(secrets.items.is_empty());
}

#[tokio::test]
async fn kubectl_runs_it_as_its_own_command() {
    use steward_lab::{parts, progress::Progress};
    let server = server().await;
    let namespace = server.namespace("plugin").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-steward");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steward"), &plugin).unwrap();
    let kubeconfig = server.kubeconfig();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = tokio::task::spawn_blocking(move || {
        let options = parts::Options::from_env().unwrap();
        let part = parts::Part::Kubernetes(parts::Release::V1_36);
        let programs = parts::ensure(part, &options, &Progress::stderr()).unwrap();
        Command::new(programs.path("kubectl").unwrap())
            .args(["steward", "get", "-n", &namespace])
            .env("PATH", path)
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap()
    });
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("blue"),
        "{output:?}"
    );
}
