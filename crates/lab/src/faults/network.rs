//! Cut, lossy, slow and fenced-in connections, as rules in the router.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicU32, Ordering},
};

use super::{Fault, shell};
use crate::{Error, HostId, Lab, net};

/// What a fenced-in host may still reach.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// TCP to these.
    pub tcp: Vec<SocketAddr>,
    /// The lab's name server.
    pub names: bool,
}

impl Lab {
    /// Cuts two hosts off from each other, both ways.
    pub fn cut(&self, one: HostId, other: HostId) -> Result<Fault, Error> {
        self.between(one, other, "drop")
    }

    /// Loses this share of the packets between two hosts, each way.
    pub fn lose(&self, one: HostId, other: HostId, percent: u8) -> Result<Fault, Error> {
        if percent > 100 {
            return Err(Error::Invalid(format!(
                "{percent} is no percentage: say 0 to 100"
            )));
        }
        // nft has no word for "always" or "never" here.
        match percent {
            0 => self.between(one, other, "accept"),
            100 => self.between(one, other, "drop"),
            some => self.between(one, other, &format!("numgen random mod 100 < {some} drop")),
        }
    }

    /// Lets through this many kilobytes per second from one host to another and drops the
    /// rest, as an overloaded link does.
    pub fn throttle(&self, from: HostId, to: HostId, kilobytes: u32) -> Result<Fault, Error> {
        let verdict = format!("limit rate over {kilobytes} kbytes/second drop");
        self.one_way(&[(from, to)], &verdict)
    }

    /// Lets a host send to nothing but what is allowed.
    pub fn fence_in(&self, host: HostId, allowed: &Allowed) -> Result<Fault, Error> {
        let table = table();
        let mut rules = format!("iifname != \"{host}\" accept\nether type arp accept\n");
        for to in &allowed.tcp {
            let IpAddr::V4(address) = to.ip() else {
                return Err(Error::Invalid(format!(
                    "{to} is not an IPv4 address: the lab has no other"
                )));
            };
            let _ = writeln!(rules, "ip daddr {address} tcp dport {} accept", to.port());
        }
        if allowed.names {
            let gateway = host.network().gateway();
            let _ = writeln!(rules, "ip daddr {gateway} udp dport 53 accept");
            let _ = writeln!(rules, "ip daddr {gateway} tcp dport 53 accept");
        }
        rules.push_str("drop\n");
        self.rules(&table, "prerouting", &rules)
    }

    fn between(&self, one: HostId, other: HostId, verdict: &str) -> Result<Fault, Error> {
        self.one_way(&[(one, other), (other, one)], verdict)
    }

    fn one_way(&self, ways: &[(HostId, HostId)], verdict: &str) -> Result<Fault, Error> {
        let mut rules = String::new();
        for &(from, to) in ways {
            self.host(from)?;
            self.host(to)?;
            if to == HostId::Router || from == to {
                return Err(Error::Invalid(format!(
                    "traffic from {from} to {to} cannot be disturbed: name two different hosts; for the router, which is the name server, break names instead"
                )));
            }
            let mark = net::mark(from);
            let _ = writeln!(rules, "oifname \"{to}\" meta mark {mark} {verdict}");
        }
        self.rules(&table(), "postrouting", &rules)
    }

    fn rules(&self, table: &str, hook: &str, rules: &str) -> Result<Fault, Error> {
        let router = self.router();
        // After the marks are set, before anything else looks.
        let chain = format!("type filter hook {hook} priority 0; policy accept;\n{rules}");
        let script = format!(
            "nft -f - <<'END'\ntable bridge {table} {{\nchain fault {{\n{chain}}}\n}}\nEND\n"
        );
        shell(&router, &script)?;
        Ok(Fault::new(
            &router,
            format!("nft delete table bridge {table}"),
        ))
    }
}

/// A name for the next fault's table: unique among all processes that use the lab.
fn table() -> String {
    format!("fault_{}_{}", std::process::id(), number())
}

pub(super) fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
