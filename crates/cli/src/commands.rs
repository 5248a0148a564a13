//! One module for each command; this one only hands over.

use std::process::ExitCode;

use clap::CommandFactory;
use serde::Serialize;

use crate::args::{Cli, Command, Version};
use crate::cluster::Management;
use crate::output::machine;
use crate::problem::Problem;

pub mod connectivity;
pub mod create;
pub mod dns;
pub mod doctor;
pub mod get;
pub mod import;
pub mod install;
pub mod join;
pub mod kubeconfig;
pub mod rows;
pub mod tree;

/// Does what was asked, and ends early when told to.
pub async fn run(cli: Cli) -> Result<ExitCode, Problem> {
    // It has something to clean up, and listens for itself.
    if let Command::Connectivity(args) = &cli.command {
        return Box::pin(connectivity::run(&Management::connect(&cli).await?, args)).await;
    }
    tokio::select! {
        outcome = hand_over(&cli) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Problem::Interrupted),
    }
}

async fn hand_over(cli: &Cli) -> Result<ExitCode, Problem> {
    match &cli.command {
        Command::Completion { shell } => {
            clap_complete::generate(
                *shell,
                &mut Cli::command(),
                "steward",
                &mut std::io::stdout(),
            );
            Ok(ExitCode::SUCCESS)
        }
        Command::Version(args) => version(cli, args).await,
        Command::Import(args) => import::run(cli, args).await,
        Command::Dns(args) => dns::run(cli, args).await,
        Command::Create(args) => Box::pin(create::run(cli, args)).await,
        Command::Install(args) => Box::pin(install::run(cli, args)).await,
        Command::Explain { symptom } => Ok(doctor::explain(&symptom.join(" "))),
        Command::Doctor(args) => {
            Box::pin(doctor::run(&Management::connect(cli).await?, args)).await
        }
        Command::Get(args) => get::run(&Management::connect(cli).await?, args).await,
        Command::Tree(args) => Box::pin(tree::run(&Management::connect(cli).await?, args)).await,
        Command::Kubeconfig(args) => kubeconfig::run(&Management::connect(cli).await?, args).await,
        Command::Join(args) => join::run(&Management::connect(cli).await?, args).await,
        Command::Connectivity(args) => {
            Box::pin(connectivity::run(&Management::connect(cli).await?, args)).await
        }
    }
}

/// What runs where.
#[derive(Serialize)]
struct Versions {
    steward: &'static str,
    operator: Option<String>,
}

async fn version(cli: &Cli, args: &Version) -> Result<ExitCode, Problem> {
    let operator = match Management::connect(cli).await {
        Ok(management) => operator_image(&management).await,
        Err(_) => None,
    };
    let found = Versions {
        steward: env!("CARGO_PKG_VERSION"),
        operator,
    };
    if let Some(text) = machine(&found, args.output)? {
        out!("{text}");
        return Ok(ExitCode::SUCCESS);
    }
    outln!("steward   {}", found.steward);
    outln!(
        "operator  {}",
        found.operator.as_deref().unwrap_or("not found")
    );
    Ok(ExitCode::SUCCESS)
}

async fn operator_image(management: &Management) -> Option<String> {
    use k8s_openapi::api::apps::v1::Deployment;
    let api: kube::Api<Deployment> = kube::Api::all(management.client.clone());
    let wanted = kube::api::ListParams::default()
        .labels("app.kubernetes.io/name=steward,app.kubernetes.io/component=controller-manager");
    let found = api.list(&wanted).await.ok()?.items.into_iter().next()?;
    found
        .spec?
        .template
        .spec?
        .containers
        .into_iter()
        .next()?
        .image
}
