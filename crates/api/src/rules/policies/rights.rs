//! Fields that the operator carries out with its own rights need the right of the person who sets them.
//!
//! A person who may write tenants is not a person who may run containers, route addresses or
//! annotate an Ingress. The API server is asked whether the requester could do the same without us.
//! Only fields that the request sets or changes count.

use super::{Policy, Validation, Variable, named, pod_security};
use crate::GROUP;

/// Name of the policy and of its binding.
const NAME: &str = "tenantcontrolplane-rights.steward.butlerlabs.dev";

/// The verb of Steward's own permissions.
pub const USE: &str = "use";
/// Resource whose use lets pods reach beyond themselves into the node.
pub const PRIVILEGED_PODS: &str = "privilegedpods";
/// Resource whose use lets a tenant's Service take an external address.
pub const EXTERNAL_IPS: &str = "externalips";

/// Fields of the spec, and what stands for a field that isn't there: the default of its schema.
type Fields = &'static [(&'static str, &'static str)];

/// What a person who may create pods could do without us.
const PODS: Fields = &[
    ("controlPlane.deployment.additionalContainers", "[]"),
    ("controlPlane.deployment.additionalInitContainers", "[]"),
    ("controlPlane.deployment.additionalVolumes", "[]"),
    ("controlPlane.deployment.additionalVolumeMounts", "{}"),
    ("controlPlane.deployment.podSecurityContext", "{}"),
    ("controlPlane.deployment.containerSecurityContexts", "{}"),
    ("controlPlane.deployment.serviceAccountName", "'default'"),
    (
        "controlPlane.deployment.automountServiceAccountToken",
        "false",
    ),
    ("controlPlane.deployment.runtimeClassName", "''"),
    ("controlPlane.deployment.podAdditionalMetadata", "{}"),
    ("controlPlane.deployment.additionalMetadata", "{}"),
    (
        "controlPlane.deployment.registrySettings.registry",
        "'registry.k8s.io'",
    ),
    ("controlPlane.deployment.registrySettings.tagSuffix", "''"),
    (
        "controlPlane.deployment.registrySettings.apiServerImage",
        "'kube-apiserver'",
    ),
    (
        "controlPlane.deployment.registrySettings.controllerManagerImage",
        "'kube-controller-manager'",
    ),
    (
        "controlPlane.deployment.registrySettings.schedulerImage",
        "'kube-scheduler'",
    ),
    (
        "addons.konnectivity.server.image",
        "'registry.k8s.io/kas-network-proxy/proxy-server'",
    ),
    ("addons.konnectivity.server.version", "''"),
    ("addons.konnectivity.server.securityContext", "{}"),
];

/// What a person who may create Services could do without us.
const SERVICES: Fields = &[
    ("controlPlane.service.additionalMetadata", "{}"),
    ("controlPlane.service.additionalPorts", "[]"),
    ("networkProfile.loadBalancerClass", "''"),
];

const INGRESSES: Fields = &[("controlPlane.ingress.additionalMetadata", "{}")];
const ROUTES: Fields = &[("controlPlane.gateway.additionalMetadata", "{}")];

pub(super) fn policy() -> Policy {
    let mut validations = vec![
        pods(),
        services(),
        load_balancer_address(),
        external_addresses(),
        ingresses(),
        traefik_routes(),
        routes(),
    ];
    validations.extend(pod_security::validations());
    validations.push(privileged());
    Policy {
        name: NAME,
        variables: [variables(), pod_security::variables()].concat(),
        validations,
    }
}

fn variables() -> Vec<Variable> {
    vec![
        named("spec", "dyn(object.spec)".into()),
        named(
            "before",
            "oldObject == null ? dyn({}) : dyn(oldObject.spec)".into(),
        ),
        named("pods", changed(PODS)),
        named("services", changed(SERVICES)),
        named("ingresses", changed(INGRESSES)),
        named("routes", changed(ROUTES)),
        named("traefik", traefik("spec")),
        named("address", load_balancer("spec")),
        named("external", external("spec")),
        named("mayCreatePods", may("", "pods", "create")),
        named("mayCreateServices", may("", "services", "create")),
        named(
            "mayCreateIngresses",
            may("networking.k8s.io", "ingresses", "create"),
        ),
        named("mayUseExternalAddresses", may(GROUP, EXTERNAL_IPS, USE)),
        named("mayUsePrivilegedPods", may(GROUP, PRIVILEGED_PODS, USE)),
        named("who", "request.userInfo.username + ' may not '".into()),
        named("here", "' in namespace ' + request.namespace".into()),
    ]
}

/// The value of a field in `spec` or in `before`.
pub(super) fn value(whose: &str, field: &str, default: &str) -> String {
    let steps = field.replace('.', ".?");
    format!("variables.{whose}.?{steps}.orValue({default})")
}

/// Names of the fields that the request sets or changes.
fn changed(fields: Fields) -> String {
    let entries: Vec<String> = fields
        .iter()
        .map(|(field, default)| {
            let now = value("spec", field, default);
            let before = value("before", field, default);
            format!("{now} == {before} ? [] : ['spec.{field}']")
        })
        .collect();
    format!("({})", entries.join(") + ("))
}

/// Whether the requester may do it in the namespace of the tenant.
fn may(group: &str, resource: &str, verb: &str) -> String {
    format!(
        "authorizer.group('{group}').resource('{resource}').namespace(request.namespace)\
         .check('{verb}').allowed()"
    )
}

/// A sentence: fields, who may not do what, and whom to ask.
fn sentence(fields: &str, what: &str, ask: &str) -> String {
    format!(
        "variables.{fields}.join(', ') + ': ' + variables.who + '{what}' + variables.here + '{ask}'"
    )
}

fn pods() -> Validation {
    Validation::forbidden(
        "variables.pods.size() == 0 || variables.mayCreatePods",
        "spec: a field that shapes the pods of the control plane needs the right to create pods in \
         the namespace; ask an administrator of the namespace",
        sentence(
            "pods",
            "create pods",
            ", and this field decides what runs in the pods of the control plane; leave it as it was, \
             or ask an administrator of the namespace for the right to create pods",
        ),
    )
}

fn services() -> Validation {
    Validation::forbidden(
        "variables.services.size() == 0 || variables.mayCreateServices",
        "spec: a field that shapes the Service of the control plane needs the right to create \
         services in the namespace; ask an administrator of the namespace",
        sentence(
            "services",
            "create services",
            ", and this field is written into the Service of the control plane; leave it as it was, or \
             ask an administrator of the namespace for the right to create services",
        ),
    )
}

/// The address that a load balancer is asked for.
fn load_balancer(whose: &str) -> String {
    format!(
        "{} == 'LoadBalancer' ? {} : ''",
        value(whose, "controlPlane.service.serviceType", "''"),
        value(whose, "networkProfile.address", "''"),
    )
}

fn load_balancer_address() -> Validation {
    Validation::forbidden(
        format!(
            "variables.address == '' || variables.address == ({}) || variables.mayCreateServices",
            load_balancer("before")
        ),
        "spec.networkProfile.address: needs the right to create services in the namespace; ask an \
         administrator of the namespace",
        "'spec.networkProfile.address: ' + variables.who + 'create services' + variables.here + \
         ', and the load balancer is asked for this address; leave it out, or ask an administrator of \
         the namespace for the right to create services'",
    )
}

/// The address that the Service takes although no load balancer gave it.
fn external(whose: &str) -> String {
    format!(
        "{} ? {} : ''",
        value(whose, "networkProfile.allowAddressAsExternalIP", "false"),
        value(whose, "networkProfile.address", "''"),
    )
}

fn external_addresses() -> Validation {
    Validation::forbidden(
        format!(
            "variables.external == '' || variables.external == ({}) || variables.mayUseExternalAddresses",
            external("before")
        ),
        "spec.networkProfile.allowAddressAsExternalIP: needs the right to use externalips of \
         steward.butlerlabs.dev in the namespace; ask the administrator of this cluster",
        "'spec.networkProfile.allowAddressAsExternalIP: ' + variables.who + \
         'use externalips.steward.butlerlabs.dev' + variables.here + \
         ', and an external address takes traffic from whoever had it; leave it out, or ask the \
         administrator of this cluster'",
    )
}

fn ingresses() -> Validation {
    Validation::forbidden(
        "variables.ingresses.size() == 0 || variables.mayCreateIngresses",
        "spec.controlPlane.ingress.additionalMetadata: needs the right to create ingresses in the \
         namespace; ask an administrator of the namespace",
        sentence(
            "ingresses",
            "create ingresses",
            ", and annotations configure the Ingress controller; leave it as it was, or ask an \
             administrator of the namespace for the right to create ingresses",
        ),
    )
}

/// Whether the routes are Traefik's own.
fn traefik(whose: &str) -> String {
    let kind = value(whose, "controlPlane.ingress.controllerType", "''");
    format!("{kind} == 'traefik'")
}

fn traefik_routes() -> Validation {
    Validation::forbidden(
        format!(
            "!variables.traefik || variables.ingresses.size() == 0 || {}",
            may("traefik.io", "ingressroutetcps", "create")
        ),
        "spec.controlPlane.ingress.additionalMetadata: needs the right to create \
         ingressroutetcps.traefik.io in the namespace; ask an administrator of the namespace",
        sentence(
            "ingresses",
            "create ingressroutetcps.traefik.io",
            ", and annotations configure Traefik; leave it as it was, or ask an administrator of the \
             namespace for the right to create ingressroutetcps.traefik.io",
        ),
    )
}

fn routes() -> Validation {
    Validation::forbidden(
        format!(
            "variables.routes.size() == 0 || {}",
            may("gateway.networking.k8s.io", "tlsroutes", "create")
        ),
        "spec.controlPlane.gateway.additionalMetadata: needs the right to create \
         tlsroutes.gateway.networking.k8s.io in the namespace; ask an administrator of the namespace",
        sentence(
            "routes",
            "create tlsroutes.gateway.networking.k8s.io",
            ", and annotations configure the Gateway; leave it as it was, or ask an administrator of \
             the namespace for the right to create them",
        ),
    )
}

/// What reaches into the node needs a right of its own, because a namespace without a Pod Security
/// label refuses nothing.
fn privileged() -> Validation {
    Validation::forbidden(
        "variables.pods.size() == 0 || variables.privileged.size() == 0 || \
         variables.mayUsePrivilegedPods",
        "spec: a pod that reaches into its node needs the right to use privilegedpods of \
         steward.butlerlabs.dev in the namespace; ask the administrator of this cluster",
        sentence(
            "privileged",
            "use privilegedpods.steward.butlerlabs.dev",
            ", and this reaches beyond the pod into the node; remove it, or ask the administrator of \
             this cluster",
        ),
    )
}
