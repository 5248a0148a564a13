//! k0smotron's `Cluster` and `K0smotronControlPlane`.
//!
//! They share one spec. What k0s does by itself (its own datastore, its own
//! worker configuration) has no field with us and is told.

use serde_json::{Value, json};

use super::consume::Consumed;
use super::{Error, Imported};

pub(super) fn import(document: &Value) -> Result<Imported, Error> {
    let mut source = Consumed::new(document);
    let mut tenant = tenant(&mut source, "/spec")?;
    keep_metadata(&mut source, &mut tenant);
    Ok(Imported {
        manifests: vec![tenant],
        notes: source.leftovers(),
    })
}

/// Carries labels and annotations over.
pub(super) fn keep_metadata(source: &mut Consumed, tenant: &mut Value) {
    for key in ["labels", "annotations"] {
        let kept = source.take(&format!("/metadata/{key}"));
        if let Some(kept) = kept.filter(|v| v.as_object().is_some_and(|m| !m.is_empty())) {
            tenant["metadata"][key] = kept;
        }
    }
}

/// Builds a tenant from a spec that lies at `at`.
pub(super) fn tenant(source: &mut Consumed, at: &str) -> Result<Value, Error> {
    let version = source
        .take_text(&format!("{at}/version"))
        .ok_or_else(|| Error::Missing {
            kind: source.kind.clone(),
            name: source.name.clone(),
            field: "spec.version",
        })?;
    let mut spec = json!({
        "kubernetes": { "version": plain_version(&version) },
        "controlPlane": {
            "deployment": { "replicas": source.take(&format!("{at}/replicas")).unwrap_or_else(|| json!(1)) },
            "service": { "serviceType": source.take_text(&format!("{at}/service/type")).unwrap_or_else(|| "ClusterIP".into()) },
        },
        "networkProfile": {},
        "addons": { "coreDNS": {}, "kubeProxy": {}, "konnectivity": {} },
    });
    service(source, at, &mut spec);
    ingress(source, &format!("{at}/ingress"), &mut spec);
    network(source, &format!("{at}/k0sConfig/spec"), &mut spec);
    address(source, at, &mut spec);
    pods(source, at, &mut spec);
    Ok(wrap(source, &spec))
}

/// An external address is an address to advertise; a name belongs into the certificate.
fn address(source: &mut Consumed, at: &str, spec: &mut Value) {
    let Some(given) = source.take_text(&format!("{at}/externalAddress")) else {
        return;
    };
    if given.parse::<std::net::IpAddr>().is_ok() {
        spec["networkProfile"]["address"] = json!(given);
        return;
    }
    let sans = &mut spec["networkProfile"]["certSANs"];
    match sans.as_array_mut() {
        Some(list) if !list.contains(&json!(given)) => list.push(json!(given)),
        Some(_) => {}
        None => *sans = json!([given]),
    }
}

/// Where the pods run, and the flags of their API server.
fn pods(source: &mut Consumed, at: &str, spec: &mut Value) {
    if let Some(spread) = source.take(&format!("{at}/topologySpreadConstraints")) {
        spec["controlPlane"]["deployment"]["topologySpreadConstraints"] = spread;
    }
    if let Some(limits) = source.take(&format!("{at}/resources")) {
        spec["controlPlane"]["deployment"]["resources"] = json!({ "apiServer": limits });
    }
}

/// A manifest of ours around a spec.
pub(super) fn wrap(source: &Consumed, spec: &Value) -> Value {
    let mut metadata = json!({ "name": source.name });
    if let Some(namespace) = &source.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "TenantControlPlane",
        "metadata": metadata, "spec": spec,
    })
}

/// `v1.34.3+k0s.0` and `v1.34.3-k0s.0` are Kubernetes v1.34.3.
pub(super) fn plain_version(version: &str) -> String {
    let plain = version.split(['+', '-']).next().unwrap_or(version);
    if plain.starts_with('v') {
        plain.to_owned()
    } else {
        format!("v{plain}")
    }
}

fn service(source: &mut Consumed, at: &str, spec: &mut Value) {
    if let Some(port) = source.take(&format!("{at}/service/apiPort")) {
        spec["networkProfile"]["port"] = port;
    }
    if let Some(port) = source.take(&format!("{at}/service/konnectivityPort")) {
        spec["addons"]["konnectivity"] = json!({ "server": { "port": port } });
    }
    for key in ["labels", "annotations"] {
        if let Some(kept) = source.take(&format!("{at}/service/{key}")) {
            spec["controlPlane"]["service"]["additionalMetadata"][key] = kept;
        }
    }
    // Only a load balancer has a class with us, and theirs may be written for any type.
    let balanced = spec["controlPlane"]["service"]["serviceType"] == "LoadBalancer";
    if balanced && let Some(class) = source.take(&format!("{at}/service/loadBalancerClass")) {
        spec["networkProfile"]["loadBalancerClass"] = class;
    }
}

/// An ingress block in k0smotron's words; `enabled` is what charts around it say.
pub(super) fn ingress(source: &mut Consumed, at: &str, spec: &mut Value) {
    let enabled = source.take(&format!("{at}/enabled"));
    let host = source.take_text(&format!("{at}/apiHost"));
    let Some(host) = host.filter(|_| enabled != Some(json!(false))) else {
        return;
    };
    let annotations = source.take(&format!("{at}/annotations"));
    let class = source.take_text(&format!("{at}/className"));
    let mut ingress = json!({
        "hostname": host,
        "controllerType": controller_type(annotations.as_ref(), class.as_deref()),
    });
    if let Some(class) = class {
        ingress["ingressClassName"] = json!(class);
    }
    for (theirs, ours) in [
        ("konnectivityHost", "konnectivityHostname"),
        ("port", "port"),
        ("deploy", "deploy"),
    ] {
        if let Some(value) = source.take(&format!("{at}/{theirs}")) {
            ingress[ours] = value;
        }
    }
    if let Some(annotations) = annotations.filter(|a| a.as_object().is_some_and(|m| !m.is_empty()))
    {
        ingress["additionalMetadata"] = json!({ "annotations": annotations });
    }
    spec["controlPlane"]["ingress"] = ingress;
    spec["addons"]["tcpProxy"] = json!({});
}

fn controller_type(annotations: Option<&Value>, class: Option<&str>) -> &'static str {
    let has = |prefix: &str| {
        annotations
            .and_then(Value::as_object)
            .is_some_and(|m| m.keys().any(|k| k.starts_with(prefix)))
    };
    if has("haproxy.org/") {
        "haproxy"
    } else if has("haproxy-ingress.github.io/") {
        "haproxy-ingress"
    } else if has("nginx.ingress.kubernetes.io/") {
        "nginx"
    } else {
        match class {
            Some("haproxy") => "haproxy",
            Some("nginx") => "nginx",
            Some("traefik") => "traefik",
            Some("steward") => "steward",
            _ => "generic",
        }
    }
}

/// The part of a k0s configuration that says what the cluster's network is.
pub(super) fn network(source: &mut Consumed, at: &str, spec: &mut Value) {
    for (theirs, ours) in [
        ("podCIDR", "podCidr"),
        ("serviceCIDR", "serviceCidr"),
        ("clusterDomain", "clusterDomain"),
    ] {
        if let Some(value) = source.take(&format!("{at}/network/{theirs}")) {
            spec["networkProfile"][ours] = value;
        }
    }
    if let Some(sans) = source.take(&format!("{at}/api/sans")) {
        spec["networkProfile"]["certSANs"] = sans;
    }
    let args = source.take(&format!("{at}/api/extraArgs"));
    if let Some(args) = args.as_ref().and_then(Value::as_object) {
        let args: Vec<String> = args
            .iter()
            .map(|(key, value)| {
                format!(
                    "--{key}={}",
                    value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned)
                )
            })
            .collect();
        spec["controlPlane"]["deployment"]["extraArgs"] = json!({ "apiServer": args });
    }
}
