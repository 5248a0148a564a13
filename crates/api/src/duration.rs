//! Durations as Kubernetes manifests write them: `720h`, `1h30m`, `45s`.
//!
//! Only hours, minutes and seconds: days are ambiguous in Go's notation and fractions are never meant.

use std::time::Duration;

/// The pattern the CRDs enforce; [`parse`] accepts exactly these texts.
pub const PATTERN: &str = "^([0-9]{1,7}h)?([0-9]{1,7}m)?([0-9]{1,7}s)?$";

/// Why a text is not a duration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is not a duration: write hours, minutes and seconds such as 720h, 1h30m or 45s")]
pub struct InvalidDuration(pub String);

/// Parses `1h30m` and the like.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration(text.to_owned());
    if text.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0_u64;
    let mut rest = text;
    for (unit, factor) in [('h', 3600), ('m', 60), ('s', 1)] {
        let Some((number, tail)) = rest.split_once(unit) else {
            continue;
        };
        let short = (1..=7).contains(&number.len());
        if !short || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        seconds += number.parse::<u64>().map_err(|_| invalid())? * factor;
        rest = tail;
    }
    if rest.is_empty() {
        Ok(Duration::from_secs(seconds))
    } else {
        Err(invalid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_minutes_and_seconds_add_up() {
        assert_eq!(parse("1h30m5s"), Ok(Duration::from_secs(5405)));
        assert_eq!(parse("8760h"), Ok(Duration::from_hours(8760)));
        assert_eq!(parse("45s"), Ok(Duration::from_secs(45)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "1d",
            "1.5h",
            "-1h",
            "h",
            "5m1h",
            "12345678h",
            "1h ",
            "10",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
