//! `steward join`: a token, and the command that uses it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use steward_pki::{BootstrapToken, Reading, SystemKeys};

use crate::args::Join;
use crate::cluster::Management;
use crate::problem::Problem;

/// Makes a token inside the tenant and prints what to run on the new node.
pub async fn run(management: &Management, args: &Join) -> Result<ExitCode, Problem> {
    let ttl = steward_api::duration::parse(&args.ttl)
        .map_err(|e| Problem::Argument(format!("--ttl: {e}")))?;
    management.tenant(&args.name).await?;
    let broken = |why: String| Problem::Tenant {
        name: args.name.clone(),
        what: why,
    };
    let admin = management.admin_kubeconfig(&args.name).await?;
    let reading =
        Reading::parse(&admin).ok_or_else(|| broken("its kubeconfig can't be read".to_owned()))?;
    let hash = steward_pki::ca_hash(&reading.authority).map_err(|e| broken(e.to_string()))?;
    let endpoint = reading.server.trim_start_matches("https://").to_owned();
    let token = BootstrapToken::new(&SystemKeys).map_err(|e| broken(e.to_string()))?;
    let expires = Timestamp::now()
        .checked_add(ttl)
        .map_err(|_| Problem::Argument(format!("--ttl {}: that is too far away", args.ttl)))?;
    let api: Api<Secret> =
        Api::namespaced(management.tenant_client(&args.name).await?, "kube-system");
    let made = api
        .create(&PostParams::default(), &secret(&token, expires))
        .await;
    made.map_err(|e| Problem::from_api(&format!("make a token in tenant {}", args.name), e))?;
    let command = format!(
        "kubeadm join {endpoint} --token {} --discovery-token-ca-cert-hash {hash}",
        token.expose()
    );
    out!("{}", render(args, &command));
    Ok(ExitCode::SUCCESS)
}

fn render(args: &Join, command: &str) -> String {
    if args.cloud_init {
        format!("#cloud-config\nruncmd:\n- {command}\n")
    } else if args.script {
        format!("#!/bin/sh\nset -eu\n{command}\n")
    } else {
        format!("{command}\n")
    }
}

/// The Secret that kubeadm's own `token create` would make.
fn secret(token: &BootstrapToken, expires: Timestamp) -> Secret {
    let data = BTreeMap::from([
        ("token-id", token.id.clone()),
        ("token-secret", token.secret.clone()),
        (
            "expiration",
            expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        ),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("usage-bootstrap-signing", "true".to_owned()),
        (
            "auth-extra-groups",
            "system:bootstrappers:kubeadm:default-node-token".to_owned(),
        ),
    ]);
    Secret {
        metadata: ObjectMeta {
            name: Some(token.secret_name()),
            namespace: Some("kube-system".to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ..Secret::default()
    }
}
