//! The containers of the controller manager and the scheduler.
//!
//! Both get the authorities as files, so that neither has to ask the API server at its
//! own start, when that is not up yet.

use k8s_openapi::api::core::v1::{Container, VolumeMount};

use super::{
    Inputs,
    args::Args,
    pod::{mount, restricted},
    probes::{self, Program},
    volumes,
};
use crate::validate::Network;

const PKI: &str = "/etc/kubernetes/pki";
const CONTROLLER_MANAGER_PORT: u16 = 10257;
const SCHEDULER_PORT: u16 = 10259;

/// Image of a Kubernetes component.
pub(super) fn image(inputs: &Inputs<'_>, name: &str) -> String {
    let settings = &inputs
        .tenant
        .spec
        .control_plane
        .deployment
        .registry_settings;
    let suffix = settings.tag_suffix.as_deref().unwrap_or_default();
    format!(
        "{}/{name}:{}{suffix}",
        settings.registry,
        inputs.tenant.version.tag()
    )
}

/// Adds the user's mounts, except where ours has the path.
pub(super) fn add_mounts<'a>(
    ours: &mut Vec<VolumeMount>,
    theirs: impl Iterator<Item = &'a VolumeMount>,
) {
    for mount in theirs {
        if ours
            .iter()
            .all(|other| other.mount_path != mount.mount_path)
        {
            ours.push(mount.clone());
        }
    }
}

pub(super) fn controller_manager(inputs: &Inputs<'_>, ignored: &mut Vec<String>) -> Container {
    let deployment = &inputs.tenant.spec.control_plane.deployment;
    let folder = "/etc/kubernetes/controller-manager";
    let user = deployment
        .extra_args
        .as_ref()
        .map(|args| args.controller_manager.as_slice());
    let mut mounts = vec![
        mount(volumes::PKI, PKI),
        mount(volumes::CONTROLLER_MANAGER, folder),
    ];
    let more = deployment.additional_volume_mounts.iter();
    add_mounts(&mut mounts, more.flat_map(|more| &more.controller_manager));
    let args = controller_manager_args(inputs, &format!("{folder}/controller-manager.conf"));
    let mut container = Container {
        name: "kube-controller-manager".into(),
        image: Some(image(
            inputs,
            &deployment.registry_settings.controller_manager_image,
        )),
        image_pull_policy: Some("IfNotPresent".into()),
        command: Some(vec!["kube-controller-manager".into()]),
        args: Some(args.merge(user.unwrap_or_default(), ignored)),
        resources: deployment
            .resources
            .as_ref()
            .and_then(|all| all.controller_manager.clone()),
        security_context: deployment
            .container_security_contexts
            .as_ref()
            .and_then(|all| all.controller_manager.clone())
            .or_else(|| Some(restricted(&[]))),
        volume_mounts: Some(mounts),
        ..probed(CONTROLLER_MANAGER_PORT)
    };
    probes::tune(
        &mut container,
        deployment.probes.as_ref(),
        Program::ControllerManager,
    );
    container
}

pub(super) fn scheduler(inputs: &Inputs<'_>, ignored: &mut Vec<String>) -> Container {
    let deployment = &inputs.tenant.spec.control_plane.deployment;
    let folder = "/etc/kubernetes/scheduler";
    let user = deployment
        .extra_args
        .as_ref()
        .map(|args| args.scheduler.as_slice());
    let mut mounts = vec![mount(volumes::PKI, PKI), mount(volumes::SCHEDULER, folder)];
    let more = deployment.additional_volume_mounts.iter();
    add_mounts(&mut mounts, more.flat_map(|more| &more.scheduler));
    let args = shared_args(&format!("{folder}/scheduler.conf"));
    let mut container = Container {
        name: "kube-scheduler".into(),
        image: Some(image(inputs, &deployment.registry_settings.scheduler_image)),
        image_pull_policy: Some("IfNotPresent".into()),
        command: Some(vec!["kube-scheduler".into()]),
        args: Some(args.merge(user.unwrap_or_default(), ignored)),
        resources: deployment
            .resources
            .as_ref()
            .and_then(|all| all.scheduler.clone()),
        security_context: deployment
            .container_security_contexts
            .as_ref()
            .and_then(|all| all.scheduler.clone())
            .or_else(|| Some(restricted(&[]))),
        volume_mounts: Some(mounts),
        ..probed(SCHEDULER_PORT)
    };
    probes::tune(
        &mut container,
        deployment.probes.as_ref(),
        Program::Scheduler,
    );
    container
}

/// Alive or not; the pod's readiness is the API server's alone, which is what clients
/// come for.
fn probed(port: u16) -> Container {
    let probe = || probes::http("HTTPS", port, "/healthz");
    Container {
        startup_probe: Some(probes::startup(probe())),
        liveness_probe: Some(probes::liveness(probe())),
        ..Container::default()
    }
}

fn shared_args(kubeconfig: &str) -> Args {
    Args::default()
        .must("--authentication-kubeconfig", kubeconfig)
        .must("--authorization-kubeconfig", kubeconfig)
        .must("--bind-address", "0.0.0.0")
        .must("--client-ca-file", format!("{PKI}/ca.crt"))
        .must("--kubeconfig", kubeconfig)
        .prefer("--leader-elect", "true")
        .must(
            "--requestheader-client-ca-file",
            format!("{PKI}/front-proxy-ca.crt"),
        )
}

fn controller_manager_args(inputs: &Inputs<'_>, kubeconfig: &str) -> Args {
    let network = &inputs.tenant.network;
    let small = network
        .pod_cidrs
        .iter()
        .find(|range| range.addr().is_ipv4());
    let mask = small
        .map(ipnet::IpNet::prefix_len)
        .filter(|prefix| *prefix > 20);
    let args = shared_args(kubeconfig)
        .prefer("--allocate-node-cidrs", "true")
        .must("--cluster-cidr", Network::join(&network.pod_cidrs))
        .must("--cluster-name", inputs.tenant.names.tenant.clone())
        .must("--cluster-signing-cert-file", format!("{PKI}/ca.crt"))
        .must("--cluster-signing-key-file", format!("{PKI}/ca.key"))
        .prefer("--controllers", "*,bootstrapsigner,tokencleaner")
        .must("--root-ca-file", format!("{PKI}/ca.crt"))
        .must(
            "--service-account-private-key-file",
            format!("{PKI}/sa.key"),
        )
        .must(
            "--service-cluster-ip-range",
            Network::join(&network.service_cidrs),
        )
        .must("--use-service-account-credentials", "true");
    match mask {
        // A range of which a node's usual /24 would leave hardly any: room for 16 nodes.
        Some(prefix) if network.pod_cidrs.len() == 1 => {
            args.prefer("--node-cidr-mask-size", (prefix + 4).min(30).to_string())
        }
        _ => args,
    }
}
