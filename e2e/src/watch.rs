//! One request of a pod that stays open while something is done around it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::stage::wait_for;
use crate::tenant::Tenant;

/// A pod whose only program is one watch. It is not started again: when the watch ends, so
/// does the pod.
const WATCHER: &str = r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: watcher }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view }
subjects: [ { kind: ServiceAccount, name: default, namespace: default } ]
---
apiVersion: v1
kind: Pod
metadata: { name: watcher }
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers:
  - name: box
    image: steward.lab/toolbox:1
    imagePullPolicy: IfNotPresent
    command:
    - sh
    - -c
    - |
      cd /var/run/secrets/kubernetes.io/serviceaccount
      exec curl -sSN --cacert ca.crt -H "Authorization: Bearer $(cat token)" \
        "https://kubernetes.default.svc/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=3600"
"#;

/// A watch that is open.
pub struct Watch<'t> {
    tenant: &'t Tenant,
    since: Instant,
}

impl<'t> Watch<'t> {
    /// Lets a pod watch `ConfigMaps` through `kubernetes.default.svc`, once CoreDNS knows it.
    pub async fn begin(tenant: &'t Tenant) -> Result<Self> {
        tenant.pod("watcher", WATCHER).await?;
        let watch = Self {
            tenant,
            since: Instant::now(),
        };
        watch.hears("kube-root-ca.crt").await?;
        Ok(watch)
    }

    /// The same request hears of something new. Returns for how long it has been open.
    pub async fn still_hears(&self) -> Result<Duration> {
        let age = self.since.elapsed();
        let name = format!("news-{}", age.as_secs());
        self.tenant.kubectl(&["create", "configmap", &name]).await?;
        self.hears(&name).await?;
        let path = "jsonpath={.status.phase}";
        let look = ["get", "pod", "watcher", "-o", path];
        let phase = self.tenant.kubectl(&look).await?;
        ensure!(phase == "Running", "the watch ended: {phase}");
        Ok(age)
    }

    /// The same, once it has been open for so long.
    pub async fn still_hears_after(&self, age: Duration) -> Result<Duration> {
        self.wait_until(age).await;
        self.still_hears().await
    }

    /// Waits until it has been open for so long.
    pub async fn wait_until(&self, age: Duration) {
        tokio::time::sleep(age.saturating_sub(self.since.elapsed())).await;
    }

    async fn hears(&self, word: &str) -> Result<()> {
        wait_for(&format!("{word} in the watch"), 120, async || {
            let log = self.tenant.kubectl(&["logs", "watcher"]).await?;
            if !log.contains(word) {
                bail!("{log}");
            }
            Ok(())
        })
        .await
    }
}
