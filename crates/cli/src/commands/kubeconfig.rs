//! `steward kubeconfig`: the administrator's, or a fresh short-lived one.

use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use steward_pki::{
    Authority, KeyKind, Kubeconfig, Pair, Reading, Request, SystemKeys, Usage, Validity,
};

use crate::args;
use crate::cluster::Management;
use crate::problem::Problem;

mod merge;

/// A certificate can't be taken back before it expires, so it may not live long.
const LONGEST: Duration = Duration::from_hours(7 * 24);

/// Prints it, or merges it into the caller's own file.
pub async fn run(management: &Management, args: &args::Kubeconfig) -> Result<ExitCode, Problem> {
    management.tenant(&args.name).await?;
    let admin = management.admin_kubeconfig(&args.name).await?;
    let text = match &args.user {
        Some(user) => personal(management, args, user, &admin).await?,
        None => admin,
    };
    if args.merge {
        let wanted = match &args.user {
            Some(user) => format!("{user}@{}", args.name),
            None => args.name.clone(),
        };
        merge::merge(&management.namespace, &wanted, &text)?;
    } else {
        out!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn personal(
    management: &Management,
    args: &args::Kubeconfig,
    user: &str,
    admin: &str,
) -> Result<String, Problem> {
    let lifetime = steward_api::duration::parse(&args.expires)
        .map_err(|e| Problem::Argument(format!("--expires: {e}")))?;
    if lifetime > LONGEST || lifetime.is_zero() {
        return Err(Problem::Argument(format!(
            "--expires {}: give more than nothing and at most 168h",
            args.expires
        )));
    }
    if user.starts_with("system:")
        || args
            .group
            .as_deref()
            .is_some_and(|g| g.starts_with("system:"))
    {
        return Err(Problem::Argument(
            "names that begin with system: belong to Kubernetes itself; choose another".to_owned(),
        ));
    }
    let broken = |why: String| Problem::Tenant {
        name: args.name.clone(),
        what: why,
    };
    let secret = format!("{}-ca", args.name);
    let pair = Pair {
        certificate: management.secret_text(&secret, "ca.crt").await?,
        key: management.secret_text(&secret, "ca.key").await?,
    };
    let authority = Authority::from_pair(pair).map_err(|e| broken(e.to_string()))?;
    let request = Request {
        common_name: user.to_owned(),
        organization: args.group.clone(),
        usage: Usage::Client,
        sans: Vec::new(),
    };
    let validity = Validity::starting(Timestamp::now(), lifetime);
    let client = authority
        .issue(&SystemKeys, KeyKind::default(), &request, validity)
        .map_err(|e| broken(e.to_string()))?;
    let server = Reading::parse(admin)
        .ok_or_else(|| broken("its kubeconfig can't be read".to_owned()))?
        .server;
    let kubeconfig = Kubeconfig {
        cluster: &args.name,
        server: &server,
        authority: &authority.pair().certificate,
        user,
        client: Some(&client),
    };
    kubeconfig.render().map_err(|e| broken(e.to_string()))
}
