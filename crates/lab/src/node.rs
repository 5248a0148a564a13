//! What makes a host able to run pods: containerd, a CNI configuration, and a
//! kubelet that starts as soon as kubeadm has told it which cluster it is in.
//!
//! The settings without which it fails on some machines are all here, and none
//! of them is in a cluster's own configuration: a kubelet reads them from its
//! host, after what kubeadm wrote, so that an unmodified `kubeadm join` works.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Error, Layout, Unit, host::Host, images::catalogue::PAUSE, poll};

/// Where containerd listens, as kubeadm and everybody expects.
const SOCKET: &str = "/run/containerd/containerd.sock";

/// kubeadm writes this file last; a kubelet has nothing to do before.
const KUBEADM_FLAGS: &str = "/var/lib/kubelet/kubeadm-flags.env";

/// Half a second on an idle machine.
const CONTAINERD_READY: Duration = Duration::from_mins(2);

/// Writes the node's configuration, and starts containerd and the wait for kubeadm.
pub(crate) async fn start(layout: &Layout, host: &Host) -> Result<(), Error> {
    let folder = layout.host(host.id()).folder().to_owned();
    let containerd = folder.join("containerd.toml");
    write(&containerd, &containerd_config())?;
    let kubelet = folder.join("kubelet.conf.d");
    fs::create_dir_all(&kubelet).map_err(Error::files("make", &kubelet))?;
    write(&kubelet.join("10-lab.conf"), &kubelet_config(layout, host))?;
    let cni = host.path("/etc/cni/net.d");
    fs::create_dir_all(&cni).map_err(Error::files("make", &cni))?;
    if let Some(pods) = host.id().pods() {
        write(&cni.join("10-lab.conflist"), &cni_config(pods))?;
    }
    host.start(Unit {
        name: "containerd".into(),
        command: ["containerd", "--config", &containerd.display().to_string()]
            .map(String::from)
            .into(),
        restart: true,
        when: None,
    })?;
    host.start(kubelet_unit(&kubelet, host))?;
    wait_containerd(host).await
}

async fn wait_containerd(host: &Host) -> Result<(), Error> {
    let socket = host.path(SOCKET);
    poll(CONTAINERD_READY, async || {
        UnixStream::connect(&socket).map(|_| ())
    })
    .await
    .map_err(|error| Error::Timeout {
        what: format!("containerd on {}", host.id()),
        allowed: CONTAINERD_READY.as_secs(),
        last: format!("{error}; see `steward-lab logs {}/containerd`", host.id()),
    })
}

/// Makes images known to the node's containerd.
pub(crate) async fn load(host: &Host, image: &Path) -> Result<(), Error> {
    let image = image.display().to_string();
    let words = ["ctr", "--namespace", "k8s.io", "images", "import", &image];
    host.run(&words).await.map(|_| ())
}

fn write(path: &PathBuf, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::files("write", path))
}

fn kubelet_unit(config_folder: &Path, host: &Host) -> Unit {
    let script = format!(
        ". {KUBEADM_FLAGS}; exec kubelet \
         --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
         --kubeconfig=/etc/kubernetes/kubelet.conf \
         --config=/var/lib/kubelet/config.yaml --config-dir={} \
         --node-ip={} $KUBELET_KUBEADM_ARGS",
        config_folder.display(),
        host.address(),
    );
    Unit {
        name: "kubelet".into(),
        command: vec!["sh".into(), "-c".into(), script],
        restart: true,
        when: Some(KUBEADM_FLAGS.into()),
    }
}

/// `restrict_oom_score_adj`: a machine without `CAP_SYS_RESOURCE` cannot lower the
/// score, and every sandbox would fail. The `opt` plugin makes `/opt/containerd`
/// on the machine. The other snapshotters only warn that they are missing.
fn containerd_config() -> String {
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "{SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "/etc/cni/net.d"
"#
    )
}

fn kubelet_config(layout: &Layout, host: &Host) -> String {
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /{}
containerRuntimeEndpoint: unix://{SOCKET}
resolvConf: /etc/resolv.conf
volumePluginDir: /var/lib/kubelet/volumeplugins
# The machine's disk is everybody's: a kubelet must neither evict pods nor
# collect images because somebody else filled it.
evictionHard:
  memory.available: 50Mi
  nodefs.available: 1%
  nodefs.inodesFree: 1%
  imagefs.available: 1%
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxPods: 250
",
        layout.host_cgroup(host.id()).join("pods").display(),
    )
}

fn cni_config(pods: u8) -> String {
    format!(
        r#"{{
  "cniVersion": "1.0.0",
  "name": "lab",
  "plugins": [
    {{
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {{
        "type": "host-local",
        "ranges": [[{{ "subnet": "10.244.{pods}.0/24" }}]],
        "routes": [{{ "dst": "0.0.0.0/0" }}]
      }}
    }},
    {{ "type": "portmap", "capabilities": {{ "portMappings": true }} }}
  ]
}}
"#
    )
}
