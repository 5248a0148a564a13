//! Ranges, addresses and ports.

use std::net::IpAddr;

use ipnet::IpNet;
use steward_api::TenantControlPlaneSpec;
use steward_pki::San;

use super::hostname;
use crate::problem::Problem;

/// The tenant's network, parsed and defaulted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Service ranges in the user's order.
    pub service_cidrs: Vec<IpNet>,
    /// Pod ranges in the user's order.
    pub pod_cidrs: Vec<IpNet>,
    /// Addresses of the DNS Service, one per Service range unless given.
    pub dns_ips: Vec<IpAddr>,
    /// First address of each Service range: the `kubernetes` Service.
    pub kubernetes_ips: Vec<IpAddr>,
    /// DNS domain inside the tenant.
    pub domain: String,
    /// Port of the Service.
    pub port: u16,
    /// Port of the Service for konnectivity agents.
    pub konnectivity_port: u16,
    /// Address or name that the user gave.
    pub address: Option<San>,
    /// What the API server announces inside the tenant, if the user says so.
    pub advertise: Option<IpAddr>,
    /// Names to add to the certificate.
    pub extra_sans: Vec<San>,
}

const FIELD: &str = "spec.networkProfile";

pub(super) fn parse(spec: &TenantControlPlaneSpec) -> Result<Network, Vec<Problem>> {
    let profile = &spec.network_profile;
    let mut problems = Vec::new();
    let service_cidrs = ranges(
        "serviceCidrs",
        &profile.effective_service_cidrs(),
        &mut problems,
    );
    let pod_cidrs = ranges("podCidrs", &profile.effective_pod_cidrs(), &mut problems);
    check_overlap(&service_cidrs, &pod_cidrs, &mut problems);
    let dns_ips = dns_ips(&profile.dns_service_ips, &service_cidrs, &mut problems);
    let kubernetes_ips = service_cidrs
        .iter()
        .filter_map(|range| nth(range, 1))
        .collect();
    let konnectivity = spec
        .addons
        .konnectivity
        .as_ref()
        .map_or(8132, |k| k.server.port);
    let network = Network {
        dns_ips,
        kubernetes_ips,
        domain: profile.cluster_domain.clone(),
        port: port("port", profile.port, &mut problems),
        konnectivity_port: port("konnectivity port", konnectivity, &mut problems),
        address: profile
            .address
            .as_deref()
            .and_then(|text| name("address", text, &mut problems)),
        advertise: profile.advertise_address.as_deref().and_then(|text| {
            let parsed = text.parse().ok();
            if parsed.is_none() {
                let message = format!("{text:?} is not an IP address");
                problems.push(Problem::invalid(
                    format!("{FIELD}.advertiseAddress"),
                    message,
                ));
            }
            parsed
        }),
        extra_sans: profile
            .cert_sans
            .iter()
            .filter_map(|text| name("certSANs", text, &mut problems))
            .collect(),
        service_cidrs,
        pod_cidrs,
    };
    if problems.is_empty() {
        Ok(network)
    } else {
        Err(problems)
    }
}

impl Network {
    /// Ranges as a flag has them: separated by commas.
    pub fn join(ranges: &[IpNet]) -> String {
        ranges
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",")
    }
}

/// The n-th address of a range, if it has one.
pub(crate) fn nth(range: &IpNet, n: u32) -> Option<IpAddr> {
    let address = match range.network() {
        IpAddr::V4(base) => IpAddr::from((u32::from(base).checked_add(n)?).to_be_bytes()),
        IpAddr::V6(base) => {
            IpAddr::from((u128::from(base).checked_add(u128::from(n))?).to_be_bytes())
        }
    };
    range.contains(&address).then_some(address)
}

fn ranges(field: &str, texts: &[&str], problems: &mut Vec<Problem>) -> Vec<IpNet> {
    let field = format!("{FIELD}.{field}");
    let mut parsed = Vec::new();
    for text in texts {
        match text.parse::<IpNet>() {
            Ok(range) if range.trunc() == range => parsed.push(range),
            Ok(range) => problems.push(Problem::invalid(
                &field,
                format!(
                    "{text} has bits set beyond its prefix: write {}",
                    range.trunc()
                ),
            )),
            Err(_) => problems.push(Problem::invalid(
                &field,
                format!("{text:?} is not an address range: write it like 10.96.0.0/16"),
            )),
        }
    }
    if let [first, second] = parsed[..]
        && first.addr().is_ipv4() == second.addr().is_ipv4()
    {
        let message = format!("{first} and {second} are of one address family: give one of each");
        problems.push(Problem::invalid(&field, message));
    }
    parsed
}

fn check_overlap(services: &[IpNet], pods: &[IpNet], problems: &mut Vec<Problem>) {
    for service in services {
        for pod in pods {
            if service.contains(pod) || pod.contains(service) {
                let message = format!("{pod} overlaps the Service range {service}: separate them");
                problems.push(Problem::invalid(format!("{FIELD}.podCidrs"), message));
            }
        }
    }
}

fn dns_ips(given: &[String], ranges: &[IpNet], problems: &mut Vec<Problem>) -> Vec<IpAddr> {
    let field = format!("{FIELD}.dnsServiceIPs");
    if given.is_empty() {
        let tenth = |range: &IpNet| nth(range, if range.addr().is_ipv4() { 10 } else { 16 });
        let found: Vec<IpAddr> = ranges.iter().filter_map(tenth).collect();
        if found.len() < ranges.len() {
            let message = "the Service range is too small for the tenth address: give an address \
                           or a larger range";
            problems.push(Problem::invalid(&field, message));
        }
        return found;
    }
    given
        .iter()
        .filter_map(|text| {
            let Ok(address) = text.parse::<IpAddr>() else {
                problems.push(Problem::invalid(
                    &field,
                    format!("{text:?} is not an IP address"),
                ));
                return None;
            };
            if !ranges.iter().any(|range| range.contains(&address)) {
                let message = format!("{address} is outside of the Service ranges");
                problems.push(Problem::invalid(&field, message));
            }
            Some(address)
        })
        .collect()
}

fn port(field: &str, number: i32, problems: &mut Vec<Problem>) -> u16 {
    match u16::try_from(number) {
        Ok(port) if port > 0 => port,
        _ => {
            let message = format!("{number} is not a port: use 1 to 65535");
            problems.push(Problem::invalid(format!("{FIELD}.{field}"), message));
            0
        }
    }
}

fn name(field: &str, text: &str, problems: &mut Vec<Problem>) -> Option<San> {
    let san = San::parse(text);
    let fault = match &san {
        San::Ip(_) => None,
        San::Dns(name) => hostname::fault(name.strip_prefix("*.").unwrap_or(name)),
    };
    if let Some(fault) = fault {
        problems.push(Problem::invalid(format!("{FIELD}.{field}"), fault));
        return None;
    }
    Some(san)
}
