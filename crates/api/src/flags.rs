//! Names of command line flags, compared as the programs of a control plane compare them.
//!
//! Kubernetes' programs read `--etcd_prefix` as `--etcd-prefix`, and the last of two wins. Whoever
//! compares the text of an argument with a flag's name would miss the other spelling. All comparisons
//! of flags go through this module; it knows no particular flag.

/// The flag that an argument sets, as `etcd-prefix`: without dashes in front and without its
/// value. `_` and `-` are the same; capital letters are not the same as small ones.
pub fn name(argument: &str) -> String {
    let flag = argument.split_once('=').map_or(argument, |(flag, _)| flag);
    let short = flag.strip_prefix('-').unwrap_or(flag);
    short
        .strip_prefix('-')
        .unwrap_or(short)
        .trim()
        .replace('_', "-")
}

/// Whether two arguments set the same flag.
pub fn same(one: &str, other: &str) -> bool {
    name(one) == name(other)
}

/// The value that arguments give a flag: the last one, as the programs do.
pub fn value<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let wanted = name(flag);
    arguments.iter().rev().find_map(|argument| {
        let (flag, value) = argument.split_once('=')?;
        (name(flag) == wanted).then(|| value.trim())
    })
}

/// Arguments with those taken out that set a flag for which `unwanted` is true: what is kept, and
/// what is not. A value that stands alone goes with its flag.
pub fn without(
    arguments: &[String],
    unwanted: impl Fn(&str) -> bool,
) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    let mut lacks_value = false;
    for argument in arguments {
        let alone = !argument.starts_with('-');
        let out = if alone {
            lacks_value
        } else {
            unwanted(argument)
        };
        lacks_value = !alone && out && !argument.contains('=');
        if out { &mut taken } else { &mut kept }.push(argument.clone());
    }
    (kept, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn underscores_are_hyphens_and_case_counts() {
        for spelt in [
            "--etcd-prefix=/x",
            "--etcd_prefix=/x",
            "--etcd_prefix",
            "-etcd-prefix=/a=b",
        ] {
            assert!(same(spelt, "--etcd-prefix"), "{spelt}");
        }
        for other in ["--Etcd-Prefix=/x", "--etcd-prefixes=/x", "--etcdprefix=/x"] {
            assert!(!same(other, "--etcd-prefix"), "{other}");
        }
    }

    #[test]
    fn the_last_value_counts_however_it_is_spelt() {
        let all = texts(&["--proxy-server-host=a", "--proxy_server-host=b", "--v=2"]);
        assert_eq!(value(&all, "--proxy-server-host"), Some("b"));
        assert_eq!(value(&all, "--proxy-server-port"), None);
    }

    #[test]
    fn a_value_on_its_own_goes_with_its_flag() {
        let all = texts(&["--etcd_prefix", "/x", "--v", "2", "--etcd-prefix=/y", "z"]);
        let (kept, taken) = without(&all, |argument| same(argument, "--etcd-prefix"));
        assert_eq!(kept, ["--v", "2", "z"]);
        assert_eq!(taken, ["--etcd_prefix", "/x", "--etcd-prefix=/y"]);
    }
}
