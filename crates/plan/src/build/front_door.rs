//! What leads clients from a shared front door to the tenant: Ingress, IngressRouteTCP or
//! TLSRoute, for the API server and, where it has a name of its own, for konnectivity.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::networking::v1::{
        HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule,
        IngressServiceBackend, IngressSpec as IngressBody, IngressTLS, ServiceBackendPort,
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};
use serde_json::{Value, json};
use steward_api::{
    foreign::{IngressRouteTCPSpec, TcpRoute, TcpRouteService, TcpTls},
    hostnames::PublicNames,
    metadata::{AdditionalMetadata, annotations},
    tenant_control_plane::{GatewaySpec, IngressControllerType, IngressSpec},
};

use super::meta::{extend, meta, object};
use crate::{
    object::{Kind, Object, Stage},
    observed::{Platform, TlsRouteVersion},
    validate::{Exposure, Validated},
};

const BECAUSE: &str = "the front door routes the tenant's names to it";

/// A name and the port of the Service it leads to.
struct Route<'a> {
    host: &'a str,
    port: u16,
}

/// The objects of the mode; none in modes without a front door, or when the user makes
/// them himself.
pub(crate) fn objects(tenant: &Validated, platform: &Platform) -> Vec<Object> {
    let control_plane = &tenant.spec.control_plane;
    match (
        &tenant.exposure,
        &control_plane.ingress,
        &control_plane.gateway,
    ) {
        (Exposure::Ingress(names), Some(spec), _) if spec.deploy => {
            let routes = routes(tenant, names);
            if spec.controller_type == IngressControllerType::Traefik {
                vec![ingress_route(tenant, spec, &routes)]
            } else {
                vec![ingress(tenant, spec, &routes)]
            }
        }
        (Exposure::Gateway(names), _, Some(spec)) => {
            tls_routes(tenant, spec, &routes(tenant, names), platform)
        }
        _ => Vec::new(),
    }
}

/// What a user who routes himself has to route where.
pub(crate) fn instructions(tenant: &Validated) -> Option<String> {
    let spec = tenant
        .spec
        .control_plane
        .ingress
        .as_ref()
        .filter(|spec| !spec.deploy)?;
    let names = tenant.public_names()?;
    let host = tenant.names.service_host();
    let lines: Vec<String> = routes(tenant, names)
        .iter()
        .map(|route| format!("{} to {host}:{}", route.host, route.port))
        .collect();
    let port = names.port();
    let _ = spec;
    Some(format!(
        "deploy is false: route TLS connections to port {port} by server name, without opening \
         them: {}",
        lines.join(", ")
    ))
}

/// What to say of an Ingress whose class is not there. It is written all the same: some
/// controllers take a class by their own arguments and need no object for it.
pub(crate) fn missing_class(tenant: &Validated, platform: &Platform) -> Option<String> {
    let spec = tenant.spec.control_plane.ingress.as_ref();
    let spec =
        spec.filter(|spec| spec.deploy && spec.controller_type != IngressControllerType::Traefik)?;
    let known = platform.ingress_classes.as_ref()?;
    match class(spec) {
        Some(name) if known.contains_key(&name) => None,
        Some(name) => Some(format!(
            "there is no IngressClass {name}: install the ingress controller that brings it, or \
             name another in spec.controlPlane.ingress.ingressClassName"
        )),
        None if known.values().any(|default| *default) => None,
        None => Some(
            "no IngressClass is named and none is the default one: set \
             spec.controlPlane.ingress.ingressClassName"
                .into(),
        ),
    }
}

fn class(spec: &IngressSpec) -> Option<String> {
    match (&spec.ingress_class_name, spec.controller_type) {
        (None, IngressControllerType::Steward) => Some("steward".to_owned()),
        (given, _) => given.clone(),
    }
}

fn routes<'a>(tenant: &Validated, names: &'a PublicNames) -> Vec<Route<'a>> {
    let mut all = vec![Route {
        host: &names.api,
        port: tenant.network.port,
    }];
    if names.separate_konnectivity() && tenant.spec.addons.konnectivity.is_some() {
        all.push(Route {
            host: &names.konnectivity,
            port: tenant.network.konnectivity_port,
        });
    }
    all
}

fn metadata(tenant: &Validated, name: String, more: Option<&AdditionalMetadata>) -> ObjectMeta {
    let mut metadata = meta(tenant, name, "ingress");
    extend(&mut metadata, more);
    metadata
}

/// What makes each controller pass TLS through.
fn passthrough(kind: IngressControllerType) -> BTreeMap<String, String> {
    let pairs: &[(&str, &str)] = match kind {
        IngressControllerType::Haproxy => &[("haproxy.org/ssl-passthrough", "true")],
        IngressControllerType::HaproxyIngress => {
            &[("haproxy-ingress.github.io/ssl-passthrough", "true")]
        }
        IngressControllerType::Nginx => &[
            ("nginx.ingress.kubernetes.io/ssl-passthrough", "true"),
            ("nginx.ingress.kubernetes.io/backend-protocol", "HTTPS"),
        ],
        IngressControllerType::Traefik
        | IngressControllerType::Generic
        | IngressControllerType::Steward => &[],
    };
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Who may connect, for our own gateway: it still sees clients' addresses, the pod does not.
fn source_ranges(tenant: &Validated) -> Option<(String, String)> {
    let access = tenant.spec.control_plane.access.as_ref()?;
    let ranges = access.allowed_source_ranges.join(",");
    (!ranges.is_empty()).then(|| (annotations::ALLOWED_SOURCE_RANGES.to_owned(), ranges))
}

fn ingress(tenant: &Validated, spec: &IngressSpec, routes: &[Route<'_>]) -> Object {
    let mut metadata = meta(tenant, tenant.names.tenant.clone(), "ingress");
    let mut notes = passthrough(spec.controller_type);
    if spec.controller_type == IngressControllerType::Steward {
        notes.extend(source_ranges(tenant));
    }
    metadata.annotations = Some(notes);
    extend(&mut metadata, spec.additional_metadata.as_ref());
    let rule = |route: &Route<'_>| IngressRule {
        host: Some(route.host.to_owned()),
        http: Some(HTTPIngressRuleValue {
            paths: vec![HTTPIngressPath {
                path: Some("/".into()),
                path_type: "Prefix".into(),
                backend: IngressBackend {
                    service: Some(IngressServiceBackend {
                        name: tenant.names.tenant.clone(),
                        port: Some(ServiceBackendPort {
                            number: Some(route.port.into()),
                            ..ServiceBackendPort::default()
                        }),
                    }),
                    ..IngressBackend::default()
                },
            }],
        }),
    };
    let body = Ingress {
        metadata,
        spec: Some(IngressBody {
            ingress_class_name: class(spec),
            rules: Some(routes.iter().map(rule).collect()),
            tls: Some(vec![IngressTLS {
                hosts: Some(routes.iter().map(|route| route.host.to_owned()).collect()),
                ..IngressTLS::default()
            }]),
            ..IngressBody::default()
        }),
        status: None,
    };
    object(Kind::Ingress, Stage::FrontDoor, BECAUSE, &body)
}

fn ingress_route(tenant: &Validated, spec: &IngressSpec, routes: &[Route<'_>]) -> Object {
    let entry_points = if spec.entry_points.is_empty() {
        vec!["websecure".to_owned()]
    } else {
        spec.entry_points.clone()
    };
    let route = |route: &Route<'_>| TcpRoute {
        match_: format!("HostSNI(`{}`)", route.host),
        priority: None,
        services: vec![TcpRouteService {
            name: tenant.names.tenant.clone(),
            namespace: None,
            port: IntOrString::Int(route.port.into()),
        }],
    };
    let mut metadata = metadata(tenant, tenant.names.tenant.clone(), None);
    if let Some(class) = &spec.ingress_class_name {
        let note = ("kubernetes.io/ingress.class".to_owned(), class.clone());
        metadata.annotations.get_or_insert_default().extend([note]);
    }
    extend(&mut metadata, spec.additional_metadata.as_ref());
    let body = json!({
        "metadata": metadata,
        "spec": IngressRouteTCPSpec {
            entry_points,
            routes: routes.iter().map(route).collect(),
            tls: Some(TcpTls { passthrough: true }),
        },
    });
    object(Kind::IngressRouteTcp, Stage::FrontDoor, BECAUSE, &body)
}

/// The kind under which this cluster serves TLSRoute.
pub(crate) fn tls_route_kind(platform: &Platform) -> Kind {
    match platform.tls_route {
        Some(TlsRouteVersion::V1Alpha2) => Kind::TlsRouteV1Alpha2,
        Some(TlsRouteVersion::V1Alpha3) => Kind::TlsRouteV1Alpha3,
        Some(TlsRouteVersion::V1) | None => Kind::TlsRouteV1,
    }
}

fn tls_routes(
    tenant: &Validated,
    spec: &GatewaySpec,
    routes: &[Route<'_>],
    platform: &Platform,
) -> Vec<Object> {
    let kind = tls_route_kind(platform);
    let names = [
        tenant.names.tenant.clone(),
        tenant.names.konnectivity_route(),
    ];
    routes
        .iter()
        .zip(names)
        .map(|(route, name)| {
            let mut metadata = metadata(tenant, name, spec.additional_metadata.as_ref());
            let ranges = source_ranges(tenant);
            metadata.annotations.get_or_insert_default().extend(ranges);
            let body = json!({
                "metadata": metadata,
                "spec": {
                    "parentRefs": parents(spec),
                    "hostnames": [route.host],
                    "rules": [{"backendRefs": [{
                        "group": "",
                        "kind": "Service",
                        "name": tenant.names.tenant,
                        "port": route.port,
                        "weight": 1,
                    }]}],
                },
            });
            object(kind, Stage::FrontDoor, BECAUSE, &body)
        })
        .collect()
}

/// As the API server would complete them, so that nothing differs afterwards.
fn parents(spec: &GatewaySpec) -> Vec<Value> {
    spec.parent_refs
        .iter()
        .map(|parent| {
            let group = parent
                .group
                .as_deref()
                .unwrap_or("gateway.networking.k8s.io");
            json!({
                "group": group,
                "kind": parent.kind.as_deref().unwrap_or("Gateway"),
                "namespace": parent.namespace,
                "name": parent.name,
                "sectionName": parent.section_name,
                "port": parent.port,
            })
        })
        .collect()
}
