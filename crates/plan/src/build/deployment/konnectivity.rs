//! The konnectivity server beside the API server. It hands on to agents what the API server gives it,
//! and dials nothing itself but the API server of its own pod.

use k8s_openapi::api::core::v1::{Container, ContainerPort};

use super::{
    ANSWER_SECONDS, Inputs,
    args::Args,
    pod::{linger, mount, restricted, writable},
    probes, volumes,
};
use crate::names::KONNECTIVITY_PORT;

/// Folder of the socket between the two.
pub(super) const SOCKET_FOLDER: &str = "/run/konnectivity";
pub(super) const SOCKET: &str = "/run/konnectivity/konnectivity-server.socket";
const KUBECONFIG: &str = "/etc/kubernetes/konnectivity-server";
const CERTIFICATE: &str = "/etc/konnectivity/pki";
const ADMIN_PORT: u16 = 8133;
const HEALTH_PORT: u16 = 8134;

pub(super) fn container(inputs: &Inputs<'_>, ignored: &mut Vec<String>) -> Option<Container> {
    let tenant = inputs.tenant;
    let server = &tenant.spec.addons.konnectivity.as_ref()?.server;
    let version = server.version.clone().filter(|version| !version.is_empty());
    let tag = version.unwrap_or_else(|| tenant.version.konnectivity_tag());
    let args = Args::default()
        .must("--admin-port", ADMIN_PORT.to_string())
        .must("--agent-namespace", "kube-system")
        .must("--agent-port", KONNECTIVITY_PORT.to_string())
        .must("--agent-service-account", "konnectivity-agent")
        .must("--authentication-audience", "system:konnectivity-server")
        .must("--cluster-cert", format!("{CERTIFICATE}/tls.crt"))
        .must("--cluster-key", format!("{CERTIFICATE}/tls.key"))
        .must("--delete-existing-uds-file", "true")
        .prefer("--frontend-keepalive-time", "30s")
        .must("--health-port", HEALTH_PORT.to_string())
        // Idle limits of load balancers start at minutes; the default is an hour.
        .prefer("--keepalive-time", "30s")
        .must(
            "--kubeconfig",
            format!("{KUBECONFIG}/konnectivity-server.conf"),
        )
        .prefer("--logtostderr", "true")
        .must("--mode", "grpc")
        .must("--server-count", tenant.replicas().max(1).to_string())
        .must("--server-port", "0")
        .must("--uds-name", SOCKET);
    Some(Container {
        name: "konnectivity-server".into(),
        image: Some(format!("{}:{tag}", server.image)),
        image_pull_policy: Some("IfNotPresent".into()),
        command: Some(vec!["/proxy-server".into()]),
        args: Some(args.merge(&server.extra_args, ignored)),
        ports: Some(vec![ContainerPort {
            name: Some("konnectivity".into()),
            container_port: KONNECTIVITY_PORT.into(),
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
        liveness_probe: Some(probes::liveness(probes::http(
            "HTTP",
            HEALTH_PORT,
            "/healthz",
        ))),
        startup_probe: Some(probes::startup(probes::http(
            "HTTP",
            HEALTH_PORT,
            "/healthz",
        ))),
        resources: server.resources.clone(),
        security_context: server
            .security_context
            .clone()
            .or_else(|| Some(restricted(&[]))),
        // The API server needs it for as long as it still answers.
        lifecycle: Some(linger(ANSWER_SECONDS)),
        volume_mounts: Some(vec![
            writable(volumes::KONNECTIVITY_SOCKET, SOCKET_FOLDER),
            mount(volumes::KONNECTIVITY_KUBECONFIG, KUBECONFIG),
            mount(volumes::KONNECTIVITY_CERTIFICATE, CERTIFICATE),
        ]),
        ..Container::default()
    })
}
