//! `steward kubeconfig`: the administrator's, or a fresh short-lived one.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::Kubeconfig as Config;
use steward_pki::{
    Authority, KeyKind, Kubeconfig, Pair, Reading, Request, SystemKeys, Usage, Validity,
};

use crate::args;
use crate::cluster::Management;
use crate::problem::Problem;

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
        merge(&args.name, &text)?;
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

/// Adds cluster, user and context under the tenant's name, replacing earlier ones,
/// and switches to it. The file is written beside and renamed: never half.
fn merge(tenant: &str, text: &str) -> Result<(), Problem> {
    let file = own_file()?;
    let problem = |why: String| Problem::File {
        file: file.display().to_string(),
        why,
    };
    let mut new = Config::from_yaml(text).map_err(|e| problem(e.to_string()))?;
    rename(&mut new, tenant);
    let mut merged = if file.exists() {
        Config::read_from(&file).map_err(|e| problem(e.to_string()))?
    } else {
        Config::default()
    };
    merged.clusters.retain(|c| c.name != tenant);
    merged.auth_infos.retain(|a| a.name != tenant);
    merged.contexts.retain(|c| c.name != tenant);
    merged.clusters.append(&mut new.clusters);
    merged.auth_infos.append(&mut new.auth_infos);
    merged.contexts.append(&mut new.contexts);
    merged.current_context = Some(tenant.to_owned());
    let printed = serde_saphyr::to_string(&merged).map_err(|e| problem(e.to_string()))?;
    let beside = file.with_extension("steward-new");
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|e| problem(e.to_string()))?;
    }
    let mut out = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .map_err(|e| problem(e.to_string()))?;
    out.write_all(printed.as_bytes())
        .map_err(|e| problem(e.to_string()))?;
    std::fs::rename(&beside, &file).map_err(|e| problem(e.to_string()))?;
    anstream::eprintln!("context {tenant} is in {} and current", file.display());
    Ok(())
}

fn rename(config: &mut Config, tenant: &str) {
    for cluster in &mut config.clusters {
        tenant.clone_into(&mut cluster.name);
    }
    for user in &mut config.auth_infos {
        tenant.clone_into(&mut user.name);
    }
    for context in &mut config.contexts {
        tenant.clone_into(&mut context.name);
        if let Some(inner) = &mut context.context {
            tenant.clone_into(&mut inner.cluster);
            inner.user = Some(tenant.to_owned());
        }
    }
}

fn own_file() -> Result<PathBuf, Problem> {
    // Several files may be named; the first is the one kubectl would write to.
    let given = std::env::var_os("KUBECONFIG")
        .and_then(|v| std::env::split_paths(&v).find(|p| !p.as_os_str().is_empty()));
    let home = std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".kube/config"));
    given.or(home).ok_or_else(|| {
        Problem::Argument("there is no home folder to merge into; set KUBECONFIG".to_owned())
    })
}
