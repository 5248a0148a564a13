//! Tenants that are refused for what they add to the pods and to the tenant cluster.

use anyhow::Result;

use crate::server::{Server, tenant, try_table};

#[tokio::test]
async fn pods_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("pods").await?;
    try_table(
        &server,
        tenant,
        &[
            ("our container", "spec: {controlPlane: {deployment: {additionalContainers: [{name: kube-apiserver, image: x}]}}}", "deployment.additionalContainers: a container has the name of one of Steward's own"),
            ("our init container", "spec: {controlPlane: {deployment: {additionalInitContainers: [{name: gate, image: x}]}}}", "deployment.additionalInitContainers: a container has the name of one of Steward's own"),
            ("container twice", "spec: {controlPlane: {deployment: {additionalContainers: [{name: a, image: x}, {name: a, image: z}]}}}", "deployment.additionalContainers: two containers have the same name"),
            ("container and init container", "spec: {controlPlane: {deployment: {additionalContainers: [{name: a, image: x}], additionalInitContainers: [{name: a, image: x}]}}}", "an init container has the name of an additional container"),
            ("two mounts in a container", "spec: {controlPlane: {deployment: {additionalContainers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /d}, {name: w, mountPath: /d}]}]}}}", "a container has two mounts on one path"),
            ("container shape", "spec: {controlPlane: {deployment: {additionalContainers: [{name: a, image: [x]}]}}}", "must be of type string"),
            ("our volume", "spec: {controlPlane: {deployment: {additionalVolumes: [{name: etc-kubernetes-pki, emptyDir: {}}]}}}", "deployment.additionalVolumes: a volume has the name of one of Steward's own"),
            ("volume twice", "spec: {controlPlane: {deployment: {additionalVolumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]}}}", "deployment.additionalVolumes: two volumes have the same name"),
            ("two mounts on one path", "spec: {controlPlane: {deployment: {additionalVolumeMounts: {apiServer: [{name: v, mountPath: /d}, {name: w, mountPath: /d}]}}}}", "additionalVolumeMounts.apiServer: two mounts on one path; give each mountPath once"),
            ("our mount", "spec: {controlPlane: {deployment: {additionalVolumeMounts: {scheduler: [{name: v, mountPath: /etc/kubernetes}]}}}}", "additionalVolumeMounts.scheduler: a mountPath is one of Steward's own mounts"),
            ("argument", "spec: {controlPlane: {deployment: {extraArgs: {apiServer: [v=5]}}}}", "extraArgs.apiServer: each must be a flag with its value; write --flag=value"),
            ("the end of arguments", "spec: {controlPlane: {deployment: {extraArgs: {apiServer: [--]}}}}", "extraArgs.apiServer: each must be a flag with its value; write --flag=value"),
            ("quantity", "spec: {controlPlane: {deployment: {resources: {apiServer: {requests: {cpu: one}}}}}}", "spec.controlPlane.deployment.resources.apiServer.requests.cpu"),
            ("replicas", "spec: {controlPlane: {deployment: {replicas: -1}}}", "replicas in body should be greater than or equal to 0"),
            ("our port", "spec: {controlPlane: {service: {additionalPorts: [{name: kube-apiserver, port: 1, targetPort: 1}]}}}", "service.additionalPorts: a port has the name of one of Steward's own"),
            ("port name", "spec: {controlPlane: {service: {additionalPorts: [{name: My_Port, port: 1, targetPort: 1}]}}}", "a port's name must be lower-case letters"),
            ("port name twice", "spec: {controlPlane: {service: {additionalPorts: [{name: a, port: 1, targetPort: 1}, {name: a, port: 2, targetPort: 1}]}}}", "two ports have the same name"),
            ("port number twice", "spec: {controlPlane: {service: {additionalPorts: [{name: a, port: 1, targetPort: 1}, {name: b, port: 1, targetPort: 1}]}}}", "two ports have the same number and protocol"),
            ("the API server's port", "spec: {controlPlane: {service: {additionalPorts: [{name: a, port: 6443, targetPort: 1}]}}}", "a port has the number of networkProfile.port or of addons.konnectivity.server.port"),
        ],
    )
    .await
}

#[tokio::test]
async fn addons_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("addons").await?;
    let address = "tcpProxy.address: must be one IP address that nodes can put on themselves";
    try_table(
        &server,
        tenant,
        &[
            ("konnectivity port", "spec: {networkProfile: {port: 8132}, addons: {konnectivity: {}}}", "addons.konnectivity.server.port: the same as networkProfile.port"),
            ("agents of a daemon set", "spec: {addons: {konnectivity: {agent: {replicas: 2}}}}", "replicas must be 0 (or unset) when mode is DaemonSet"),
            ("no agents", "spec: {addons: {konnectivity: {agent: {mode: Deployment, replicas: 0}}}}", "greater than 0 (or unset) when mode is Deployment"),
            ("agent argument", "spec: {addons: {konnectivity: {agent: {extraArgs: [host]}}}}", "konnectivity.agent.extraArgs: each must be a flag"),
            ("proxy address", "spec: {addons: {tcpProxy: {address: proxy}}}", address),
            ("proxy on loopback", "spec: {addons: {tcpProxy: {address: 127.0.0.1}}}", address),
            ("proxy nowhere", "spec: {addons: {tcpProxy: {address: 0.0.0.0}}}", address),
            ("proxy for a group", "spec: {addons: {tcpProxy: {address: 239.1.2.3}}}", address),
            (
                "proxy of another family",
                "spec: {networkProfile: {serviceCidr: 'fd00:1::/112', podCidr: 'fd00:2::/56'}, addons: {tcpProxy: {}}}",
                "addons.tcpProxy.address: of another address family than the tenant's Services",
            ),
            ("proxy among Services", "spec: {addons: {tcpProxy: {address: 10.96.0.99}}}", "addons.tcpProxy.address: inside the Service range of the tenant"),
            ("proxy among pods", "spec: {addons: {tcpProxy: {address: 10.244.3.1}}}", "addons.tcpProxy.address: inside the pod range of the tenant"),
            ("proxy among chosen pods", "spec: {networkProfile: {podCidr: 240.0.0.0/8}, addons: {tcpProxy: {}}}", "addons.tcpProxy.address: inside the pod range of the tenant"),
            ("proxy mode", "spec: {addons: {tcpProxy: {mode: Open}}}", "supported values: \"EndToEnd\", \"Terminate\""),
            ("alias", "spec: {addons: {tcpProxy: {hostAliases: [{ip: x, hostnames: [a.example.com]}]}}}", "tcpProxy.hostAliases[].ip: not an IP address"),
            ("alias name", "spec: {addons: {tcpProxy: {hostAliases: [{ip: 192.0.2.1, hostnames: ['*.example.com']}]}}}", "tcpProxy.hostAliases[].hostnames: each must be a lower-case DNS name"),
            ("internal endpoint", "spec: {addons: {tcpProxy: {internalEndpoint: mgmt.example.com}}}", "tcpProxy.internalEndpoint: not an IP address"),
            ("internal port", "spec: {addons: {tcpProxy: {internalEndpoint: '192.0.2.1:99999'}}}", "tcpProxy.internalEndpoint: not an IP address"),
            ("talos", "spec: {addons: {workerBootstrap: {provider: talos}}}", "talos configuration is required when provider is talos"),
            ("talos port", "spec: {addons: {workerBootstrap: {provider: talos, talos: {port: 0}}}}", "port in body should be greater than or equal to 1"),
            ("subnet", "spec: {addons: {workerBootstrap: {provider: talos, talos: {}, allowedSubnets: [x]}}}", "invalid CIDR in allowedSubnets"),
        ],
    )
    .await
}

#[tokio::test]
async fn datastores_and_certificates_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("certificates").await?;
    try_table(
        &server,
        tenant,
        &[
            ("override twice", "spec: {dataStoreOverrides: [{resource: /events, dataStore: a}, {resource: /events, dataStore: b}]}", "duplicate resource override"),
            ("override", "spec: {dataStoreOverrides: [{resource: events, dataStore: a}]}", "dataStoreOverrides[].resource: not a group and a resource; write /events"),
            ("schema", "spec: {dataStoreSchema: \"a'; drop table b\"}", "spec.dataStoreSchema"),
            ("our own CA", "spec: {certificates: {caSecretName: blue-ca}}", "spec.certificates.caSecretName: <name>-ca is the Secret that Steward writes itself"),
            ("our own front-proxy CA", "spec: {certificates: {frontProxyCaSecretName: blue-front-proxy-ca-certificate}}", "frontProxyCaSecretName: <name>-front-proxy-ca-certificate is the Secret"),
            ("no duration", "spec: {certificates: {validity: 90d}}", "spec.certificates.validity"),
            ("short", "spec: {certificates: {validity: 5m}}", "certificates.validity: too short to be renewed in time; write at least 10m"),
            ("CA before its certificates", "spec: {certificates: {caValidity: 100h}}", "certificates.caValidity: a CA must outlive what it signs"),
            ("renewed in the first half of its life", "spec: {certificates: {validity: 24h, renewBefore: 13h}}", "certificates.renewBefore: must be longer than 0s and at most half of validity"),
            ("algorithm", "spec: {certificates: {keyAlgorithm: DSA}}", "supported values: \"ECDSA\", \"RSA\""),
        ],
    )
    .await
}
