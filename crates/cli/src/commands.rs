//! One module for each command; this one only hands over.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::cluster::Management;
use crate::problem::Problem;

pub mod create;
pub mod dns;
pub mod doctor;
pub mod get;
pub mod import;
pub mod join;
pub mod kubeconfig;
pub mod rows;
pub mod tree;

/// Does what was asked.
pub async fn run(cli: Cli) -> Result<ExitCode, Problem> {
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
        Command::Version => version(&cli).await,
        Command::Import(args) => import::run(args),
        Command::Dns(args) => dns::run(&cli, args).await,
        Command::Create(args) => create::run(&cli, args).await,
        Command::Explain { symptom } => Ok(doctor::explain(&symptom.join(" "))),
        Command::Doctor(args) => doctor::run(&Management::connect(&cli).await?, args).await,
        Command::Get(args) => get::run(&Management::connect(&cli).await?, args).await,
        Command::Tree(args) => tree::run(&Management::connect(&cli).await?, &args.name).await,
        Command::Kubeconfig(args) => kubeconfig::run(&Management::connect(&cli).await?, args).await,
        Command::Join(args) => join::run(&Management::connect(&cli).await?, args).await,
    }
}

async fn version(cli: &Cli) -> Result<ExitCode, Problem> {
    anstream::println!("steward   {}", env!("CARGO_PKG_VERSION"));
    let operator = match Management::connect(cli).await {
        Ok(management) => operator_image(&management).await,
        Err(_) => None,
    };
    anstream::println!("operator  {}", operator.as_deref().unwrap_or("not found"));
    Ok(ExitCode::SUCCESS)
}

async fn operator_image(management: &Management) -> Option<String> {
    use k8s_openapi::api::apps::v1::Deployment;
    let api: kube::Api<Deployment> =
        kube::Api::namespaced(management.client.clone(), "steward-system");
    let wanted =
        kube::api::ListParams::default().labels("app.kubernetes.io/component=controller-manager");
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
