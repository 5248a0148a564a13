//! HAProxy Technologies' ingress controller, as far as TLS passthrough goes: a real HAProxy,
//! configured from the very Ingress objects that Steward wrote, in the form that controller
//! gives its own file (a frontend in TCP mode that waits for the hello, and a backend for each
//! Service's port with the addresses of its pods).
//!
//! The controller itself can't be had here. What it does besides is not imitated.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Child;

use crate::{Stage, wait_for};

const CLASS: &str = "haproxy";
const PASSTHROUGH: &str = "haproxy.org/ssl-passthrough";
/// Who opens TLS itself for all other names: the controller's own HTTPS frontend. With `client-strict-sni` in its
/// `ConfigMap`, a name that it has no certificate for gets an alert; here it has none at all.
const OTHER_NAMES: &str = "  default_backend ssl\n\
    backend ssl\n  mode tcp\n  server https 127.0.0.1:8444 send-proxy-v2\n\
    frontend https\n  mode http\n  bind 127.0.0.1:8444 accept-proxy ssl strict-sni\n";
/// In a backend that has none.
const NO_PODS: &str = "  # no pods\n";

/// Where it listens: the management host's own address.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 2);

/// A running HAProxy on port 443 of the management host. Dropping it ends it.
pub struct Haproxy {
    process: Child,
    namespace: String,
}

impl Haproxy {
    /// Starts with what the Ingresses of a namespace say, once each has pods behind it.
    pub async fn start(stage: &Stage, namespace: &str) -> Result<Self> {
        let what = format!("routes of namespace {namespace}");
        let config = wait_for(&what, 240, async || {
            let config = translate(stage, namespace).await?;
            ensure!(!config.contains(NO_PODS), "no pods yet: {config}");
            Ok(config)
        })
        .await?;
        let file = stage.folder().join("haproxy.cfg");
        std::fs::write(&file, config)?;
        let (file, pid) = (file.display().to_string(), pid_file(stage));
        let words = ["haproxy", "-W", "-db", "-p", &pid, "-f", &file];
        Ok(Self {
            process: stage.lab.mgmt().spawn(&words)?,
            namespace: namespace.to_owned(),
        })
    }

    /// Translates anew and lets a new process take over, as the controller does when routes change. The old
    /// one serves what it has to its end.
    pub async fn reload(&self, stage: &Stage) -> Result<()> {
        let config = translate(stage, &self.namespace).await?;
        std::fs::write(stage.folder().join("haproxy.cfg"), config)?;
        let reload = format!("kill -USR2 $(cat {})", pid_file(stage));
        stage.lab.mgmt().script(&reload).await?;
        Ok(())
    }

    /// Ends it, and every connection with it.
    pub async fn stop(mut self) -> Result<()> {
        self.process.kill().await?;
        tokio::time::timeout(Duration::from_secs(30), self.process.wait())
            .await
            .context("HAProxy did not end")??;
        Ok(())
    }
}

fn pid_file(stage: &Stage) -> String {
    stage.folder().join("haproxy.pid").display().to_string()
}

async fn read(stage: &Stage, words: &[&str]) -> Result<Vec<Value>> {
    let mut all = vec!["get", "-o", "json"];
    all.extend(words);
    let list: Value = serde_json::from_str(&stage.kubectl(&all).await?)?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// The Ingresses that the controller would take: of its class, with its annotation.
async fn translate(stage: &Stage, namespace: &str) -> Result<String> {
    let ingresses = read(stage, &["ingresses", "-n", namespace]).await?;
    let mut frontend = String::from(
        "defaults\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n  timeout tunnel 1h\n\
         frontend ssl\n  mode tcp\n  bind 10.10.0.2:443\n  tcp-request inspect-delay 5s\n  \
         tcp-request content accept if { req_ssl_hello_type 1 }\n",
    );
    let mut backends = String::new();
    for ingress in &ingresses {
        let ours = ingress["spec"]["ingressClassName"] == CLASS
            && ingress["metadata"]["annotations"][PASSTHROUGH] == "true";
        ensure!(ours, "not for this controller: {ingress}");
        for rule in ingress["spec"]["rules"].as_array().into_iter().flatten() {
            let host = rule["host"].as_str().context("a rule without host")?;
            let service = &rule["http"]["paths"][0]["backend"]["service"];
            let (name, servers) = servers(stage, namespace, service).await?;
            writeln!(
                frontend,
                "  use_backend {name} if {{ req_ssl_sni -i {host} }}"
            )?;
            write!(
                backends,
                "backend {name}\n  mode tcp\n  balance roundrobin\n{servers}"
            )?;
        }
    }
    ensure!(!backends.is_empty(), "no Ingress yet");
    Ok(frontend + OTHER_NAMES + &backends)
}

/// A backend's name, and a line for each pod behind that port of the Service.
async fn servers(stage: &Stage, namespace: &str, service: &Value) -> Result<(String, String)> {
    let name = service["name"].as_str().context("no Service")?;
    let number = &service["port"]["number"];
    let text = stage
        .kubectl(&["get", "service", name, "-n", namespace, "-o", "json"])
        .await?;
    let found: Value = serde_json::from_str(&text)?;
    let ports = found["spec"]["ports"].as_array().context("no ports")?;
    let port = ports.iter().find(|port| port["port"] == *number);
    let port = &port.with_context(|| format!("Service {name} has no port {number}"))?["name"];
    let label = format!("kubernetes.io/service-name={name}");
    let slices = read(stage, &["endpointslices", "-n", namespace, "-l", &label]).await?;
    let mut lines = String::new();
    for slice in &slices {
        let mut ports = slice["ports"].as_array().into_iter().flatten();
        let Some(target) = ports.find(|p| p["name"] == *port) else {
            continue;
        };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            let address = endpoint["addresses"][0].as_str().context("no address")?;
            if endpoint["conditions"]["ready"] != true {
                continue;
            }
            writeln!(lines, "  server {address} {address}:{}", target["port"])?;
        }
    }
    if lines.is_empty() {
        lines.push_str(NO_PODS);
    }
    Ok((format!("{namespace}_svc_{name}_{number}"), lines))
}
