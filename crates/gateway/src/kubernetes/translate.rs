//! The whole decision in one pure function: the cluster as it is → what to route
//! and what to say about it.
//!
//! Owns the order of the steps. It reads no clock and talks to nobody.

use super::claims::{Claim, Settled, settle};
use super::ingresses;
use super::listeners::{self, Listener};
use super::routes::{self, Attachment};
use super::world::{Backends, World};

/// What follows from a [`World`].
pub struct Translation<'w> {
    /// Who gets which name.
    pub settled: Settled,
    /// Every listener of our Gateways.
    pub listeners: Vec<Listener<'w>>,
    /// For each TLSRoute of the world, in its order.
    pub attachments: Vec<Attachment>,
    /// Our Ingresses.
    pub ingresses: Vec<&'w k8s_openapi::api::networking::v1::Ingress>,
}

/// Decides. `port` is the port on which this gateway is reached from outside.
pub fn translate(world: &World, port: i32) -> Translation<'_> {
    let backends = Backends::new(world);
    let listeners: Vec<Listener<'_>> = listeners::our_gateways(world)
        .into_iter()
        .flat_map(|g| listeners::inspect(g, port))
        .collect();
    let mut attachments: Vec<Attachment> = world
        .routes
        .iter()
        .map(|route| routes::attach(world, &backends, &listeners, route))
        .collect();
    let ingresses = ingresses::ours(world);
    let mut claims: Vec<Claim> = ingresses
        .iter()
        .flat_map(|i| ingresses::claims(&backends, i))
        .collect();
    claims.extend(attachments.iter().flat_map(|a| a.claims.iter().cloned()));
    let settled = settle(claims);
    tell_losers(&settled, world, &mut attachments);
    Translation {
        settled,
        listeners,
        attachments,
        ingresses,
    }
}

/// A route that lost every one of its names is not accepted, and is told by whom.
fn tell_losers(settled: &Settled, world: &World, attachments: &mut [Attachment]) {
    for (route, attachment) in world.routes.iter().zip(attachments) {
        let owner = routes::owner(route);
        let lost: Vec<(&str, &str)> = attachment
            .claims
            .iter()
            .filter_map(|c| {
                let winner = settled.lost.get(&(c.host.clone(), owner.clone()))?;
                Some((c.host.as_str(), winner.as_str()))
            })
            .collect();
        if lost.is_empty() || lost.len() < attachment.claims.len() {
            continue;
        }
        let (host, winner) = lost[0];
        let message =
            format!("hostname {host} already belongs to {winner}, which is older; choose another");
        for parent in &mut attachment.parents {
            for said in parent
                .said
                .iter_mut()
                .filter(|s| s.kind == "Accepted" && s.holds)
            {
                *said =
                    super::conditions::Said::no("Accepted", "HostnameConflict", message.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
