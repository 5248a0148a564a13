//! `DataStore` objects that are refused.

use anyhow::Result;

use crate::server::{Server, datastore, try_table};

const WHOLE: &str = "
spec:
  driver: etcd
  endpoints: ['etcd.example.com:2379']
  tlsConfig:
    certificateAuthority:
      certificate: {secretReference: {name: etcd, namespace: steward-system, keyPath: ca.crt}}
      privateKey: {secretReference: {name: etcd, namespace: steward-system, keyPath: ca.key}}
    clientCertificate:
      certificate: {secretReference: {name: root, namespace: steward-system, keyPath: tls.crt}}
      privateKey: {secretReference: {name: root, namespace: steward-system, keyPath: tls.key}}
";

fn without(part: &str) -> String {
    assert!(WHOLE.contains(part), "{part}");
    WHOLE.replace(part, "")
}

#[tokio::test]
async fn datastores_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("datastores").await?;
    let endpoint = "endpoints: not host:port; write etcd-0.example.com:2379";
    let scheme = WHOLE.replace("'etcd.example.com", "'https://etcd.example.com");
    let no_port = WHOLE.replace(":2379", "");
    let far_port = WHOLE.replace(":2379", ":92379");
    let no_authority_key = without(
        "      privateKey: {secretReference: {name: etcd, namespace: steward-system, keyPath: ca.key}}\n",
    );
    let no_namespace = WHOLE.replacen("namespace: steward-system, ", "", 1);
    let empty = WHOLE.replace(
        "{secretReference: {name: root, namespace: steward-system, keyPath: tls.key}}",
        "{}",
    );
    try_table(
        &server,
        datastore,
        &[
            ("nothing", "", "endpoints: missing; write host:port of each endpoint, or managed: {}"),
            ("no certificates", "spec: {endpoints: ['a:1']}", "tlsConfig.certificateAuthority.privateKey must have secretReference or content when driver is etcd"),
            ("no CA key", &no_authority_key, "tlsConfig.certificateAuthority.privateKey must have secretReference or content when driver is etcd"),
            ("no client key", &empty, "tlsConfig.clientCertificate.privateKey must have secretReference or content when driver is etcd"),
            ("no namespace", &no_namespace, "a DataStore belongs to no namespace, so name both"),
            ("scheme", &scheme, endpoint),
            ("no port", &no_port, endpoint),
            ("port out of range", &far_port, endpoint),
            ("driver", "spec: {driver: Oracle}", "Unsupported value: \"Oracle\": supported values: \"etcd\", \"MySQL\", \"PostgreSQL\", \"NATS\""),
            ("open database", "spec: {driver: PostgreSQL, endpoints: ['a:1']}", "When driver is not etcd, either tlsConfig or basicAuth must be provided"),
            ("managed database", "spec: {driver: MySQL, managed: {}}", "managed: Steward runs only etcd itself"),
            ("managed and not", "spec: {endpoints: ['a:1'], managed: {}}", "managed: excludes endpoints, basicAuth and tlsConfig"),
            ("two members", "spec: {managed: {replicas: 2}}", "managed.replicas: an etcd has 1 member, or 3"),
            ("volume and none", "spec: {managed: {storage: {}, emptyDir: {}}}", "managed: storage and emptyDir exclude each other"),
            ("quota", "spec: {managed: {quotaBackendBytes: 5}}", "quotaBackendBytes in body should be greater than or equal to"),
            ("password", "spec: {driver: MySQL, endpoints: ['a:1'], basicAuth: {username: {content: cm9vdA==}, password: {}}}", "basicAuth.password: empty; write secretReference"),
        ],
    )
    .await
}
