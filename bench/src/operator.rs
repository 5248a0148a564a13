//! `steward-bench operator`: our operator and Kamaji on the same API server, one
//! after the other, with the same tenants. Objects only: nothing runs the pods.
//!
//! Owns the order of the rounds. A round is one operator on a fresh fixture with
//! a number of tenants.

mod audit;
mod contender;
mod datastore;
mod kamaji;
mod keys;
mod ready;
mod report;
mod round;
mod stage;

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use steward_lab::{
    parts::{self, Part, Release},
    progress::Progress,
};

use self::{
    contender::{Contender, Keys},
    round::{Outcome, Round},
};
use crate::{cli, machine::Machine, netns, tools};

/// What to measure.
#[derive(Clone, Debug, Args)]
pub(crate) struct OperatorArguments {
    /// A few tenants instead of hundreds: shows that it works.
    #[arg(long)]
    quick: bool,
    /// Tenants of a round.
    #[arg(long, default_value_t = 100)]
    tenants: usize,
    /// Tenants of the large round, ours only; 0 leaves it out.
    #[arg(long, default_value_t = 1000)]
    many: usize,
    /// Tenants of the round with real API servers, ours only; 0 leaves it out.
    #[arg(long, default_value_t = 24)]
    ready: usize,
    /// Leave Kamaji out.
    #[arg(long)]
    alone: bool,
    /// Where our operator is; beside this program without it.
    #[arg(long, value_name = "DIR")]
    bin_dir: Vec<PathBuf>,
    /// Where OPERATOR.md goes; `bench` for a full run in the repository, else nowhere.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where the files of this run live, with `bin` in it.
    #[arg(long, hide = true)]
    work: Option<PathBuf>,
    /// Kamaji's CRDs.
    #[arg(long, hide = true)]
    kamaji_crds: Option<PathBuf>,
}

/// How long things take that are not measured.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Before a round counts as at rest.
    settle: Duration,
    /// How long it is watched then.
    rest: Duration,
}

/// Outside the namespace: collects the programs, goes in.
pub(crate) fn start(arguments: &OperatorArguments) -> Result<ExitCode> {
    let work = netns::work()?;
    let bin = work.path().join("bin");
    fs::create_dir(&bin)?;
    for (part, programs) in [
        (Part::Kubernetes(Release::V1_36), &["kube-apiserver"][..]),
        (Part::Etcd, &["etcd", "etcdctl"][..]),
    ] {
        let found = parts::ensure(part, &parts::Options::from_env()?, &Progress::stderr())?;
        for program in programs {
            symlink(found.path(program)?, bin.join(program))?;
        }
    }
    let mut words: Vec<OsString> = vec!["operator-inside".into()];
    words.extend([
        format!("--tenants={}", arguments.tenants).into(),
        format!("--many={}", arguments.many).into(),
        format!("--ready={}", arguments.ready).into(),
    ]);
    words.extend(arguments.quick.then(|| "--quick".into()));
    words.extend(
        arguments
            .bin_dir
            .iter()
            .map(|directory| flag("--bin-dir", directory)),
    );
    let full = !arguments.quick && !arguments.alone;
    let out = arguments.out.clone().or_else(|| cli::kept(full));
    words.extend(out.iter().map(|directory| flag("--out", directory)));
    match (!arguments.alone).then(kamaji::build) {
        Some(Ok(built)) => {
            symlink(&built.program, bin.join("kamaji"))?;
            words.push(flag("--kamaji-crds", &built.crds));
        }
        Some(Err(error)) => {
            eprintln!("Kamaji will be left out: {error:#}");
            words.push("--alone".into());
        }
        None => words.push("--alone".into()),
    }
    netns::enter(&words, work.path())
}

fn flag(name: &str, value: &Path) -> OsString {
    let mut word = OsString::from(format!("{name}="));
    word.push(value);
    word
}

/// Inside: all rounds, then the table.
pub(crate) fn run(arguments: &OperatorArguments) -> Result<()> {
    let Some(work) = arguments.work.as_deref() else {
        bail!("`operator-inside` is for steward-bench itself: run `steward-bench operator`");
    };
    let machine = Machine::read();
    netns::prepare()?;
    let runtime = tokio::runtime::Runtime::new().context("starting tokio")?;
    let pace = if arguments.quick {
        Pace {
            settle: Duration::from_secs(3),
            rest: Duration::from_secs(5),
        }
    } else {
        Pace {
            settle: Duration::from_secs(10),
            rest: Duration::from_secs(20),
        }
    };
    let mut outcomes = Vec::new();
    for round in rounds(arguments, work)? {
        eprintln!(
            "{}: {} tenants, {} workers",
            round.name, round.tenants, round.workers
        );
        match runtime.block_on(round.run(work, pace)) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error) => {
                eprintln!("  not measured: {error:#}");
                outcomes.push(Outcome::failed(&round, &format!("{error:#}")));
            }
        }
        println!("{}", report::terminal(&outcomes));
    }
    if let Some(out) = &arguments.out {
        let path = out.join("OPERATOR.md");
        fs::write(&path, report::markdown(&machine, &outcomes))
            .with_context(|| format!("writing {}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

fn rounds(arguments: &OperatorArguments, work: &Path) -> Result<Vec<Round>> {
    let (tenants, few) = if arguments.quick {
        (5, 2)
    } else {
        (arguments.tenants, 20)
    };
    let many = if arguments.quick { 0 } else { arguments.many };
    let program = tools::Tools::new(&arguments.bin_dir)
        .find("steward-operator")
        .context("steward-operator is not built: cargo build --release -p steward-operator")?;
    let steward = Contender::Steward {
        program,
        keys: Keys::Ecdsa,
    };
    let Contender::Steward { program, .. } = &steward else {
        bail!("not ours")
    };
    let rsa = Contender::Steward {
        program: program.clone(),
        keys: Keys::Rsa,
    };
    let round = |name: &'static str, contender: &Contender, tenants, workers| Round {
        name,
        contender: contender.clone(),
        tenants,
        workers,
        ready: false,
    };
    let mut rounds = vec![
        round("steward", &steward, tenants, 10),
        round("steward, 1 worker", &steward, tenants, 1),
        round("steward, RSA", &rsa, few, 10),
    ];
    if let (false, Some(crds)) = (arguments.alone, &arguments.kamaji_crds) {
        let kamaji = Contender::Kamaji {
            program: work.join("bin/kamaji"),
            crds: crds.clone(),
        };
        rounds.push(round("kamaji", &kamaji, tenants, 10));
        rounds.push(round("kamaji, 1 worker", &kamaji, tenants, 1));
    }
    let ready = if arguments.quick { 1 } else { arguments.ready };
    if ready > 0 {
        rounds.push(Round {
            ready: true,
            ..round("steward, Ready", &steward, ready, 10)
        });
    }
    if many > 0 {
        rounds.push(round("steward, many", &steward, many, 10));
    }
    Ok(rounds)
}
