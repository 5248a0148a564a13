use std::io::Write as _;

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use steward_lab::fixture::ApiServer;

use crate::scene::{Ended, alone, create, server, steward, tenant};

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A kubeconfig that leads to an address with a token.
fn kubeconfig(server: &str, token: &str) -> tempfile::NamedTempFile {
    file(&format!(
        "apiVersion: v1
kind: Config
clusters: [{{ name: c, cluster: {{ server: '{server}', insecure-skip-tls-verify: true }} }}]
users: [{{ name: u, user: {{ token: '{token}' }} }}]
contexts: [{{ name: x, context: {{ cluster: c, user: u }} }}]
current-context: x
"
    ))
}

#[test]
fn without_a_kubeconfig_it_says_how_to_give_one() {
    let ended: Ended = alone().arg("get").output().unwrap().into();
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("no cluster to talk to") && ended.err.contains("--kubeconfig"),
        "{}",
        ended.err
    );
    let ended: Ended = alone()
        .args(["get", "--kubeconfig", "/nonexistent/x"])
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("/nonexistent/x"), "{}", ended.err);
    let bad = file("clusters: [");
    let ended: Ended = alone()
        .arg("get")
        .arg("--kubeconfig")
        .arg(bad.path())
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.code, 2, "{}", ended.err);
}

#[test]
fn a_cluster_that_does_not_answer_is_said_to_be_one() {
    // Port 9 of loopback: nobody listens there, and nothing leaves this machine.
    let nowhere = kubeconfig("https://127.0.0.1:9", "x");
    for words in [
        &["get"][..],
        &["doctor", "t1"],
        &["tree", "t1"],
        &["install"],
        &["import", "--from-cluster"],
    ] {
        let ended: Ended = alone()
            .arg("--kubeconfig")
            .arg(nowhere.path())
            .args(words)
            .output()
            .unwrap()
            .into();
        assert_eq!(ended.code, 2, "{words:?}: {}{}", ended.out, ended.err);
        assert!(
            ended.err.contains("does not answer"),
            "{words:?}: {}",
            ended.err
        );
        assert!(ended.out.is_empty(), "{words:?}: {}", ended.out);
    }
}

#[tokio::test]
async fn a_missing_right_is_named() {
    let server = server().await;
    let namespace = server.namespace("rights").await.unwrap();
    let client = server.client().await.unwrap();
    // Nobody fills in tokens here but the API server itself, for an account that exists.
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    let account = serde_json::from_value(json!({ "metadata": { "name": "nobody" } })).unwrap();
    accounts
        .create(&PostParams::default(), &account)
        .await
        .unwrap();
    let request =
        serde_json::from_value(json!({ "metadata": {}, "spec": { "audiences": [] } })).unwrap();
    let token = accounts
        .create_token_request("nobody", &PostParams::default(), &request)
        .await
        .unwrap();
    let config = kubeconfig(&server.url(), &token.status.unwrap().token);
    let ended = steward(config.path().to_owned(), &["get", "-n", &namespace]).await;
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(
        ended.err.contains("you may not list tenants")
            && ended
                .err
                .contains("cannot list resource \"tenantcontrolplanes\""),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn without_the_operator_it_says_what_installs_it() {
    let server = ApiServer::start().await.unwrap();
    for words in [
        &["get"][..],
        &["get", "t1"],
        &["doctor"],
        &["tree", "t1"],
        &["create", "t1"],
        &["join", "t1"],
    ] {
        let ended = steward(server.kubeconfig(), words).await;
        assert_eq!(ended.code, 2, "{words:?}: {}{}", ended.out, ended.err);
        assert!(
            ended
                .err
                .contains("Steward is not installed in this cluster"),
            "{words:?}: {}",
            ended.err
        );
    }
    let ended = steward(server.kubeconfig(), &["import", "--from-cluster"]).await;
    assert!(
        ended.code == 2 && ended.err.contains("knows no kind"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn a_tenant_that_is_not_there_has_neighbours() {
    let server = server().await;
    let namespace = server.namespace("near").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("tenant-01"), false)
        .await
        .unwrap();
    let commands = [
        &["get"][..],
        &["tree"],
        &["doctor"],
        &["kubeconfig"],
        &["join"],
        &["dns"],
        &["connectivity"],
    ];
    for command in commands {
        let mut words = command.to_vec();
        words.extend(["tennat-01", "-n", &namespace]);
        let ended = steward(server.kubeconfig(), &words).await;
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.err);
        assert!(
            ended.err.contains("did you mean tenant-01?"),
            "{words:?}: {}",
            ended.err
        );
    }
    // One that is there but not made yet has no kubeconfig: another sentence, another code.
    let ended = steward(
        server.kubeconfig(),
        &["kubeconfig", "tenant-01", "-n", &namespace],
    )
    .await;
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .err
            .contains("tenant-01-admin-kubeconfig has no admin.conf yet"),
        "{}",
        ended.err
    );
    // And one that is there can't be created again.
    let ended = steward(
        server.kubeconfig(),
        &["create", "tenant-01", "-n", &namespace],
    )
    .await;
    assert!(
        ended.code == 1 && ended.err.contains("it is there already"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn the_api_servers_own_sentence_is_passed_on() {
    let server = server().await;
    let namespace = server.namespace("refused").await.unwrap();
    let words = [
        "create",
        "t1",
        "-n",
        &namespace,
        "--kubernetes",
        "one.two",
        "--timeout",
        "0",
    ];
    let ended = steward(server.kubeconfig(), &words).await;
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("spec.kubernetes.version"),
        "{}",
        ended.err
    );
    let secrets: Api<Secret> = Api::namespaced(server.client().await.unwrap(), &namespace);
    assert!(
        secrets
            .list(&kube::api::ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_broken_kubeconfig_of_a_tenant_gets_a_sentence() {
    let server = server().await;
    let namespace = server.namespace("broken").await.unwrap();
    let client = server.client().await.unwrap();
    create(&client, &namespace, &tenant("blue"), false)
        .await
        .unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "blue-admin-kubeconfig" }, "stringData": { "admin.conf": "nonsense" },
    });
    create(&client, &namespace, &secret, false).await.unwrap();
    let ended = steward(server.kubeconfig(), &["join", "blue", "-n", &namespace]).await;
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("its kubeconfig can't be read"),
        "{}",
        ended.err
    );
}

#[test]
fn what_is_not_a_manifest_gets_a_sentence_and_nothing_is_printed() {
    let good = "apiVersion: kamaji.clastix.io/v1alpha1\nkind: TenantControlPlane\nmetadata: { name: a }\nspec: { kubernetes: { version: v1.31.0 } }\n";
    let cases = [
        ("hello", "document 1: this is not a Kubernetes manifest"),
        ("a: [", "this is not YAML"),
        ("", "there is no document in it"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: { name: p }\n",
            "Pod can't be imported",
        ),
        (
            "apiVersion: k0smotron.io/v1beta1\nkind: Cluster\nspec: {}\n",
            "metadata.name is missing",
        ),
    ];
    for (text, expected) in cases {
        let bad = file(text);
        let ended: Ended = alone()
            .arg("import")
            .arg(bad.path())
            .output()
            .unwrap()
            .into();
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (2, ""),
            "{text}: {}",
            ended.err
        );
        assert!(ended.err.contains(expected), "{text}: {}", ended.err);
    }
    let several = file(&format!("{good}---\nkind: Nothing\n---\n{good}"));
    let ended: Ended = alone()
        .arg("import")
        .arg(several.path())
        .output()
        .unwrap()
        .into();
    assert_eq!((ended.code, ended.out.as_str()), (2, ""));
    assert!(
        ended.err.contains("document 2") && ended.err.contains("nothing was written"),
        "{}",
        ended.err
    );
}

#[test]
fn arguments_that_make_no_sense_end_with_2() {
    for words in [
        &["dns"][..],
        &["dns", "--domain", "example.com"],
        &["get", "x", "-A"],
        &["join"],
        &["kubeconfig", "t1", "--group", "g"],
        &["import"],
        &["import", "x", "--from-cluster"],
        &["doctor", "--yes"],
        &["create", "t1", "--controller-type", "magic"],
        &["install", "--dry-run", "--set", "gateway"],
        &["nonsense"],
    ] {
        let ended: Ended = alone().args(words).output().unwrap().into();
        assert_eq!(ended.code, 2, "{words:?}: {}", ended.err);
        assert!(
            !ended.err.is_empty() && !ended.err.contains("panicked"),
            "{words:?}: {}",
            ended.err
        );
    }
}

#[test]
fn nobody_reading_any_more_is_no_reason_to_shout() {
    let script = format!(
        "{} install --dry-run | head -1",
        env!("CARGO_BIN_EXE_steward")
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn kubectl_finds_it_as_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-steward");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steward"), &plugin).unwrap();
    let output = std::process::Command::new(&plugin)
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl steward "), "{help}");
}
