//! Host names as routes compare them: lower case, no trailing dot, nothing unusual inside.
//!
//! Folded once here, so that no later comparison has to think about case. Held inline: a name
//! on the data path costs no allocation.

use std::{fmt, hash, net::IpAddr, ops::Deref, str::FromStr};

/// The longest host name, RFC 1035 without the root label.
const MAX_NAME: usize = 253;
/// The longest label.
const MAX_LABEL: usize = 63;

/// A valid host name in lower case without a trailing dot.
#[derive(Clone, Copy)]
pub struct Name {
    len: u8,
    bytes: [u8; MAX_NAME],
}

/// What keeps a string from being a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadName {
    /// No character.
    #[error("is empty")]
    Empty,
    /// More than 253 characters.
    #[error("is longer than 253 characters")]
    TooLong,
    /// Two dots in a row, or one at the start.
    #[error("has an empty label between its dots")]
    EmptyLabel,
    /// A label of more than 63 characters.
    #[error("has a label longer than 63 characters")]
    LongLabel,
    /// A label that starts or ends with a hyphen.
    #[error("has a label that starts or ends with a hyphen")]
    Hyphen,
    /// Something other than letters, digits, hyphens, underscores and dots.
    #[error("has a character other than letters, digits, '-', '_' and '.'")]
    Character,
    /// An IP address.
    #[error("is an address, not a name")]
    Address,
}

impl Name {
    /// Checks and folds `raw`.
    pub fn parse(raw: &[u8]) -> Result<Self, BadName> {
        let raw = raw.strip_suffix(b".").unwrap_or(raw);
        if raw.is_empty() {
            return Err(BadName::Empty);
        }
        let mut bytes = [0; MAX_NAME];
        let len = u8::try_from(raw.len()).map_err(|_| BadName::TooLong)?;
        let place = bytes.get_mut(..raw.len()).ok_or(BadName::TooLong)?;
        place.copy_from_slice(raw);
        place.make_ascii_lowercase();
        for label in place.split(|&byte| byte == b'.') {
            check_label(label)?;
        }
        let name = Self { len, bytes };
        // No top-level domain is all digits, so only such names can be addresses. (An IPv6
        // address has colons and did not get here.)
        let last_is_digit = raw.last().is_some_and(u8::is_ascii_digit);
        if last_is_digit && IpAddr::from_str(&name).is_ok() {
            return Err(BadName::Address);
        }
        Ok(name)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len));
        // Only ASCII passed the check, so the fallback is never taken.
        bytes
            .and_then(|bytes| str::from_utf8(bytes).ok())
            .unwrap_or_default()
    }
}

fn check_label(label: &[u8]) -> Result<(), BadName> {
    let (Some(&first), Some(&last)) = (label.first(), label.last()) else {
        return Err(BadName::EmptyLabel);
    };
    if label.len() > MAX_LABEL {
        return Err(BadName::LongLabel);
    }
    if !label
        .iter()
        .all(|&b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    {
        return Err(BadName::Character);
    }
    if first == b'-' || last == b'-' {
        return Err(BadName::Hyphen);
    }
    Ok(())
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(raw: &str) -> Result<Self, BadName> {
        Self::parse(raw.as_bytes())
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Name {}

impl hash::Hash for Name {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}
