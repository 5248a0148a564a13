//! What the platform team lets the tenants of a namespace use: hostnames, `DataStores`, `IngressClasses`
//! and Gateways.
//!
//! Annotations of the Namespace say it, which people who work in a namespace can't write. Without
//! an annotation everything is allowed. Only what a request sets or changes is looked at.

use super::rights::value;
use super::{Policy, Validation, Variable, named};
use crate::metadata::annotations::{
    ALLOWED_DATASTORES, ALLOWED_DOMAINS, ALLOWED_GATEWAYS, ALLOWED_INGRESS_CLASSES, INGRESS_DOMAIN,
    KAMAJI_INGRESS_DOMAIN,
};

/// Name of the policy and of its binding.
const NAME: &str = "tenantcontrolplane-allowed.steward.butlerlabs.dev";

/// The annotation by which an Ingress names its class the old way.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// One thing that a namespace may be limited in.
struct Limit {
    /// Prefix of its variables.
    name: &'static str,
    annotation: &'static str,
    /// Fields of the spec that it is about.
    fields: &'static str,
    /// What it is, in the plural.
    what: &'static str,
    /// Whether the allowed entry `a` covers the used value `n`.
    covers: &'static str,
}

const LIMITS: [Limit; 4] = [
    Limit {
        name: "domains",
        annotation: ALLOWED_DOMAINS,
        fields: "spec.controlPlane: hostname, domain and konnectivityHostname",
        what: "hostnames",
        covers: "a == n || (a.startsWith('*.') && n.endsWith(a.substring(1)))",
    },
    Limit {
        name: "datastores",
        annotation: ALLOWED_DATASTORES,
        fields: "spec.dataStore and spec.dataStoreOverrides",
        what: "DataStores",
        covers: "a == n",
    },
    Limit {
        name: "classes",
        annotation: ALLOWED_INGRESS_CLASSES,
        fields: "spec.controlPlane.ingress.ingressClassName",
        what: "IngressClasses",
        covers: "a == n",
    },
    Limit {
        name: "gateways",
        annotation: ALLOWED_GATEWAYS,
        fields: "spec.controlPlane.gateway.parentRefs",
        what: "Gateways",
        covers: "a == n",
    },
];

pub(super) fn policy() -> Policy {
    let mut all = vec![
        named("spec", "dyn(object.spec)".into()),
        named(
            "before",
            "oldObject == null ? dyn({}) : dyn(oldObject.spec)".into(),
        ),
        named(
            "specNotes",
            "object.metadata.?annotations.orValue({})".into(),
        ),
        named(
            "beforeNotes",
            "oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})".into(),
        ),
        named(
            "limits",
            "namespaceObject.metadata.?annotations.orValue({})".into(),
        ),
        named(
            "label",
            "request.namespace + '-' + object.metadata.?name.orValue('')".into(),
        ),
        named("specDomain", domain("spec")),
        named("beforeDomain", domain("before")),
    ];
    let (mut validations, uses) = (Vec::new(), [hostnames, datastores, classes, gateways]);
    for (limit, used) in LIMITS.into_iter().zip(uses) {
        all.extend(limit.variables(used));
        validations.push(limit.validation());
    }
    Policy {
        name: NAME,
        variables: all,
        validations,
    }
}

impl Limit {
    /// Three variables: what is allowed, whether anything is said at all, and what is used now, was not
    /// used before and is not allowed.
    fn variables(&self, used: fn(&str) -> String) -> Vec<Variable> {
        let Self {
            name,
            annotation,
            covers,
            ..
        } = self;
        let text = |suffix: &str| format!("{name}{suffix}");
        vec![
            named(
                text("Allowed"),
                format!(
                    "variables.limits[?'{annotation}'].orValue('').split(',').map(a, a.trim())\
                     .filter(a, a != '')"
                ),
            ),
            named(text("Before"), used("before")),
            named(
                text("Refused"),
                format!(
                    "!('{annotation}' in variables.limits) ? [] : ({}).filter(n, \
                     !(n in variables.{name}Before) && !variables.{name}Allowed.exists(a, {covers}))",
                    used("spec")
                ),
            ),
        ]
    }

    fn validation(&self) -> Validation {
        let Self {
            name,
            annotation,
            fields,
            what,
            ..
        } = self;
        Validation::forbidden(
            format!("variables.{name}Refused.size() == 0"),
            format!(
                "{fields}: must be among the {what} that the annotation {annotation} of the \
                 namespace allows; ask the platform team"
            ),
            format!(
                "'{fields}: tenants in namespace ' + request.namespace + ' may use these {what} only: ' \
                 + variables.{name}Allowed.join(', ') + '; not ' + variables.{name}Refused.map(n, \
                 n == '' ? 'the one that is used when none is named' : n).join(', ') + '. Name one of \
                 them, or ask the platform team, which allows more with the annotation {annotation} of \
                 the namespace'"
            ),
        )
    }
}

/// The domain that names are made from.
fn domain(whose: &str) -> String {
    let given = |mode: &str| value(whose, &format!("controlPlane.{mode}.domain"), "''");
    format!(
        "{ingress} != '' ? {ingress} : ({gateway} != '' ? {gateway} : \
         (variables.{whose}Notes[?'{INGRESS_DOMAIN}'].orValue('') != '' ? \
         variables.{whose}Notes['{INGRESS_DOMAIN}'] : \
         variables.{whose}Notes[?'{KAMAJI_INGRESS_DOMAIN}'].orValue('')))",
        ingress = given("ingress"),
        gateway = given("gateway"),
    )
}

/// Every name that a tenant claims behind a shared address, as `PublicNames` finds them.
fn hostnames(whose: &str) -> String {
    let field = |mode: &str, field: &str| {
        let text = value(whose, &format!("controlPlane.{mode}.{field}"), "''");
        format!("string({text}).split(':')[0].lowerAscii()")
    };
    let made = |label: &str| {
        format!(
            "(variables.{whose}Domain == '' ? '' : \
             variables.label + '.{label}.' + string(variables.{whose}Domain))"
        )
    };
    let agents = format!(
        "{}.filter(x, x.matches('^--?proxy[-_]server[-_]host=')).map(x, \
         string(x).split('=')[1].trim().lowerAscii())",
        value(whose, "addons.konnectivity.agent.extraArgs", "[]")
    );
    let hostname = format!(
        "({ingress} != '' || {gateway} != '')",
        ingress = field("ingress", "hostname"),
        gateway = field("gateway", "hostname"),
    );
    let shared = format!(
        "variables.{whose}.?controlPlane.?ingress.hasValue() || \
         variables.{whose}.?controlPlane.?gateway.hasValue()"
    );
    format!(
        "({shared} ? [{}, {}, {}, {}, {hostname} ? '' : {}, {}] + {agents} : [])\
         .filter(n, n != '' && !isIP(n))",
        field("ingress", "hostname"),
        field("gateway", "hostname"),
        field("ingress", "konnectivityHostname"),
        field("gateway", "konnectivityHostname"),
        made("k8s"),
        made("konnectivity"),
    )
}

/// The `DataStores` in use; the operator's default one is ''.
fn datastores(whose: &str) -> String {
    let main = format!(
        "(variables.{whose}.?kubernetes.hasValue() ? [string({})] : [])",
        value(whose, "dataStore", "''")
    );
    format!(
        "{main} + {}.map(o, string(o.dataStore))",
        value(whose, "dataStoreOverrides", "[]")
    )
}

/// The class of the Ingress; the cluster's default one is ''.
fn classes(whose: &str) -> String {
    let class = value(whose, "controlPlane.ingress.ingressClassName", "''");
    let notes = value(
        whose,
        "controlPlane.ingress.additionalMetadata.annotations",
        "{}",
    );
    format!(
        "({} ? [string({class})] + ('{CLASS_ANNOTATION}' in {notes} ? \
         [string({notes}['{CLASS_ANNOTATION}'])] : []) : [])",
        value(whose, "controlPlane.ingress.deploy", "false")
    )
}

/// The parents of the routes, as `namespace/name`.
fn gateways(whose: &str) -> String {
    format!(
        "{}.map(p, string(p.?namespace.orValue(request.namespace)) + '/' + string(p.name))",
        value(whose, "controlPlane.gateway.parentRefs", "[]")
    )
}
