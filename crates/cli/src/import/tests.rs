use serde_json::{Value, json};

use super::*;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn one(text: &str) -> (Value, Vec<String>) {
    let imported = import(&yaml(text)).unwrap();
    assert_eq!(imported.manifests.len(), 1);
    (imported.manifests[0].clone(), imported.notes)
}

#[test]
fn a_kamaji_tenant_with_the_ingress_addon_becomes_one_of_ours() {
    let (tenant, notes) = one("
apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
metadata:
  name: tenant-00
  namespace: apezzuto
  annotations: { kamaji.clastix.io/ingress.domain: clastix.cloud }
spec:
  kubernetes: { version: v1.31.0, kubelet: { cgroupfs: systemd } }
  networkProfile: { port: 6443, certSANs: [ apezzuto-tenant-00.k8s.clastix.cloud ] }
  controlPlane:
    deployment: { extraArgs: { apiServer: [ --endpoint-reconciler-type=none, --v=2 ] } }
    service: { serviceType: ClusterIP }
    ingress: { hostname: 'apezzuto-tenant-00.k8s.clastix.cloud:443', ingressClassName: unhandled }
");
    assert_eq!(tenant["apiVersion"], "steward.butlerlabs.dev/v1alpha1");
    assert_eq!(
        tenant["metadata"]["annotations"]["steward.butlerlabs.dev/ingress.domain"],
        "clastix.cloud"
    );
    assert_eq!(
        tenant["spec"]["controlPlane"]["ingress"]["ingressClassName"],
        "haproxy"
    );
    assert_eq!(
        tenant["spec"]["controlPlane"]["deployment"]["extraArgs"]["apiServer"],
        json!(["--v=2"])
    );
    assert!(tenant["spec"]["addons"]["tcpProxy"].is_object());
    assert_eq!(notes.len(), 3, "{notes:#?}");
}

#[test]
fn a_k0smotron_control_plane_keeps_hosts_port_class_and_annotations() {
    let (tenant, notes) = one("
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: K0smotronControlPlane
metadata: { name: c1, namespace: kcm-system }
spec:
  version: v1.34.1+k0s.0
  replicas: 3
  service: { type: ClusterIP, apiPort: 30443, konnectivityPort: 30132 }
  ingress:
    deploy: true
    className: haproxy
    annotations: { haproxy-ingress.github.io/ssl-passthrough: 'true' }
    port: 8443
    apiHost: api.c1.example.com
    konnectivityHost: konnectivity.c1.example.com
  etcd: { persistence: { size: 5Gi } }
");
    let ingress = &tenant["spec"]["controlPlane"]["ingress"];
    assert_eq!(tenant["spec"]["kubernetes"]["version"], "v1.34.1");
    assert_eq!(ingress["hostname"], "api.c1.example.com");
    assert_eq!(
        ingress["konnectivityHostname"],
        "konnectivity.c1.example.com"
    );
    assert_eq!(ingress["port"], 8443);
    assert_eq!(ingress["controllerType"], "haproxy-ingress");
    assert_eq!(
        notes,
        ["K0smotronControlPlane c1: spec.etcd.persistence.size has no equivalent and was left out"]
    );
}

#[test]
fn a_k0rdent_deployment_becomes_a_tenant_and_its_machines_are_named_as_left_out() {
    let (tenant, notes) = one("
apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata: { name: cluster01, namespace: kcm-system }
spec:
  template: hetzner-hosted-cp-1-2-0
  config:
    workersNumber: 2
    controlPlane:
      replicas: 1
      service: { type: ClusterIP }
      ingress: { apiHost: api.cluster01.k0s.enopax.io, konnectivityHost: konnectivity.cluster01.k0s.enopax.io }
    k0s: { version: v1.34.3+k0s.0, network: { provider: custom } }
");
    assert_eq!(
        tenant["spec"]["controlPlane"]["ingress"]["hostname"],
        "api.cluster01.k0s.enopax.io"
    );
    assert_eq!(
        tenant["spec"]["controlPlane"]["ingress"]["controllerType"],
        "haproxy"
    );
    for field in [
        "spec.template",
        "spec.config.workersNumber",
        "spec.config.k0s.network.provider",
    ] {
        assert!(
            notes.iter().any(|n| n.contains(field)),
            "{field} is not mentioned in {notes:#?}"
        );
    }
}

#[test]
fn what_is_not_known_gets_a_sentence() {
    assert_eq!(import(&json!({ "a": 1 })), Err(Error::NotAManifest));
    let error = import(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } }))
        .unwrap_err();
    assert!(error.to_string().contains("Pod can't be imported"));
    let error = import(&json!({ "apiVersion": "k0smotron.io/v1beta1", "kind": "Cluster", "metadata": { "name": "x" }, "spec": {} })).unwrap_err();
    assert!(
        error.to_string().contains("spec.version is missing"),
        "{error}"
    );
}
