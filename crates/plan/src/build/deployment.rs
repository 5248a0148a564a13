//! The Deployment: the pods of the control plane.

mod api_server;
mod args;
mod controllers;
mod egress;
mod gate;
mod konnectivity;
mod pod;
mod probes;
mod volumes;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment},
        core::v1::{Container, PodSpec, PodTemplateSpec, TopologySpreadConstraint},
    },
    apimachinery::pkg::{
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use steward_api::metadata::labels;

use super::meta::{extend, meta, object};
use crate::{
    names::COMPONENT_PREFIX,
    object::{Kind, Object, Stage},
    settings::Settings,
    validate::{Storage, Validated},
    way::Ways,
};

pub(crate) use egress::egress_selector;

/// How long a pod that was told to stop takes new connections: longer than any front door needs
/// to learn that it is leaving.
pub(crate) const LEAVE_SECONDS: i64 = 15;

/// How long its API server goes on answering: whoever connected in the last moment, perhaps through
/// a busy machine, has time to ask. From then on it says 503.
pub(crate) const ANSWER_SECONDS: i64 = LEAVE_SECONDS + 5;

/// What the pods are made of besides the validated tenant.
pub(crate) struct Inputs<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) tenant: &'a Validated,
    pub(crate) storage: &'a Storage,
    pub(crate) ways: &'a Ways,
    /// Whether the gate is (still, or already) in the pods.
    pub(crate) gate: bool,
    /// Checksums of what is mounted, by component: a change makes new pods.
    pub(crate) checksums: BTreeMap<String, String>,
}

/// The Deployment, and the arguments of the user that ours replaced.
pub(crate) fn deployment(inputs: &Inputs<'_>) -> (Object, Vec<String>) {
    let tenant = inputs.tenant;
    let spec = &tenant.spec.control_plane.deployment;
    let mut metadata = meta(tenant, tenant.names.tenant.clone(), "deployment");
    extend(&mut metadata, spec.additional_metadata.as_ref());
    let mut ignored = Vec::new();
    let body = Deployment {
        metadata,
        spec: Some(DeploymentSpec {
            replicas: Some(tenant.replicas()),
            revision_history_limit: Some(3),
            selector: LabelSelector {
                match_labels: Some(tenant.names.selector()),
                ..LabelSelector::default()
            },
            strategy: Some(spec.strategy.clone().unwrap_or_else(all_at_once)),
            template: PodTemplateSpec {
                metadata: Some(pod_metadata(inputs)),
                spec: Some(pod_spec(inputs, &mut ignored)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    };
    let because = "it runs the tenant's control plane";
    (
        object(Kind::Deployment, Stage::Workload, because, &body),
        ignored,
    )
}

/// All new pods are up before an old one goes: no moment without an API server, and no
/// mix of versions for longer than needed.
fn all_at_once() -> DeploymentStrategy {
    DeploymentStrategy {
        type_: Some("RollingUpdate".into()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::String("100%".into())),
            max_unavailable: Some(IntOrString::Int(0)),
        }),
    }
}

fn pod_metadata(inputs: &Inputs<'_>) -> ObjectMeta {
    let tenant = inputs.tenant;
    let mut all = tenant.names.labels("deployment");
    // A label's value is shorter than a name may be.
    let store = Some(&inputs.storage.store.name).filter(|name| name.len() <= 63);
    all.extend(store.map(|name| (labels::DATASTORE.to_owned(), name.clone())));
    let sums = inputs.checksums.iter();
    let notes = sums.map(|(name, sum)| (format!("{COMPONENT_PREFIX}/{name}"), sum.clone()));
    let mut metadata = ObjectMeta {
        labels: Some(all),
        annotations: Some(notes.collect()),
        ..ObjectMeta::default()
    };
    extend(
        &mut metadata,
        tenant
            .spec
            .control_plane
            .deployment
            .pod_additional_metadata
            .as_ref(),
    );
    metadata
}

fn pod_spec(inputs: &Inputs<'_>, ignored: &mut Vec<String>) -> PodSpec {
    let tenant = inputs.tenant;
    let spec = &tenant.spec.control_plane.deployment;
    PodSpec {
        containers: containers(inputs, ignored),
        init_containers: Some(spec.additional_init_containers.clone()).filter(|l| !l.is_empty()),
        volumes: Some(volumes::volumes(inputs)),
        node_selector: Some(spec.node_selector.clone()).filter(|map| !map.is_empty()),
        runtime_class_name: spec.runtime_class_name.clone(),
        tolerations: Some(spec.tolerations.clone()).filter(|list| !list.is_empty()),
        affinity: spec.affinity.clone(),
        topology_spread_constraints: Some(spread(tenant)),
        service_account_name: Some(spec.service_account_name.clone()),
        automount_service_account_token: Some(
            spec.automount_service_account_token.unwrap_or(false),
        ),
        enable_service_links: Some(false),
        security_context: Some(
            spec.pod_security_context
                .clone()
                .unwrap_or_else(pod::security_context),
        ),
        // The API server leaves in its own time; what still runs then is cut.
        termination_grace_period_seconds: Some(ANSWER_SECONDS + 60),
        ..PodSpec::default()
    }
}

fn containers(inputs: &Inputs<'_>, ignored: &mut Vec<String>) -> Vec<Container> {
    let mut all = vec![
        api_server::container(inputs, ignored),
        controllers::controller_manager(inputs, ignored),
        controllers::scheduler(inputs, ignored),
    ];
    all.extend(konnectivity::container(inputs, ignored));
    if inputs.gate {
        all.push(gate::container(inputs));
    }
    all.extend(
        inputs
            .tenant
            .spec
            .control_plane
            .deployment
            .additional_containers
            .iter()
            .cloned(),
    );
    all
}

/// The user's constraints, or ours: over nodes where possible.
fn spread(tenant: &Validated) -> Vec<TopologySpreadConstraint> {
    let own = LabelSelector {
        match_labels: Some(tenant.names.selector()),
        ..LabelSelector::default()
    };
    let given = &tenant
        .spec
        .control_plane
        .deployment
        .topology_spread_constraints;
    if given.is_empty() {
        return vec![TopologySpreadConstraint {
            label_selector: Some(own),
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".into(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            ..TopologySpreadConstraint::default()
        }];
    }
    let complete = |constraint: &TopologySpreadConstraint| TopologySpreadConstraint {
        label_selector: constraint
            .label_selector
            .clone()
            .or_else(|| Some(own.clone())),
        ..constraint.clone()
    };
    given.iter().map(complete).collect()
}
