//! A control plane on a host, made by kubeadm's own phases.
//!
//! kubeadm writes certificates, kubeconfigs and the manifests of static pods. The
//! lab runs the manifests' commands as programs of the host instead: a control
//! plane without images is up in seconds and can be killed or frozen by name.
//! Everything in the cluster (configs, tokens, CoreDNS, kube-proxy) is put there
//! by kubeadm, so that joining is what it is anywhere.

use std::{fs, net::SocketAddr, time::Duration};

use http::{Uri, uri::InvalidUri};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::Deserialize;

use crate::{
    Error, HostId, Unit,
    forward::Forward,
    host::{ADMIN_CONF, Host},
    host_id::PODS,
    parts::Part,
    poll,
};

/// Services of a cluster: what kubeadm takes if nobody says otherwise.
const SERVICES: &str = "10.96.0.0/12";

/// 4 s on an idle machine; a busy one takes far longer.
const API_READY: Duration = Duration::from_mins(3);

/// From the API server's readiness on.
const NODE_READY: Duration = Duration::from_mins(3);

/// The administrator's certificate is of a group that has no rights until this is
/// done, by one that has them from the start.
const BIND_ADMIN: &str = "kubectl --kubeconfig /etc/kubernetes/super-admin.conf \
    create clusterrolebinding kubeadm:cluster-admins \
    --clusterrole=cluster-admin --group=kubeadm:cluster-admins";

/// A cluster whose control plane runs on a host of the lab.
#[derive(Debug, Clone)]
pub struct Cluster {
    host: Host,
    way: SocketAddr,
}

/// The part of a static pod's manifest that is of use here.
#[derive(Deserialize)]
struct Manifest {
    spec: ManifestSpec,
}

#[derive(Deserialize)]
struct ManifestSpec {
    containers: Vec<ManifestContainer>,
}

#[derive(Deserialize)]
struct ManifestContainer {
    command: Vec<String>,
}

impl Cluster {
    /// A handle to the cluster whose control plane is on this host.
    pub fn on(host: &Host) -> Result<Self, Error> {
        let to = SocketAddr::new(host.address(), 6443);
        let way =
            Forward::lasting(host, to).map_err(Error::files("open a way to", to.to_string()))?;
        Ok(Self {
            host: host.clone(),
            way,
        })
    }

    /// The host of its control plane.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The administrator's kubeconfig: works on every host of the lab.
    pub fn kubeconfig(&self) -> std::path::PathBuf {
        self.host.path(ADMIN_CONF)
    }

    /// A client with every right, usable in this process. Make one per runtime.
    pub async fn client(&self) -> Result<Client, Error> {
        Client::try_from(self.config().await?)
            .map_err(Error::kubernetes("make a client for the cluster"))
    }

    /// The configuration behind [`Self::client`], to change before use.
    pub async fn config(&self) -> Result<Config, Error> {
        let path = self.kubeconfig();
        let text = fs::read_to_string(&path).map_err(Error::files("read", &path))?;
        config(&text, |_| Ok(self.way)).await
    }
}

/// A client configuration for a kubeconfig whose server is reached by a port on
/// loopback that `way` opens: the server is still checked against its own name.
pub(crate) async fn config(
    kubeconfig: &str,
    way: impl FnOnce(&Uri) -> Result<SocketAddr, Error>,
) -> Result<Config, Error> {
    let unusable = |why: String| Error::Kubernetes {
        what: "use the kubeconfig".into(),
        why,
    };
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(|e| unusable(e.to_string()))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|e| unusable(e.to_string()))?;
    let local = way(&config.cluster_url)?;
    config.tls_server_name = config.cluster_url.host().map(str::to_owned);
    let url = format!("https://{local}").parse();
    config.cluster_url = url.map_err(|e: InvalidUri| unusable(e.to_string()))?;
    Ok(config)
}

/// Makes a control plane of version `version` on `host` and returns when it
/// answers. The host's kubelet starts, and registers the node.
pub(crate) async fn start_control_plane(host: &Host, version: &str) -> Result<Cluster, Error> {
    let config = write_config(host, version)?;
    kubeadm(
        host,
        &config,
        &["certs all", "kubeconfig all", "control-plane all"],
    )
    .await?;
    host.start(etcd(host))?;
    for program in [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ] {
        host.start(from_manifest(host, program)?)?;
    }
    // Only now, or the kubelet would find the manifests and run them, too.
    kubeadm(host, &config, &["kubelet-start"]).await?;
    let cluster = Cluster::on(host)?;
    cluster.wait_api().await?;
    host.script(BIND_ADMIN).await?;
    Ok(cluster)
}

/// Puts into the cluster what kubeadm puts there, and waits for node and DNS.
pub(crate) async fn furnish(cluster: &Cluster) -> Result<(), Error> {
    let host = &cluster.host;
    cluster.wait_node(host.id(), false).await?;
    let config = config_path(host);
    let phases = [
        "upload-config all",
        "bootstrap-token",
        "mark-control-plane",
        "addon all",
    ];
    kubeadm(host, &config, &phases).await?;
    cluster.one_coredns().await
}

impl Cluster {
    async fn wait_api(&self) -> Result<(), Error> {
        let client = self.client().await?;
        poll(API_READY, async || {
            let mut request = http::Request::new(Vec::new());
            *request.uri_mut() = Uri::from_static("/readyz");
            client
                .request_text(request)
                .await
                .map_err(|error| error.to_string())
        })
        .await
        .map_err(|last| Error::Timeout {
            what: format!("the API server on {}", self.host.id()),
            allowed: API_READY.as_secs(),
            last: format!(
                "{last}; see `steward-lab logs {}/kube-apiserver`",
                self.host.id()
            ),
        })?;
        Ok(())
    }

    /// Waits for a host to be a node of this cluster, and to be Ready if asked.
    pub async fn wait_node(&self, node: HostId, ready: bool) -> Result<(), Error> {
        let nodes = Api::<Node>::all(self.client().await?);
        poll(NODE_READY, async || {
            let found = nodes
                .get(&node.to_string())
                .await
                .map_err(|error| error.to_string())?;
            let conditions = found.status.and_then(|s| s.conditions).unwrap_or_default();
            let condition = conditions.into_iter().find(|c| c.type_ == "Ready");
            match condition {
                _ if !ready => Ok(()),
                Some(c) if c.status == "True" => Ok(()),
                Some(c) => Err(c.message.unwrap_or_default()),
                None => Err("the node has no conditions yet".into()),
            }
        })
        .await
        .map_err(|last| Error::Timeout {
            what: format!(
                "node {node} becoming {}",
                if ready { "Ready" } else { "registered" }
            ),
            allowed: NODE_READY.as_secs(),
            last: format!("{last}; see `steward-lab logs {node}/kubelet`"),
        })
    }

    /// One is enough for a lab, and halves what it costs.
    async fn one_coredns(&self) -> Result<(), Error> {
        let scale = serde_json::json!({ "spec": { "replicas": 1 } });
        Api::<Deployment>::namespaced(self.client().await?, "kube-system")
            .patch("coredns", &PatchParams::default(), &Patch::Merge(scale))
            .await
            .map(|_| ())
            .map_err(Error::kubernetes("scale CoreDNS"))
    }

    /// Waits for a deployment to have all its replicas ready.
    pub async fn wait_deployment(
        &self,
        namespace: &str,
        name: &str,
        allowed: Duration,
    ) -> Result<(), Error> {
        let deployments = Api::<Deployment>::namespaced(self.client().await?, namespace);
        poll(allowed, async || {
            let found = deployments
                .get(name)
                .await
                .map_err(|error| error.to_string())?;
            let wanted = found.spec.and_then(|s| s.replicas).unwrap_or(1);
            let ready = found.status.and_then(|s| s.ready_replicas).unwrap_or(0);
            if ready == wanted {
                Ok(())
            } else {
                Err(format!("{ready} of {wanted} ready"))
            }
        })
        .await
        .map_err(|last| Error::Timeout {
            what: format!("deployment {namespace}/{name}"),
            allowed: allowed.as_secs(),
            last,
        })
    }
}

async fn kubeadm(host: &Host, config: &str, phases: &[&str]) -> Result<(), Error> {
    let script: Vec<String> = phases
        .iter()
        .map(|phase| format!("kubeadm init phase {phase} --config {config}"))
        .collect();
    host.script(&script.join("\n")).await.map(|_| ())
}

fn config_path(host: &Host) -> String {
    // On the host's own /etc/kubernetes, where kubeadm leaves everything else.
    debug_assert!(host.id().is_node());
    "/etc/kubernetes/kubeadm.yaml".into()
}

fn write_config(host: &Host, version: &str) -> Result<String, Error> {
    let path = config_path(host);
    let file = host.path(&path);
    let (id, address, dns) = (host.id(), host.address(), Part::CoreDns.version());
    let text = format!(
        "apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {address}, bindPort: 6443}}
nodeRegistration:
  name: {id}
  criSocket: unix:///run/containerd/containerd.sock
  ignorePreflightErrors: [all]
  imagePullPolicy: Never
  taints: []
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
clusterName: {id}
encryptionAlgorithm: ECDSA-P256
networking: {{podSubnet: {PODS}, serviceSubnet: {SERVICES}}}
# Of whatever release: the lab has one version of it.
dns: {{imageTag: v{dns}}}
apiServer:
  certSANs: [127.0.0.1, localhost, {id}, {id}.lab]
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
conntrack: {{maxPerCore: 0}}
"
    );
    fs::write(&file, text).map_err(Error::files("write", &file))?;
    Ok(path)
}

fn from_manifest(host: &Host, program: &str) -> Result<Unit, Error> {
    let path = host.path(&format!("/etc/kubernetes/manifests/{program}.yaml"));
    let text = fs::read_to_string(&path).map_err(Error::files("read", &path))?;
    let manifest: Manifest = serde_saphyr::from_str(&text).map_err(|error| Error::Files {
        what: "understand",
        path: path.clone(),
        source: std::io::Error::other(error.to_string()),
    })?;
    // Left where it is, the kubelet would run it a second time.
    fs::remove_file(&path).map_err(Error::files("remove", &path))?;
    let command = manifest
        .spec
        .containers
        .into_iter()
        .next()
        .map(|c| c.command);
    Ok(Unit {
        name: program.into(),
        command: command.unwrap_or_default(),
        restart: true,
        when: None,
    })
}

fn etcd(host: &Host) -> Unit {
    let (id, address) = (host.id(), host.address());
    let pki = "/etc/kubernetes/pki/etcd";
    let command = [
        "etcd".into(),
        format!("--name={id}"),
        "--data-dir=/var/lib/etcd".into(),
        format!("--listen-client-urls=https://127.0.0.1:2379,https://{address}:2379"),
        format!("--advertise-client-urls=https://{address}:2379"),
        format!("--listen-peer-urls=https://{address}:2380"),
        format!("--initial-advertise-peer-urls=https://{address}:2380"),
        format!("--initial-cluster={id}=https://{address}:2380"),
        format!("--cert-file={pki}/server.crt"),
        format!("--key-file={pki}/server.key"),
        format!("--trusted-ca-file={pki}/ca.crt"),
        "--client-cert-auth=true".into(),
        format!("--peer-cert-file={pki}/peer.crt"),
        format!("--peer-key-file={pki}/peer.key"),
        format!("--peer-trusted-ca-file={pki}/ca.crt"),
        "--peer-client-cert-auth=true".into(),
        // A lab's data is not worth a disk's time.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
    ];
    Unit {
        name: "etcd".into(),
        command: command.into(),
        restart: true,
        when: None,
    }
}
