//! Who may connect to a route: an annotation on the object that claims it.
//!
//! Owns reading that annotation. What can't be read admits nobody: a typing error
//! must not open a door.

use std::collections::BTreeMap;

use ipnet::IpNet;
use tracing::warn;

/// Source ranges, separated by commas.
pub const ALLOWED: &str = "steward.butlerlabs.dev/allowed-source-ranges";

/// The ranges an object admits; none at all means everyone.
pub fn allowed(owner: &str, annotations: Option<&BTreeMap<String, String>>) -> Vec<IpNet> {
    let Some(text) = annotations.and_then(|a| a.get(ALLOWED)) else {
        return Vec::new();
    };
    let words: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|w| !w.is_empty())
        .collect();
    let ranges: Vec<IpNet> = words
        .iter()
        .filter_map(|word| {
            let range = word.parse();
            if range.is_err() {
                warn!(
                    owner,
                    range = word,
                    "{ALLOWED}: this is not an address range; write one such as 192.0.2.0/24"
                );
            }
            range.ok()
        })
        .collect();
    if ranges.is_empty() && !words.is_empty() {
        vec![nobody()]
    } else {
        ranges
    }
}

/// A range that no client can come from.
fn nobody() -> IpNet {
    IpNet::V4(ipnet::Ipv4Net::from(std::net::Ipv4Addr::BROADCAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let annotations = BTreeMap::from([(ALLOWED.to_owned(), text.to_owned())]);
        allowed("Ingress a/b", Some(&annotations))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn ranges_are_read_and_no_annotation_admits_everyone() {
        assert_eq!(
            read("192.0.2.0/24, 2001:db8::/32"),
            ["192.0.2.0/24", "2001:db8::/32"]
        );
        assert!(allowed("Ingress a/b", None).is_empty());
    }

    #[test]
    fn what_cannot_be_read_admits_nobody() {
        assert_eq!(read("office"), ["255.255.255.255/32"]);
        assert_eq!(read("office, 192.0.2.0/24"), ["192.0.2.0/24"]);
    }
}
