//! Rules of `spec.controlPlane.ingress`, `.gateway` and `.access`.

use super::Rule;
use super::expressions::{all, dns_name, dns_name_and_port};

const INGRESS: &str = "spec.controlPlane.ingress";
const GATEWAY: &str = "spec.controlPlane.gateway";

pub(super) fn rules() -> Vec<Rule> {
    let mut rules = vec![
        Rule::new(
            "spec.controlPlane",
            "!has(self.ingress) || !has(self.gateway)",
            "controlPlane: using both ingress and gateway is not supported; keep one of \
             controlPlane.ingress and controlPlane.gateway",
        )
        .forbidden(),
        Rule::new(
            INGRESS,
            "!has(self.entryPoints) || self.entryPoints.size() == 0 || \
             self.controllerType == 'traefik'",
            "ingress.entryPoints: only Traefik has entry points; remove it, or set controllerType to \
             traefik",
        )
        .field(".entryPoints")
        .forbidden(),
        Rule::new(
            GATEWAY,
            "has(self.parentRefs) && self.parentRefs.size() > 0",
            "gateway.parentRefs: missing; name the Gateway whose listener takes the tenant's \
             connections",
        )
        .field(".parentRefs")
        .required(),
        Rule::new(
            "spec.controlPlane.access",
            all("allowedSourceRanges", "x", "isCIDR(x)"),
            "access.allowedSourceRanges: each must be a CIDR; write address ranges such as \
             203.0.113.0/24, or 203.0.113.7/32 for one address",
        )
        .field(".allowedSourceRanges"),
    ];
    rules.extend(names("ingress", INGRESS));
    rules.extend(names("gateway", GATEWAY));
    rules
}

fn names(mode: &str, at: &'static str) -> Vec<Rule> {
    vec![
        Rule::new(
            at,
            format!("!has(self.hostname) || {}", grouped(&dns_name_and_port("self.hostname"))),
            format!(
                "{mode}.hostname: must be one lower-case DNS name, because connections are routed by \
                 it: no wildcard, no IP address, no scheme, no path; write tenant.k8s.example.com, \
                 with :port if it isn't 443"
            ),
        )
        .field(".hostname"),
        Rule::new(
            at,
            "!has(self.hostname) || !has(self.port) || self.hostname.split(':').size() < 2 || \
             self.hostname.split(':')[1] == string(self.port)",
            format!(
                "{mode}.port: differs from the port in {mode}.hostname; write the port in one of \
                 them only"
            ),
        )
        .field(".port"),
        Rule::new(
            at,
            format!(
                "!has(self.konnectivityHostname) || {}",
                grouped(&dns_name("self.konnectivityHostname"))
            ),
            format!(
                "{mode}.konnectivityHostname: must be one lower-case DNS name: no wildcard, no IP \
                 address, no port; write tenant.konnectivity.example.com, or leave it out to use \
                 hostname for both"
            ),
        )
        .field(".konnectivityHostname"),
        Rule::new(
            at,
            format!("!has(self.domain) || {}", grouped(&dns_name("self.domain"))),
            format!(
                "{mode}.domain: must be a lower-case DNS domain without wildcard; write example.com \
                 to get <namespace>-<name>.k8s.example.com"
            ),
        )
        .field(".domain"),
    ]
}

fn grouped(expression: &str) -> String {
    format!("({expression})")
}
