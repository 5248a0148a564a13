//! Rules of `spec.networkProfile` and of the Service's ports.

use super::Rule;
use super::expressions::{NAME, all, ranges};
use crate::tenant_control_plane::{DEFAULT_POD_CIDR, DEFAULT_SERVICE_CIDR};

const AT: &str = "spec.networkProfile";

pub(super) fn rules() -> Vec<Rule> {
    [addresses(), cidrs(), fixed(), load_balancer()].concat()
}

pub(super) fn services(owner: &str) -> String {
    ranges(owner, "serviceCidrs", "serviceCidr", DEFAULT_SERVICE_CIDR)
}

pub(super) fn pods(owner: &str) -> String {
    ranges(owner, "podCidrs", "podCidr", DEFAULT_POD_CIDR)
}

fn addresses() -> Vec<Rule> {
    vec![
        Rule::new(
            AT,
            format!("!has(self.address) || isIP(self.address) || self.address.matches('^{NAME}$')"),
            "networkProfile.address: neither an IP address nor a hostname; write 192.0.2.10 or \
             tenant.example.com, without scheme and port",
        )
        .field(".address"),
        Rule::new(
            AT,
            "!has(self.advertiseAddress) || isIP(self.advertiseAddress)",
            "networkProfile.advertiseAddress: not an IP address; write one such as 192.0.2.10",
        )
        .field(".advertiseAddress"),
        Rule::new(
            AT,
            all("certSANs", "x", &format!("isIP(x) || x.matches('^([*][.])?{NAME}$')")),
            "networkProfile.certSANs: each must be an IP address or a lower-case DNS name, which may \
             start with '*.'; write api.example.com or 192.0.2.10, without scheme and port",
        )
        .field(".certSANs"),
        Rule::new(
            AT,
            all("dnsServiceIPs", "x", "isIP(x)"),
            "networkProfile.dnsServiceIPs: each must be an IP address, as 10.96.0.10",
        )
        .field(".dnsServiceIPs"),
        Rule::new(
            AT,
            format!(
                "!has(self.dnsServiceIPs) || self.dnsServiceIPs.all(x, !isIP(x) || \
                 {}.exists(c, isCIDR(c) && cidr(c).containsIP(x)))",
                services("self")
            ),
            "networkProfile.dnsServiceIPs: the Service CIDR does not contain the DNS Service IP; \
             write an address inside serviceCidr (10.96.0.0/16 without one), or leave it out",
        )
        .field(".dnsServiceIPs"),
    ]
}

fn cidrs() -> Vec<Rule> {
    let one = |field: &'static str, path: &'static str, example: &str| {
        Rule::new(
            AT,
            format!("!has(self.{field}) || isCIDR(self.{field})"),
            format!("networkProfile.{field}: not a CIDR; write an address range such as {example}"),
        )
        .field(path)
    };
    let many = |field: &'static str, path: &'static str, example: &str| {
        Rule::new(
            AT,
            all(field, "x", "isCIDR(x)"),
            format!("networkProfile.{field}: each must be a CIDR; write ranges such as {example}"),
        )
        .field(path)
    };
    let families = |field: &'static str, path: &'static str| {
        Rule::new(
            AT,
            format!(
                "!has(self.{field}) || self.{field}.size() < 2 || !self.{field}.all(x, isCIDR(x)) || \
                 cidr(self.{field}[0]).ip().family() != cidr(self.{field}[1]).ip().family()"
            ),
            format!(
                "networkProfile.{field}: two ranges must be of two address families; write one IPv4 \
                 and one IPv6 range, the primary first"
            ),
        )
        .field(path)
    };
    let agree = |one: &'static str, many: &'static str, path: &'static str| {
        Rule::new(
            AT,
            format!(
                "!has(self.{one}) || !has(self.{many}) || self.{many}.size() == 0 || \
                 self.{many}[0] == self.{one}"
            ),
            format!(
                "networkProfile.{one}: differs from the first of {many}; write only {many}, or the \
                 same range in both"
            ),
        )
        .field(path)
    };
    vec![
        one("serviceCidr", ".serviceCidr", DEFAULT_SERVICE_CIDR),
        one("podCidr", ".podCidr", DEFAULT_POD_CIDR),
        many("serviceCidrs", ".serviceCidrs", "10.96.0.0/16 and fd00:96::/112"),
        many("podCidrs", ".podCidrs", "10.244.0.0/16 and fd00:244::/56"),
        families("serviceCidrs", ".serviceCidrs"),
        families("podCidrs", ".podCidrs"),
        agree("serviceCidr", "serviceCidrs", ".serviceCidr"),
        agree("podCidr", "podCidrs", ".podCidr"),
        Rule::new(
            AT,
            format!(
                // Not containsCIDR: that of 1.31 says no to most of what is contained.
                "{}.all(s, !isCIDR(s) || {}.all(p, !isCIDR(p) || \
                 !(cidr(s).containsIP(cidr(p).ip()) || cidr(p).containsIP(cidr(s).ip()))))",
                services("self"),
                pods("self")
            ),
            "networkProfile.serviceCidr: the Service range and the pod range overlap; write two ranges \
             apart from each other (10.96.0.0/16 and 10.244.0.0/16 without any)",
        )
        .field(".serviceCidr"),
        Rule::new(
            AT,
            format!(
                "{}.all(s, !isCIDR(s) || cidr(s).prefixLength() <= (cidr(s).ip().family() == 4 ? 28 : 123))",
                services("self")
            ),
            "networkProfile.serviceCidr: too few addresses for the tenant's own Services; write a \
             prefix of /28 or shorter, /123 for IPv6",
        )
        .field(".serviceCidr"),
    ]
}

fn fixed() -> Vec<Rule> {
    vec![
        Rule::new(
            AT,
            format!("{}[0] == {}[0]", services("self"), services("oldSelf")),
            "networkProfile.serviceCidr: can't be changed, because Services keep their addresses; \
             keep the range the tenant was created with",
        )
        .field(".serviceCidr")
        .forbidden(),
        Rule::new(
            AT,
            format!("{}[0] == {}[0]", pods("self"), pods("oldSelf")),
            "networkProfile.podCidr: can't be changed, because nodes keep their ranges; keep the \
             range the tenant was created with",
        )
        .field(".podCidr")
        .forbidden(),
        Rule::new(
            AT,
            format!("self.clusterDomain.matches('^{NAME}$') && self.clusterDomain.contains('.')"),
            "networkProfile.clusterDomain: not a DNS domain of two labels or more; write one such as \
             cluster.local",
        )
        .field(".clusterDomain"),
        Rule::new(
            AT,
            "self.clusterDomain == oldSelf.clusterDomain",
            "networkProfile.clusterDomain: changing the cluster domain is not supported; keep the \
             value the tenant was created with",
        )
        .field(".clusterDomain")
        .forbidden(),
    ]
}

fn load_balancer() -> Vec<Rule> {
    let balanced = "self.controlPlane.service.serviceType == 'LoadBalancer'";
    let was_balanced = "oldSelf.controlPlane.service.serviceType == 'LoadBalancer'";
    let class = |owner: &str| {
        format!(
            "(has({owner}.networkProfile.loadBalancerClass) ? \
             {owner}.networkProfile.loadBalancerClass : '')"
        )
    };
    vec![
        Rule::new(
            AT,
            all("loadBalancerSourceRanges", "x", "isCIDR(x)"),
            "networkProfile.loadBalancerSourceRanges: invalid LoadBalancer source CIDR; write address \
             ranges such as 203.0.113.0/24",
        )
        .field(".loadBalancerSourceRanges"),
        Rule::new(
            "spec",
            format!(
                "{balanced} || !has(self.networkProfile.loadBalancerSourceRanges) || \
                 self.networkProfile.loadBalancerSourceRanges.size() == 0"
            ),
            "networkProfile.loadBalancerSourceRanges: LoadBalancer source ranges are supported only \
             with LoadBalancer service type; use controlPlane.access.allowedSourceRanges, which works \
             with every type",
        )
        .field(".networkProfile.loadBalancerSourceRanges")
        .forbidden(),
        Rule::new(
            "spec",
            format!("{balanced} || !has(self.networkProfile.loadBalancerClass)"),
            "networkProfile.loadBalancerClass: supported only with LoadBalancer service type; remove \
             it, or set controlPlane.service.serviceType to LoadBalancer",
        )
        .field(".networkProfile.loadBalancerClass")
        .forbidden(),
        Rule::new(
            "spec",
            format!(
                "!({balanced}) || !({was_balanced}) || {} == {}",
                class("self"),
                class("oldSelf")
            ),
            "networkProfile.loadBalancerClass: LoadBalancerClass cannot be set, unset or changed at \
             runtime; keep the value the Service was created with",
        )
        .field(".networkProfile.loadBalancerClass")
        .forbidden(),
        Rule::new(
            "spec.controlPlane.service",
            "self.serviceType == 'LoadBalancer' || !has(self.allocateLoadBalancerNodePorts)",
            "service.allocateLoadBalancerNodePorts: supported only with LoadBalancer service type; \
             remove it, or set serviceType to LoadBalancer",
        )
        .field(".allocateLoadBalancerNodePorts")
        .forbidden(),
    ]
}
