//! `steward doctor`: what is wrong, from outside in, with a fix to paste; and
//! `steward explain`: which check speaks of a symptom.

use std::process::ExitCode;

use kube::api::{Api, ListParams};
use serde::Serialize;
use steward_api::TenantControlPlane;
use steward_doctor::{Finding, Severity};

use crate::args::{Doctor, Output};
use crate::cluster::Management;
use crate::evidence::gather;
use crate::output::Health;
use crate::problem::Problem;

/// One tenant's findings, as programs read them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    tenant: String,
    findings: Vec<Finding>,
}

/// Looks at one tenant, or at all of the namespace.
pub async fn run(management: &Management, args: &Doctor) -> Result<ExitCode, Problem> {
    let tenants: Vec<TenantControlPlane> = match &args.name {
        Some(name) => vec![management.tenant(name).await?],
        None => {
            let api: Api<TenantControlPlane> = management.tenants();
            let all = api.list(&ListParams::default()).await;
            all.map_err(|e| Problem::from_api("list tenants", e))?.items
        }
    };
    let mut reports = Vec::new();
    for tenant in &tenants {
        let evidence = gather(management, tenant).await;
        reports.push(Report {
            tenant: evidence.tenant.clone(),
            findings: steward_doctor::run(&evidence),
        });
    }
    let broken = reports
        .iter()
        .flat_map(|r| &r.findings)
        .any(|f| f.severity == Severity::Problem);
    if args.output == Output::Json {
        let text =
            serde_json::to_string_pretty(&reports).map_err(|e| Problem::Argument(e.to_string()))?;
        anstream::println!("{text}");
    } else {
        reports.iter().for_each(|r| print(r, args.all));
    }
    Ok(ExitCode::from(u8::from(broken)))
}

fn print(report: &Report, all: bool) {
    anstream::println!("{}", report.tenant);
    let fine = report
        .findings
        .iter()
        .filter(|f| f.severity == Severity::Fine)
        .count();
    for finding in &report.findings {
        let health = match finding.severity {
            Severity::Fine if !all => continue,
            Severity::Fine => Health::Good,
            Severity::Warning => Health::Warn,
            Severity::Problem => Health::Bad,
        };
        let style = health.style();
        anstream::println!(
            "  {style}{}{style:#} {}: {} — {}",
            health.sign(),
            finding.group.title(),
            finding.what,
            finding.evidence
        );
        if let Some(why) = finding.why {
            anstream::println!("      why it matters: {why}");
        }
        if let Some(fix) = &finding.fix {
            anstream::println!("      {fix}");
        }
    }
    let style = Health::Good.style();
    anstream::println!(
        "  {style}{}{style:#} {fine} checks fine",
        Health::Good.sign()
    );
}

/// Says which checks speak of a symptom.
pub fn explain(symptom: &str) -> ExitCode {
    let checks = steward_doctor::explain(symptom);
    if checks.is_empty() {
        anstream::eprintln!("no check speaks of this; `steward doctor` runs them all");
        return ExitCode::from(1);
    }
    for check in checks {
        anstream::println!("{}: {}\n    {}", check.id, check.what, check.why);
    }
    ExitCode::SUCCESS
}
