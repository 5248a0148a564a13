//! The kube-apiserver container.

use k8s_openapi::api::core::v1::{Container, ContainerPort};

use super::{
    ANSWER_SECONDS, Inputs,
    args::Args,
    pod::{mount, restricted, writable},
    probes::{self, Program},
    volumes,
};
use crate::{
    build::kubeadm::etcd_urls,
    names::{API_SERVER_PORT, ENTRY_PORT},
    validate::Network,
};

const PKI: &str = "/etc/kubernetes/pki";
const EGRESS: &str = "/etc/kubernetes/konnectivity/configurations";

pub(super) fn container(inputs: &Inputs<'_>, ignored: &mut Vec<String>) -> Container {
    let deployment = &inputs.tenant.spec.control_plane.deployment;
    let registry = &deployment.registry_settings;
    let user = deployment
        .extra_args
        .as_ref()
        .map(|args| args.api_server.as_slice());
    let probe = |path: &str| probes::http("HTTPS", API_SERVER_PORT, path);
    let mut container = Container {
        name: "kube-apiserver".into(),
        image: Some(super::controllers::image(
            inputs,
            &registry.api_server_image,
        )),
        image_pull_policy: Some("IfNotPresent".into()),
        command: Some(vec!["kube-apiserver".into()]),
        args: Some(args(inputs).merge(user.unwrap_or_default(), ignored)),
        ports: Some(ports(inputs)),
        startup_probe: Some(probes::startup(probe("/livez"))),
        liveness_probe: Some(probes::liveness(probe("/livez"))),
        readiness_probe: Some(probes::readiness(probe("/readyz"))),
        resources: deployment
            .resources
            .as_ref()
            .and_then(|all| all.api_server.clone()),
        security_context: deployment
            .container_security_contexts
            .as_ref()
            .and_then(|all| all.api_server.clone())
            .or_else(|| Some(restricted(&["NET_BIND_SERVICE"]))),
        volume_mounts: Some(mounts(inputs)),
        ..Container::default()
    };
    probes::tune(
        &mut container,
        deployment.probes.as_ref(),
        Program::ApiServer,
    );
    container
}

fn ports(inputs: &Inputs<'_>) -> Vec<ContainerPort> {
    let name = if inputs.gate { "api" } else { ENTRY_PORT };
    vec![ContainerPort {
        name: Some(name.into()),
        container_port: API_SERVER_PORT.into(),
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    }]
}

fn mounts(inputs: &Inputs<'_>) -> Vec<k8s_openapi::api::core::v1::VolumeMount> {
    let mut all = vec![mount(volumes::PKI, PKI)];
    if inputs.tenant.egress.selects() {
        all.push(mount(volumes::EGRESS, EGRESS));
    }
    if inputs.tenant.spec.addons.konnectivity.is_some() {
        all.push(writable(
            volumes::KONNECTIVITY_SOCKET,
            super::konnectivity::SOCKET_FOLDER,
        ));
    }
    let deployment = &inputs.tenant.spec.control_plane.deployment;
    let more = deployment
        .additional_volume_mounts
        .iter()
        .flat_map(|more| &more.api_server);
    super::controllers::add_mounts(&mut all, more);
    all
}

fn args(inputs: &Inputs<'_>) -> Args {
    let tenant = inputs.tenant;
    let storage = inputs.storage;
    let file = |name: &str| format!("{PKI}/{name}");
    let issuer = format!("https://kubernetes.default.svc.{}", tenant.network.domain);
    let selects = tenant.egress.selects();
    let overrides = overrides(inputs);
    Args::default()
        .must("--allow-privileged", "true")
        .maybe("--advertise-address", advertise(inputs))
        .must("--authorization-mode", "Node,RBAC")
        .must("--client-ca-file", file("ca.crt"))
        .must("--enable-bootstrap-token-auth", "true")
        .prefer("--enable-admission-plugins", plugins(inputs))
        .must("--endpoint-reconciler-type", "none")
        .must("--etcd-cafile", file("etcd/ca.crt"))
        .must("--etcd-certfile", file("etcd/server.crt"))
        .must("--etcd-keyfile", file("etcd/server.key"))
        // Many tenants share one etcd, which compacts itself for all of them.
        .must("--etcd-compaction-interval", "0")
        .must("--etcd-prefix", format!("/{}", storage.schema))
        .must(
            "--etcd-servers",
            etcd_urls(&storage.store.endpoints).join(","),
        )
        .maybe("--etcd-servers-overrides", overrides)
        .maybe(
            "--egress-selector-config-file",
            selects.then(|| format!("{EGRESS}/egress-selector-configuration.yaml")),
        )
        // A long-lived connection would stay with one pod for ever.
        .prefer("--goaway-chance", "0.001")
        .must(
            "--kubelet-client-certificate",
            file("apiserver-kubelet-client.crt"),
        )
        .must("--kubelet-client-key", file("apiserver-kubelet-client.key"))
        .must("--kubelet-preferred-address-types", address_types(inputs))
        .must("--proxy-client-cert-file", file("front-proxy-client.crt"))
        .must("--proxy-client-key-file", file("front-proxy-client.key"))
        .must("--requestheader-allowed-names", "front-proxy-client")
        .must("--requestheader-client-ca-file", file("front-proxy-ca.crt"))
        .must("--requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .must("--requestheader-group-headers", "X-Remote-Group")
        .must("--requestheader-username-headers", "X-Remote-User")
        .must("--secure-port", API_SERVER_PORT.to_string())
        .prefer("--service-account-issuer", issuer)
        .must("--service-account-key-file", file("sa.pub"))
        .must("--service-account-signing-key-file", file("sa.key"))
        .must(
            "--service-cluster-ip-range",
            Network::join(&tenant.network.service_cidrs),
        )
        .prefer("--shutdown-delay-duration", format!("{ANSWER_SECONDS}s"))
        .must("--tls-cert-file", file("apiserver.crt"))
        .must("--tls-private-key-file", file("apiserver.key"))
}

/// What the user wants announced; without it, the pod's own address, which nobody sees: the
/// endpoints are ours to write.
fn advertise(inputs: &Inputs<'_>) -> Option<String> {
    let given = inputs.tenant.network.advertise;
    given.map(|address| address.to_string())
}

/// The user's plugins, or those that Kubernetes turns on anyway and `NodeRestriction`.
/// Those that this version doesn't know would keep it from starting.
fn plugins(inputs: &Inputs<'_>) -> String {
    let given = inputs.tenant.spec.kubernetes.admission_controllers.as_ref();
    let all: Vec<&str> = match given {
        Some(list) => list.iter().map(|plugin| plugin.0.as_str()).collect(),
        None => vec!["NodeRestriction"],
    };
    let known = all
        .into_iter()
        .filter(|plugin| inputs.tenant.version.knows_plugin(plugin));
    known.collect::<Vec<_>>().join(",")
}

fn address_types(inputs: &Inputs<'_>) -> String {
    let types = &inputs
        .tenant
        .spec
        .kubernetes
        .kubelet
        .preferred_address_types;
    types
        .iter()
        .map(|kind| kind.as_str())
        .collect::<Vec<_>>()
        .join(",")
}

fn overrides(inputs: &Inputs<'_>) -> Option<String> {
    let text = |(resource, store): &(String, crate::observed::Datastore)| {
        format!("{resource}#{}", etcd_urls(&store.endpoints).join(";"))
    };
    let all: Vec<String> = inputs.storage.overrides.iter().map(text).collect();
    (!all.is_empty()).then(|| all.join(","))
}
