//! Arguments: ours, the user's, and who wins.
//!
//! Flags are compared as the programs compare them, never as text: a second spelling of a flag that
//! must be so would otherwise come after ours and win.

use steward_api::flags;

/// Builds the arguments of one program. Flags that must be as we say win over the user's;
/// our defaults yield to them.
#[derive(Debug, Default)]
pub(super) struct Args {
    fixed: Vec<(String, String)>,
    defaults: Vec<(String, String)>,
}

impl Args {
    /// A flag that must be so.
    pub(super) fn must(mut self, flag: &str, value: impl Into<String>) -> Self {
        self.fixed.push((flag.into(), value.into()));
        self
    }

    /// A flag that the user may set otherwise.
    pub(super) fn prefer(mut self, flag: &str, value: impl Into<String>) -> Self {
        self.defaults.push((flag.into(), value.into()));
        self
    }

    /// A flag that must be so, if there is a value.
    pub(super) fn maybe(self, flag: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.must(flag, value),
            None => self,
        }
    }

    /// All arguments: ours, then the user's in their order. What of the user's was left out
    /// because ours says otherwise is added to `ignored`.
    pub(super) fn merge(self, user: &[String], ignored: &mut Vec<String>) -> Vec<String> {
        let given = |flag: &str| user.iter().any(|arg| flags::same(arg, flag));
        let defaults = self.defaults.iter().filter(|(flag, _)| !given(flag));
        let ours: Vec<String> = self
            .fixed
            .iter()
            .chain(defaults)
            .map(|(flag, value)| text(flag, value))
            .collect();
        let fixed = |arg: &str| self.fixed.iter().any(|(flag, _)| flags::same(arg, flag));
        let (kept, dropped) = flags::without(user, fixed);
        ignored.extend(dropped.into_iter().filter(|arg| !ours.contains(arg)));
        ours.into_iter().chain(kept).collect()
    }
}

fn text(flag: &str, value: &str) -> String {
    format!("{flag}={value}")
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn merged(user: &[&str]) -> (Vec<String>, Vec<String>) {
        let user: Vec<String> = user.iter().map(ToString::to_string).collect();
        let mut ignored = Vec::new();
        let args = Args::default().must("--port", "1").prefer("--level", "2");
        (args.merge(&user, &mut ignored), ignored)
    }

    #[test]
    fn ours_win_where_they_must_and_the_loss_is_told() {
        let (all, ignored) = merged(&["--port=9", "--other=3"]);
        assert_eq!(all, ["--port=1", "--level=2", "--other=3"]);
        assert_eq!(ignored, ["--port=9"]);
    }

    #[test]
    fn defaults_yield_and_repeated_flags_stay_in_order() {
        let (all, ignored) = merged(&["--level=5", "--x=1", "--x=2"]);
        assert_eq!(all, ["--port=1", "--level=5", "--x=1", "--x=2"]);
        assert!(ignored.is_empty());
    }

    #[test]
    fn the_same_value_again_is_no_loss() {
        assert_eq!(
            merged(&["--port=1"]),
            (vec!["--port=1".into(), "--level=2".into()], vec![])
        );
    }
}
