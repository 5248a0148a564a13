//! The side inside the tenant.

use steward_api::TenantControlPlane;

use super::Branch;
use crate::cluster::Management;
use crate::evidence::inside::{Within, look as look_inside};
use crate::output::Health;

/// Looks through the tenant's own API server.
pub(super) async fn look(cluster: &Management, tenant: &TenantControlPlane) -> Branch {
    let side = Branch::new("tenant cluster", "");
    let Within {
        ready,
        inside,
        past_the_door,
        ..
    } = Box::pin(look_inside(cluster, tenant, None)).await;
    if let Err(why) = &ready {
        return side.is(Health::Bad, why.to_string());
    }
    let found = match inside {
        Ok(found) => found,
        Err(why) => return side.is(Health::Bad, why.to_string()),
    };
    let mut children = vec![Branch::new("API server", "").is(Health::Good, found.version.clone())];
    if past_the_door {
        children.push(Branch::new("public way", "").is(
            Health::Bad,
            "leads nowhere; this was asked through the management cluster",
        ));
    }
    let nodes = found.nodes.iter().map(|node| {
        let health = if node.ready {
            Health::Good
        } else {
            Health::Bad
        };
        let word = if node.ready { "ready" } else { "not ready" };
        Branch::new("Node", &node.name).is(health, format!("{word}, {}", node.version))
    });
    children.extend(nodes);
    if found.nodes.is_empty() {
        children.push(Branch::new("Node", "").is(
            Health::Warn,
            "none yet; `steward join` prints how to add one",
        ));
    }
    for (name, addon) in [
        ("coredns", &found.coredns),
        ("konnectivity-agent", &found.konnectivity),
        ("kube-proxy", &found.kube_proxy),
        ("steward-tcp-proxy", &found.tcp_proxy),
    ] {
        if addon.exists {
            let idle = found.nodes.is_empty();
            let health = if addon.ready >= addon.desired || idle {
                Health::Good
            } else {
                Health::Bad
            };
            let detail = format!("{} of {} ready", addon.ready, addon.desired);
            children.push(Branch::new("addon", name).is(health, detail));
        }
    }
    if let Some(slice) = &found.slice {
        let port = slice.port.unwrap_or_default();
        children.push(Branch::new("EndpointSlice", "default/kubernetes").is(
            Health::Good,
            format!("{}:{port}", slice.addresses.join(", ")),
        ));
    }
    children.extend(
        found
            .missing_kubeadm
            .iter()
            .map(|m| Branch::new(m, "").is(Health::Bad, "missing")),
    );
    side.with(children)
}
