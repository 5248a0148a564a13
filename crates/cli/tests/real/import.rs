//! Manifests in the shapes that the products document. Each result is checked by the API
//! server, strictly: a field it does not know is an error.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use serde_json::{Value, json};

use crate::scene::{alone, create, define, server, steward};

/// Name, manifest, and what the notes must speak of.
const SAMPLES: &[(&str, &str, &[&str])] = &[
    (
        "kamaji, load balancer",
        "apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
metadata: { name: k8s-130, labels: { tenant.clastix.io: k8s-130 } }
spec:
  controlPlane:
    deployment: { replicas: 3, resources: { apiServer: { requests: { cpu: 250m, memory: 512Mi } } } }
    service: { serviceType: LoadBalancer }
  kubernetes: { version: v1.30.2, kubelet: { cgroupfs: systemd }, admissionControllers: [ ResourceQuota, LimitRanger ] }
  networkProfile: { port: 6443 }
  addons: { coreDNS: {}, kubeProxy: {}, konnectivity: { server: { port: 8132, resources: {} } } }
",
        &[],
    ),
    (
        "kamaji, the ingress addon's page",
        "apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
metadata:
  name: tenant-00
  annotations: { kamaji.clastix.io/ingress.domain: clastix.cloud }
spec:
  dataStore: default
  controlPlane:
    deployment: { replicas: 2, extraArgs: { apiServer: [ --endpoint-reconciler-type=none ] } }
    service: { serviceType: ClusterIP }
    ingress: { hostname: 'apezzuto-tenant-00.k8s.clastix.cloud:443', ingressClassName: unhandled }
  kubernetes: { version: v1.31.0, kubelet: { cgroupfs: systemd } }
  networkProfile:
    certSANs: [ apezzuto-tenant-00.k8s.clastix.cloud, apezzuto-tenant-00.konnectivity.clastix.cloud ]
    clusterDomain: cluster.local
    dnsServiceIPs: [ 10.96.0.10 ]
    podCidr: 10.244.0.0/16
    serviceCidr: 10.96.0.0/16
    port: 6443
  addons:
    konnectivity: { agent: { extraArgs: [ --proxy-server-host=apezzuto-tenant-00.konnectivity.clastix.cloud, --proxy-server-port=443 ] } }
",
        &["unhandled", "tcpProxy", "--endpoint-reconciler-type"],
    ),
    (
        "kamaji, gateway",
        "apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
metadata: { name: gw }
spec:
  controlPlane:
    service: { serviceType: ClusterIP }
    gateway:
      hostname: gw.example.com
      parentRefs: [ { name: gateway, namespace: default } ]
      additionalMetadata: { labels: { environment: test } }
  kubernetes: { version: v1.33.0, kubelet: { preferredAddressTypes: [ InternalIP, ExternalIP ] } }
  networkProfile: { port: 6443 }
",
        &[],
    ),
    (
        "kamaji, everything that newest has",
        "apiVersion: kamaji.clastix.io/v1alpha1
kind: TenantControlPlane
metadata: { name: full, uid: abc, resourceVersion: '7' }
spec:
  dataStoreSchema: full
  dataStoreUsername: full
  writePermissions: { blockCreation: true }
  controlPlane:
    deployment:
      probes: { startup: { failureThreshold: 30 } }
      podAdditionalMetadata: { labels: { a: b } }
      strategy: { type: RollingUpdate, rollingUpdate: { maxSurge: 100%, maxUnavailable: 0 } }
      somethingFromTheFuture: true
    service: { serviceType: LoadBalancer, allocateLoadBalancerNodePorts: false, additionalPorts: [ { name: extra, port: 9000, targetPort: 9000 } ] }
  kubernetes: { version: 1.34.0, kubelet: { configurationJSONPatches: [ { op: add, path: /maxPods, value: 200 } ] } }
  networkProfile: { port: 6443, loadBalancerSourceRanges: [ 10.0.0.0/8 ], loadBalancerClass: metallb }
status: { kubernetesResources: { version: { status: Ready } } }
",
        &["somethingFromTheFuture"],
    ),
    (
        "kamaji, datastore etcd",
        "apiVersion: kamaji.clastix.io/v1alpha1
kind: DataStore
metadata: { name: kamaji-etcd }
spec:
  driver: etcd
  endpoints: [ 'etcd-0.etcd.kamaji-system.svc.cluster.local:2379' ]
  tlsConfig:
    certificateAuthority:
      certificate: { secretReference: { name: etcd-certs, namespace: kamaji-system, keyPath: ca.crt } }
      privateKey: { secretReference: { name: etcd-certs, namespace: kamaji-system, keyPath: ca.key } }
    clientCertificate:
      certificate: { secretReference: { name: etcd-root, namespace: kamaji-system, keyPath: tls.crt } }
      privateKey: { secretReference: { name: etcd-root, namespace: kamaji-system, keyPath: tls.key } }
",
        &[],
    ),
    (
        "kamaji, datastore postgresql",
        "apiVersion: kamaji.clastix.io/v1alpha1
kind: DataStore
metadata: { name: postgresql-bronze }
spec:
  driver: PostgreSQL
  endpoints: [ 'postgresql-bronze-rw.postgresql-system.svc:5432' ]
  basicAuth:
    username: { secretReference: { name: superuser, namespace: kamaji-system, keyPath: username } }
    password: { secretReference: { name: superuser, namespace: kamaji-system, keyPath: password } }
",
        &[],
    ),
    (
        "k0smotron, the smallest",
        "apiVersion: k0smotron.io/v1beta1
kind: Cluster
metadata: { name: k0smotron-test }
spec:
  version: v1.33.1-k0s.0
  service: { type: LoadBalancer, apiPort: 6443, konnectivityPort: 8132 }
  persistence: { type: emptyDir }
",
        &["spec.persistence.type"],
    ),
    (
        "k0smotron, node port and kine",
        "apiVersion: k0smotron.io/v1beta1
kind: Cluster
metadata: { name: kine }
spec:
  replicas: 3
  version: v1.32.2-k0s.0
  kineDataSourceURL: postgres://u@db/k0s
  service: { type: NodePort, apiPort: 30443, konnectivityPort: 30132 }
  k0sConfig:
    apiVersion: k0s.k0sproject.io/v1beta1
    kind: ClusterConfig
    spec:
      network: { podCIDR: 10.100.0.0/16, serviceCIDR: 10.101.0.0/16, provider: calico }
      api: { sans: [ api.example.com ], extraArgs: { anonymous-auth: 'true' } }
",
        &["spec.kineDataSourceURL", "provider", "spec.k0sConfig.kind"],
    ),
    (
        "k0smotron, ingress",
        "apiVersion: k0smotron.io/v1beta2
kind: Cluster
metadata: { name: behind-ingress }
spec:
  version: v1.34.1-k0s.0
  service: { type: ClusterIP }
  ingress:
    className: haproxy
    apiHost: kube-api.example.com
    konnectivityHost: konnectivity.example.com
    port: 443
    annotations: { haproxy.org/ssl-passthrough: 'true' }
  storage: { etcd: { persistence: { size: 1Gi } } }
",
        &["spec.storage.etcd.persistence.size"],
    ),
    (
        "k0smotron, Cluster API",
        "apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: K0smotronControlPlane
metadata: { name: docker-test-cp, ownerReferences: [ { apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, name: docker-test, uid: x } ] }
spec:
  version: v1.34.1-k0s.0
  replicas: 1
  externalAddress: api.example.com
  controllerPlaneFlags: [ --enable-cloud-provider=true ]
  service: { type: NodePort, apiPort: 30443, konnectivityPort: 30132 }
  certificateRefs: [ { name: docker-test-ca, type: ca } ]
",
        &["controllerPlaneFlags", "certificateRefs"],
    ),
    (
        "k0rdent, OpenStack",
        "apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata: { name: openstack-hosted }
spec:
  template: openstack-hosted-cp-1-0-20
  credential: openstack-cluster-identity-cred
  config:
    workersNumber: 2
    flavor: m1.medium
    k0smotron:
      service: { type: ClusterIP }
      ingress:
        enabled: true
        className: haproxy
        apiHost: api.test-cluster.example.com
        konnectivityHost: konnectivity.test-cluster.example.com
        port: 443
",
        &["spec.template", "spec.config.flavor", "k0s.version"],
    ),
    (
        "k0rdent, Hetzner",
        "apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata: { name: cluster01 }
spec:
  template: hetzner-hosted-cp-1-2-0
  credential: hcloud-cluster-provisioning
  config:
    workersNumber: 2
    controlPlane:
      replicas: 1
      service: { type: ClusterIP }
      ingress: { apiHost: api.cluster01.k0s.enopax.io, konnectivityHost: konnectivity.cluster01.k0s.enopax.io }
    region: nbg1
    sshKeyNames: [ felix ]
    tokenRef: { name: token, key: HCLOUD_TOKEN }
    hcloudNetwork: { enabled: true, cidrBlock: 10.0.0.0/16 }
    worker: { image: ubuntu-24.04, type: cpx22 }
    k0s: { version: v1.34.3+k0s.0, network: { provider: custom } }
",
        &["spec.config.region", "spec.config.worker.type", "spec.config.hcloudNetwork.cidrBlock"],
    ),
    (
        "k0rdent, not behind an ingress",
        "apiVersion: k0rdent.mirantis.com/v1beta1
kind: ClusterDeployment
metadata: { name: plain }
spec:
  template: aws-hosted-cp-1-0-3
  config: { region: eu-west-1, k0smotron: { service: { type: LoadBalancer } }, k0s: { version: v1.33.0+k0s.0 } }
",
        &["spec.config.region"],
    ),
];

#[tokio::test]
async fn each_documented_shape_becomes_something_the_api_server_takes() {
    let server = server().await;
    let namespace = server.namespace("import").await.unwrap();
    let client = server.client().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (what, text, spoken) in SAMPLES {
        let path = folder.path().join("x.yaml");
        std::fs::write(&path, text).unwrap();
        let output = alone()
            .args(["import", "-o", "json"])
            .arg(&path)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{what}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        let notes = list["notes"].to_string();
        for words in *spoken {
            assert!(
                notes.contains(words),
                "{what}: {words} is not mentioned in {notes}"
            );
        }
        for item in list["items"].as_array().unwrap() {
            let outcome = create(&client, &namespace, item, true).await;
            assert!(outcome.is_ok(), "{what}: {outcome:?}\n{item:#}");
        }
    }
}

/// Kinds of Kamaji and k0smotron, as loose as they can be.
fn kind(group: &str, version: &str, kind: &str) -> CustomResourceDefinition {
    let plural = format!("{}s", kind.to_lowercase());
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn what_is_in_a_cluster_is_imported_once_each() {
    let server = server().await;
    let namespace = server.namespace("import").await.unwrap();
    let client = server.client().await.unwrap();
    let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
    define(
        &kinds,
        &kind("kamaji.clastix.io", "v1alpha1", "TenantControlPlane"),
    )
    .await;
    define(&kinds, &kind("k0smotron.io", "v1beta1", "Cluster")).await;
    let kamaji = json!({
        "apiVersion": "kamaji.clastix.io/v1alpha1", "kind": "TenantControlPlane", "metadata": { "name": "blue" },
        "spec": {
            "kubernetes": { "version": "v1.31.0", "kubelet": {} },
            "controlPlane": { "service": { "serviceType": "LoadBalancer" } },
        },
    });
    create(&client, &namespace, &kamaji, false).await.unwrap();
    let mut made = json!({
        "apiVersion": "k0smotron.io/v1beta1", "kind": "Cluster", "metadata": { "name": "green" },
        "spec": { "version": "v1.33.1-k0s.0", "service": { "type": "LoadBalancer" } },
    });
    create(&client, &namespace, &made, false).await.unwrap();
    // This one has a maker, who would be imported in its stead.
    made["metadata"] = json!({
        "name": "made",
        "ownerReferences": [{ "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "K0smotronControlPlane", "name": "x", "uid": "x" }],
    });
    create(&client, &namespace, &made, false).await.unwrap();
    let ended = steward(
        server.kubeconfig(),
        &["import", "--from-cluster", "-n", &namespace, "-o", "json"],
    )
    .await;
    assert_eq!(ended.code, 0, "{}", ended.err);
    let list: Value = serde_json::from_str(&ended.out).unwrap();
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|i| i["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["blue", "green"]);
    for item in list["items"].as_array().unwrap() {
        create(&client, &namespace, item, true).await.unwrap();
    }
}
