//! `steward doctor` against twenty faults, made one at a time in a real lab: it has to
//! name each first, with evidence, and what it says to paste has to help.

use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use steward_e2e::{Stage, Tenant, wait_for};
use steward_lab::Nudge;
use tokio::process::Child;

const DOMAIN: &str = "k8s.example.com";
const HOST: &str = "t1.k8s.example.com";
const PAUSED: &str = "steward.butlerlabs.dev/paused";

/// How long a fault may take to show, and a repair to be complete, on a busy machine.
const SHOWS: u64 = 150;
const HEALS: u64 = 300;

/// What is broken, in the words of the issue tracker.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    DnsWrong,
    DnsMissing,
    FrontDoorDown,
    ClassMissing,
    PassthroughOff,
    SliceEdited,
    ProxyGoneFromOneNode,
    KubeProxyOldAddress,
    AgentsCut,
    NodeClock,
    LeftoverRoute,
    ProxyOpensTls,
    HostnameTwice,
    Quota,
    VersionWithoutImage,
    WrongCredentials,
    ReconcilerFlagRemoved,
    CertificateWithoutName,
    CertificateExpired,
    DatastoreDown,
}

impl Fault {
    const ALL: [Self; 20] = [
        Self::DnsWrong,
        Self::DnsMissing,
        Self::FrontDoorDown,
        Self::ClassMissing,
        Self::PassthroughOff,
        Self::SliceEdited,
        Self::ProxyGoneFromOneNode,
        Self::KubeProxyOldAddress,
        Self::AgentsCut,
        Self::NodeClock,
        Self::LeftoverRoute,
        Self::ProxyOpensTls,
        Self::HostnameTwice,
        Self::Quota,
        Self::VersionWithoutImage,
        Self::WrongCredentials,
        Self::ReconcilerFlagRemoved,
        Self::CertificateWithoutName,
        Self::CertificateExpired,
        Self::DatastoreDown,
    ];

    /// The checks that may name it: agents that are cut off are seen by the kubelets first,
    /// and by their own probes later.
    fn checks(self) -> &'static [&'static str] {
        match self {
            Self::DnsWrong => &["dns-address"],
            Self::DnsMissing => &["dns-resolves"],
            Self::FrontDoorDown => &["front-door-runs"],
            Self::ClassMissing => &["front-door-class"],
            Self::PassthroughOff => &["front-door-passthrough"],
            Self::SliceEdited => &["kubernetes-endpointslice"],
            Self::ProxyGoneFromOneNode => &["tcp-proxy"],
            Self::KubeProxyOldAddress => &["kube-proxy-server"],
            Self::AgentsCut => &["kubelets-reached", "konnectivity"],
            Self::NodeClock => &["node-clocks"],
            Self::LeftoverRoute => &["front-door-leftovers"],
            Self::ProxyOpensTls => &["tls-passthrough"],
            Self::HostnameTwice => &["hostname-unique"],
            Self::Quota => &["quota"],
            Self::VersionWithoutImage => &["images"],
            Self::WrongCredentials => &["datastore-credentials"],
            Self::ReconcilerFlagRemoved => &["endpoint-reconciler"],
            Self::CertificateWithoutName => &["tls-names"],
            Self::CertificateExpired => &["tls-expiry"],
            Self::DatastoreDown => &["datastore"],
        }
    }

    /// Whether the command that doctor prints is the whole repair. Of the others it prints
    /// where to look, or what only the owner of a name server or a proxy can do.
    fn is_fixed_by_pasting(self) -> bool {
        !matches!(
            self,
            Self::DnsWrong
                | Self::DnsMissing
                | Self::NodeClock
                | Self::ProxyOpensTls
                | Self::Quota
                | Self::DatastoreDown
                | Self::AgentsCut
        )
    }

    /// Whom to examine: two faults are those of a second tenant.
    fn patient(self) -> &'static str {
        match self {
            Self::HostnameTwice | Self::Quota => "t2",
            _ => "t1",
        }
    }
}

/// The lab, the patient, and the tools.
struct Scene {
    stage: Stage,
    t1: Tenant,
    front_door: std::net::Ipv4Addr,
    steward: PathBuf,
    kubeconfig: PathBuf,
    work: tempfile::TempDir,
}

fn tenant(name: &str, hostname: &str) -> String {
    // The controller's type asks for an annotation that our gateway does not need: so that
    // there is one to take away.
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{ name: tenants }}
---
apiVersion: steward.butlerlabs.dev/v1alpha1
kind: TenantControlPlane
metadata: {{ name: {name}, namespace: tenants }}
spec:
  kubernetes: {{ version: v1.36.3 }}
  controlPlane:
    deployment: {{ replicas: 1 }}
    service: {{ serviceType: ClusterIP }}
    ingress: {{ hostname: {hostname}, ingressClassName: steward, controllerType: haproxy }}
  addons: {{ coreDNS: {{}}, kubeProxy: {{}}, konnectivity: {{}}, tcpProxy: {{}} }}
"
    )
}

impl Scene {
    async fn set() -> Result<Self> {
        let values = [
            "gateway.enabled=true",
            "gateway.replicas=1",
            "gateway.drainSeconds=1",
        ];
        let stage = Stage::up("doctor", 2, &values).await?;
        let front_door = stage
            .address_of("steward-system", "steward-gateway")
            .await?;
        stage.name(&format!("*.{DOMAIN}"), front_door)?;
        stage.apply(&tenant("t1", HOST)).await?;
        let t1 = stage.tenant("tenants", "t1").await?;
        for number in [1, 2] {
            t1.join(&stage.lab.worker(number)?).await?;
            t1.node_ready(&format!("worker-{number}")).await?;
        }
        let test = std::env::current_exe()?;
        let folder = test
            .parent()
            .and_then(|deps| deps.parent())
            .context("the test lies in no folder")?;
        let kubeconfig = stage.lab.cluster()?.kubeconfig();
        let work = tempfile::tempdir()?;
        Ok(Self {
            stage,
            t1,
            front_door,
            steward: folder.join("steward"),
            kubeconfig,
            work,
        })
    }

    /// `steward …` on the client's host, against the management cluster.
    async fn steward(&self, words: &[&str]) -> Result<Output> {
        let program = self.steward.display().to_string();
        let kubeconfig = self.kubeconfig.display().to_string();
        let mut command = vec![program.as_str(), "--kubeconfig", &kubeconfig];
        command.extend(words);
        Ok(self.stage.lab.client_host().exec(&command).await?)
    }

    /// What doctor finds, and the code it ends with.
    async fn examine(&self, patient: &str) -> Result<(Option<i32>, Vec<Value>)> {
        let output = self
            .steward(&["doctor", patient, "-n", "tenants", "-o", "json"])
            .await?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let report: Value = serde_json::from_str(&text)
            .with_context(|| format!("doctor printed {text:?} and {errors:?}"))?;
        let findings = report[0]["findings"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        Ok((output.status.code(), findings))
    }

    /// Waits until doctor has nothing to say.
    async fn is_well(&self) -> Result<()> {
        wait_for("doctor to find nothing", HEALS, async || {
            let (code, findings) = self.examine("t1").await?;
            let wrong: Vec<&Value> = findings
                .iter()
                .filter(|f| f["severity"] != "fine")
                .collect();
            ensure!(
                wrong.is_empty() && code == Some(0),
                "ended with {code:?}: {wrong:#?}"
            );
            Ok(())
        })
        .await
    }

    /// Waits until doctor names the fault first, and returns that finding and how long the
    /// examination took.
    async fn is_named(&self, fault: Fault) -> Result<(Value, Duration)> {
        wait_for(&format!("doctor to name {fault:?}"), SHOWS, async || {
            let began = Instant::now();
            let (code, findings) = self.examine(fault.patient()).await?;
            let first = findings.first().cloned().unwrap_or_default();
            let named = first["check"]
                .as_str()
                .is_some_and(|check| fault.checks().contains(&check));
            let said = first["evidence"].as_str().is_some_and(|e| !e.is_empty())
                && first["fix"].is_string();
            let wrong: Vec<&Value> = findings
                .iter()
                .filter(|f| f["severity"] != "fine")
                .collect();
            ensure!(
                named && said && code == Some(1),
                "ended with {code:?}: {wrong:#?}"
            );
            Ok((first, began.elapsed()))
        })
        .await
    }

    /// Runs what doctor says to paste, as a person at the client's host would.
    async fn paste(&self, fix: &str) -> Result<()> {
        let folder = self.steward.parent().context("steward lies in no folder")?;
        let script = format!(
            "export KUBECONFIG={} PATH={}:$PATH; cd {}; {fix}",
            self.kubeconfig.display(),
            folder.display(),
            self.work.path().display()
        );
        self.stage
            .lab
            .client_host()
            .script(&script)
            .await
            .with_context(|| format!("paste {fix}"))?;
        Ok(())
    }

    async fn on_mgmt(&self, script: &str) -> Result<String> {
        Ok(self.stage.lab.mgmt().script(script).await?)
    }

    /// The operator is told to keep its hands off: else it repairs faster than doctor looks.
    async fn pause(&self) -> Result<()> {
        self.stage
            .kubectl(&[
                "annotate",
                "tcp",
                "-n",
                "tenants",
                "t1",
                &format!("{PAUSED}=true"),
                "--overwrite",
            ])
            .await?;
        Ok(())
    }

    async fn go_on(&self) -> Result<()> {
        self.stage
            .kubectl(&[
                "annotate",
                "tcp",
                "-n",
                "tenants",
                "t1",
                &format!("{PAUSED}-"),
            ])
            .await?;
        Ok(())
    }

    /// A value of a Secret as a file on this machine.
    async fn secret(&self, secret: &str, key: &str, file: &str) -> Result<PathBuf> {
        let path = self.work.path().join(file);
        let template = format!("go-template={{{{index .data \"{key}\" | base64decode}}}}");
        let text = self
            .stage
            .kubectl(&["get", "secret", "-n", "tenants", secret, "-o", &template])
            .await?;
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// A serving certificate of t1's CA, wrong in the way asked for, put in place of the good one.
    async fn serve_with(&self, names: &str, dates: &str) -> Result<()> {
        self.pause().await?;
        self.secret("t1-ca", "ca.crt", "ca.crt").await?;
        self.secret("t1-ca", "ca.key", "ca.key").await?;
        let folder = self.work.path().display();
        self.on_mgmt(&format!(
            "cd {folder}; rm -rf db; mkdir db; : > db/index.txt; echo 77 > db/serial
             printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=db/index.txt\\nserial=db/serial\\nnew_certs_dir=db\\npolicy=p\\ndefault_md=sha256\\n[p]\\ncommonName=supplied\\n[x]\\nsubjectAltName={names}\\nextendedKeyUsage=serverAuth\\n' > ca.cnf
             openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -subj /CN=kube-apiserver -out new.csr
             openssl ca -batch -config ca.cnf -extensions x -cert ca.crt -keyfile ca.key -in new.csr -out new.crt -notext {dates}
             kubectl patch secret -n tenants t1-api-server-certificate --type merge -p \"{{\\\"data\\\":{{\\\"apiserver.crt\\\":\\\"$(base64 -w0 new.crt)\\\",\\\"apiserver.key\\\":\\\"$(base64 -w0 new.key)\\\"}}}}\"
             kubectl delete pod -n tenants -l steward.butlerlabs.dev/name=t1 --wait=false"
        ))
        .await?;
        Ok(())
    }

    async fn make(&self, fault: Fault) -> Result<Option<Child>> {
        let stage = &self.stage;
        let client = stage.lab.client_host();
        match fault {
            Fault::DnsWrong => stage.name(HOST, "10.30.0.2".parse()?)?,
            Fault::DnsMissing => stage.lab.dns_unset(&format!("*.{DOMAIN}"))?,
            Fault::FrontDoorDown => {
                stage
                    .kubectl(&[
                        "scale",
                        "-n",
                        "steward-system",
                        "deployment/steward-gateway",
                        "--replicas=0",
                    ])
                    .await?;
            }
            Fault::ClassMissing => {
                stage
                    .kubectl(&["delete", "ingressclass", "steward"])
                    .await?;
            }
            Fault::PassthroughOff => {
                self.pause().await?;
                stage
                    .kubectl(&[
                        "annotate",
                        "ingress",
                        "-n",
                        "tenants",
                        "t1",
                        "haproxy.org/ssl-passthrough-",
                    ])
                    .await?;
            }
            Fault::SliceEdited => {
                self.pause().await?;
                let patch =
                    r#"[{"op":"replace","path":"/endpoints/0/addresses","value":["10.99.99.99"]}]"#;
                self.t1
                    .kubectl(&[
                        "patch",
                        "endpointslice",
                        "kubernetes",
                        "--type=json",
                        "-p",
                        patch,
                    ])
                    .await?;
            }
            Fault::ProxyGoneFromOneNode => {
                self.pause().await?;
                let patch = r#"{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"worker-1"}}}}}"#;
                self.t1
                    .kubectl(&[
                        "patch",
                        "daemonset",
                        "-n",
                        "kube-system",
                        "steward-tcp-proxy",
                        "-p",
                        patch,
                    ])
                    .await?;
            }
            Fault::KubeProxyOldAddress => {
                self.pause().await?;
                let kubeconfig = self.t1.kubeconfig().display();
                let script = format!(
                    "kubectl --kubeconfig {kubeconfig} get cm -n kube-system kube-proxy -o yaml | sed 's/{HOST}:443/old.{DOMAIN}:6443/' | kubectl --kubeconfig {kubeconfig} replace -f -"
                );
                client.script(&script).await?;
            }
            Fault::AgentsCut => {
                for number in [1, 2] {
                    ensure!(
                        stage
                            .lab
                            .worker(number)?
                            .nudge_all("proxy-agent", Nudge::Freeze)
                            > 0,
                        "no agent runs on worker-{number}"
                    );
                }
            }
            Fault::NodeClock => {
                // What a kubelet whose clock is an hour ahead writes; it is held still so that it
                // does not write again.
                stage.lab.worker(2)?.nudge("kubelet", Nudge::Freeze)?;
                let script = format!(
                    "kubectl --kubeconfig {} patch lease -n kube-node-lease worker-2 --type=merge -p \"{{\\\"spec\\\":{{\\\"renewTime\\\":\\\"$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%S.000000Z)\\\"}}}}\"",
                    self.t1.kubeconfig().display()
                );
                client.script(&script).await?;
            }
            Fault::LeftoverRoute => {
                stage.apply(TRAEFIK_KIND).await?;
                wait_for("the kind IngressRouteTCP", 60, async || {
                    stage
                        .apply(&format!(
                            "apiVersion: traefik.io/v1alpha1
kind: IngressRouteTCP
metadata: {{ name: from-before, namespace: tenants }}
spec:
  routes: [{{ match: 'HostSNI(`{HOST}`)', services: [{{ name: old, port: 6443 }}] }}]
  tls: {{ passthrough: true }}
"
                        ))
                        .await
                })
                .await?;
            }
            Fault::ProxyOpensTls => {
                let folder = self.work.path().display();
                let configuration = format!(
                    "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend f\n bind 10.30.0.2:443 ssl crt {folder}/own.pem\n default_backend b\nbackend b\n server s {}:443 ssl verify none sni str({HOST})\n",
                    self.front_door
                );
                std::fs::write(self.work.path().join("haproxy.cfg"), configuration)?;
                client.script(&format!("cd {folder}; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout own.key -out own.crt -days 2 -subj /CN=corporate-proxy; cat own.crt own.key > own.pem")).await?;
                let proxy =
                    client.spawn(&["haproxy", "-db", "-f", &format!("{folder}/haproxy.cfg")])?;
                stage.name(HOST, "10.30.0.2".parse()?)?;
                return Ok(Some(proxy));
            }
            Fault::HostnameTwice => {
                stage.apply(&tenant("t2", HOST)).await?;
            }
            Fault::Quota => {
                stage.apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: { name: small, namespace: tenants }\nspec: { hard: { pods: '1' } }\n").await?;
                wait_for("the quota to count", 60, async || {
                    let used = stage
                        .kubectl(&[
                            "get",
                            "resourcequota",
                            "-n",
                            "tenants",
                            "small",
                            "-o",
                            "jsonpath={.status.used.pods}",
                        ])
                        .await?;
                    ensure!(used == "1", "{used} pods counted");
                    Ok(())
                })
                .await?;
                stage.apply(&tenant("t2", &format!("t2.{DOMAIN}"))).await?;
            }
            Fault::VersionWithoutImage => {
                let patch = r#"{"spec":{"kubernetes":{"version":"v1.36.99"}}}"#;
                stage
                    .kubectl(&[
                        "patch",
                        "tcp",
                        "-n",
                        "tenants",
                        "t1",
                        "--type=merge",
                        "-p",
                        patch,
                    ])
                    .await?;
            }
            Fault::WrongCredentials => {
                self.pause().await?;
                let folder = self.work.path().display();
                self.on_mgmt(&format!(
                    "cd {folder}; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout other.key -out other.crt -days 2 -subj /CN=stranger
                     kubectl patch secret -n tenants t1-datastore-certificate --type merge -p \"{{\\\"data\\\":{{\\\"server.crt\\\":\\\"$(base64 -w0 other.crt)\\\",\\\"server.key\\\":\\\"$(base64 -w0 other.key)\\\"}}}}\""
                )).await?;
            }
            Fault::ReconcilerFlagRemoved => {
                self.pause().await?;
                self.on_mgmt("kubectl get deployment -n tenants t1 -o json | sed 's/--endpoint-reconciler-type=none/--v=2/' | kubectl replace -f -").await?;
            }
            Fault::CertificateWithoutName => {
                self.serve_with("DNS:somebody.else,DNS:localhost,IP:127.0.0.1", "-days 30")
                    .await?;
            }
            Fault::CertificateExpired => {
                let names =
                    format!("DNS:{HOST},DNS:kubernetes.default.svc,DNS:localhost,IP:127.0.0.1");
                self.serve_with(
                    &names,
                    "-startdate 20240101000000Z -enddate 20240201000000Z",
                )
                .await?;
            }
            Fault::DatastoreDown => self.etcd("STOP").await?,
        }
        Ok(None)
    }

    /// Signals the members of the datastore: of the programs called etcd those in pods, and
    /// not the management cluster's own.
    async fn etcd(&self, signal: &str) -> Result<()> {
        let script = format!(
            "for p in $(pgrep -x etcd); do if grep -q kubepods /proc/$p/cgroup; then kill -{signal} $p; echo $p; fi; done"
        );
        let told = self.on_mgmt(&script).await?;
        ensure!(!told.trim().is_empty(), "no etcd runs in a pod");
        Ok(())
    }

    /// Undoes what pasting can't, or did not.
    async fn undo(&self, fault: Fault) -> Result<()> {
        let stage = &self.stage;
        match fault {
            Fault::DnsWrong | Fault::ProxyOpensTls => stage.lab.dns_unset(HOST)?,
            Fault::DnsMissing => stage.name(&format!("*.{DOMAIN}"), self.front_door)?,
            Fault::AgentsCut => {
                for number in [1, 2] {
                    stage
                        .lab
                        .worker(number)?
                        .nudge_all("proxy-agent", Nudge::Thaw);
                }
            }
            Fault::NodeClock => stage.lab.worker(2)?.nudge("kubelet", Nudge::Thaw)?,
            Fault::Quota | Fault::HostnameTwice => {
                stage
                    .kubectl(&[
                        "delete",
                        "resourcequota",
                        "-n",
                        "tenants",
                        "small",
                        "--ignore-not-found",
                    ])
                    .await?;
                stage
                    .kubectl(&["delete", "tcp", "-n", "tenants", "t2", "--timeout=180s"])
                    .await?;
            }
            Fault::DatastoreDown => self.etcd("CONT").await?,
            Fault::FrontDoorDown => {
                stage
                    .kubectl(&[
                        "scale",
                        "-n",
                        "steward-system",
                        "deployment/steward-gateway",
                        "--replicas=1",
                    ])
                    .await?;
            }
            Fault::LeftoverRoute => {
                stage
                    .kubectl(&[
                        "delete",
                        "ingressroutetcp",
                        "-n",
                        "tenants",
                        "from-before",
                        "--ignore-not-found",
                    ])
                    .await?;
            }
            Fault::ClassMissing => {
                stage.apply("apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: { name: steward }\nspec: { controller: steward.butlerlabs.dev/gateway }\n").await?;
            }
            Fault::VersionWithoutImage => {
                let patch = r#"{"spec":{"kubernetes":{"version":"v1.36.3"}}}"#;
                stage
                    .kubectl(&[
                        "patch",
                        "tcp",
                        "-n",
                        "tenants",
                        "t1",
                        "--type=merge",
                        "-p",
                        patch,
                    ])
                    .await?;
            }
            Fault::PassthroughOff
            | Fault::SliceEdited
            | Fault::ProxyGoneFromOneNode
            | Fault::KubeProxyOldAddress
            | Fault::WrongCredentials
            | Fault::ReconcilerFlagRemoved
            | Fault::CertificateWithoutName
            | Fault::CertificateExpired => self.go_on().await?,
        }
        Ok(())
    }

    /// Makes a fault, has it named, follows the advice. Whatever happens, it is undone.
    async fn play(&self, fault: Fault) -> Result<String> {
        let helper = self.make(fault).await;
        let named = match &helper {
            Ok(_) => self.is_named(fault).await,
            Err(error) => Err(anyhow::anyhow!("{fault:?} could not be made: {error:#}")),
        };
        let pasted = match &named {
            Ok((finding, _)) if fault.is_fixed_by_pasting() => {
                self.paste(finding["fix"].as_str().unwrap_or_default())
                    .await
            }
            _ => Ok(()),
        };
        let helped = fault.is_fixed_by_pasting() && named.is_ok() && pasted.is_ok();
        if !helped || fault.patient() != "t1" {
            self.undo(fault).await?;
        }
        drop(helper);
        let well = self.is_well().await;
        let (finding, took) = named?;
        pasted?;
        well.with_context(|| format!("after {fault:?}"))?;
        let evidence = finding["evidence"].as_str().unwrap_or_default();
        Ok(format!(
            "{:<24} {:<26} {:>5} ms  {evidence}",
            format!("{fault:?}"),
            finding["check"].as_str().unwrap_or_default(),
            took.as_millis()
        ))
    }
}

/// Enough of Traefik's kind to be there and be left behind.
const TRAEFIK_KIND: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ingressroutetcps.traefik.io }
spec:
  group: traefik.io
  scope: Namespaced
  names: { kind: IngressRouteTCP, listKind: IngressRouteTCPList, plural: ingressroutetcps, singular: ingressroutetcp }
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
";

/// Every fault, or those that DOCTOR_FAULTS names, separated by commas.
fn chosen() -> Vec<Fault> {
    let wanted = std::env::var("DOCTOR_FAULTS").unwrap_or_default();
    let all = Fault::ALL.into_iter();
    all.filter(|f| wanted.is_empty() || wanted.split(',').any(|w| w == format!("{f:?}")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_each_fault_first_and_its_advice_helps() -> Result<()> {
    let scene = Scene::set().await?;
    scene.is_well().await.context("a healthy tenant")?;
    every_way_works(&scene).await?;
    let mut failed = Vec::new();
    for fault in chosen() {
        match scene.play(fault).await {
            Ok(line) => println!("{line}"),
            Err(error) => {
                println!("{fault:?}: {error:#}");
                failed.push(fault);
                // What could not be healed would be named again and again.
                scene.is_well().await.with_context(|| {
                    format!("{fault:?} could not be undone; failed so far: {failed:?}")
                })?;
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "not named, or not healed by what was pasted: {failed:?}"
    );
    Ok(())
}

/// The commands that only look: each has to find the tenant well.
async fn every_way_works(scene: &Scene) -> Result<()> {
    for words in [
        &["get", "-n", "tenants", "-o", "wide"][..],
        &["tree", "t1", "-n", "tenants"],
        &["dns", "t1", "-n", "tenants", "--check"],
        &[
            "connectivity",
            "t1",
            "-n",
            "tenants",
            "--image",
            "steward.lab/toolbox:1",
        ],
    ] {
        let output = scene.steward(words).await?;
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        println!("$ steward {}\n{said}", words.join(" "));
        if !output.status.success() {
            bail!(
                "steward {} ended with {}: {said}",
                words.join(" "),
                output.status
            );
        }
    }
    Ok(())
}
