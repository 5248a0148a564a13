//! A tenant needs a name to be routed by, and one that fits.

use super::{Policy, Validation, Variable, named};
use crate::metadata::annotations::{INGRESS_DOMAIN, KAMAJI_INGRESS_DOMAIN};
use crate::rules::expressions::NAME;

/// Name of the policy and of its binding.
pub const NAME_OF_POLICY: &str = "tenantcontrolplane.steward.butlerlabs.dev";

pub(super) fn policy() -> Policy {
    Policy {
        name: NAME_OF_POLICY,
        variables: variables(),
        validations: validations(),
    }
}

fn variables() -> Vec<Variable> {
    let own = |mode: &str, field: &str| {
        format!(
            "has(object.spec.controlPlane.{mode}) && has(object.spec.controlPlane.{mode}.{field}) ? \
             object.spec.controlPlane.{mode}.{field} : "
        )
    };
    let annotation =
        |key: &str| format!("'{key}' in variables.annotations ? variables.annotations['{key}'] : ");
    vec![
        named(
            "annotations",
            "has(object.metadata.annotations) ? object.metadata.annotations : {}".into(),
        ),
        named(
            "shared",
            "has(object.spec.controlPlane.ingress) || has(object.spec.controlPlane.gateway)".into(),
        ),
        named(
            "hostname",
            format!("{}({}'')", own("ingress", "hostname"), own("gateway", "hostname")),
        ),
        named(
            "domain",
            format!(
                "{}({}({}({}'')))",
                own("ingress", "domain"),
                own("gateway", "domain"),
                annotation(INGRESS_DOMAIN),
                annotation(KAMAJI_INGRESS_DOMAIN),
            ),
        ),
        named(
            "label",
            "object.metadata.namespace + '-' + (has(object.metadata.name) ? object.metadata.name : '')"
                .into(),
        ),
    ]
}

fn validations() -> Vec<Validation> {
    vec![
        Validation::new(
            "!variables.shared || variables.hostname != '' || variables.domain != ''",
            "spec.controlPlane: ingress and gateway need a name to route by, and there is \
             neither a hostname nor a domain; write hostname, or domain, or the annotation \
             steward.butlerlabs.dev/ingress.domain",
        ),
        Validation::new(
            format!(
                "!variables.shared || variables.domain == '' || (variables.domain.matches('^{NAME}$') \
             && !isIP(variables.domain))"
            ),
            "metadata.annotations: the ingress domain must be a lower-case DNS domain \
             without wildcard, scheme or port; write example.com to get \
             <namespace>-<name>.k8s.example.com",
        ),
        Validation::new(
            "!variables.shared || variables.hostname != '' || variables.domain == '' || \
             (variables.label.size() <= 63 && \
             variables.label.size() + variables.domain.size() <= 239)",
            "metadata.name: <namespace>-<name> is the first part of the hostname that is made \
             from the domain, and longer than 63 characters, or the whole is longer than 253; \
             choose a shorter name, or write hostname",
        ),
        Validation::new(
            "object.metadata.namespace != 'default' || \
             !has(object.metadata.name) || object.metadata.name != 'kubernetes'",
            "metadata.name: the Service kubernetes in namespace default is this cluster's own; \
             choose another name or namespace",
        ),
    ]
}
