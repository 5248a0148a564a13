//! The default datastore, asked directly: by its administrator, or by whoever has somebody's certificate.

use std::path::PathBuf;

use anyhow::{Context, Result};
use steward_lab::{parts, progress::Progress};

use crate::stage::Stage;

/// etcdctl on the management cluster's node, as somebody.
pub struct Etcd<'s> {
    stage: &'s Stage,
    program: PathBuf,
}

/// Files with a client certificate and its key.
pub struct Login {
    certificate: PathBuf,
    key: PathBuf,
}

impl Login {
    /// Arguments of curl that show this certificate.
    pub fn curl(&self) -> String {
        format!(
            "--cert {} --key {}",
            self.certificate.display(),
            self.key.display()
        )
    }
}

impl<'s> Etcd<'s> {
    /// With the lab's own etcdctl.
    pub async fn new(stage: &'s Stage) -> Result<Self> {
        let options = parts::Options::from_env()?;
        let work = move || parts::ensure(parts::Part::Etcd, &options, &Progress::stderr());
        let programs = tokio::task::spawn_blocking(work).await??;
        let program = programs.path("etcdctl")?.to_owned();
        Ok(Self { stage, program })
    }

    /// The administrator of the default datastore.
    pub async fn root(&self) -> Result<Login> {
        let keys = ["tls.crt", "tls.key"];
        self.login("steward-system", "default-etcd-root", keys)
            .await
    }

    /// What a Secret holds, as files: certificate and key.
    pub async fn login(&self, namespace: &str, secret: &str, keys: [&str; 2]) -> Result<Login> {
        let mut files = Vec::new();
        for key in keys {
            let file = self.stage.folder().join(format!("{secret}-{key}"));
            let entry = key.replace('.', "\\.");
            let script = format!(
                "umask 077; kubectl get secret {secret} -n {namespace} -o 'jsonpath={{.data.{entry}}}' | base64 -d > {}",
                file.display()
            );
            self.stage.lab.mgmt().script(&script).await?;
            files.push(file);
        }
        let [certificate, key] = files.try_into().ok().context("two files")?;
        Ok(Login { certificate, key })
    }

    /// Address of the first member.
    pub async fn address(&self) -> Result<String> {
        let path = "jsonpath={.status.podIP}";
        let words = [
            "get",
            "pod",
            "default-etcd-0",
            "-n",
            "steward-system",
            "-o",
            path,
        ];
        self.stage.kubectl(&words).await
    }

    /// The command so far: whom to ask and who asks. Pods are asked by address, which no certificate names.
    async fn command(&self, login: &Login) -> Result<String> {
        let address = self.address().await?;
        Ok(format!(
            "{} --endpoints=https://{address}:2379 --insecure-skip-tls-verify --cert={} --key={}",
            self.program.display(),
            login.certificate.display(),
            login.key.display(),
        ))
    }

    /// What etcdctl says to these words.
    pub async fn ctl(&self, login: &Login, words: &str) -> Result<String> {
        let command = self.command(login).await?;
        Ok(self
            .stage
            .lab
            .mgmt()
            .script(&format!("{command} {words}"))
            .await?)
    }

    /// What etcdctl says to these words when `input`, a command that ends in `|`, feeds it.
    pub async fn piped(&self, login: &Login, input: &str, words: &str) -> Result<String> {
        let command = self.command(login).await?;
        let script = format!("{input} {command} {words}");
        Ok(self.stage.lab.mgmt().script(&script).await?)
    }

    /// Writes so many megabytes.
    pub async fn fill(&self, login: &Login, megabytes: usize) -> Result<()> {
        let command = self.command(login).await?;
        let script = format!(
            "head -c 1000000 /dev/zero | tr '\\0' x > {folder}/megabyte
for number in $(seq {megabytes}); do {command} put /ballast/$number < {folder}/megabyte; done",
            folder = self.stage.folder().display()
        );
        self.stage.lab.mgmt().script(&script).await?;
        Ok(())
    }
}
