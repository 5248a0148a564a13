//! One function for each kind of server.

use std::fmt::Write;
use std::net::IpAddr;

use super::{Format, Wanted};

/// How long resolvers may remember, in seconds: short, because front doors move.
const TTL: u32 = 300;

/// The records as text that the server, or its administrator, takes as it is.
pub fn render(wanted: &Wanted, format: Format) -> String {
    match format {
        Format::Bind => bind(wanted),
        Format::Dnsmasq => dnsmasq(wanted),
        Format::Coredns => coredns(wanted),
        Format::Windows => windows(wanted),
        Format::Infoblox => infoblox(wanted),
        Format::Cloudflare => cloudflare(wanted),
        Format::Hosts => hosts(wanted),
        Format::Sslip => sslip(wanted),
    }
}

fn kind(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "A" } else { "AAAA" }
}

/// Every pair of owner name and address, wildcards first.
fn records(wanted: &Wanted) -> impl Iterator<Item = (String, &IpAddr)> {
    let wild = wanted.wildcards.iter().map(|zone| format!("*.{zone}"));
    let names: Vec<String> = wild.chain(wanted.names.iter().cloned()).collect();
    names
        .into_iter()
        .flat_map(|name| wanted.addresses.iter().map(move |a| (name.clone(), a)))
}

fn bind(wanted: &Wanted) -> String {
    let mut out =
        String::from("; Add to the zone that holds these names, raise its serial, reload.\n");
    for (name, address) in records(wanted) {
        let _ = writeln!(
            out,
            "{:<44} {TTL} IN {:<4} {address}",
            format!("{name}."),
            kind(address)
        );
    }
    out
}

fn dnsmasq(wanted: &Wanted) -> String {
    let mut out = String::from(
        "# A file in /etc/dnsmasq.d/; then restart dnsmasq (Pi-hole: pihole restartdns).\n",
    );
    for address in &wanted.addresses {
        for zone in &wanted.wildcards {
            let _ = writeln!(out, "address=/.{zone}/{address}");
        }
        for name in &wanted.names {
            let _ = writeln!(out, "host-record={name},{address}");
        }
    }
    out
}

fn coredns(wanted: &Wanted) -> String {
    let mut out = String::from("# Server blocks for the Corefile.\n");
    for zone in &wanted.wildcards {
        let _ = writeln!(out, "{zone}:53 {{");
        for address in &wanted.addresses {
            let (kind, answer) = (kind(address), "{{ .Name }}");
            let _ = writeln!(
                out,
                "    template IN {kind} {{\n        answer \"{answer} {TTL} IN {kind} {address}\"\n    }}"
            );
        }
        out.push_str("}\n");
    }
    for name in &wanted.names {
        let _ = writeln!(out, "{name}:53 {{\n    hosts {{");
        for address in &wanted.addresses {
            let _ = writeln!(out, "        {address} {name}");
        }
        out.push_str("    }\n}\n");
    }
    out
}

fn windows(wanted: &Wanted) -> String {
    let mut out = String::from("# PowerShell on the DNS server, as an administrator.\n");
    let flag = |a: &IpAddr| {
        if a.is_ipv4() {
            ("A", "IPv4Address")
        } else {
            ("AAAA", "IPv6Address")
        }
    };
    for zone in &wanted.wildcards {
        let _ = writeln!(
            out,
            "Add-DnsServerPrimaryZone -Name \"{zone}\" -ZoneFile \"{zone}.dns\""
        );
        for address in &wanted.addresses {
            let (kind, flag) = flag(address);
            let _ = writeln!(
                out,
                "Add-DnsServerResourceRecord{kind} -ZoneName \"{zone}\" -Name \"*\" -{flag} \"{address}\""
            );
        }
    }
    for name in &wanted.names {
        let (host, zone) = name.split_once('.').unwrap_or((name, ""));
        for address in &wanted.addresses {
            let (kind, flag) = flag(address);
            let _ = writeln!(
                out,
                "Add-DnsServerResourceRecord{kind} -ZoneName \"{zone}\" -Name \"{host}\" -{flag} \"{address}\""
            );
        }
    }
    out
}

fn infoblox(wanted: &Wanted) -> String {
    let mut out = String::new();
    for (family, head) in [
        ("A", "header-arecord,fqdn*,address*,ttl"),
        ("AAAA", "header-aaaarecord,fqdn*,address*,ttl"),
    ] {
        let rows: Vec<_> = records(wanted).filter(|(_, a)| kind(a) == family).collect();
        if !rows.is_empty() {
            let _ = writeln!(out, "{head}");
        }
        for (name, address) in rows {
            let _ = writeln!(
                out,
                "{}record,{name},{address},{TTL}",
                family.to_ascii_lowercase()
            );
        }
    }
    out
}

fn cloudflare(wanted: &Wanted) -> String {
    let mut out = String::from(
        ";; Import under DNS > Records. The proxy must stay off: it would open the TLS, and client\n;; certificates and the pods' tunnel could not pass.\n",
    );
    for (name, address) in records(wanted) {
        let _ = writeln!(
            out,
            "{name}.\t{TTL}\tIN\t{}\t{address} ; cf_tags=cf-proxied:false",
            kind(address)
        );
    }
    out
}

fn hosts(wanted: &Wanted) -> String {
    let mut out = String::new();
    for zone in &wanted.wildcards {
        let _ = writeln!(
            out,
            "# {zone}: a hosts file has no wildcards; add a line for each tenant."
        );
    }
    for address in &wanted.addresses {
        for name in &wanted.names {
            let _ = writeln!(out, "{address} {name}");
        }
    }
    out
}

/// sslip.io reads an address out of a name. Written with dashes it can't be
/// confused with digits in the label before it.
fn sslip(wanted: &Wanted) -> String {
    let mut out = String::from("# Nothing to set up: these names resolve by themselves.\n");
    for address in &wanted.addresses {
        let dashed = address.to_string().replace(['.', ':'], "-");
        if wanted.names.is_empty() {
            let _ = writeln!(
                out,
                "<tenant>.k8s.{dashed}.sslip.io\n<tenant>.konnectivity.{dashed}.sslip.io"
            );
        }
        for name in &wanted.names {
            let first = name.split('.').next().unwrap_or(name);
            let _ = writeln!(out, "{first}.k8s.{dashed}.sslip.io");
        }
    }
    out
}
