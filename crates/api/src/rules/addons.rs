//! Rules of `spec.addons`.

use super::Rule;
use super::expressions::{FLAG, all, dns_name};
use super::network::{pods, services};

pub(super) fn rules() -> Vec<Rule> {
    [konnectivity(), tcp_proxy(), worker_bootstrap()].concat()
}

fn konnectivity() -> Vec<Rule> {
    const AGENT: &str = "spec.addons.konnectivity.agent";
    vec![
        Rule::new(
            AGENT,
            "!has(self.replicas) || (self.mode == 'DaemonSet' ? self.replicas == 0 : self.replicas > 0)",
            "konnectivity.agent.replicas: replicas must be 0 (or unset) when mode is DaemonSet, and \
             greater than 0 (or unset) when mode is Deployment",
        )
        .field(".replicas"),
        Rule::new(
            AGENT,
            all("extraArgs", "x", FLAG),
            "konnectivity.agent.extraArgs: each must be a flag with its value; write --flag=value",
        )
        .field(".extraArgs"),
        Rule::new(
            "spec.addons.konnectivity.server",
            all("extraArgs", "x", FLAG),
            "konnectivity.server.extraArgs: each must be a flag with its value; write --flag=value",
        )
        .field(".extraArgs"),
    ]
}

fn tcp_proxy() -> Vec<Rule> {
    const AT: &str = "spec.addons.tcpProxy";
    let address = "self.addons.tcpProxy.address";
    let outside = |ranges: String| {
        format!(
            "!has(self.addons.tcpProxy) || !isIP({address}) || \
             {ranges}.all(c, !isCIDR(c) || !cidr(c).containsIP({address}))"
        )
    };
    vec![
        Rule::new(
            AT,
            "isIP(self.address) && !ip(self.address).isUnspecified() && \
             !ip(self.address).isLoopback() && !cidr('224.0.0.0/4').containsIP(self.address) && \
             !cidr('ff00::/8').containsIP(self.address) && self.address != '255.255.255.255'",
            "tcpProxy.address: must be one IP address that nodes can put on themselves; write an \
             unused one such as 240.0.0.1, not a loopback, multicast or broadcast address",
        )
        .field(".address"),
        Rule::new(
            "spec",
            outside(services("self.networkProfile")),
            "addons.tcpProxy.address: inside the Service range of the tenant, whose addresses belong \
             to Services; write an address outside networkProfile.serviceCidr, as 240.0.0.1",
        )
        .field(".addons.tcpProxy.address"),
        Rule::new(
            "spec",
            outside(pods("self.networkProfile")),
            "addons.tcpProxy.address: inside the pod range of the tenant, whose addresses belong to \
             pods; write an address outside networkProfile.podCidr, as 240.0.0.1",
        )
        .field(".addons.tcpProxy.address"),
        Rule::new(
            "spec",
            format!(
                "!has(self.addons.tcpProxy) || self.addons.tcpProxy.mode != 'EndToEnd' || \
                 !isIP({address}) || !isCIDR({primary}[0]) || \
                 ip({address}).family() == cidr({primary}[0]).ip().family()",
                primary = services("self.networkProfile"),
            ),
            "addons.tcpProxy.address: of another address family than the tenant's Services, so that no \
             Service can lead to it; write an unused address of the family of \
             networkProfile.serviceCidr, as 240.0.0.1 or fd00:ffff::1",
        )
        .field(".addons.tcpProxy.address"),
        Rule::new(
            "spec.addons.tcpProxy.hostAliases[]",
            "isIP(self.ip)",
            "tcpProxy.hostAliases[].ip: not an IP address; write one such as 192.0.2.10",
        )
        .field(".ip"),
        Rule::new(
            "spec.addons.tcpProxy.hostAliases[]",
            all("hostnames", "x", &format!("({})", dns_name("x"))),
            "tcpProxy.hostAliases[].hostnames: each must be a lower-case DNS name, as \
             tenant.k8s.example.com",
        )
        .field(".hostnames"),
        Rule::new(
            AT,
            "!has(self.internalEndpoint) || isIP(self.internalEndpoint) || \
             (self.internalEndpoint.matches('^[0-9.]+:[1-9][0-9]{0,4}$') && \
             isIP(self.internalEndpoint.split(':')[0]) && \
             int(self.internalEndpoint.split(':')[1]) <= 65535) || \
             (self.internalEndpoint.matches('^[[][0-9a-fA-F:.]+[]]:[1-9][0-9]{0,4}$') && \
             isIP(self.internalEndpoint.split(']')[0].substring(1)) && \
             int(self.internalEndpoint.split(']:')[1]) <= 65535)",
            "tcpProxy.internalEndpoint: not an IP address; write 192.0.2.10, 192.0.2.10:6443 or \
             [2001:db8::10]:6443",
        )
        .field(".internalEndpoint"),
    ]
}

fn worker_bootstrap() -> Vec<Rule> {
    const AT: &str = "spec.addons.workerBootstrap";
    vec![
        Rule::new(
            AT,
            "self.provider != 'talos' || has(self.talos)",
            "workerBootstrap.talos: talos configuration is required when provider is talos; write \
             talos: {} for the defaults",
        )
        .field(".talos")
        .required(),
        Rule::new(
            AT,
            all("allowedSubnets", "x", "isCIDR(x)"),
            "workerBootstrap.allowedSubnets: invalid CIDR in allowedSubnets; write address ranges \
             such as 192.0.2.0/24",
        )
        .field(".allowedSubnets"),
    ]
}
