//! Which Service has which address: a pure function of all Services.
//!
//! A Service keeps the address its status says; one that asks for an address gets
//! it if it is free; the others get the lowest free one.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use k8s_openapi::api::core::v1::Service;

use super::{CLASS, Services};
use crate::host_id::LOAD_BALANCERS;

/// Whether a Service is the lab's to serve. One that no longer is of type
/// `LoadBalancer` still is, until its address is taken back.
pub(super) fn is_ours(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.and_then(|s| s.load_balancer_class.as_deref())
        .is_none_or(|class| class == CLASS)
}

/// The address a Service has.
pub(super) fn of(service: &Service) -> Option<Ipv4Addr> {
    let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
    balancer
        .ingress
        .as_ref()?
        .first()?
        .ip
        .as_ref()?
        .parse()
        .ok()
}

/// The address each Service should have.
pub(super) fn assign(services: &Services) -> BTreeMap<(String, String), Ipv4Addr> {
    let wanting: Vec<_> = services
        .iter()
        .filter(|(_, service)| wants(service))
        .collect();
    let mut assigned = BTreeMap::new();
    let mut taken = BTreeSet::new();
    let mut give = |key: &(String, String), address: Option<Ipv4Addr>| {
        if let Some(address) = address.filter(|a| in_range(*a) && taken.insert(*a)) {
            assigned.insert(key.clone(), address);
        }
    };
    for (key, service) in &wanting {
        // Asking for another one than it has means giving that one up.
        let keeps = asks(service).is_none_or(|asked| Some(asked) == of(service));
        give(key, of(service).filter(|_| keeps));
    }
    for (key, service) in wanting
        .iter()
        .filter(|(_, service)| asks(service) != of(service))
    {
        give(key, asks(service));
    }
    let without: Vec<_> = wanting
        .iter()
        .filter(|(key, service)| asks(service).is_none() && !assigned.contains_key(*key))
        .map(|(key, _)| (*key).clone())
        .collect();
    let mut free = range().filter(|address| !taken.contains(address));
    assigned.extend(without.into_iter().zip(&mut free));
    assigned
}

fn wants(service: &Service) -> bool {
    let kind = service.spec.as_ref().and_then(|spec| spec.type_.as_deref());
    kind == Some("LoadBalancer")
        && is_ours(service)
        && service.metadata.deletion_timestamp.is_none()
}

fn asks(service: &Service) -> Option<Ipv4Addr> {
    service
        .spec
        .as_ref()?
        .load_balancer_ip
        .as_ref()?
        .parse()
        .ok()
}

fn range() -> impl Iterator<Item = Ipv4Addr> {
    let first = u32::from(LOAD_BALANCERS.0);
    (1..255).map(move |offset| Ipv4Addr::from(first + offset))
}

fn in_range(address: Ipv4Addr) -> bool {
    range().any(|a| a == address)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn services(list: &[(&str, serde_json::Value, Option<&str>)]) -> Services {
        let one = |(name, spec, has): &(&str, serde_json::Value, Option<&str>)| {
            let mut service: Service = serde_json::from_value(json!({ "spec": spec })).unwrap();
            if let Some(ip) = has {
                let status = json!({ "loadBalancer": { "ingress": [{ "ip": ip }] } });
                service.status = serde_json::from_value(status).unwrap();
            }
            (("ns".to_owned(), (*name).to_owned()), service)
        };
        list.iter().map(one).collect()
    }

    fn assigned(list: &[(&str, serde_json::Value, Option<&str>)]) -> Vec<(String, String)> {
        let assigned = assign(&services(list));
        assigned
            .into_iter()
            .map(|((_, name), address)| (name, address.to_string()))
            .collect()
    }

    #[test]
    fn only_load_balancers_without_a_foreign_class_get_one() {
        let got = assigned(&[
            ("a", json!({ "type": "ClusterIP" }), None),
            (
                "b",
                json!({ "type": "LoadBalancer", "loadBalancerClass": "metallb.io/x" }),
                None,
            ),
            (
                "c",
                json!({ "type": "LoadBalancer", "loadBalancerClass": CLASS }),
                None,
            ),
            ("d", json!({ "type": "LoadBalancer" }), None),
        ]);
        assert_eq!(
            got,
            [
                ("c".into(), "10.40.0.1".into()),
                ("d".into(), "10.40.0.2".into())
            ]
        );
    }

    #[test]
    fn an_address_is_kept_and_never_given_twice() {
        let got = assigned(&[
            ("a", json!({ "type": "LoadBalancer" }), None),
            ("b", json!({ "type": "LoadBalancer" }), Some("10.40.0.1")),
            ("c", json!({ "type": "LoadBalancer" }), Some("10.40.0.1")),
        ]);
        let addresses: BTreeSet<_> = got.iter().map(|(_, a)| a.clone()).collect();
        assert_eq!(addresses.len(), 3);
        assert!(got.contains(&("b".into(), "10.40.0.1".into())));
    }

    #[test]
    fn an_address_that_is_asked_for_is_given_if_free_and_in_range() {
        let ask = |ip: &str| json!({ "type": "LoadBalancer", "loadBalancerIP": ip });
        let got = assigned(&[
            ("a", ask("10.40.0.9"), None),
            ("b", ask("10.40.0.9"), None),
            ("c", ask("8.8.8.8"), None),
            ("d", ask("10.40.0.7"), Some("10.40.0.1")),
        ]);
        assert_eq!(
            got,
            [
                ("a".into(), "10.40.0.9".into()),
                ("d".into(), "10.40.0.7".into())
            ]
        );
    }

    #[test]
    fn a_service_that_is_no_load_balancer_any_more_has_its_address_taken_back() {
        let all = services(&[("a", json!({ "type": "ClusterIP" }), Some("10.40.0.1"))]);
        assert!(assign(&all).is_empty());
        assert!(all.values().all(is_ours));
    }
}
