//! `steward dns`: the records to make, or a check of those that are there.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::process::ExitCode;

use crate::args::{Cli, Dns};
use crate::cluster::Management;
use crate::dns::{Wanted, render};
use crate::output::Health;
use crate::problem::Problem;

/// Prints records, or resolves and compares.
pub async fn run(cli: &Cli, args: &Dns) -> Result<ExitCode, Problem> {
    let wanted = match (&args.name, &args.domain) {
        (Some(name), _) => of_tenant(&Management::connect(cli).await?, name, &args.ip).await?,
        (None, Some(domain)) => Wanted::for_domain(domain, args.ip.clone()),
        (None, None) => {
            return Err(Problem::Argument(
                "give a tenant's name, or --domain and --ip".into(),
            ));
        }
    };
    if args.check {
        return check(&wanted).await;
    }
    out!("{}", render(&wanted, args.format));
    Ok(ExitCode::SUCCESS)
}

async fn of_tenant(
    management: &Management,
    name: &str,
    given: &[IpAddr],
) -> Result<Wanted, Problem> {
    let tenant = management.tenant(name).await?;
    let problem = |what: &str| Problem::Tenant {
        name: name.to_owned(),
        what: what.to_owned(),
    };
    let names = tenant.public_names().ok_or_else(|| {
        problem("it has no hostname; only tenants behind an Ingress or a Gateway need DNS records")
    })?;
    let mut list = vec![names.api.clone()];
    if names.separate_konnectivity() {
        list.push(names.konnectivity.clone());
    }
    let known = tenant
        .status
        .and_then(|s| s.exposure)
        .map(|e| e.addresses)
        .unwrap_or_default();
    let known = known.iter().filter_map(|a| a.parse().ok());
    let addresses: Vec<IpAddr> = if given.is_empty() {
        known.collect()
    } else {
        given.to_vec()
    };
    if addresses.is_empty() {
        return Err(problem(
            "the front door's address is not known yet; give it with --ip",
        ));
    }
    Ok(Wanted {
        wildcards: Vec::new(),
        names: list,
        addresses,
    })
}

/// A wildcard is checked by a name that nobody made: it must resolve all the same.
async fn check(wanted: &Wanted) -> Result<ExitCode, Problem> {
    let expected: BTreeSet<IpAddr> = wanted.addresses.iter().copied().collect();
    let probes = wanted
        .wildcards
        .iter()
        .map(|zone| format!("steward-dns-check.{zone}"));
    let mut failed = false;
    for name in probes.chain(wanted.names.iter().cloned()) {
        let (health, text) = match tokio::net::lookup_host((name.as_str(), 443)).await {
            Err(error) => (Health::Bad, format!("does not resolve: {error}")),
            Ok(found) => {
                let found: BTreeSet<IpAddr> = found.map(|a| a.ip()).collect();
                let list = found
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                let good = !found.is_empty() && found.is_subset(&expected);
                (if good { Health::Good } else { Health::Bad }, list)
            }
        };
        failed |= health == Health::Bad;
        let style = health.style();
        outln!("{style}{}{style:#} {name}: {text}", health.sign());
    }
    Ok(ExitCode::from(u8::from(failed)))
}
