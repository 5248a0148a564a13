//! Makes faults, each the way it comes about: with kubectl, a signal, or a record in DNS.

use anyhow::{Result, ensure};
use steward_e2e::wait_for;
use steward_lab::Nudge;
use tokio::process::Child;

use crate::fault::Fault;
use crate::scene::{DOMAIN, HOST, Scene, tenant};

/// A key and a self-signed certificate in files of these names.
const SELF_SIGNED: &str =
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";

/// Enough of Traefik's kind to be there, and an object of it to be left behind.
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

const SMALL_QUOTA: &str = "apiVersion: v1
kind: ResourceQuota
metadata: { name: small, namespace: tenants }
spec: { hard: { pods: '1' } }
";

impl Scene {
    /// Makes it. What comes back has to be kept for as long as the fault is to last.
    pub(crate) async fn make(&self, fault: Fault) -> Result<Option<Child>> {
        match fault {
            Fault::DnsWrong => self.stage.name(HOST, "10.30.0.2".parse()?)?,
            Fault::DnsMissing => self.stage.lab.dns_unset(&format!("*.{DOMAIN}"))?,
            Fault::FrontDoorDown => {
                self.on_mgmt(
                    "kubectl scale -n steward-system deployment/steward-gateway --replicas=0",
                )
                .await?;
            }
            Fault::ClassMissing => {
                self.on_mgmt("kubectl delete ingressclass steward").await?;
            }
            Fault::LeftoverRoute => self.leave_a_route_behind().await?,
            Fault::ProxyOpensTls => return self.open_tls().await.map(Some),
            Fault::HostnameTwice => {
                self.stage.apply(&tenant("t2", HOST)).await?;
            }
            Fault::Quota => self.run_into_a_quota().await?,
            Fault::VersionWithoutImage => {
                self.on_mgmt(r#"kubectl patch tcp -n tenants t1 --type=merge -p '{"spec":{"kubernetes":{"version":"v1.36.99"}}}'"#)
                    .await?;
            }
            Fault::AgentsCut => self.freeze_agents()?,
            Fault::NodeClock => self.turn_clock(3600).await?,
            Fault::Clock => self.sit_at_a_wrong_clock().await?,
            Fault::DatastoreDown => self.etcd("STOP").await?,
            // The operator would repair these faster than doctor looks.
            paused => {
                self.pause().await?;
                self.make_while_paused(paused).await?;
            }
        }
        Ok(None)
    }

    async fn make_while_paused(&self, fault: Fault) -> Result<()> {
        match fault {
            Fault::PassthroughOff => {
                self.on_mgmt("kubectl annotate ingress -n tenants t1 haproxy.org/ssl-passthrough-")
                    .await?;
            }
            Fault::SliceEdited => {
                self.inside(r#"patch endpointslice kubernetes --type=json -p '[{"op":"replace","path":"/endpoints/0/addresses","value":["10.99.99.99"]}]'"#)
                    .await?;
            }
            Fault::ProxyGoneFromOneNode => {
                self.inside(r#"patch daemonset -n kube-system steward-tcp-proxy -p '{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"worker-1"}}}}}'"#)
                    .await?;
            }
            Fault::KubeProxyOldAddress => {
                let map = self
                    .inside("get configmap -n kube-system kube-proxy -o json")
                    .await?;
                let old = map.replace(&format!("{HOST}:443"), &format!("old.{DOMAIN}:6443"));
                ensure!(
                    old != map,
                    "the configuration does not name the endpoint: {map}"
                );
                self.t1.apply(&old).await?;
            }
            Fault::WrongCredentials => {
                let folder = self.work.path().display();
                self.on_mgmt(&format!(
                    "cd {folder}; {SELF_SIGNED} -keyout other.key -out other.crt -subj /CN=stranger"
                ))
                .await?;
                self.replace(
                    "t1-datastore-certificate",
                    &[("server.crt", "other.crt"), ("server.key", "other.key")],
                )
                .await?;
                // It reads them once, when it starts: this one never comes up.
                self.new_pod().await?;
            }
            Fault::ReconcilerFlagRemoved => {
                self.on_mgmt("kubectl get deployment -n tenants t1 -o json | sed 's/--endpoint-reconciler-type=none/--v=2/' | kubectl replace -f -")
                    .await?;
            }
            Fault::CertificateWithoutName => {
                self.serve_with("DNS:somebody.else,DNS:localhost,IP:127.0.0.1", "-days 30")
                    .await?;
            }
            Fault::CertificateExpired => {
                let names = format!(
                    "DNS:{HOST},DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost,IP:127.0.0.1"
                );
                self.serve_with(
                    &names,
                    "-startdate 20240101000000Z -enddate 20240201000000Z",
                )
                .await?;
            }
            other => anyhow::bail!("{other:?} needs no pause"),
        }
        Ok(())
    }

    async fn leave_a_route_behind(&self) -> Result<()> {
        self.stage.apply(TRAEFIK_KIND).await?;
        let route = format!(
            "apiVersion: traefik.io/v1alpha1
kind: IngressRouteTCP
metadata: {{ name: from-before, namespace: tenants }}
spec:
  routes: [{{ match: 'HostSNI(`{HOST}`)', services: [{{ name: old, port: 6443 }}] }}]
  tls: {{ passthrough: true }}
"
        );
        wait_for("the kind IngressRouteTCP", 60, async || {
            self.stage.apply(&route).await
        })
        .await?;
        Ok(())
    }

    /// Two pods would be needed where one is allowed.
    async fn run_into_a_quota(&self) -> Result<()> {
        self.stage.apply(SMALL_QUOTA).await?;
        wait_for("the quota to count", 60, async || {
            let used = self
                .on_mgmt(
                    "kubectl get resourcequota -n tenants small -o jsonpath={.status.used.pods}",
                )
                .await?;
            ensure!(used == "1", "{used} pods counted");
            Ok(())
        })
        .await?;
        self.stage
            .apply(&tenant("t2", &format!("t2.{DOMAIN}")))
            .await?;
        Ok(())
    }

    /// A proxy of the company's, with a certificate of its own, before the front door.
    async fn open_tls(&self) -> Result<Child> {
        let folder = self.work.path().display();
        let configuration = format!(
            "defaults
 mode http
 timeout connect 5s
 timeout client 30s
 timeout server 30s
frontend all
 bind 10.30.0.2:443 ssl crt {folder}/own.pem
 default_backend door
backend door
 server door {}:443 ssl verify none sni str({HOST})
",
            self.front_door
        );
        std::fs::write(self.work.path().join("haproxy.cfg"), configuration)?;
        let client = self.stage.lab.client_host();
        client
            .script(&format!(
                "cd {folder}; {SELF_SIGNED} -keyout own.key -out own.crt -subj /CN=corporate-proxy; cat own.crt own.key > own.pem"
            ))
            .await?;
        let proxy = client.spawn(&["haproxy", "-db", "-f", &format!("{folder}/haproxy.cfg")])?;
        self.stage.name(HOST, "10.30.0.2".parse()?)?;
        Ok(proxy)
    }

    fn freeze_agents(&self) -> Result<()> {
        for number in [1, 2] {
            let frozen = self
                .stage
                .lab
                .worker(number)?
                .nudge_all("proxy-agent", Nudge::Freeze);
            ensure!(frozen > 0, "no agent runs on worker-{number}");
        }
        Ok(())
    }

    /// Signals the members of the datastore: of the programs called etcd those in pods, and
    /// not the management cluster's own.
    pub(crate) async fn etcd(&self, signal: &str) -> Result<()> {
        let script = format!(
            "for p in $(pgrep -x etcd); do if grep -q kubepods /proc/$p/cgroup; then kill -{signal} $p; echo $p; fi; done"
        );
        let told = self.on_mgmt(&script).await?;
        ensure!(!told.trim().is_empty(), "no etcd runs in a pod");
        Ok(())
    }

    /// A serving certificate of t1's CA, wrong in the way asked for, put in place of the good
    /// one. A new pod is the quickest way to have it served.
    async fn serve_with(&self, names: &str, dates: &str) -> Result<()> {
        self.secret("t1-ca", "ca.crt").await?;
        self.secret("t1-ca", "ca.key").await?;
        let configuration = format!(
            "[ca]\ndefault_ca=d\n[d]\ndatabase=db/index.txt\nserial=db/serial\nnew_certs_dir=db\npolicy=p\ndefault_md=sha256\n[p]\ncommonName=supplied\n[x]\nsubjectAltName={names}\nextendedKeyUsage=serverAuth\n"
        );
        std::fs::write(self.work.path().join("ca.cnf"), configuration)?;
        let folder = self.work.path().display();
        self.on_mgmt(&format!(
            "cd {folder}; rm -rf db; mkdir db; : > db/index.txt; echo 77 > db/serial
             openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -subj /CN=kube-apiserver -out new.csr
             openssl ca -batch -config ca.cnf -extensions x -cert ca.crt -keyfile ca.key -in new.csr -out new.crt -notext {dates}"
        ))
        .await?;
        self.replace(
            "t1-api-server-certificate",
            &[("apiserver.crt", "new.crt"), ("apiserver.key", "new.key")],
        )
        .await?;
        self.new_pod().await
    }

    async fn new_pod(&self) -> Result<()> {
        self.on_mgmt(
            "kubectl delete pod -n tenants -l steward.butlerlabs.dev/name=t1 --wait=false",
        )
        .await?;
        Ok(())
    }

    /// A value of a Secret as a file of the same name.
    async fn secret(&self, secret: &str, key: &str) -> Result<()> {
        let folder = self.work.path().display();
        self.on_mgmt(&format!(
            "umask 077; kubectl get secret -n tenants {secret} -o 'go-template={{{{index .data \"{key}\" | base64decode}}}}' > {folder}/{key}"
        ))
        .await?;
        Ok(())
    }

    /// Files put into a Secret under these keys.
    async fn replace(&self, secret: &str, files: &[(&str, &str)]) -> Result<()> {
        let folder = self.work.path().display();
        let from: Vec<String> = files
            .iter()
            .map(|(key, file)| format!("--from-file={key}={folder}/{file}"))
            .collect();
        self.on_mgmt(&format!(
            "kubectl create secret generic {secret} -n tenants --dry-run=client -o json {} | sed '/creationTimestamp/d' > {folder}/patch.json
             kubectl patch secret -n tenants {secret} --type merge --patch-file {folder}/patch.json",
            from.join(" ")
        ))
        .await?;
        Ok(())
    }
}
