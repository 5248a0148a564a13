//! `steward connectivity`: real traffic on every way there is, with its time.
//!
//! Owns the order of the tries and the table. Whatever happens, the namespace it
//! made inside the tenant is removed again.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use serde::Serialize;
use steward_api::tenant_control_plane::TcpProxyMode;

use crate::args::{Connectivity, Output};
use crate::cluster::Management;
use crate::output::{Health, cut, dim, machine, width, wrap};
use crate::problem::Problem;

mod outside;
mod pod;

/// Columns for the way, and those from which on everything has room in one line.
const WAY: usize = 48;
const WIDE: usize = 110;

/// One try: what was tried, how it went, how long it took.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Try {
    /// From where.
    pub from: &'static str,
    /// On which way.
    pub way: String,
    /// How it went.
    pub health: Health,
    /// How long it took, in milliseconds; none where it was not tried.
    pub milliseconds: Option<u64>,
    /// What was seen.
    pub detail: String,
}

impl Try {
    /// Runs a try and takes its time.
    async fn of(
        from: &'static str,
        way: impl Into<String>,
        work: impl Future<Output = Result<String, String>>,
    ) -> Self {
        let began = Instant::now();
        let outcome = work.await;
        let (health, detail) = match outcome {
            Ok(seen) => (Health::Good, seen),
            Err(why) => (Health::Bad, why),
        };
        let milliseconds = u64::try_from(began.elapsed().as_millis()).ok();
        Self {
            from,
            way: way.into(),
            health,
            milliseconds,
            detail,
        }
    }

    /// A way that is not there to be tried.
    fn not_tried(from: &'static str, way: &str, why: &str) -> Self {
        Self {
            from,
            way: way.to_owned(),
            health: Health::Warn,
            milliseconds: None,
            detail: why.to_owned(),
        }
    }
}

/// Tries everything; Ctrl-C ends it early, and cleans up all the same.
pub async fn run(management: &Management, args: &Connectivity) -> Result<ExitCode, Problem> {
    let tenant = management.tenant(&args.name).await?;
    let client = management.tenant_client(&args.name).await?;
    let mut show = Show::new(args.output);
    for done in outside::tries(management, &args.name, &client).await? {
        show.add(done);
    }
    let reached = show.tries.iter().all(|t| t.health == Health::Good);
    if reached {
        let nodes: Api<Node> = Api::all(client.clone());
        let nodes = nodes.list(&ListParams::default().limit(1)).await;
        let nodes = nodes.map_err(|e| Problem::from_api("list the tenant's nodes", e))?;
        if nodes.items.is_empty() {
            let why = format!(
                "the tenant has no node; `steward join {}` prints how to add one",
                args.name
            );
            show.add(Try::not_tried("pod", "everything", &why));
        } else {
            let proxy = tenant.spec.addons.tcp_proxy.as_ref();
            let opened = proxy.is_some_and(|p| p.mode == TcpProxyMode::Terminate);
            let stage = pod::Stage::new(management, client, args, opened);
            let interrupted = stage.run(&mut show).await?;
            if interrupted {
                return Err(Problem::Interrupted);
            }
        }
    }
    show.finish()
}

/// Prints lines as they come, or all at the end for programs.
pub(crate) struct Show {
    output: Output,
    tries: Vec<Try>,
}

impl Show {
    fn new(output: Output) -> Self {
        Self {
            output,
            tries: Vec::new(),
        }
    }

    fn people(&self) -> bool {
        matches!(self.output, Output::Table | Output::Wide)
    }

    pub(crate) fn add(&mut self, done: Try) {
        if self.people() {
            let time = done
                .milliseconds
                .map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
            let room = width();
            let sign = done.health.painted();
            let from = done.from;
            if room < WIDE {
                // What was seen gets lines of its own.
                let way = cut(&done.way, WAY.min(room.saturating_sub(18)));
                outln!("{sign} {from:<4} {time:>8}  {way}");
                outln!("                {}", dim(&wrap(&done.detail, 16, room)));
            } else {
                let detail = cut(&done.detail, room.saturating_sub(WAY + 23));
                outln!(
                    "{sign} {from:<4}   {:<WAY$}   {time:>8}   {detail}",
                    done.way
                );
            }
        }
        self.tries.push(done);
    }

    /// Something a person waiting wants to know, and a program does not.
    pub(crate) fn note(&self, text: &str) {
        if self.people() {
            outln!("{}", dim(&format!("  {text}")));
        }
    }

    fn finish(self) -> Result<ExitCode, Problem> {
        let bad = self
            .tries
            .iter()
            .filter(|t| t.health != Health::Good)
            .count();
        if let Some(text) = machine(&self.tries, self.output)? {
            out!("{text}");
        } else if bad == 0 {
            outln!("\nevery way works");
        } else {
            outln!(
                "\n{bad} of {} did not work; `steward doctor` says why",
                self.tries.len()
            );
        }
        Ok(ExitCode::from(u8::from(bad > 0)))
    }
}

/// Runs a look with a deadline; what it says is for the table.
pub(crate) async fn within<T>(
    seconds: u64,
    look: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    match tokio::time::timeout(Duration::from_secs(seconds), look).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {seconds} s")),
    }
}
