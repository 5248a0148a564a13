//! Versions of etcd that keep tenants apart.
//!
//! Tenants of a shared etcd are kept apart by its users and roles alone. In 2026 several ways around them were
//! published (nested transactions, `PrevKv`, open-ended watches, calls that needed no user) and mended in the
//! releases below. Refuses: judging an etcd that one tenant has for itself.

/// First release of each line that has every correction.
const MENDED: [(u64, u64, u64); 3] = [(3, 5, 33), (3, 6, 14), (3, 7, 1)];

/// Whether tenants of an etcd of this version can't read each other's data. Unknown versions are not trusted.
pub fn keeps_tenants_apart(version: &str) -> bool {
    let Some(found) = parse(version) else {
        return false;
    };
    let line = MENDED
        .iter()
        .find(|mended| (mended.0, mended.1) == (found.0, found.1));
    let newest = MENDED[MENDED.len() - 1];
    match line {
        Some(mended) => found >= *mended,
        None => found > newest,
    }
}

fn parse(version: &str) -> Option<(u64, u64, u64)> {
    let plain = version.trim_start_matches('v');
    // A release candidate is older than the release that it became.
    if plain.contains('-') {
        return None;
    }
    let mut numbers = plain.split('.').map(|part| part.parse().ok());
    let (major, minor, patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some((major, minor, patch))
}

#[cfg(test)]
mod tests {
    use super::keeps_tenants_apart;

    #[test]
    fn mended_releases_are_trusted_and_nothing_else_is() {
        for good in [
            "3.5.33", "3.6.14", "3.6.16", "v3.6.16", "3.7.1", "3.8.0", "4.0.0",
        ] {
            assert!(keeps_tenants_apart(good), "{good}");
        }
        for bad in [
            "3.4.44",
            "3.5.32",
            "3.6.8",
            "3.6.13",
            "3.7.0",
            "3.6.14-rc.0",
            "3.6",
            "",
            "not decided",
            "3.6.14.1",
        ] {
            assert!(!keeps_tenants_apart(bad), "{bad}");
        }
    }
}
