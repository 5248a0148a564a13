//! Cables: bridges in the router, one per network, and a veth pair to every host.
//!
//! Both ends of every cable are made inside namespaces, so that the machine
//! itself never has a link of the lab, and a cable is gone with its host.

use std::{fmt::Write as _, process::Stdio};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    Error, HostId,
    host::{Host, last_words},
    host_id::{LOAD_BALANCERS, Network},
};

/// Plugs hosts together; `hosts` are all hosts of the lab.
pub(crate) async fn plug(hosts: &[Host]) -> Result<(), Error> {
    let Some(router) = hosts.iter().find(|host| host.id() == HostId::Router) else {
        return Ok(());
    };
    ip(router, &router_commands(hosts)).await?;
    router.script(&marks(hosts)).await?;
    let ids: Vec<HostId> = hosts.iter().map(Host::id).collect();
    for host in hosts.iter().filter(|host| host.id() != HostId::Router) {
        ip(host, &host_commands(host.id(), &ids)).await?;
    }
    Ok(())
}

/// The mark of every packet that came into the router from this host. What the
/// router itself sends has none.
pub(crate) fn mark(host: HostId) -> u32 {
    match host {
        HostId::Router => 0,
        HostId::Mgmt => 1,
        HostId::Client => 2,
        HostId::Worker(number) => 100 + u32::from(number),
    }
}

/// Everything that the router sends to this host.
pub(crate) fn addresses(host: HostId) -> Vec<String> {
    let mut addresses = vec![format!("{}/32", host.address())];
    if host == HostId::Mgmt {
        let (range, length) = LOAD_BALANCERS;
        addresses.push(format!("{range}/{length}"));
    }
    addresses
}

/// Marks packets by the port they come in by, before any fault looks at them.
fn marks(hosts: &[Host]) -> String {
    let mut rules = String::new();
    for host in hosts
        .iter()
        .map(Host::id)
        .filter(|id| *id != HostId::Router)
    {
        let _ = writeln!(rules, "iifname \"{host}\" meta mark set {}", mark(host));
    }
    let chain = format!("type filter hook prerouting priority -300; policy accept;\n{rules}");
    format!("nft -f - <<'END'\ntable bridge marks {{\nchain marks {{\n{chain}}}\n}}\nEND\n")
}

fn router_commands(hosts: &[Host]) -> String {
    let mut commands = String::new();
    for network in Network::ALL {
        let (bridge, gateway) = (network.bridge(), network.gateway());
        let _ = write!(
            commands,
            "link add {bridge} type bridge\naddr add {gateway}/24 dev {bridge}\nlink set {bridge} up\n"
        );
    }
    for host in hosts.iter().filter(|host| host.id() != HostId::Router) {
        let (id, bridge) = (host.id(), host.id().network().bridge());
        let pid = host.pid().unwrap_or_default();
        let _ = write!(
            commands,
            "link add {id} type veth peer name eth0 netns {pid}\nlink set {id} master {bridge} up\n"
        );
    }
    let (range, length) = LOAD_BALANCERS;
    let _ = writeln!(
        commands,
        "route add {range}/{length} via {}",
        HostId::Mgmt.address()
    );
    commands
}

fn host_commands(id: HostId, all: &[HostId]) -> String {
    let mut commands = format!(
        "addr add {}/24 dev eth0\nlink set eth0 up\nroute add default via {}\n",
        id.address(),
        id.network().gateway(),
    );
    // Pods of workers reach each other directly, as with a CNI that only routes.
    if let HostId::Worker(_) = id {
        for other in all
            .iter()
            .filter(|other| matches!(other, HostId::Worker(_)) && **other != id)
        {
            let pods = other.pods().unwrap_or_default();
            let _ = writeln!(
                commands,
                "route add 10.244.{pods}.0/24 via {}",
                other.address()
            );
        }
    }
    // What the cloud has not handed out must not go back to the router.
    if id == HostId::Mgmt {
        let (range, length) = LOAD_BALANCERS;
        let _ = writeln!(commands, "route add blackhole {range}/{length}");
    }
    commands
}

/// Runs `ip` in the host's network, but in the machine's process namespace: the
/// numbers of other hosts' processes mean something only there.
async fn ip(host: &Host, commands: &str) -> Result<(), Error> {
    let net = format!("--net=/proc/{}/ns/net", host.pid().unwrap_or_default());
    let mut child = Command::new("nsenter")
        .args([&net, "ip", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(Error::files("start", "nsenter"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(commands.as_bytes())
            .await
            .map_err(Error::files("write to", "ip"))?;
    }
    let output = child
        .wait_with_output()
        .await
        .map_err(Error::files("wait for", "ip"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Command {
        what: format!("plugging in {}", host.id()),
        status: output.status.to_string(),
        output: last_words(&output),
    })
}
