//! A pod of ours inside the tenant: made, told what to do, and removed.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use kube::Client;
use kube::api::{Api, AttachParams, DeleteParams, LogParams, PostParams};
use serde_json::{Value, json};
use steward_pki::{Authority, KeyKind, Pair, Request, SystemKeys, Usage, Validity};
use tokio::io::AsyncReadExt as _;

use super::{Show, Try, within};
use crate::args::Connectivity;
use crate::cluster::Management;
use crate::problem::{Problem, chain};

/// Who the pod says it is with its client certificate.
const PERSON: &str = "steward-connectivity";

/// What the pod says first, and its log must show.
const GREETING: &str = "steward connectivity begins";

/// Where a pod finds its own credentials.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Longer than everything here takes: a pod that outlives us ends by itself.
const LIFETIME: u32 = 900;

/// A pod in a namespace of its own.
pub(super) struct Stage<'a> {
    management: &'a Management,
    client: Client,
    args: &'a Connectivity,
    opened: bool,
    namespace: String,
}

impl<'a> Stage<'a> {
    /// `opened`: the node proxy opens TLS, and certificates can't pass.
    pub(super) fn new(
        management: &'a Management,
        client: Client,
        args: &'a Connectivity,
        opened: bool,
    ) -> Self {
        let namespace = format!(
            "steward-connectivity-{:05x}",
            rand::random::<u32>() & 0xf_ffff
        );
        Self {
            management,
            client,
            args,
            opened,
            namespace,
        }
    }

    /// Makes it, uses it, removes it. True when it was interrupted.
    pub(super) async fn run(&self, show: &mut Show) -> Result<bool, Problem> {
        let outcome = tokio::select! {
            outcome = self.play(show) => outcome.map(|()| false),
            _ = tokio::signal::ctrl_c() => Ok(true),
        };
        self.remove().await;
        outcome
    }

    async fn play(&self, show: &mut Show) -> Result<(), Problem> {
        self.make().await?;
        show.note(&format!(
            "waiting for a pod in {} ({})",
            self.namespace, self.args.image
        ));
        let running = Try::of(
            "pod",
            "starts and runs",
            within(self.args.timeout, self.running()),
        )
        .await;
        let runs = running.health == crate::output::Health::Good;
        show.add(running);
        if !runs {
            return Ok(());
        }
        show.add(
            Try::of(
                "here",
                "logs, through konnectivity",
                within(20, self.logs()),
            )
            .await,
        );
        show.add(
            Try::of(
                "here",
                "exec, through konnectivity",
                within(20, self.hello()),
            )
            .await,
        );
        let token = format!("-H \"Authorization: Bearer $(cat {ACCOUNT}/token)\"");
        let account = format!("system:serviceaccount:{}:default", self.namespace);
        show.add(
            Try::of(
                "pod",
                "kubernetes.default.svc with its token",
                within(30, self.ask(&token, &account)),
            )
            .await,
        );
        let way = "kubernetes.default.svc with a client certificate";
        if self.opened {
            show.add(Try::not_tried(
                "pod",
                way,
                "addons.tcpProxy.mode is Terminate: certificates can't pass",
            ));
        } else {
            let pair = "--cert /identity/tls.crt --key /identity/tls.key";
            show.add(Try::of("pod", way, within(30, self.ask(pair, PERSON))).await);
        }
        Ok(())
    }

    async fn make(&self) -> Result<(), Problem> {
        let what = |thing: &str| format!("make {thing} {} inside the tenant", self.namespace);
        let params = PostParams::default();
        let spaces: Api<Namespace> = Api::all(self.client.clone());
        let space = body(json!({ "metadata": { "name": self.namespace } }))?;
        spaces
            .create(&params, &space)
            .await
            .map_err(|e| Problem::from_api(&what("namespace"), e))?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let secret = self.identity().await?;
        secrets
            .create(&params, &secret)
            .await
            .map_err(|e| Problem::from_api(&what("Secret in"), e))?;
        let pod = self.pod()?;
        // The account of a new namespace comes a moment later, and pods are refused till then.
        for _ in 0..40 {
            match self.pods().create(&params, &pod).await {
                Ok(_) => return Ok(()),
                Err(kube::Error::Api(status)) if status.message.contains("serviceaccount") => {
                    tokio::time::sleep(Duration::from_millis(250)).await;
                }
                Err(error) => return Err(Problem::from_api(&what("pod in"), error)),
            }
        }
        Err(Problem::Tenant {
            name: self.args.name.clone(),
            what: "its controller-manager makes no ServiceAccount; look at `steward doctor`"
                .to_owned(),
        })
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A certificate of the tenant's CA that lives for an hour and may do nothing.
    async fn identity(&self) -> Result<Secret, Problem> {
        let broken = |why: String| Problem::Tenant {
            name: self.args.name.clone(),
            what: why,
        };
        let secret = format!("{}-ca", self.args.name);
        let pair = Pair {
            certificate: self.management.secret_text(&secret, "ca.crt").await?,
            key: self.management.secret_text(&secret, "ca.key").await?,
        };
        let authority = Authority::from_pair(pair).map_err(|e| broken(e.to_string()))?;
        let request = Request {
            common_name: PERSON.to_owned(),
            organization: None,
            usage: Usage::Client,
            sans: Vec::new(),
        };
        let validity = Validity::starting(Timestamp::now(), Duration::from_hours(1));
        let issued = authority
            .issue(&SystemKeys, KeyKind::default(), &request, validity)
            .map_err(|e| broken(e.to_string()))?;
        body(json!({
            "metadata": { "name": "identity" },
            "stringData": { "tls.crt": issued.certificate, "tls.key": issued.key },
        }))
    }

    fn pod(&self) -> Result<Pod, Problem> {
        let mut pod = json!({
            "metadata": { "name": "probe" },
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "activeDeadlineSeconds": LIFETIME,
                "tolerations": [{ "operator": "Exists" }],
                "volumes": [{ "name": "identity", "secret": { "secretName": "identity" } }],
                "containers": [{
                    "name": "probe", "image": self.args.image, "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", format!("echo {GREETING}; sleep {LIFETIME}")],
                    "volumeMounts": [{ "name": "identity", "mountPath": "/identity", "readOnly": true }],
                }],
            },
        });
        if let Some(node) = &self.args.node {
            pod["spec"]["nodeName"] = json!(node);
        }
        body(pod)
    }

    async fn running(&self) -> Result<String, String> {
        loop {
            let pod = self.pods().get("probe").await.map_err(|e| chain(&e))?;
            let status = pod.status.unwrap_or_default();
            let node = pod.spec.and_then(|s| s.node_name).unwrap_or_default();
            let containers = status.container_statuses.unwrap_or_default();
            let waiting = containers
                .iter()
                .find_map(|c| c.state.as_ref()?.waiting.clone());
            match (status.phase.as_deref(), waiting.and_then(|w| w.reason)) {
                (Some("Running"), _) => return Ok(format!("on {node}")),
                (Some("Failed"), _) => return Err(format!("it ended at once on {node}")),
                (_, Some(reason)) if reason.contains("Image") => {
                    return Err(format!(
                        "{reason} on {node}: give another image with --image"
                    ));
                }
                _ => tokio::time::sleep(Duration::from_millis(300)).await,
            }
        }
    }

    async fn logs(&self) -> Result<String, String> {
        let log = self
            .pods()
            .logs("probe", &LogParams::default())
            .await
            .map_err(|e| chain(&e))?;
        let first = log.lines().next().unwrap_or_default();
        if first == GREETING {
            Ok(format!("{} bytes", log.len()))
        } else {
            Err(format!("unexpected: {first}"))
        }
    }

    async fn hello(&self) -> Result<String, String> {
        let said = self.exec("echo hello from the pod").await?;
        if said.trim() == "hello from the pod" {
            Ok("it answers".to_owned())
        } else {
            Err(format!("unexpected: {said}"))
        }
    }

    /// Lets the pod ask its API server who it is, and compares the answer.
    async fn ask(&self, credentials: &str, expected: &str) -> Result<String, String> {
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let script = format!(
            "curl -sS --max-time 20 --cacert {ACCOUNT}/ca.crt {credentials} -H 'Content-Type: application/json' \
             -d '{review}' -w '\\n%{{http_code}} %{{time_total}} %{{http_version}}' \
             https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews 2>&1"
        );
        let answer = self.exec(&script).await?;
        let (text, numbers) = answer
            .trim_end()
            .rsplit_once('\n')
            .unwrap_or(("", answer.as_str()));
        let name = serde_json::from_str::<Value>(text).ok();
        let name = name.and_then(|v| {
            v.pointer("/status/userInfo/username")?
                .as_str()
                .map(str::to_owned)
        });
        let numbers: Vec<&str> = numbers.split(' ').collect();
        match (name, numbers.as_slice()) {
            (Some(name), ["201", seconds, version]) if name == expected => {
                let took = seconds.parse::<f64>().unwrap_or(0.0) * 1000.0;
                Ok(format!(
                    "{took:.0} ms inside the pod, HTTP/{version}, known there as {name}"
                ))
            }
            (Some(name), _) => Err(format!("known there as {name}, not {expected}")),
            (None, _) => Err(answer.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }

    async fn exec(&self, script: &str) -> Result<String, String> {
        let params = AttachParams::default().stdout(true).stderr(false);
        let mut process = self
            .pods()
            .exec("probe", ["sh", "-c", script], &params)
            .await
            .map_err(|e| chain(&e))?;
        let mut said = Vec::new();
        if let Some(mut stdout) = process.stdout() {
            stdout
                .read_to_end(&mut said)
                .await
                .map_err(|e| e.to_string())?;
        }
        process.join().await.map_err(|e| chain(&e))?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }

    /// Best effort: the namespace goes, and with it everything in it.
    async fn remove(&self) {
        let spaces: Api<Namespace> = Api::all(self.client.clone());
        let removed = within(10, async {
            spaces
                .delete(&self.namespace, &DeleteParams::default())
                .await
                .map_err(|e| chain(&e))
        });
        if let Err(why) = removed.await
            && !why.contains("not found")
        {
            anstream::eprintln!(
                "namespace {} could not be removed from the tenant: {why}",
                self.namespace
            );
        }
    }
}

/// A typed object from JSON of ours.
fn body<K: serde::de::DeserializeOwned>(value: Value) -> Result<K, Problem> {
    serde_json::from_value(value).map_err(|e| Problem::Argument(e.to_string()))
}
