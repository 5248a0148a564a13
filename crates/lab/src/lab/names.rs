//! What a lab's name server is told.

use std::net::Ipv4Addr;

use super::Lab;
use crate::{
    Error,
    dns::{self, Mood},
};

impl Lab {
    /// Answers a name, or with `*.DOMAIN` every name below a domain.
    pub fn dns_set(&self, name: &str, address: Ipv4Addr) -> Result<(), Error> {
        let name = dns_name(name)?;
        dns::change(self, |zone| {
            zone.names.insert(name, address);
        })
    }

    /// Forgets a name.
    pub fn dns_unset(&self, name: &str) -> Result<(), Error> {
        let name = dns_name(name)?;
        dns::change(self, |zone| {
            zone.names.remove(&name);
        })
    }

    /// Breaks the name server, or mends it.
    pub fn dns_mood(&self, mood: Mood) -> Result<(), Error> {
        dns::change(self, |zone| zone.mood = mood)
    }
}

fn dns_name(given: &str) -> Result<String, Error> {
    let name = given.trim_end_matches('.').to_ascii_lowercase();
    let rest = name.strip_prefix("*.").unwrap_or(&name);
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let label = |l: &str| (1..=63).contains(&l.len()) && l.chars().all(fine);
    if rest.len() <= 253 && rest.split('.').all(label) {
        return Ok(name);
    }
    Err(Error::Invalid(format!(
        "{given:?} is not a name: use one like t1.example.com, or *.example.com for all below it"
    )))
}
