//! `steward create`: a good manifest, applied, and waited for.

use std::process::ExitCode;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::rows::Row;
use crate::args::{Cli, Create, Manifest};
use crate::cluster::Management;
use crate::output::{self, Health};
use crate::problem::Problem;

/// Writes it, shows it, applies it, waits.
pub async fn run(cli: &Cli, args: &Create) -> Result<ExitCode, Problem> {
    if args.dry_run {
        let namespace = cli.namespace.as_deref();
        out!(
            "{}",
            output::manifest(&manifest(args, namespace), args.output)?
        );
        return Ok(ExitCode::SUCCESS);
    }
    let management = Management::connect(cli).await?;
    let existing = management.tenants().get_opt(&args.name).await;
    let existing =
        existing.map_err(|e| Problem::from_api(&format!("read tenant {}", args.name), e))?;
    if existing.is_some() {
        return Err(Problem::Tenant {
            name: args.name.clone(),
            what: format!(
                "it is there already in namespace {}; `kubectl edit tcp` changes it",
                management.namespace
            ),
        });
    }
    let manifest = manifest(args, Some(&management.namespace));
    out!(
        "{}",
        output::dim(&output::manifest(&manifest, Manifest::Yaml)?)
    );
    let params = PatchParams::apply("steward-cli");
    let applied = management
        .tenants()
        .patch(&args.name, &params, &Patch::Apply(&manifest))
        .await;
    applied.map_err(|e| Problem::from_api(&format!("create tenant {}", args.name), e))?;
    outln!(
        "{} tenant {}/{} created",
        Health::Good.painted(),
        management.namespace,
        args.name
    );
    wait(&management, &args.name, args.timeout).await?;
    Ok(ExitCode::SUCCESS)
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
            known @ ("steward" | "traefik" | "haproxy" | "haproxy-ingress" | "nginx") => known,
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

/// Tells each condition once, when it comes to hold, and what is waited for meanwhile.
async fn wait(management: &Management, name: &str, seconds: u64) -> Result<(), Problem> {
    if seconds == 0 {
        return Ok(());
    }
    let began = tokio::time::Instant::now();
    let deadline = began + Duration::from_secs(seconds);
    let mut held: Vec<String> = Vec::new();
    let mut told = String::new();
    loop {
        let tenant = management.tenant(name).await?;
        let row = Row::new(&tenant, jiff::Timestamp::now());
        for condition in tenant.status.iter().flat_map(|s| &s.conditions) {
            let step = !["Available", "Progressing"].contains(&condition.type_.as_str());
            if step && condition.status == "True" && !held.contains(&condition.type_) {
                held.push(condition.type_.clone());
                outln!(
                    "{} {:<21} {}",
                    Health::Good.painted(),
                    condition.type_,
                    condition.message
                );
            }
        }
        if row.available {
            let took = began.elapsed().as_secs();
            outln!(
                "{} available at https://{} after {took} s",
                Health::Good.painted(),
                row.endpoint.unwrap_or_default()
            );
            outln!(
                "\nNext: steward kubeconfig {name} -n {0} --merge, steward join {name} -n {0}",
                management.namespace
            );
            return Ok(());
        }
        let now = row
            .waiting_for
            .unwrap_or_else(|| "waiting for the operator".to_owned());
        if now != told {
            outln!("  {}", output::dim(&now));
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
