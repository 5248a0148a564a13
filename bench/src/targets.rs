//! The proxies under measurement, each with the configuration that serves it best.
//!
//! One file per program renders its configuration; this one knows the list and
//! starts them. A proxy that is not installed is left out, never replaced.

pub(crate) mod envoy;
pub(crate) mod haproxy;
pub(crate) mod nginx;
pub(crate) mod steward;
pub(crate) mod traefik;

use std::{
    cell::Cell,
    fs,
    net::{Ipv4Addr, SocketAddrV4},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    backend::{RAW_PORT, TLS_PORT},
    load::Dialer,
    pki::{DOMAIN, Pki},
    process::{Process, Program},
    tools::Tools,
};

/// Hosts of each kind, each with its own backend address, so that no pair of
/// addresses runs out of ports that wait in `TIME_WAIT`.
pub(crate) const HOSTS: u8 = 16;
/// Envoy and Traefik need a second or two; anything longer is a failure.
const START_LIMIT: Duration = Duration::from_secs(30);

/// On which side of the path a proxy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// SNI passthrough.
    Front,
    /// On the tenant's node: ends or wraps the client's TLS.
    Node,
}

/// A proxy that can be measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Proxy {
    /// As it is called in the results.
    pub(crate) name: &'static str,
    /// Front door or node proxy.
    pub(crate) kind: Kind,
    /// The program to look for.
    pub(crate) program: &'static str,
    /// Asks the program for its version.
    pub(crate) version: &'static [&'static str],
    /// Writes its configuration and says how to start it.
    pub(crate) prepare: fn(&Setting<'_>) -> Result<Vec<Program>>,
}

/// What a configuration is rendered from.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    /// The proxy's own directory.
    pub(crate) directory: PathBuf,
    /// The program to configure.
    pub(crate) program: PathBuf,
    /// Where it listens, on every address of the loopback network.
    pub(crate) port: u16,
    /// A second port: administration, or the program behind it.
    pub(crate) second_port: u16,
    /// The certificates.
    pub(crate) pki: &'a Pki,
    /// Hosts and backends of a front door.
    pub(crate) routes: &'a [Route],
    /// Where other programs are.
    pub(crate) tools: &'a Tools,
}

/// One host and where it leads.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// The name in SNI.
    pub(crate) host: String,
    /// Its only backend.
    pub(crate) backend: SocketAddrV4,
}

/// A proxy that runs.
#[derive(Debug)]
pub(crate) struct Target {
    /// As it is called in the results.
    pub(crate) name: &'static str,
    /// Front door or node proxy.
    pub(crate) kind: Kind,
    /// Where clients connect.
    pub(crate) port: u16,
    /// Its directory, with configuration and logs.
    pub(crate) directory: PathBuf,
    /// The proxy.
    pub(crate) process: Process,
    /// What it needs beside it (the gate behind an end-to-end node proxy).
    pub(crate) beside: Vec<Process>,
}

/// What all starts of a run share.
#[derive(Debug)]
pub(crate) struct Stage {
    work: PathBuf,
    /// The certificates.
    pub(crate) pki: Pki,
    /// Where programs are.
    pub(crate) tools: Tools,
    next_port: Cell<u16>,
}

/// The reference of the front doors and its twin come first, then its other
/// configurations: `splice` forces splice(2), `1m` gives it 1 MiB pipes as well.
pub(crate) const FRONT_DOORS: [Proxy; 9] = [
    haproxy::front("haproxy", haproxy::auto),
    haproxy::front("haproxy-again", haproxy::auto),
    haproxy::front("haproxy-splice", haproxy::splice),
    haproxy::front("haproxy-splice-again", haproxy::splice),
    haproxy::front("haproxy-splice-1m", haproxy::splice_1m),
    nginx::FRONT,
    envoy::FRONT,
    traefik::FRONT,
    steward::GATEWAY,
];

/// Likewise for the node proxies.
pub(crate) const NODE_PROXIES: [Proxy; 5] = [
    haproxy::node("haproxy-tls"),
    haproxy::node("haproxy-tls-again"),
    envoy::NODE,
    steward::TERMINATE,
    steward::END_TO_END,
];

impl Route {
    /// The hosts every front door serves: `tN` ends in TLS, `rN` in raw mode.
    pub(crate) fn standard() -> Vec<Self> {
        let host = |kind: char, port: u16| {
            (0..HOSTS).map(move |number| Self {
                host: format!("{kind}{number}.{DOMAIN}"),
                backend: SocketAddrV4::new(Ipv4Addr::new(127, 0, 1, number + 1), port),
            })
        };
        host('t', TLS_PORT).chain(host('r', RAW_PORT)).collect()
    }

    /// The standard hosts among others, as many as a large installation has.
    pub(crate) fn many(count: usize) -> Vec<Self> {
        let mut routes = Self::standard();
        let backend = SocketAddrV4::new(Ipv4Addr::new(127, 0, 1, 1), RAW_PORT);
        let others = count.saturating_sub(routes.len());
        routes.extend((0..others).map(|number| Self {
            host: format!("x{number}.{DOMAIN}"),
            backend,
        }));
        routes
    }
}

impl Stage {
    /// In this directory, with these certificates and programs.
    pub(crate) fn new(work: &Path, pki: Pki, tools: Tools) -> Self {
        Self {
            work: work.to_owned(),
            pki,
            tools,
            next_port: Cell::new(7001),
        }
    }

    /// Starts the backend that all proxies share.
    pub(crate) fn backend(&self) -> Result<Process> {
        let own = std::env::current_exe().context("finding this program")?;
        let arguments = ["backend".as_ref(), "--pki".as_ref(), self.work.as_os_str()];
        Program::new("backend", &own, arguments).start(&self.work)
    }

    /// Starts a proxy and waits until it carries bytes.
    pub(crate) fn start(&self, proxy: &Proxy, routes: &[Route], dialer: &Dialer) -> Result<Target> {
        let mut target = self.spawn(proxy, routes)?;
        let begun = Instant::now();
        loop {
            target.process.check()?;
            for process in &mut target.beside {
                process.check()?;
            }
            match dialer.probe(&target) {
                Ok(()) => return Ok(target),
                Err(error) if begun.elapsed() > START_LIMIT => bail!(
                    "{} carries nothing after {START_LIMIT:?} ({error}); it said: {}",
                    proxy.name,
                    target.process.last_words()
                ),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Starts a proxy and does not wait.
    pub(crate) fn spawn(&self, proxy: &Proxy, routes: &[Route]) -> Result<Target> {
        let program = self.tools.find(proxy.program).context("not installed")?;
        let port = self.next_port.get();
        self.next_port.set(port + 2);
        let directory = self.work.join(format!("{}-{port}", proxy.name));
        fs::create_dir_all(&directory)?;
        let setting = Setting {
            directory: directory.clone(),
            program,
            port,
            second_port: port + 1,
            pki: &self.pki,
            routes,
            tools: &self.tools,
        };
        let programs = (proxy.prepare)(&setting)?;
        let mut started = programs
            .iter()
            .map(|program| program.start(&directory))
            .collect::<Result<Vec<_>>>()?
            .into_iter();
        let process = started.next().context("a proxy without a program")?;
        let beside = started.collect();
        Ok(Target {
            name: proxy.name,
            kind: proxy.kind,
            port,
            directory,
            process,
            beside,
        })
    }
}

impl Setting<'_> {
    /// Writes a file of the proxy's configuration.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }
}
