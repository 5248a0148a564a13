//! How hostnames of listeners and routes meet, as the Gateway API defines it.
//!
//! Owns comparison and intersection of names that are already lower case; it
//! does not decide which route wins a name.

/// The name both sides agree on, or nothing where they share none.
///
/// A listener without a hostname accepts everything; of an exact name and a
/// wildcard that covers it, the exact one remains; of two wildcards, the longer.
pub fn intersect(listener: Option<&str>, route: &str) -> Option<String> {
    let Some(listener) = listener.filter(|name| !name.is_empty()) else {
        return Some(route.to_ascii_lowercase());
    };
    let listener = listener.to_ascii_lowercase();
    let route = route.to_ascii_lowercase();
    if listener == route || covers(&listener, &route) {
        Some(route)
    } else if covers(&route, &listener) {
        Some(listener)
    } else {
        None
    }
}

/// Whether wildcard `wide` stands for `narrow`, which may itself be a wildcard
/// of a longer suffix. `*.example.com` covers any number of labels in front of
/// `example.com`, and not `example.com` itself.
fn covers(wide: &str, narrow: &str) -> bool {
    let Some(suffix) = wide.strip_prefix('*') else {
        return false;
    };
    let narrow = narrow.strip_prefix('*').unwrap_or(narrow);
    narrow.len() > suffix.len() && narrow.ends_with(suffix)
}

/// Whether this is a DNS name or a wildcard of one: what a route may claim.
pub fn is_valid(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    !rest.is_empty()
        && rest.len() <= 253
        && rest.parse::<std::net::IpAddr>().is_err()
        && rest.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'-')
        && bytes.first() != Some(&b'-')
        && bytes.last() != Some(&b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_without_a_hostname_takes_what_the_route_says() {
        assert_eq!(
            intersect(None, "A.example.com").as_deref(),
            Some("a.example.com")
        );
        assert_eq!(
            intersect(Some(""), "a.example.com").as_deref(),
            Some("a.example.com")
        );
    }

    #[test]
    fn the_narrower_of_two_overlapping_names_remains() {
        let cases = [
            ("*.example.com", "a.example.com", Some("a.example.com")),
            ("*.example.com", "a.b.example.com", Some("a.b.example.com")),
            ("a.example.com", "*.example.com", Some("a.example.com")),
            ("*.example.com", "*.b.example.com", Some("*.b.example.com")),
            ("*.b.example.com", "*.example.com", Some("*.b.example.com")),
            ("*.example.com", "*.example.com", Some("*.example.com")),
            ("a.example.com", "a.example.com", Some("a.example.com")),
        ];
        for (listener, route, want) in cases {
            assert_eq!(
                intersect(Some(listener), route).as_deref(),
                want,
                "{listener} and {route}"
            );
        }
    }

    #[test]
    fn names_that_share_nothing_do_not_meet() {
        for (listener, route) in [
            ("*.example.com", "example.com"),
            ("*.example.com", "a.example.org"),
            ("a.example.com", "b.example.com"),
            ("*.example.com", "aexample.com"),
        ] {
            assert_eq!(
                intersect(Some(listener), route),
                None,
                "{listener} and {route}"
            );
        }
    }

    #[test]
    fn addresses_and_broken_names_are_not_hostnames() {
        for bad in [
            "",
            "*",
            "*.",
            "10.0.0.1",
            "a..b",
            "-a.example.com",
            "a_b.example.com",
            "a.*.b",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
        for good in ["a", "a.example.com", "*.example.com", "A-1.example.com"] {
            assert!(is_valid(good), "{good}");
        }
    }
}
