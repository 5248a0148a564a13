//! `steward create`: a good manifest, applied, and waited for.

use std::process::ExitCode;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::rows::Row;
use crate::args::{Cli, Create, Output};
use crate::cluster::Management;
use crate::output::Health;
use crate::problem::Problem;

/// Writes it, shows it, applies it, waits.
pub async fn run(cli: &Cli, args: &Create) -> Result<ExitCode, Problem> {
    if args.dry_run {
        let namespace = cli.namespace.as_deref();
        anstream::print!("{}", text(&manifest(args, namespace), args.output)?);
        return Ok(ExitCode::SUCCESS);
    }
    let management = Management::connect(cli).await?;
    let manifest = manifest(args, Some(&management.namespace));
    let params = PatchParams::apply("steward-cli");
    let applied = management
        .tenants()
        .patch(&args.name, &params, &Patch::Apply(&manifest))
        .await;
    applied.map_err(|e| Problem::from_api(&format!("create tenant {}", args.name), e))?;
    anstream::println!("tenant {}/{} created", management.namespace, args.name);
    wait(&management, &args.name, args.timeout).await?;
    Ok(ExitCode::SUCCESS)
}

fn text(manifest: &Value, output: Output) -> Result<String, Problem> {
    let printed = match output {
        Output::Json => serde_json::to_string_pretty(manifest)
            .map(|t| t + "\n")
            .map_err(|e| e.to_string()),
        _ => serde_saphyr::to_string(manifest).map_err(|e| e.to_string()),
    };
    printed.map_err(Problem::Argument)
}

/// With a hostname: behind the shared address, pods included. Without: an address of its own.
fn manifest(args: &Create, namespace: Option<&str>) -> Value {
    let mut spec = json!({
        "kubernetes": { "version": args.kubernetes },
        "controlPlane": {
            "deployment": { "replicas": args.replicas },
            "service": { "serviceType": "LoadBalancer" },
        },
        "addons": { "coreDNS": {}, "kubeProxy": {}, "konnectivity": {} },
    });
    if let Some(hostname) = &args.hostname {
        let by_name = match args.class.as_str() {
            known @ ("steward" | "traefik" | "haproxy" | "nginx") => known,
            _ => "generic",
        };
        spec["controlPlane"]["service"]["serviceType"] = json!("ClusterIP");
        spec["controlPlane"]["ingress"] = json!({
            "hostname": hostname,
            "ingressClassName": args.class,
            "controllerType": args.controller_type.as_deref().unwrap_or(by_name),
        });
        spec["addons"]["tcpProxy"] = json!({});
    }
    if let Some(datastore) = &args.datastore {
        spec["dataStore"] = json!(datastore);
    }
    let mut metadata = json!({ "name": args.name });
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "steward.butlerlabs.dev/v1alpha1", "kind": "TenantControlPlane",
        "metadata": metadata, "spec": spec,
    })
}

async fn wait(management: &Management, name: &str, seconds: u64) -> Result<(), Problem> {
    if seconds == 0 {
        return Ok(());
    }
    let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let mut told = String::new();
    loop {
        let row = Row::new(&management.tenant(name).await?, jiff::Timestamp::now());
        if row.available {
            let style = Health::Good.style();
            let endpoint = row.endpoint.unwrap_or_default();
            anstream::println!(
                "{style}{}{style:#} available at https://{endpoint}",
                Health::Good.sign()
            );
            return Ok(());
        }
        let now = row
            .waiting_for
            .unwrap_or_else(|| "waiting for the operator".to_owned());
        if now != told {
            anstream::println!("  {now}");
            told = now;
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Problem::Timeout {
                name: name.to_owned(),
                seconds,
                last: told,
            });
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
