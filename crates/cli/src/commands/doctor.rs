//! `steward doctor`: what is wrong, causes first, with a fix to paste; and
//! `steward explain`: which check speaks of a symptom.

use std::process::ExitCode;

use futures::StreamExt;
use kube::api::{Api, ListParams};
use serde::Serialize;
use steward_api::TenantControlPlane;
use steward_doctor::{Finding, Severity};

use crate::args::{Doctor, Output};
use crate::cluster::Management;
use crate::evidence::gather;
use crate::output::{Health, bold, dim, machine, width, wrap};
use crate::problem::Problem;

mod remedy;

/// How many tenants are looked at at once.
const AT_ONCE: usize = 8;

/// One tenant's findings, as programs read them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) tenant: String,
    /// The worst of the findings.
    severity: Severity,
    pub(crate) findings: Vec<Finding>,
}

/// Looks at one tenant, at all of the namespace, or at all there are.
pub async fn run(management: &Management, args: &Doctor) -> Result<ExitCode, Problem> {
    let tenants = tenants(management, args).await?;
    if tenants.is_empty() {
        anstream::eprintln!("no tenants here; -A looks in every namespace");
    }
    let looks: Vec<_> = tenants
        .iter()
        .map(|tenant| report(management, tenant))
        .collect();
    let reports: Vec<Report> = futures::stream::iter(looks)
        .buffered(AT_ONCE)
        .collect()
        .await;
    if let Some(text) = machine(&reports, args.output)? {
        out!("{text}");
    } else {
        let wide = args.output == Output::Wide;
        for report in &reports {
            print(report, args.all || wide);
        }
    }
    if args.fix {
        remedy::offer(management, &reports, args).await?;
    }
    let broken = reports.iter().any(|r| r.severity == Severity::Problem);
    Ok(ExitCode::from(u8::from(broken)))
}

async fn tenants(
    management: &Management,
    args: &Doctor,
) -> Result<Vec<TenantControlPlane>, Problem> {
    if let Some(name) = &args.name {
        return Ok(vec![management.tenant(name).await?]);
    }
    let api: Api<TenantControlPlane> = if args.all_namespaces {
        Api::all(management.client.clone())
    } else {
        management.tenants()
    };
    let all = api.list(&ListParams::default()).await;
    Ok(all.map_err(|e| Problem::from_api("list tenants", e))?.items)
}

async fn report(management: &Management, tenant: &TenantControlPlane) -> Report {
    let evidence = Box::pin(gather(management, tenant)).await;
    let findings = steward_doctor::run(&evidence);
    let severity = findings
        .iter()
        .map(|f| f.severity)
        .max()
        .unwrap_or(Severity::Fine);
    Report {
        tenant: evidence.tenant,
        severity,
        findings,
    }
}

fn health(severity: Severity) -> Health {
    match severity {
        Severity::Fine => Health::Good,
        Severity::Warning => Health::Warn,
        Severity::Problem => Health::Bad,
    }
}

fn print(report: &Report, all: bool) {
    outln!("{}", bold(&report.tenant));
    let room = width();
    let (fine, wrong): (Vec<_>, Vec<_>) = report
        .findings
        .iter()
        .partition(|f| f.severity == Severity::Fine);
    for finding in &wrong {
        let head = format!("{}: {}", finding.group.title(), finding.what);
        outln!(
            "  {} {}",
            health(finding.severity).painted(),
            wrap(&head, 4, room)
        );
        outln!("    {}", wrap(&finding.evidence, 4, room));
        if finding.follows_from.is_empty() {
            if let Some(why) = finding.why {
                outln!("    {}", dim(&wrap(why, 4, room)));
            }
            // A command is never broken: it is to be pasted.
            if let Some(fix) = &finding.fix {
                outln!("    $ {fix}");
            }
        } else {
            outln!(
                "    {}",
                dim(&format!("follows from {}", finding.follows_from.join(", ")))
            );
        }
    }
    if all {
        for finding in &fine {
            let text = format!(
                "{}: {} ({})",
                finding.group.title(),
                finding.what,
                finding.evidence
            );
            outln!("  {} {}", Health::Good.painted(), wrap(&text, 4, room));
        }
    } else {
        outln!("  {} {} checks fine", Health::Good.painted(), fine.len());
    }
}

/// Says which checks speak of a symptom.
pub fn explain(symptom: &str) -> ExitCode {
    let checks = steward_doctor::explain(symptom);
    if checks.is_empty() {
        anstream::eprintln!("no check speaks of this; `steward doctor` runs them all");
        return ExitCode::from(1);
    }
    let room = width();
    for check in checks {
        outln!("{}", bold(check.id));
        outln!("  should be so: {}", wrap(check.what, 4, room));
        outln!("  because: {}", wrap(check.why, 4, room));
        if !check.follows.is_empty() {
            let first = format!("look first at {}", check.follows.join(", "));
            outln!("  {}", dim(&wrap(&first, 4, room)));
        }
    }
    outln!("\n`steward doctor TENANT` looks at them all.");
    ExitCode::SUCCESS
}
