//! A tenant's administrator: `cluster-admin` inside, and everything that the control plane's pod holds.

use anyhow::{Result, ensure};
use steward_e2e::{Etcd, Login, Stage, Tenant};

use crate::refused;

async fn login(etcd: &Etcd<'_>) -> Result<Login> {
    let keys = ["server.crt", "server.key"];
    etcd.login("red", "own-datastore-certificate", keys).await
}

pub(crate) async fn reaches_no_member_of_etcd(stage: &Stage, etcd: &Etcd<'_>) -> Result<()> {
    let login = login(etcd).await?;
    let address = etcd.address().await?;
    let ask = |port: u16| {
        let curl = "curl -sS --http1.1 -k --max-time 10 -o /dev/null -w '%{http_code}'";
        format!("{curl} {} https://{address}:{port}/version", login.curl())
    };
    let host = stage.lab.mgmt();
    // The port for clients takes the certificate: it is a good one.
    let status = host.script(&ask(2379)).await?;
    ensure!(status.trim() == "200", "{status}");
    let said = refused(
        "the members' port",
        host.script(&ask(2380)).await.map_err(Into::into),
    )?;
    ensure!(
        said.contains("certificate") || said.contains("alert"),
        "{said}"
    );
    Ok(())
}

pub(crate) async fn has_no_rights_around_its_own_prefix(
    stage: &Stage,
    etcd: &Etcd<'_>,
) -> Result<()> {
    let login = login(etcd).await?;
    let path = "jsonpath={.metadata.uid}";
    let uid = |namespace: &'static str, name: &'static str| async move {
        let words = ["get", "tcp", name, "-n", namespace, "-o", path];
        stage.kubectl(&words).await
    };
    let (own, victim) = (uid("red", "own").await?, uid("blue", "victim").await?);
    let read = format!("get /{own}/ --prefix --keys-only --limit=1");
    let found = etcd.ctl(&login, &read).await?;
    ensure!(found.contains(&own), "{found}");
    for attack in [
        format!("get /{victim}/ --prefix --keys-only --limit=1"),
        format!("get /{own}/ --from-key --limit=1"),
        "get '' --from-key --keys-only --limit=1".to_owned(),
        format!("put /{victim}/x y"),
        format!("del /{victim}/ --prefix"),
        "defrag".to_owned(),
        "user list".to_owned(),
        "get steward.butlerlabs.dev/claims/ --prefix".to_owned(),
    ] {
        let said = refused(&attack, etcd.ctl(&login, &attack).await)?;
        ensure!(said.contains("permission denied"), "{attack}: {said}");
    }
    // What is refused inside a transaction is refused there too: a transaction in a transaction, and the value before.
    let nested = format!(
        "printf 'mod(\"/{own}/x\") > \"0\"\\n\\nput /{victim}/x y\\n\\nput /{victim}/x y\\n\\n' | "
    );
    let said = refused("a transaction", etcd.piped(&login, &nested, "txn").await)?;
    ensure!(said.contains("permission denied"), "{said}");
    Ok(())
}

/// A webhook at an address of the management cluster is not dialled from the control plane's pod.
pub(crate) async fn can_not_call_the_management_cluster(stage: &Stage, own: &Tenant) -> Result<()> {
    let words = [
        "get",
        "endpointslices",
        "-n",
        "default",
        "kubernetes",
        "-o",
        "jsonpath={.endpoints[0].addresses[0]}:{.ports[0].port}",
    ];
    let server = stage.kubectl(&words).await?;
    own.apply(&format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{ name: probe }}
webhooks:
- name: probe.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 5
  failurePolicy: Fail
  clientConfig: {{ url: 'https://{server}/version' }}
  rules: [ {{ apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps], scope: Namespaced }} ]
"
    ))
    .await?;
    let words = ["create", "configmap", "bait", "-n", "default"];
    let said = refused("the webhook", own.kubectl(&words).await)?;
    // Dialled from the pod, the answer would be about the certificate of the management cluster.
    ensure!(
        !said.contains("x509") && !said.contains("certificate"),
        "the management cluster was dialled: {said}"
    );
    ensure!(said.contains("failed calling webhook"), "{said}");
    own.kubectl(&["delete", "validatingwebhookconfiguration", "probe"])
        .await?;
    Ok(())
}
