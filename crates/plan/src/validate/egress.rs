//! Where connections that a control plane opens may go.
//!
//! Owns: the default (through the tunnel, or nowhere) and what a tenant from before that default
//! keeps. Refuses: opening anything by itself. Who may open it is decided at admission.

use ipnet::IpNet;
use steward_api::{
    TenantControlPlaneSpec,
    conditions::{ConditionType, Reason},
    flags,
    tenant_control_plane::{EgressDestination, EgressPath, EgressSpec, EgressStatus},
};

use super::wait;
use crate::{
    observed::Observed,
    outcome::Wait,
    problem::Problem,
    settings::{Destination, Settings},
};

const FIELD: &str = "spec.controlPlane.egress";

/// Arguments that make the API server call a URL through the egress selector.
const WEBHOOKS: [&str; 5] = [
    "--audit-webhook-config-file",
    "--authentication-token-webhook-config-file",
    "--authorization-webhook-config-file",
    "--authorization-config",
    "--tracing-config-file",
];

/// Arguments that make the API server dial by itself, whatever the egress selector says.
const DIALS: [&str; 3] = [
    "--oidc-issuer-url",
    "--authentication-config",
    "--admission-control-config-file",
];

/// Where connections of one control plane may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    /// Calls to kubelets, pods and Services of the tenant.
    pub cluster: EgressPath,
    /// Calls to URLs.
    pub control_plane: EgressPath,
    /// Whether they go where they went before they were confined.
    pub kept: bool,
    /// What the pods may reach besides.
    pub allow: Vec<Destination>,
}

impl Egress {
    /// Whether the pods must be able to dial any address.
    pub fn open(&self) -> bool {
        self.kept || [self.cluster, self.control_plane].contains(&EgressPath::Direct)
    }

    /// Whether the API server needs to be told anything.
    pub fn selects(&self) -> bool {
        [self.cluster, self.control_plane] != [EgressPath::Direct; 2]
    }

    /// For the status.
    pub fn status(&self) -> EgressStatus {
        EgressStatus {
            cluster: self.cluster,
            control_plane: self.control_plane,
            kept: self.kept,
        }
    }
}

/// Reads the field; without it, the default or what the tenant keeps.
pub(super) fn parse(observed: &Observed) -> Result<Egress, Vec<Problem>> {
    let spec = &observed.tenant.spec;
    let none = EgressSpec::default();
    let given = spec.control_plane.egress.as_ref();
    let mut problems = Vec::new();
    let mut allow = Vec::new();
    for entry in &given.unwrap_or(&none).allow {
        match destination(entry) {
            Ok(destination) => allow.push(destination),
            Err(problem) => problems.push(problem),
        }
    }
    let tunnel = spec.addons.konnectivity.is_some();
    let kept = given.is_none() && from_before(observed) && reaches_out(spec);
    let usual = match (tunnel, kept) {
        (true, _) => EgressPath::Tunnel,
        (false, true) => EgressPath::Direct,
        (false, false) => EgressPath::Closed,
    };
    let urls = if kept && has_argument(spec, &WEBHOOKS) {
        EgressPath::Direct
    } else {
        usual
    };
    let given = given.unwrap_or(&none);
    let egress = Egress {
        cluster: given.cluster.unwrap_or(usual),
        control_plane: given.control_plane.unwrap_or(urls),
        kept,
        allow,
    };
    if !tunnel && [egress.cluster, egress.control_plane].contains(&EgressPath::Tunnel) {
        let message = "Tunnel leads through konnectivity, which is not asked for: set \
                       spec.addons.konnectivity, or write Closed";
        problems.push(Problem::invalid(FIELD, message));
    }
    if problems.is_empty() {
        Ok(egress)
    } else {
        Err(problems)
    }
}

/// What is worth knowing about it.
pub(super) fn notice(
    settings: &Settings,
    spec: &TenantControlPlaneSpec,
    egress: &Egress,
) -> Option<Wait> {
    let closed = settings.network_policies
        && settings.allowed_egress.is_empty()
        && egress.allow.is_empty()
        && !egress.open();
    let (reason, message) = if egress.kept {
        let message = "the control plane opens connections into the network of this cluster, as it \
                       did before Steward confined them, so administrators of the tenant can make \
                       it call addresses there: set spec.addons.konnectivity for what should go to \
                       the tenant's nodes, name what else it needs in spec.controlPlane.egress, and \
                       set that field, if only to {}, to end this";
        (Reason::EgressKept, message)
    } else if closed && has_argument(spec, &DIALS) {
        let message = "an extra argument of the API server may make it call an address, and \
                       spec.controlPlane.egress.allow names none: where this cluster's network \
                       enforces NetworkPolicies, only the datastore and DNS are reached";
        (Reason::EgressClosed, message)
    } else {
        return None;
    };
    Some(wait(ConditionType::Accepted, reason, message))
}

/// Whether the tenant ran before its connections were confined, and wasn't confined since.
fn from_before(observed: &Observed) -> bool {
    let Some(status) = &observed.tenant.status else {
        return false;
    };
    match &status.egress {
        Some(egress) => egress.kept,
        None => status
            .kubernetes_resources
            .as_ref()
            .and_then(|resources| resources.version.as_ref()?.version.as_ref())
            .is_some(),
    }
}

/// Whether anything of it may dial the network of this cluster and would break without.
fn reaches_out(spec: &TenantControlPlaneSpec) -> bool {
    let deployment = &spec.control_plane.deployment;
    spec.addons.konnectivity.is_none()
        || has_argument(spec, &WEBHOOKS)
        || has_argument(spec, &DIALS)
        || !deployment.additional_containers.is_empty()
        || !deployment.additional_init_containers.is_empty()
}

fn has_argument(spec: &TenantControlPlaneSpec, wanted: &[&str]) -> bool {
    let args = spec.control_plane.deployment.extra_args.as_ref();
    let given = args.map_or(&[][..], |args| args.api_server.as_slice());
    wanted
        .iter()
        .any(|flag| flags::value(given, flag).is_some())
}

fn destination(entry: &EgressDestination) -> Result<Destination, Problem> {
    let wrong = |message: String| Problem::invalid(format!("{FIELD}.allow"), message);
    let range = match entry.cidr.parse::<IpNet>() {
        Ok(range) if range.trunc() == range => range,
        Ok(range) => {
            return Err(wrong(format!(
                "{} has bits set beyond its prefix: write {}",
                entry.cidr,
                range.trunc()
            )));
        }
        Err(_) => {
            return Err(wrong(format!(
                "{:?} is not an address range: write it like 203.0.113.0/24",
                entry.cidr
            )));
        }
    };
    let port = |number: &i32| match u16::try_from(*number) {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(wrong(format!("{number} is not a port: use 1 to 65535"))),
    };
    let ports = entry.ports.iter().map(port).collect::<Result<_, _>>()?;
    Ok(Destination { range, ports })
}
