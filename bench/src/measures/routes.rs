//! One new route among very many: how long until the next connection sees it,
//! and what it costs the proxy.
//!
//! Each proxy is told in the quickest way it has. HAProxy adds an entry to a map
//! in memory, which works only for a backend it already knows; nginx and our
//! gateway read their file again. The gateway's table is also changed as its
//! Kubernetes side does it, in the same process, with many routes and with few.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use steward_gateway::{Host, RouteSpec, Router, Table};

use super::Scene;
use crate::{
    cli::Test,
    pki::DOMAIN,
    process::own_cpu,
    results::Metric,
    stats::Spread,
    targets::{FRONT_DOORS, Route, Target, haproxy},
};

/// A change that takes longer than this is not seen at all.
const LIMIT: Duration = Duration::from_secs(20);

/// Changes of a table in this process: each takes microseconds.
const IN_PROCESS: usize = 1000;

/// How a running proxy learns of a host.
type Tell = fn(&Target, &str) -> Result<()>;

/// Who is told, and how. Envoy and Traefik rebuild everything: at this size
/// the one takes seconds for a change and the other minutes to start.
const TOLD: [(&str, &str, Tell); 3] = [
    ("haproxy", "haproxy, known backend", tell_haproxy),
    ("nginx", "nginx, reload", tell_nginx),
    ("steward-gateway", "steward-gateway, file", tell_gateway),
];

/// Measures those that run.
pub(crate) fn run(scene: &mut Scene) {
    let count = scene.effort.routes;
    if !scene.begins(Test::Routes, &format!("one new route among {count}")) {
        return;
    }
    let routes = Route::many(count);
    in_process(scene, crate::goals::LIBRARY, &routes);
    in_process(
        scene,
        "steward-gateway, library, 32 routes",
        &Route::standard(),
    );
    for (name, title, tell) in TOLD {
        let running = scene.targets.iter().any(|target| target.name == name);
        let Some(proxy) = FRONT_DOORS
            .into_iter()
            .find(|proxy| running && proxy.name == name)
        else {
            continue;
        };
        let outcome = scene
            .stage
            .start(&proxy, &routes, &scene.dialer)
            .and_then(|target| changes(scene, &target, tell));
        if let Some(seen) = scene.or_remark(Test::Routes, title, outcome) {
            let results = &mut scene.results;
            results.add(
                Test::Routes,
                title,
                Metric::Visible,
                millis(seen.iter().map(|change| change.0)),
            );
            results.add(
                Test::Routes,
                title,
                Metric::ChangeCpu,
                millis(seen.iter().map(|change| change.1)),
            );
        }
    }
}

/// Changes the gateway's own table, and looks the new route up.
fn in_process(scene: &mut Scene, title: &str, routes: &[Route]) {
    if !scene.arguments.wants_target("steward-gateway") {
        return;
    }
    let seen = changes_in_process(routes);
    if let Some(seen) = scene.or_remark(Test::Routes, title, seen) {
        scene.results.add(
            Test::Routes,
            title,
            Metric::Visible,
            millis(seen.iter().map(|change| change.0)),
        );
        scene.results.add(
            Test::Routes,
            title,
            Metric::ChangeCpu,
            millis(seen.iter().map(|change| change.1)),
        );
    }
}

fn changes_in_process(routes: &[Route]) -> Result<Vec<(Duration, Duration)>> {
    let spec = |route: &Route| RouteSpec {
        backends: vec![route.backend.into()],
        ..RouteSpec::default()
    };
    let specs = routes
        .iter()
        .map(|route| Ok((route.host.parse()?, spec(route))))
        .collect::<Result<Vec<(Host, RouteSpec)>>>()?;
    let table = Table::new().replaced(specs.iter().map(|(host, spec)| (host.clone(), spec)));
    let live = Router::new(table);
    let added = spec(&backend()?);
    let mut seen = Vec::new();
    for number in 0..IN_PROCESS {
        let name = format!("new{number}.{DOMAIN}");
        let host: Host = name.parse()?;
        let (begun, cpu) = (Instant::now(), own_cpu());
        live.update(|table| table.with_route(host, &added));
        if live.lookup(&name).is_none() {
            bail!("{name} is not in the table after it was added");
        }
        seen.push((begun.elapsed(), own_cpu().saturating_sub(cpu)));
    }
    Ok(seen)
}

fn millis(times: impl Iterator<Item = Duration>) -> Option<Spread> {
    Spread::of(times.map(|time| time.as_secs_f64() * 1e3))
}

/// Time until visible and CPU of each change.
fn changes(scene: &Scene, target: &Target, tell: Tell) -> Result<Vec<(Duration, Duration)>> {
    let mut seen = Vec::new();
    for number in 0..scene.effort.changes {
        let host = format!("new{number}.{DOMAIN}");
        if scene.dialer.open_host(target, &host).is_ok() {
            bail!("{host} is served before it was added");
        }
        let before = target.process.cpu_by_pid();
        let begun = Instant::now();
        tell(target, &host)?;
        while scene.dialer.open_host(target, &host).is_err() {
            if begun.elapsed() > LIMIT {
                bail!("{host} is not served {LIMIT:?} after it was added");
            }
            thread::sleep(Duration::from_micros(200));
        }
        let visible = begun.elapsed();
        // Let what the change started come to its end before it is added up.
        thread::sleep(Duration::from_millis(200));
        seen.push((visible, spent(&before, &target.process.cpu_by_pid())));
    }
    Ok(seen)
}

/// CPU time since then of the processes that are still there.
fn spent(before: &BTreeMap<u32, Duration>, after: &BTreeMap<u32, Duration>) -> Duration {
    after
        .iter()
        .map(|(pid, time)| time.saturating_sub(before.get(pid).copied().unwrap_or_default()))
        .sum()
}

fn backend() -> Result<Route> {
    Route::many(100).pop().context("a table without routes")
}

fn tell_haproxy(target: &Target, host: &str) -> Result<()> {
    let map = haproxy::map(&target.directory);
    let backend = haproxy::name(backend()?.backend);
    let answer = haproxy::command(
        &target.directory,
        &format!("add map {} {host} b{backend}", map.display()),
    )?;
    if answer.trim().is_empty() {
        Ok(())
    } else {
        bail!("HAProxy said: {}", answer.trim())
    }
}

fn tell_nginx(target: &Target, host: &str) -> Result<()> {
    append(
        target,
        "hosts.map",
        &format!("    {host} {};\n", backend()?.backend),
    )?;
    let pid = i32::try_from(target.process.pid())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let pid = pid.context("nginx has no process id")?;
    Ok(rustix::process::kill_process(
        pid,
        rustix::process::Signal::HUP,
    )?)
}

fn tell_gateway(target: &Target, host: &str) -> Result<()> {
    let path = target.directory.join("routes.yaml");
    let next = target.directory.join("routes.yaml.next");
    let mut text = fs::read_to_string(&path)?;
    text.push_str(&crate::targets::steward::route(host, backend()?.backend));
    fs::write(&next, text)?;
    // The way a careful tool replaces a file: whole, at once.
    Ok(fs::rename(next, path)?)
}

fn append(target: &Target, file: &str, line: &str) -> Result<()> {
    let path = target.directory.join(file);
    let mut file = fs::OpenOptions::new().append(true).open(&path)?;
    Ok(file.write_all(line.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_gone_takes_its_time_with_it() {
        let seconds = Duration::from_secs;
        let before = BTreeMap::from([(1, seconds(5)), (2, seconds(7))]);
        let after = BTreeMap::from([(1, seconds(6)), (3, seconds(2))]);
        assert_eq!(spent(&before, &after), seconds(3));
    }
}
