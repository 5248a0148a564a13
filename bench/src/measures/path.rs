//! The whole path of a request, part by part: what the front door, the gate and the node proxy add
//! to a pod's and to kubectl's, against a direct connection to the same server.
//!
//! Processes on loopback: the network's own time is not in it, the programs' is.

use std::{
    net::SocketAddrV4,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rand::seq::SliceRandom as _;

use super::{Scene, micros};
use crate::{
    backend::TLS_PORT,
    cli::Test,
    load::{Connection, Mode},
    pki::{DOMAIN, NODE_NAME},
    process::{Process, Program},
    protocol::Request,
    results::Metric,
    stats::Spread,
    targets::{Kind, Proxy, Route, Setting, Target, steward},
};

/// Round trips on each connection.
const TRIPS: usize = 10;
/// About what a small API request or answer is.
const MESSAGE: usize = 1024;

const GATE: Proxy = Proxy {
    name: "path-gate",
    kind: Kind::Node,
    program: "steward-gate",
    version: &["--version"],
    prepare: gate,
};

const TERMINATE: Proxy = Proxy {
    name: "path-terminate",
    prepare: terminate,
    ..steward::TERMINATE
};

const END_TO_END: Proxy = Proxy {
    name: "path-end-to-end",
    prepare: end_to_end,
    ..steward::TERMINATE
};

/// Everything between a client and the server.
struct Parts {
    gate: Target,
    front_door: Target,
    terminate: Target,
    end_to_end: Target,
}

/// One way to the server.
#[derive(Clone, Copy)]
struct Way<'a> {
    name: &'static str,
    /// Where the client connects; nothing is the server itself.
    entry: Option<&'a Target>,
    /// The node proxy on it.
    node: Option<&'a Target>,
}

/// What one way cost.
#[derive(Default)]
struct Cost {
    opened: Vec<Duration>,
    trips: Vec<Duration>,
    /// CPU of front door, gate and node proxy: per connection, per round trip.
    cpu: [[Vec<f64>; 2]; 3],
}

/// Takes turns with every way.
pub(crate) fn run(scene: &mut Scene) -> Result<()> {
    let asked = scene.arguments.wants_target(steward::GATEWAY.name);
    if !asked || !scene.begins(Test::Path, "the whole path, part by part") {
        return Ok(());
    }
    let started = Parts::start(scene);
    let Some(parts) = scene.or_remark(Test::Path, "the whole path", started) else {
        return Ok(());
    };
    let ways = parts.ways();
    let mut costs: Vec<Cost> = ways.iter().map(|_| Cost::default()).collect();
    let mut order: Vec<usize> = (0..ways.len()).collect();
    for round in 0..=scene.effort.rhythm.rounds {
        order.shuffle(&mut rand::rng());
        for &number in &order {
            let mut batch = Cost::default();
            parts.batch(scene, &ways[number], &mut batch)?;
            // The first round warms up.
            if round > 0 {
                costs[number].add(batch);
            }
        }
    }
    report(scene, &ways, &costs);
    Ok(())
}

impl Parts {
    fn start(scene: &Scene) -> Result<Self> {
        let start =
            |proxy: &Proxy, routes: &[Route]| scene.stage.start(proxy, routes, &scene.dialer);
        let gate = start(&GATE, &[])?;
        let mut routes = Route::standard();
        // Names that end in TLS lead to the gate; the others are there for the probe only.
        for route in routes
            .iter_mut()
            .filter(|route| route.backend.port() == TLS_PORT)
        {
            route.backend = SocketAddrV4::new(*route.backend.ip(), gate.port);
        }
        let front_door = start(&steward::GATEWAY, &routes)?;
        let door = Route {
            host: NODE_NAME.to_owned(),
            backend: SocketAddrV4::new([127, 0, 1, 1].into(), front_door.port),
        };
        Ok(Self {
            terminate: start(&TERMINATE, std::slice::from_ref(&door))?,
            end_to_end: start(&END_TO_END, &[door])?,
            gate,
            front_door,
        })
    }

    fn ways(&self) -> [Way<'_>; 4] {
        let way = |name, entry, node| Way { name, entry, node };
        let (terminate, end_to_end) = (Some(&self.terminate), Some(&self.end_to_end));
        [
            way("direct", None, None),
            way("kubectl", Some(&self.front_door), None),
            way("pod, EndToEnd", end_to_end, end_to_end),
            way("pod, Terminate", terminate, terminate),
        ]
    }

    fn batch(&self, scene: &Scene, way: &Way<'_>, cost: &mut Cost) -> Result<()> {
        let count = scene.effort.latencies;
        let programs = [Some(&self.front_door), Some(&self.gate), way.node];
        let programs = programs.map(|target| target.map(|target| &target.process));
        let spent = || programs.map(|program| program.map(Process::cpu).unwrap_or_default());
        let before = spent();
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let begun = Instant::now();
            connections.push(open(scene, way)?);
            cost.opened.push(begun.elapsed());
        }
        let between = spent();
        let frame = Request::echo_frame(MESSAGE);
        for connection in &mut connections {
            for _ in 0..TRIPS {
                let begun = Instant::now();
                connection.echo(&frame)?;
                cost.trips.push(begun.elapsed());
            }
        }
        let after = spent();
        #[expect(clippy::cast_precision_loss, reason = "a few hundred operations")]
        let (opened, trips) = (count as f64, (count * TRIPS) as f64);
        for (part, cpu) in cost.cpu.iter_mut().enumerate() {
            let micros =
                |from: Duration, to: Duration| (to.saturating_sub(from)).as_secs_f64() * 1e6;
            cpu[0].push(micros(before[part], between[part]) / opened);
            cpu[1].push(micros(between[part], after[part]) / trips);
        }
        Ok(())
    }
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.opened.extend(other.opened);
        self.trips.extend(other.trips);
        for (ours, theirs) in self
            .cpu
            .iter_mut()
            .flatten()
            .zip(other.cpu.into_iter().flatten())
        {
            ours.extend(theirs);
        }
    }
}

fn open(scene: &Scene, way: &Way<'_>) -> Result<Connection> {
    let opened = match way.entry {
        Some(target) => scene.dialer.open(target, Mode::Tls),
        None => scene.dialer.open_direct(),
    };
    opened.with_context(|| format!("{}: opening a connection", way.name))
}

fn report(scene: &mut Scene, ways: &[Way<'_>], costs: &[Cost]) {
    let parts = [
        (Metric::FrontDoorCpu, Metric::FrontDoorTripCpu),
        (Metric::GateCpu, Metric::GateTripCpu),
        (Metric::NodeProxyCpu, Metric::NodeProxyTripCpu),
    ];
    let p50 = |times: &[Duration]| micros(times.iter().copied());
    let direct = costs
        .first()
        .map(|cost| (p50(&cost.opened), p50(&cost.trips)));
    for (way, cost) in ways.iter().zip(costs) {
        let mut add = |metric, value| scene.results.add(Test::Path, way.name, metric, value);
        let (opened, trips) = (p50(&cost.opened), p50(&cost.trips));
        let added = |mine: Option<Spread>, theirs: Option<Spread>| {
            Spread::of([mine?.middle - theirs?.middle])
        };
        let (first, second) = direct.unwrap_or_default();
        add(Metric::P50, opened);
        add(Metric::AddedP50, added(opened, first));
        add(Metric::TripP50, trips);
        add(Metric::AddedTripP50, added(trips, second));
        // What a part spends while others are measured is not this way's.
        let on_it = [way.entry.is_some(), way.entry.is_some(), way.node.is_some()];
        for (((connection, trip), cpu), _) in parts
            .into_iter()
            .zip(&cost.cpu)
            .zip(on_it)
            .filter(|(_, on)| *on)
        {
            add(connection, Spread::of(cpu[0].iter().copied()));
            add(trip, Spread::of(cpu[1].iter().copied()));
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "has the shape of all the others")]
fn gate(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let arguments = [
        format!("--listen=0.0.0.0:{}", setting.port),
        format!("--apiserver=127.0.1.1:{TLS_PORT}"),
        format!("--cert={}", setting.pki.cert.display()),
        format!("--key={}", setting.pki.key.display()),
        format!("--admin=127.0.0.1:{}", setting.second_port),
        "--workers=2".to_owned(),
    ];
    Ok(vec![Program::new(
        "steward-gate",
        &setting.program,
        arguments,
    )])
}

fn terminate(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let mut program = proxy(setting, "terminate")?;
    let pair = [
        format!("--cert={}", setting.pki.cert.display()),
        format!("--key={}", setting.pki.key.display()),
    ];
    program.arguments.extend(pair.map(Into::into));
    Ok(vec![program])
}

fn end_to_end(setting: &Setting<'_>) -> Result<Vec<Program>> {
    Ok(vec![proxy(setting, "end-to-end")?])
}

/// A node proxy in front of the front door, whose address comes as the only route.
fn proxy(setting: &Setting<'_>, mode: &str) -> Result<Program> {
    let door = setting.routes.first().context("no front door")?;
    debug_assert!(door.host.ends_with(DOMAIN));
    let arguments = [
        format!("--mode={mode}"),
        format!("--listen=0.0.0.0:{}", setting.port),
        format!("--upstream={}", door.backend),
        format!("--server-name={}", door.host),
        format!("--ca={}", setting.pki.ca.display()),
        format!("--admin=127.0.0.1:{}", setting.second_port),
        "--workers=2".to_owned(),
    ];
    Ok(Program::new(
        "steward-tcp-proxy",
        &setting.program,
        arguments,
    ))
}
