//! The `PodDisruptionBudget` of a tenant with more than one pod.

use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec},
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};

use super::meta::{meta, object};
use crate::{
    object::{Kind, Object, Stage},
    validate::Validated,
};

/// The budget; one pod alone must not block a node's maintenance for ever.
pub(crate) fn budget(tenant: &Validated) -> Option<Object> {
    if tenant.replicas() < 2 {
        return None;
    }
    let body = PodDisruptionBudget {
        metadata: meta(tenant, tenant.names.tenant.clone(), "pod-disruption-budget"),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(LabelSelector {
                match_labels: Some(tenant.names.selector()),
                ..LabelSelector::default()
            }),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    };
    let because = "maintenance of nodes takes one pod of the control plane at a time";
    Some(object(
        Kind::PodDisruptionBudget,
        Stage::Workload,
        because,
        &body,
    ))
}
