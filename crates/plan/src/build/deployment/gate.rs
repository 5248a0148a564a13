//! The gate: tells the API server's clients, tunnels and konnectivity agents apart by
//! their first bytes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{
    Inputs, LEAVE_SECONDS,
    pod::{mount, restricted},
    probes, volumes,
};
use crate::names::{API_SERVER_PORT, ENTRY_PORT, GATE_ADMIN_PORT, GATE_PORT, KONNECTIVITY_PORT};

const FOLDER: &str = "/etc/steward/gate";

pub(super) fn container(inputs: &Inputs<'_>) -> Container {
    let probe = |path: &str| probes::http("HTTP", GATE_ADMIN_PORT, path);
    Container {
        name: "steward-gate".into(),
        image: Some(inputs.settings.gate_image.clone()),
        image_pull_policy: Some("IfNotPresent".into()),
        command: Some(vec!["/steward-gate".into()]),
        args: Some(args(inputs)),
        ports: Some(vec![ContainerPort {
            name: Some(ENTRY_PORT.into()),
            container_port: GATE_PORT.into(),
            protocol: Some("TCP".into()),
            ..ContainerPort::default()
        }]),
        startup_probe: Some(probes::startup(probe("/livez"))),
        liveness_probe: Some(probes::liveness(probe("/livez"))),
        readiness_probe: Some(probes::readiness(probe("/readyz"))),
        resources: Some(ResourceRequirements {
            requests: Some(
                [("cpu", "10m"), ("memory", "16Mi")]
                    .map(|(name, amount)| (name.to_owned(), Quantity(amount.into())))
                    .into(),
            ),
            ..ResourceRequirements::default()
        }),
        security_context: Some(restricted(&[])),
        volume_mounts: Some(vec![mount(volumes::GATE, FOLDER)]),
        ..Container::default()
    }
}

fn args(inputs: &Inputs<'_>) -> Vec<String> {
    let mut args = vec![
        format!("--listen=0.0.0.0:{GATE_PORT}"),
        format!("--apiserver=127.0.0.1:{API_SERVER_PORT}"),
        format!("--cert={FOLDER}/tls.crt"),
        format!("--key={FOLDER}/tls.key"),
        format!("--admin=0.0.0.0:{GATE_ADMIN_PORT}"),
        "--restart-in-place".to_owned(),
    ];
    // New connections come until every front door knows that the pod is leaving.
    args.push(format!("--shutdown-delay={LEAVE_SECONDS}"));
    if inputs.tenant.spec.addons.konnectivity.is_some() {
        args.push(format!("--konnectivity=127.0.0.1:{KONNECTIVITY_PORT}"));
        let separate = inputs
            .ways
            .all()
            .filter(|way| way.by_name() && way.konnectivity_host != way.host)
            .map(|way| &way.konnectivity_host);
        let separate: BTreeSet<&String> = separate.collect();
        args.extend(
            separate
                .iter()
                .map(|name| format!("--konnectivity-name={name}")),
        );
    }
    if let Some(access) = &inputs.tenant.spec.control_plane.access {
        // Not the source ranges: behind a front door or a NAT this pod sees other addresses than
        // the clients' own, and would lock everybody out.
        args.extend(
            access
                .max_connections
                .map(|limit| format!("--max-connections={limit}")),
        );
        let rate = access.max_handshakes_per_second;
        args.extend(rate.map(|limit| format!("--max-handshakes-per-second={limit}")));
    }
    args
}
