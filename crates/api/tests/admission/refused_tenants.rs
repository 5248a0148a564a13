//! Tenants that are refused for what they say about versions, networks and front doors.

use anyhow::Result;

use crate::server::{Server, tenant, try_table};

#[tokio::test]
async fn names_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("names").await?;
    let long = format!("metadata: {{name: {}}}", "a".repeat(64));
    try_table(
        &server,
        tenant,
        &[
            (
                "starts with a digit",
                "metadata: {name: 1blue}",
                "metadata.name: the provided name is invalid",
            ),
            (
                "dots",
                "metadata: {name: blue.green}",
                "metadata.name: the provided name is invalid",
            ),
            ("long", &long, "at most 63 lower-case letters"),
            (
                "another's route",
                "metadata: {name: blue-konnectivity}",
                "choose a name with another ending",
            ),
            (
                "etcd's administrator",
                "spec: {dataStoreUsername: root}",
                "dataStoreUsername: this name is the datastore's own; leave the field out",
            ),
            (
                "etcd's administrator in capitals",
                "spec: {dataStoreUsername: Root}",
                "dataStoreUsername: this name is the datastore's own",
            ),
            (
                "the role of etcd's administrator",
                "spec: {dataStoreSchema: root}",
                "dataStoreSchema: this name is the datastore's own",
            ),
            (
                "the cluster's own Service",
                "metadata: {name: kubernetes, namespace: default}",
                "metadata.name: the Service kubernetes in namespace default is this cluster's own",
            ),
        ],
    )
    .await
}

#[tokio::test]
async fn versions_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("versions").await?;
    let parse = "kubernetes.version: unable to parse the desired Kubernetes version; write it whole, as v1.36.3";
    try_table(
        &server,
        tenant,
        &[
            ("not a version", "spec: {kubernetes: {version: latest}}", parse),
            ("half a version", "spec: {kubernetes: {version: v1.36}}", "kubernetes.version"),
            ("another major", "spec: {kubernetes: {version: v2.0.0}}", parse),
            (
                "too new",
                "spec: {kubernetes: {version: v1.37.0}}",
                "greater than the supported one, actually v1.36; write a version of v1.36 or older",
            ),
            ("too old", "spec: {kubernetes: {version: v1.22.0}}", "older than the oldest one supported, v1.23"),
            (
                "address twice",
                "spec: {kubernetes: {kubelet: {preferredAddressTypes: [InternalIP, InternalIP]}}}",
                "Duplicate value",
            ),
            (
                "no address type",
                "spec: {kubernetes: {kubelet: {preferredAddressTypes: [Nickname]}}}",
                "Unsupported value: \"Nickname\": supported values: \"Hostname\"",
            ),
            (
                "no admission plugin",
                "spec: {kubernetes: {admissionControllers: [NodeRestrictoin]}}",
                "Unsupported value: \"NodeRestrictoin\"",
            ),
            (
                "patch path",
                "spec: {kubernetes: {kubelet: {configurationJSONPatches: [{op: add, path: maxPods, value: 5}]}}}",
                "configurationJSONPatches[].path: not a JSON pointer; start it with '/'",
            ),
            (
                "patch from",
                "spec: {kubernetes: {kubelet: {configurationJSONPatches: [{op: move, path: /a}]}}}",
                "configurationJSONPatches[].from: missing",
            ),
        ],
    )
    .await
}

#[tokio::test]
async fn networks_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("networks").await?;
    let overlap = "networkProfile.serviceCidr: the Service range and the pod range overlap";
    try_table(
        &server,
        tenant,
        &[
            ("port 0", "spec: {networkProfile: {port: 0}}", "spec.networkProfile.port in body should be greater than or equal to 1"),
            ("port 70000", "spec: {networkProfile: {port: 70000}}", "spec.networkProfile.port in body should be less than or equal to 65535"),
            ("address", "spec: {networkProfile: {address: 'https://a.example.com'}}", "networkProfile.address: neither an IP address nor a hostname"),
            ("advertise", "spec: {networkProfile: {advertiseAddress: a.example.com}}", "networkProfile.advertiseAddress: not an IP address"),
            ("san", "spec: {networkProfile: {certSANs: ['a.example.com:443']}}", "networkProfile.certSANs: each must be an IP address or a lower-case DNS name"),
            ("service range", "spec: {networkProfile: {serviceCidr: 10.96.0.0}}", "networkProfile.serviceCidr: not a CIDR; write an address range such as 10.96.0.0/16"),
            ("service mask", "spec: {networkProfile: {serviceCidr: 10.96.0.0/33}}", "networkProfile.serviceCidr: not a CIDR"),
            ("pod range", "spec: {networkProfile: {podCidr: ten}}", "networkProfile.podCidr: not a CIDR"),
            ("pod ranges", "spec: {networkProfile: {podCidrs: [10.0.0.0/8, x]}}", "networkProfile.podCidrs: each must be a CIDR"),
            ("one family twice", "spec: {networkProfile: {serviceCidrs: [10.96.0.0/16, 10.97.0.0/16]}}", "networkProfile.serviceCidrs: two ranges must be of two address families"),
            ("contradiction", "spec: {networkProfile: {podCidr: 10.1.0.0/16, podCidrs: [10.2.0.0/16]}}", "networkProfile.podCidr: differs from the first of podCidrs"),
            ("overlap", "spec: {networkProfile: {serviceCidr: 10.0.0.0/16, podCidr: 10.0.128.0/17}}", overlap),
            ("overlap with the default", "spec: {networkProfile: {serviceCidr: 10.244.7.0/24}}", overlap),
            ("overlap in the second family", "spec: {networkProfile: {serviceCidrs: [10.96.0.0/16, 'fd00::/112'], podCidrs: [10.244.0.0/16, 'fd00::/48']}}", overlap),
            ("tiny", "spec: {networkProfile: {serviceCidr: 10.96.0.0/30}}", "networkProfile.serviceCidr: too few addresses"),
            ("dns address", "spec: {networkProfile: {dnsServiceIPs: [dns]}}", "networkProfile.dnsServiceIPs: each must be an IP address"),
            ("dns outside", "spec: {networkProfile: {dnsServiceIPs: [10.97.0.10]}}", "the Service CIDR does not contain the DNS Service IP"),
            ("dns outside its own", "spec: {networkProfile: {serviceCidr: 10.5.0.0/16, dnsServiceIPs: [10.96.0.10]}}", "the Service CIDR does not contain the DNS Service IP"),
            ("domain of one label", "spec: {networkProfile: {clusterDomain: local}}", "networkProfile.clusterDomain: not a DNS domain of two labels or more"),
            ("source ranges without balancer", "spec: {networkProfile: {loadBalancerSourceRanges: [10.0.0.0/8]}}", "LoadBalancer source ranges are supported only with LoadBalancer service type"),
            ("source range", "spec: {controlPlane: {service: {serviceType: LoadBalancer}}, networkProfile: {loadBalancerSourceRanges: [10.0.0.0]}}", "invalid LoadBalancer source CIDR"),
            ("class without balancer", "spec: {networkProfile: {loadBalancerClass: example.com/lb}}", "networkProfile.loadBalancerClass: supported only with LoadBalancer service type"),
            ("node ports without balancer", "spec: {controlPlane: {service: {allocateLoadBalancerNodePorts: true}}}", "service.allocateLoadBalancerNodePorts: supported only with LoadBalancer service type"),
            ("service type", "spec: {controlPlane: {service: {serviceType: ExternalName}}}", "Unsupported value: \"ExternalName\": supported values: \"ClusterIP\", \"NodePort\", \"LoadBalancer\""),
            ("allowed range", "spec: {controlPlane: {access: {allowedSourceRanges: [203.0.113.7]}}}", "access.allowedSourceRanges: each must be a CIDR"),
        ],
    )
    .await
}

#[tokio::test]
async fn front_doors_that_cannot_work_are_refused() -> Result<()> {
    let server = Server::new("doors").await?;
    let hostname = "ingress.hostname: must be one lower-case DNS name";
    try_table(
        &server,
        tenant,
        &[
            ("both", "spec: {controlPlane: {ingress: {hostname: a.example.com}, gateway: {hostname: a.example.com, parentRefs: [{name: g}]}}}", "using both ingress and gateway is not supported; keep one of"),
            ("no name", "spec: {controlPlane: {ingress: {}}}", "there is neither a hostname nor a domain; write hostname, or domain, or the annotation"),
            ("no name for a gateway", "spec: {controlPlane: {gateway: {parentRefs: [{name: g}]}}}", "neither a hostname nor a domain"),
            ("no gateway", "spec: {controlPlane: {gateway: {hostname: a.example.com}}}", "gateway.parentRefs: missing"),
            ("wildcard", "spec: {controlPlane: {ingress: {hostname: '*.example.com'}}}", hostname),
            ("address", "spec: {controlPlane: {ingress: {hostname: 192.0.2.1}}}", hostname),
            ("address and port", "spec: {controlPlane: {ingress: {hostname: '192.0.2.1:443'}}}", hostname),
            ("IPv6", "spec: {controlPlane: {ingress: {hostname: '2001:db8::1'}}}", hostname),
            ("scheme", "spec: {controlPlane: {ingress: {hostname: 'https://a.example.com'}}}", hostname),
            ("upper case", "spec: {controlPlane: {ingress: {hostname: A.example.com}}}", hostname),
            ("underscore", "spec: {controlPlane: {ingress: {hostname: a_b.example.com}}}", hostname),
            ("trailing dot", "spec: {controlPlane: {ingress: {hostname: a.example.com.}}}", hostname),
            ("port out of range", "spec: {controlPlane: {ingress: {hostname: 'a.example.com:70000'}}}", hostname),
            ("two ports", "spec: {controlPlane: {ingress: {hostname: 'a.example.com:8443', port: 443}}}", "ingress.port: differs from the port in ingress.hostname"),
            ("port field", "spec: {controlPlane: {ingress: {hostname: a.example.com, port: 65536}}}", "ingress.port in body should be less than or equal to 65535"),
            ("konnectivity wildcard", "spec: {controlPlane: {ingress: {hostname: a.example.com, konnectivityHostname: '*.example.com'}}}", "ingress.konnectivityHostname: must be one lower-case DNS name"),
            ("konnectivity address", "spec: {controlPlane: {ingress: {hostname: a.example.com, konnectivityHostname: 192.0.2.1}}}", "ingress.konnectivityHostname: must be one lower-case DNS name"),
            ("domain", "spec: {controlPlane: {ingress: {domain: '*.example.com'}}}", "ingress.domain: must be a lower-case DNS domain without wildcard"),
            ("annotated domain", "{metadata: {annotations: {steward.butlerlabs.dev/ingress.domain: 'https://example.com'}}, spec: {controlPlane: {ingress: {}}}}", "the ingress domain must be a lower-case DNS domain"),
            ("annotated domain of the addon", "{metadata: {annotations: {kamaji.clastix.io/ingress.domain: EXAMPLE}}, spec: {controlPlane: {ingress: {}}}}", "the ingress domain must be a lower-case DNS domain"),
            ("made name too long", "{metadata: {name: a-name-of-more-than-forty-characters-as-it-seems-to-me}, spec: {controlPlane: {ingress: {domain: example.com}}}}", "<namespace>-<name> is the first part of the hostname"),
            ("entry points", "spec: {controlPlane: {ingress: {hostname: a.example.com, controllerType: nginx, entryPoints: [websecure]}}}", "ingress.entryPoints: only Traefik has entry points"),
            ("controller", "spec: {controlPlane: {ingress: {hostname: a.example.com, controllerType: caddy}}}", "Unsupported value: \"caddy\": supported values: \"traefik\""),
            ("gateway wildcard", "spec: {controlPlane: {gateway: {hostname: '*.example.com', parentRefs: [{name: g}]}}}", "gateway.hostname: must be one lower-case DNS name"),
        ],
    )
    .await
}
