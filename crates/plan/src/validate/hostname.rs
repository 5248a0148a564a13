//! Names: of objects, of hosts, and who has them.

use std::net::IpAddr;

use steward_api::conditions::{ConditionType, Reason};

use crate::{observed::Observed, problem::Problem};

/// The tenant's name is a Service's name too.
pub(super) fn check_object_name(name: &str) -> Option<Problem> {
    let right = name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (!right).then(|| {
        Problem::invalid(
            "metadata.name",
            format!(
                "{name:?} can't be the name of a Service: use at most 63 lower case letters, \
                 digits and hyphens, with a letter first"
            ),
        )
    })
}

/// What is wrong with a hostname, if anything.
pub(super) fn fault(host: &str) -> Option<String> {
    let label_fault = |label: &str| {
        label.is_empty()
            || label.len() > 63
            || label.starts_with('-')
            || label.ends_with('-')
            || !label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if host.parse::<IpAddr>().is_ok() {
        Some(format!(
            "{host} is an address: a front door routes by name, so give a DNS name"
        ))
    } else if host.contains('*') {
        Some(format!(
            "{host} is a wildcard: give the one name of this tenant"
        ))
    } else if host.len() > 253 || host.split('.').any(label_fault) {
        Some(format!(
            "{host:?} is not a DNS name: write it like tenant-01.k8s.example.com, without scheme \
             or path"
        ))
    } else {
        None
    }
}

/// Whether another tenant holds one of the names: who claimed it first keeps it.
pub(super) fn conflicts(observed: &Observed, names: &[&str], field: &str) -> Vec<Problem> {
    names
        .iter()
        .filter_map(|name| {
            let claim = observed.claims.iter().find(|c| c.hostname == *name)?;
            Some(Problem::new(
                ConditionType::EndpointReady,
                Reason::HostnameTaken,
                field,
                format!(
                    "{name} belongs to the tenant {}, which claimed it first: choose another \
                     hostname",
                    claim.tenant
                ),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn names_are_accepted_and_everything_else_says_what_it_is() {
        assert_eq!(fault("t1.k8s.example.com"), None);
        for (host, word) in [
            ("10.0.0.1", "address"),
            ("*.example.com", "wildcard"),
            ("https://x", "not a DNS name"),
            ("a..b", "not a DNS name"),
            ("-a.b", "not a DNS name"),
        ] {
            assert!(
                fault(host).is_some_and(|fault| fault.contains(word)),
                "{host}"
            );
        }
    }
}
