//! The proxy on the nodes: what it consists of in each mode, and what its fields do.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use steward_e2e::wait_for;

use crate::Scene;

impl Scene {
    /// Changes fields of the proxy.
    pub(crate) async fn proxy(&self, change: &str) -> Result<()> {
        self.patch(&format!(
            r#"{{"spec":{{"addons":{{"tcpProxy":{change}}}}}}}"#
        ))
        .await
    }

    pub(crate) async fn inside(&self, words: &[&str]) -> Result<String> {
        let mut all = vec!["-n", "kube-system"];
        all.extend(words);
        self.tenant.kubectl(&all).await
    }

    /// Waits until the proxy of one kind is there, of the other kinds nothing, and pods are led
    /// to an address.
    pub(crate) async fn wait_proxy(&self, there: &str, gone: &str, address: &str) -> Result<()> {
        wait_for(&format!("{there} and {address}"), 240, async || {
            if !there.is_empty() {
                let found = self
                    .inside(&["get", there, "steward-tcp-proxy", "-o", "name"])
                    .await?;
                ensure!(found.contains("steward-tcp-proxy"), "{found}");
            }
            let label = ["get", gone, "-l", "app=steward-tcp-proxy", "-o", "name"];
            let left = self.inside(&label).await?;
            ensure!(left.trim().is_empty(), "still there: {left}");
            let path = "jsonpath={.endpoints[*].addresses[*]}";
            let words = [
                "get",
                "endpointslice",
                "kubernetes",
                "-n",
                "default",
                "-o",
                path,
            ];
            let now = self.tenant.kubectl(&words).await?;
            ensure!(now == address, "pods are led to {now}");
            Ok(())
        })
        .await
    }

    /// What the first seed says, and what it says wrongly.
    pub(crate) async fn proxy_that_opens_tls_is_as_described(&self) -> Result<()> {
        self.wait_proxy("deployment", "daemonset", "10.20.0.11")
            .await?;
        let path = "jsonpath={.spec.replicas} {.spec.template.spec.hostNetwork} {.spec.template.spec.containers[0].resources.limits.memory}";
        let seen = self
            .inside(&["get", "deployment", "steward-tcp-proxy", "-o", path])
            .await?;
        ensure!(seen == "2 true 64Mi", "{seen}");
        self.inside(&["get", "service", "steward-tcp-proxy"])
            .await?;
        self.it_may_touch_one_slice_only().await?;
        self.its_key_is_its_own().await?;
        self.a_pod_gets_h2_and_a_certificate_does_not_pass().await?;
        self.it_works_while_the_front_door_is_down().await
    }

    async fn it_may_touch_one_slice_only(&self) -> Result<()> {
        let account = "--as=system:serviceaccount:kube-system:steward-tcp-proxy";
        let may = async |words: &[&str]| {
            let mut all = vec!["auth", "can-i", account, "-n", "default"];
            all.extend(words);
            // Says no with an exit code.
            let said = self.tenant.kubectl(&all).await;
            anyhow::Ok(said.is_ok_and(|said| said.trim() == "yes"))
        };
        ensure!(may(&["update", "endpointslices.discovery.k8s.io/kubernetes"]).await?);
        ensure!(!may(&["update", "endpointslices.discovery.k8s.io/other"]).await?);
        ensure!(!may(&["get", "secrets"]).await?);
        Ok(())
    }

    async fn its_key_is_its_own(&self) -> Result<()> {
        let path = "jsonpath={.data.tls\\.key}";
        let its = self
            .inside(&["get", "secret", "steward-tcp-proxy-tls", "-o", path])
            .await?;
        let path = "jsonpath={.data.apiserver\\.key}";
        let words = [
            "get",
            "secret",
            "t1-api-server-certificate",
            "-n",
            "tenants",
            "-o",
            path,
        ];
        let servers = self.stage.kubectl(&words).await?;
        ensure!(!its.is_empty() && !servers.is_empty() && its != servers);
        Ok(())
    }

    async fn a_pod_gets_h2_and_a_certificate_does_not_pass(&self) -> Result<()> {
        let pod = self.tenant.toolbox("asker").await?;
        pod.ask_api("/api").await.context("by token, over h2")?;
        // The administrator's certificate, which opens every door elsewhere.
        let field = |name: &str| format!("jsonpath={{.users[0].user.client-{name}-data}}");
        let mut made = String::new();
        for (name, file) in [("certificate", "crt"), ("key", "key")] {
            let words = ["config", "view", "--raw", "-o", &field(name)];
            let data = self.tenant.kubectl(&words).await?;
            let data = data.trim();
            let _ = write!(made, "echo {data} | base64 -d > /tmp/admin.{file}; ");
        }
        let script = format!(
            "{made} curl -sk --cert /tmp/admin.crt --key /tmp/admin.key https://kubernetes.default.svc/api/v1/namespaces"
        );
        let answer = pod.exec(&["sh", "-c", &script]).await?;
        ensure!(answer.contains("system:anonymous"), "{answer}");
        let logs = ["logs", "deployment/steward-tcp-proxy"];
        let logs = self.inside(&logs).await?;
        ensure!(logs.contains("client certificates can't pass"), "{logs}");
        Ok(())
    }

    /// `internalEndpoint` leads past a front door that is down.
    async fn it_works_while_the_front_door_is_down(&self) -> Result<()> {
        self.front_door(0).await?;
        let worker = self.stage.lab.worker(1)?;
        let url = "https://10.20.0.11:6444/version";
        wait_for("an answer past the front door", 120, async || {
            let answer = worker
                .run(&["curl", "-sSk", "--max-time", "10", url])
                .await?;
            ensure!(answer.contains("gitVersion"), "{answer}");
            Ok(())
        })
        .await?;
        self.front_door(1).await?;
        wait_for("the way through the front door", 120, async || {
            self.tenant.kubectl(&["get", "--raw", "/version"]).await
        })
        .await?;
        Ok(())
    }

    /// So many gateways, and no others.
    async fn front_door(&self, count: u8) -> Result<()> {
        let replicas = format!("--replicas={count}");
        let gateway = [
            "scale",
            "deployment",
            "steward-gateway",
            "-n",
            "steward-system",
            &replicas,
        ];
        self.stage.kubectl(&gateway).await?;
        wait_for(&format!("{count} gateways"), 120, async || {
            let path = "jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].status}";
            let label = "app.kubernetes.io/component=gateway";
            let words = [
                "get",
                "pods",
                "-n",
                "steward-system",
                "-l",
                label,
                "-o",
                path,
            ];
            let seen = self.stage.kubectl(&words).await?;
            ensure!(seen == vec!["True"; count.into()].join(" "), "{seen}");
            Ok(())
        })
        .await
    }

    /// The proxy shows a new certificate, and none of its pods is a new one.
    pub(crate) async fn certificate_is_rotated_without_a_restart(&self) -> Result<()> {
        let worker = self.stage.lab.worker(1)?;
        let look = "openssl s_client -connect 10.20.0.11:6444 -servername kubernetes </dev/null 2>/dev/null | openssl x509 -noout -serial";
        let serial = async || -> Result<String> { Ok(worker.script(look).await?) };
        let path = "jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}";
        let pods = async || {
            self.inside(&["get", "pods", "-l", "app=steward-tcp-proxy", "-o", path])
                .await
        };
        let (old, before) = (serial().await?, pods().await?);
        let note = "certs.steward.butlerlabs.dev/rotate=now";
        let words = [
            "annotate",
            "secret",
            "t1-tcp-proxy-certificate",
            "-n",
            "tenants",
            note,
        ];
        self.stage.kubectl(&words).await?;
        wait_for("the proxy to show its new certificate", 240, async || {
            // A kubelet looks at a pod's volumes when the pod changes, or once a minute.
            let nudge = format!("seen={}", old.len());
            let words = [
                "annotate",
                "pods",
                "-l",
                "app=steward-tcp-proxy",
                "--overwrite",
                &nudge,
            ];
            self.inside(&words).await?;
            let now = serial().await?;
            ensure!(now.starts_with("serial=") && now != old, "{now}");
            Ok(())
        })
        .await?;
        ensure!(pods().await? == before, "pods were made anew");
        Ok(())
    }
}
