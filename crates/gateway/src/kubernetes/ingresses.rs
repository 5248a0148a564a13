//! Ingress objects of our class, read as SNI routes.
//!
//! Owns which Ingresses are ours and what they claim. TLS is never opened, so of
//! a host's HTTP paths only the backend counts: that of `/`, or else of the first.

use std::collections::BTreeSet;

use k8s_openapi::api::networking::v1::{HTTPIngressPath, Ingress, IngressRule};

use super::access;
use super::claims::Claim;
use super::hostname;
use super::world::{Backends, CONTROLLER, PortRef, World, family, seniority};

const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";
const LEGACY_CLASS: &str = "kubernetes.io/ingress.class";

/// `Ingress ns/name`, as claims and messages call it.
pub fn owner(ingress: &Ingress) -> String {
    format!("Ingress {}", seniority(&ingress.metadata).1)
}

/// The Ingresses whose class names our controller.
pub fn ours(world: &World) -> Vec<&Ingress> {
    let classes = world
        .ingress_classes
        .iter()
        .filter(|c| c.spec.as_ref().and_then(|s| s.controller.as_deref()) == Some(CONTROLLER));
    let mut names = BTreeSet::new();
    let mut have_default = false;
    for class in classes {
        names.extend(class.metadata.name.as_deref());
        let annotations = class.metadata.annotations.as_ref();
        have_default |= annotations
            .and_then(|a| a.get(DEFAULT_CLASS))
            .is_some_and(|v| v == "true");
    }
    world
        .ingresses
        .iter()
        .map(AsRef::as_ref)
        .filter(|i| class_of(i).map_or(have_default, |class| names.contains(class)))
        .collect()
}

fn class_of(ingress: &Ingress) -> Option<&str> {
    let spec = ingress
        .spec
        .as_ref()
        .and_then(|s| s.ingress_class_name.as_deref());
    let annotations = ingress.metadata.annotations.as_ref();
    spec.or_else(|| {
        annotations
            .and_then(|a| a.get(LEGACY_CLASS))
            .map(String::as_str)
    })
}

/// What one of our Ingresses claims. Hosts that are not names, and backends that
/// can't be found, claim nothing: the rest of the object still works.
pub fn claims(backends: &Backends<'_>, ingress: &Ingress) -> Vec<Claim> {
    let namespace = ingress.metadata.namespace.as_deref().unwrap_or_default();
    let rules = ingress
        .spec
        .as_ref()
        .and_then(|s| s.rules.as_deref())
        .unwrap_or_default();
    rules
        .iter()
        .filter_map(|rule| {
            let host = rule.host.as_deref().filter(|h| hostname::is_valid(h))?;
            let service = main_path(rule)?.backend.service.as_ref()?;
            let port = service.port.as_ref()?;
            let port = match (&port.name, port.number) {
                (Some(name), _) => PortRef::Name(name.clone()),
                (None, Some(number)) => PortRef::Number(number),
                (None, None) => return None,
            };
            Some(Claim {
                host: host.to_ascii_lowercase(),
                backends: backends
                    .resolve(namespace, &service.name, &port)
                    .unwrap_or_default(),
                allow: access::allowed(&owner(ingress), ingress.metadata.annotations.as_ref()),
                // The Ingress API's wildcard is one label; the Gateway API's is any number.
                one_label: true,
                owner: owner(ingress),
                seniority: seniority(&ingress.metadata),
                family: family(&ingress.metadata),
            })
        })
        .collect()
}

fn main_path(rule: &IngressRule) -> Option<&HTTPIngressPath> {
    let paths = &rule.http.as_ref()?.paths;
    paths
        .iter()
        .find(|p| p.path.as_deref().unwrap_or("/") == "/")
        .or_else(|| paths.first())
}
