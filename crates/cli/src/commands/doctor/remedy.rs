//! `doctor --fix`: what is safe to do, one question each.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use steward_doctor::{Act, Remedy, Side};

use super::Report;
use crate::args::Doctor;
use crate::cluster::Management;
use crate::output::Health;
use crate::problem::Problem;

/// Asks for each remedy and does what is agreed to.
pub(super) async fn offer(
    management: &Management,
    reports: &[Report],
    args: &Doctor,
) -> Result<(), Problem> {
    let all: Vec<(&Report, &Remedy)> = reports
        .iter()
        .flat_map(|r| {
            r.findings
                .iter()
                .filter_map(move |f| Some((r, f.remedy.as_ref()?)))
        })
        .collect();
    if all.is_empty() {
        anstream::eprintln!(
            "nothing here can be fixed safely by a program; the commands above are yours to judge"
        );
        return Ok(());
    }
    if !args.yes && !std::io::stdin().is_terminal() {
        return Err(Problem::Argument(
            "--fix asks before it does something, and nobody is there to answer; add --yes"
                .to_owned(),
        ));
    }
    let mut done: Vec<&Remedy> = Vec::new();
    for (report, remedy) in all {
        // Two findings may have the same remedy.
        if done.contains(&remedy) {
            continue;
        }
        let what = say(report, remedy);
        if args.yes || agreed(&what)? {
            carry_out(management, report, remedy).await?;
            anstream::eprintln!("{} {what}: done", Health::Good.painted());
            done.push(remedy);
        }
    }
    Ok(())
}

fn say(report: &Report, remedy: &Remedy) -> String {
    let place = match remedy.side {
        Side::Management => "in the management cluster",
        Side::Tenant => "inside the tenant",
    };
    let object = format!(
        "{} {}/{} {place}",
        remedy.kind, remedy.namespace, remedy.name
    );
    match &remedy.act {
        Act::Delete => format!(
            "{}: remove {object}, which the operator makes anew",
            report.tenant
        ),
        Act::Annotate(key, _) => format!("{}: annotate {object} with {key}", report.tenant),
    }
}

fn agreed(what: &str) -> Result<bool, Problem> {
    let problem =
        |e: std::io::Error| Problem::Argument(format!("the answer could not be read: {e}"));
    let mut out = anstream::stderr();
    write!(out, "{what}? [y/N] ")
        .and_then(|()| out.flush())
        .map_err(problem)?;
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(problem)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

async fn carry_out(
    management: &Management,
    report: &Report,
    remedy: &Remedy,
) -> Result<(), Problem> {
    let (namespace, tenant) = report.tenant.split_once('/').unwrap_or_default();
    let seen = Management {
        client: management.client.clone(),
        namespace: namespace.to_owned(),
    };
    let client = match remedy.side {
        Side::Management => seen.client.clone(),
        Side::Tenant => seen.tenant_client(tenant).await?,
    };
    let (group, version) = remedy
        .api_version
        .split_once('/')
        .unwrap_or(("", remedy.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, remedy.kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client, &remedy.namespace, &resource);
    let outcome = match &remedy.act {
        Act::Delete => api
            .delete(&remedy.name, &DeleteParams::default())
            .await
            .map(|_| ()),
        Act::Annotate(key, value) => {
            let patch = json!({ "metadata": { "annotations": { *key: value } } });
            api.patch(&remedy.name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .map(|_| ())
        }
    };
    outcome.map_err(|e| Problem::from_api(&format!("change {} {}", remedy.kind, remedy.name), e))
}
