//! k0rdent's `ClusterDeployment` with a hosted control plane.
//!
//! Its `config` is free: templates differ. The shapes of the documented hosted
//! templates are read; machines, networks and credentials stay with k0rdent.

use serde_json::{Value, json};

use super::Imported;
use super::consume::Consumed;
use super::k0smotron;

pub(super) fn import(document: &Value) -> Imported {
    let mut source = Consumed::new(document);
    let version = source.take_text("/spec/config/k0s/version");
    let mut notes = Vec::new();
    let version = version.map_or_else(
        || {
            notes.push(format!(
                "ClusterDeployment {}: spec.config.k0s.version is not set, the template decides it; v1.34.3 was written: check it",
                source.name
            ));
            "v1.34.3".to_owned()
        },
        |v| k0smotron::plain_version(&v),
    );
    let replicas = source.take("/spec/config/controlPlane/replicas");
    let replicas = replicas.or_else(|| source.take("/spec/config/controlPlaneNumber"));
    let service = source.take_text("/spec/config/controlPlane/service/type");
    let service = service.or_else(|| source.take_text("/spec/config/k0smotron/service/type"));
    let mut spec = json!({
        "kubernetes": { "version": version },
        "controlPlane": {
            "deployment": { "replicas": replicas.unwrap_or_else(|| json!(1)) },
            "service": { "serviceType": service.unwrap_or_else(|| "ClusterIP".into()) },
        },
        "networkProfile": {},
        "addons": { "coreDNS": {}, "kubeProxy": {}, "konnectivity": {} },
    });
    for at in [
        "/spec/config/ingress",
        "/spec/config/controlPlane/ingress",
        "/spec/config/k0smotron/ingress",
    ] {
        k0smotron::ingress(&mut source, at, &mut spec);
    }
    // The hosted templates pass HAProxy's annotation themselves when none is given.
    if let Some(ingress) = spec
        .pointer_mut("/controlPlane/ingress")
        .and_then(Value::as_object_mut)
        && ingress.get("controllerType") == Some(&json!("generic"))
        && !ingress.contains_key("ingressClassName")
    {
        ingress.insert("controllerType".into(), json!("haproxy"));
        ingress.insert("ingressClassName".into(), json!("haproxy"));
    }
    k0smotron::network(&mut source, "/spec/config/k0s", &mut spec);
    let mut tenant = k0smotron::wrap(&source, &spec);
    k0smotron::keep_metadata(&mut source, &mut tenant);
    notes.extend(source.leftovers());
    Imported {
        manifests: vec![tenant],
        notes,
    }
}
