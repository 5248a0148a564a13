//! A user with `edit` and every right on tenants in one namespace.

use anyhow::{Result, ensure};
use steward_e2e::{Stage, wait_for};

use crate::{manifest, refused};

/// The user.
pub(crate) struct Nina<'s> {
    stage: &'s Stage,
}

impl<'s> Nina<'s> {
    pub(crate) fn new(stage: &'s Stage) -> Self {
        Self { stage }
    }

    async fn kubectl(&self, words: &[&str]) -> Result<String> {
        let mut all = vec!["--as=nina", "-n", "red"];
        all.extend(words);
        self.stage.kubectl(&all).await
    }

    async fn apply(&self, manifest: &str) -> Result<String> {
        let file = self.stage.folder().join("nina.yaml");
        std::fs::write(&file, manifest)?;
        let file = file.display().to_string();
        self.kubectl(&["apply", "-f", &file]).await
    }

    async fn condition(&self, tenant: &str, type_: &str, reason: &str) -> Result<String> {
        wait_for(
            &format!("{type_} of {tenant} to say {reason}"),
            90,
            async || {
                let path = format!(
                    "jsonpath={{.status.conditions[?(@.type==\"{type_}\")].reason}} \
                 {{.status.conditions[?(@.type==\"{type_}\")].message}}"
                );
                let found = self.kubectl(&["get", "tcp", tenant, "-o", &path]).await?;
                ensure!(found.starts_with(reason), "{found}");
                Ok(found)
            },
        )
        .await
    }

    async fn remove(&self, tenant: &str) -> Result<()> {
        self.kubectl(&["delete", "tcp", tenant, "--timeout=120s"])
            .await?;
        Ok(())
    }

    pub(crate) async fn is_refused_names_of_the_datastore(&self) -> Result<()> {
        for field in ["dataStoreUsername: root", "dataStoreSchema: root"] {
            let thief = manifest("red", "thief", &format!("  {field}\n"));
            let said = refused(field, self.apply(&thief).await)?;
            ensure!(said.contains("this name is the datastore's own"), "{said}");
        }
        Ok(())
    }

    pub(crate) async fn is_refused_what_reaches_into_the_node(&self) -> Result<()> {
        let change = r#"{"spec":{"controlPlane":{"deployment":{"additionalVolumes":[{"name":"root","hostPath":{"path":"/"}}]}}}}"#;
        self.apply(&manifest("red", "thief", "")).await?;
        let words = ["patch", "tcp", "thief", "--type=merge", "-p", change];
        let said = refused("hostPath", self.kubectl(&words).await)?;
        ensure!(said.contains("privilegedpods"), "{said}");
        let change = r#"{"spec":{"controlPlane":{"egress":{"cluster":"Direct"}}}}"#;
        let words = ["patch", "tcp", "thief", "--type=merge", "-p", change];
        let said = refused("egress", self.kubectl(&words).await)?;
        ensure!(said.contains("spec.controlPlane.egress"), "{said}");
        self.remove("thief").await
    }

    pub(crate) async fn can_not_report_a_status(&self) -> Result<()> {
        self.apply(&manifest("red", "thief", "")).await?;
        let forged = r#"{"status":{"storage":{"dataStoreName":"default"}}}"#;
        let words = [
            "patch",
            "tcp",
            "thief",
            "--subresource=status",
            "--type=merge",
            "-p",
            forged,
        ];
        let said = refused("a forged status", self.kubectl(&words).await)?;
        ensure!(said.contains("decided by the operator"), "{said}");
        self.remove("thief").await
    }

    pub(crate) async fn has_nothing_of_a_neighbour_s_data(&self) -> Result<()> {
        let path = "jsonpath={.metadata.uid}";
        let words = ["get", "tcp", "victim", "-n", "blue", "-o", path];
        let uid = self.stage.kubectl(&words).await?;
        for field in ["dataStoreUsername", "dataStoreSchema"] {
            let thief = manifest("red", "thief", &format!("  {field}: {uid}\n"));
            self.apply(&thief).await?;
            let said = self
                .condition("thief", "DatastoreReady", "DatastoreNameTaken")
                .await?;
            ensure!(said.contains("blue/victim"), "{said}");
            let secret = self
                .kubectl(&["get", "secret", "thief-datastore-certificate"])
                .await;
            refused("its certificate", secret)?;
            self.remove("thief").await?;
        }
        Ok(())
    }

    pub(crate) async fn leaves_foreign_objects_alone(&self) -> Result<()> {
        let words = [
            "create",
            "configmap",
            "web-kubeadmconfig",
            "--from-literal=a=b",
        ];
        self.kubectl(&words).await?;
        let words = ["create", "service", "clusterip", "web", "--tcp=80:80"];
        self.kubectl(&words).await?;
        self.apply(&manifest("red", "web", "")).await?;
        let said = self
            .condition("web", "EndpointReady", "ObjectNotOurs")
            .await?;
        ensure!(said.contains("web"), "{said}");
        self.remove("web").await?;
        for object in ["service/web", "configmap/web-kubeadmconfig"] {
            let owners = "jsonpath={.metadata.ownerReferences}{.metadata.labels}";
            let found = self.kubectl(&["get", object, "-o", owners]).await?;
            ensure!(!found.contains("steward"), "{object}: {found}");
        }
        Ok(())
    }

    pub(crate) async fn can_not_switch_managed_flags_by_another_spelling(&self) -> Result<()> {
        let flags = manifest("red", "flags", "").replace(
            "    deployment: { replicas: 1, resources",
            "    deployment: { extraArgs: { apiServer: ['--etcd_prefix=/', '--authorization_mode=AlwaysAllow'] }, replicas: 1, resources",
        );
        ensure!(flags.contains("etcd_prefix"), "{flags}");
        self.apply(&flags).await?;
        let args = wait_for("the pods of flags", 90, async || {
            let path =
                "jsonpath={.spec.template.spec.containers[?(@.name==\"kube-apiserver\")].args}";
            let found = self
                .kubectl(&["get", "deployment", "flags", "-o", path])
                .await?;
            ensure!(!found.is_empty(), "no arguments");
            Ok(found)
        })
        .await?;
        ensure!(!args.contains("etcd_prefix"), "{args}");
        ensure!(!args.contains("AlwaysAllow"), "{args}");
        self.remove("flags").await
    }

    pub(crate) async fn loses_an_authority_and_it_is_not_replaced(&self) -> Result<()> {
        let path = "jsonpath={.metadata.resourceVersion}";
        let leaf = ["get", "secret", "own-api-server-certificate", "-o", path];
        let before = self.kubectl(&leaf).await?;
        self.kubectl(&["delete", "secret", "own-ca"]).await?;
        let said = self
            .condition("own", "CertificatesReady", "KeyLost")
            .await?;
        ensure!(said.contains("own-ca"), "{said}");
        refused(
            "the authority",
            self.kubectl(&["get", "secret", "own-ca"]).await,
        )?;
        ensure!(
            self.kubectl(&leaf).await? == before,
            "the leaf was rewritten"
        );
        Ok(())
    }
}
