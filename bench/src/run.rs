//! A run from beginning to end, inside the namespace.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{
    cli::ProxyArguments,
    load::Dialer,
    machine::Machine,
    measures::{self, Effort, Scene},
    netns,
    pki::Pki,
    report,
    results::Results,
    targets::{FRONT_DOORS, NODE_PROXIES, Proxy, Route, Stage},
    tools::{self, Tools},
};

/// Goes into the namespace.
pub(crate) fn start(arguments: &ProxyArguments) -> Result<ExitCode> {
    let work = netns::work()?;
    netns::enter(&arguments.again(), work.path())
}

/// Starts everything, measures, reports.
pub(crate) fn run(arguments: &ProxyArguments) -> Result<()> {
    let Some(work) = arguments.work.as_deref() else {
        bail!("`inside` is for steward-bench itself: run it without a subcommand");
    };
    let machine = Machine::read();
    netns::prepare()?;
    let pki = Pki::issue(work).context("issuing certificates")?;
    let mut scene = set_up(
        arguments,
        Stage::new(work, pki, Tools::new(&arguments.bin_dir)),
        machine,
    )?;
    measures::cpu::run(&mut scene)?;
    measures::latency::run(&mut scene)?;
    measures::path::run(&mut scene)?;
    measures::syscalls::run(&mut scene);
    measures::routes::run(&mut scene);
    measures::idle::run(&mut scene);
    println!("{}", report::terminal::render(&scene.results));
    if let Some(out) = &arguments.out {
        write(out, &scene.results)?;
    }
    Ok(())
}

fn set_up(arguments: &ProxyArguments, stage: Stage, machine: Machine) -> Result<Scene> {
    let effort = match (arguments.smoke, arguments.quick) {
        (true, _) => Effort::smoke(),
        (false, true) => Effort::quick(),
        (false, false) => Effort::full(),
    };
    let dialer = Dialer::new(&stage.pki)?;
    let backend = stage.backend()?;
    let results = Results::new(machine);
    let mut scene = Scene {
        arguments: arguments.clone(),
        effort,
        stage,
        dialer,
        backend,
        targets: vec![],
        results,
    };
    let routes = Route::standard();
    for proxy in FRONT_DOORS.into_iter().chain(NODE_PROXIES) {
        if arguments.wants_target(proxy.name) {
            start_one(&mut scene, &proxy, &routes);
        }
    }
    if scene.targets.is_empty() {
        bail!("no proxy could be started: install haproxy, or name a directory with --bin-dir");
    }
    Ok(scene)
}

fn start_one(scene: &mut Scene, proxy: &Proxy, routes: &[Route]) {
    match scene.stage.start(proxy, routes, &scene.dialer) {
        Ok(target) => {
            scene.targets.push(target);
            let known = scene
                .results
                .versions
                .iter()
                .any(|(name, _)| name == proxy.program);
            if let Some(path) = scene.stage.tools.find(proxy.program).filter(|_| !known) {
                let version = tools::version(&path, proxy.version);
                scene
                    .results
                    .versions
                    .push((proxy.program.to_owned(), version));
            }
        }
        Err(error) => {
            eprintln!("{}: {error:#}", proxy.name);
            scene
                .results
                .missing
                .push((proxy.name.to_owned(), format!("{error:#}")));
        }
    }
}

fn write(out: &PathBuf, results: &Results) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    for (name, text) in [
        ("RESULTS.md", report::markdown::render(results)),
        ("results.svg", report::svg::render(results)),
    ] {
        let path = out.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
