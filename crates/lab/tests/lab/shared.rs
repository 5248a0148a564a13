//! One lab for all tests of this binary.

use std::{ops::Deref, time::Duration};

use steward_lab::{Error, Host, Lab, progress::Progress};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// On a busy machine everything takes several times as long.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);

/// The lab, in use by a test. `G` is the right to use it.
pub(crate) struct InUse<G> {
    lab: &'static Lab,
    _right: G,
}

impl<G> Deref for InUse<G> {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        self.lab
    }
}

static RIGHTS: RwLock<()> = RwLock::const_new(());

/// The lab, for a test that disturbs nobody; several of them run at once.
pub(crate) async fn lab() -> InUse<RwLockReadGuard<'static, ()>> {
    InUse {
        lab: the_lab().await,
        _right: RIGHTS.read().await,
    }
}

/// The lab, for a test that breaks something for a while.
pub(crate) async fn lab_alone() -> InUse<RwLockWriteGuard<'static, ()>> {
    InUse {
        lab: the_lab().await,
        _right: RIGHTS.write().await,
    }
}

/// Made by the first test that asks, removed when the binary ends.
async fn the_lab() -> &'static Lab {
    static LAB: OnceCell<Result<Lab, String>> = OnceCell::const_new();
    let lab = LAB.get_or_init(async || {
        let lab = Lab::builder()
            .workers(2)
            .progress(Progress::stderr())
            .up()
            .await;
        lab.map_err(|error| error.chain())
    });
    match lab.await {
        Ok(lab) => lab,
        Err(error) => panic!("there is no lab: {error}"),
    }
}

/// kubectl on the management cluster's host, with input from a file or none.
pub(crate) async fn kubectl(lab: &Lab, words: &str) -> Result<String, Error> {
    let words: Vec<&str> = std::iter::once("kubectl")
        .chain(words.split_whitespace())
        .collect();
    lab.mgmt().run(&words).await
}

/// Applies a manifest to the cluster of a host.
pub(crate) async fn apply(host: &Host, manifest: &str) -> Result<String, Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), manifest).unwrap();
    host.run(&["kubectl", "apply", "-f", file.path().to_str().unwrap()])
        .await
}

/// Runs a program on a host until it succeeds and says what is expected.
pub(crate) async fn until_says(lab: &Lab, host: &Host, words: &[&str], expected: &str) -> String {
    lab.wait_for(
        &format!("{words:?} on {} saying {expected:?}", host.id()),
        PATIENCE,
        async || {
            let said = host.run(words).await.map_err(|error| error.chain())?;
            if said.contains(expected) {
                Ok(said)
            } else {
                Err(said)
            }
        },
    )
    .await
    .unwrap()
}

/// Two web servers behind a Service, as a manifest.
pub(crate) fn web(name: &str, kind: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: default}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: steward.lab/toolbox:1
        command:
        - sh
        - -c
        - echo started; mkdir /tmp/www; echo hello from {name} >/tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www
        readinessProbe: {{tcpSocket: {{port: 8080}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec:
  type: {kind}
  selector: {{app: {name}}}
  ports: [{{port: 80, targetPort: 8080}}]
"
    )
}
