//! Looking into certificates: what one says, and what about it is not as it should
//! be. The same answers serve rotation, the doctor and the status.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData as _};
use sha2::{Digest as _, Sha256};
use x509_parser::{
    certificate::X509Certificate,
    extensions::GeneralName,
    pem::{Pem, parse_x509_pem},
    x509::X509Name,
};

use crate::{Error, Pair, Request, San, Usage};

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Subject CN.
    pub common_name: String,
    /// Subject O.
    pub organization: Option<String>,
    /// Names and addresses it answers to.
    pub sans: BTreeSet<San>,
    /// First moment of validity.
    pub not_before: Timestamp,
    /// Last moment of validity.
    pub not_after: Timestamp,
    /// Whether it may sign others.
    pub is_ca: bool,
    /// Whether a server may show it.
    pub server: bool,
    /// Whether a client may show it.
    pub client: bool,
    spki: Vec<u8>,
}

impl Facts {
    /// How long it is valid in all.
    pub fn life(&self) -> Duration {
        self.not_after
            .duration_since(self.not_before)
            .unsigned_abs()
    }
}

/// What a certificate should be like.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Subject, usage and names.
    pub request: &'a Request,
    /// Certificate of the authority that must have signed it.
    pub authority: &'a str,
    /// The time.
    pub now: Timestamp,
    /// How long before its end it is renewed; a third of its life without it.
    pub renew_before: Option<Duration>,
}

/// One way in which a certificate is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// It can't be read.
    Unreadable(String),
    /// Key and certificate don't belong together.
    KeyMismatch,
    /// Another authority signed it.
    OtherAuthority,
    /// It ends, or ended, at that time.
    Expiring(Timestamp),
    /// The names it answers to have changed.
    Names {
        /// Wanted and not there.
        missing: Vec<San>,
        /// There and not wanted.
        extra: Vec<San>,
    },
    /// It is made out to someone else.
    Subject(String),
    /// It is for something else.
    Usage,
}

/// Reads the first certificate of a PEM text.
pub fn inspect(pem: &str) -> Result<Facts, Error> {
    let block = block(pem)?;
    let certificate = parse(&block)?;
    facts(&certificate)
}

/// `sha256:…` of the authority's public key, as `kubeadm join` wants it.
pub fn ca_hash(pem: &str) -> Result<String, Error> {
    let facts = inspect(pem)?;
    Ok(format!(
        "sha256:{}",
        hex::encode(Sha256::digest(&facts.spki))
    ))
}

/// When a certificate is due: with a third of its life left unless something else is asked for, and
/// never with more than half, so that a short-lived one is not renewed for ever.
pub fn renew_at(facts: &Facts, renew_before: Option<Duration>) -> Timestamp {
    let life = facts.life();
    facts
        .not_after
        .checked_sub(renew_before.map_or(life / 3, |asked| asked.min(life / 2)))
        .unwrap_or(facts.not_after)
}

/// All that is not as it should be; empty if the pair can stay.
pub fn drift(found: &Pair, wanted: &Wanted<'_>) -> Vec<Drift> {
    match examine(found, wanted) {
        Ok(drifts) => drifts,
        Err(error) => vec![Drift::Unreadable(error.to_string())],
    }
}

fn examine(found: &Pair, wanted: &Wanted<'_>) -> Result<Vec<Drift>, Error> {
    let block = block(&found.certificate)?;
    let certificate = parse(&block)?;
    let facts = facts(&certificate)?;
    let key = KeyPair::from_pem(&found.key).map_err(Error::ReadKey)?;
    let authority_block = self::block(wanted.authority)?;
    let authority = parse(&authority_block)?;

    let mut drifts = Vec::new();
    let mut note = |wrong: bool, what: Drift| {
        if wrong {
            drifts.push(what);
        }
    };
    note(!facts.has_key(&key), Drift::KeyMismatch);
    note(!signed_by(&certificate, &authority), Drift::OtherAuthority);
    note(
        wanted.now >= renew_at(&facts, wanted.renew_before),
        Drift::Expiring(facts.not_after),
    );
    let request = wanted.request;
    let sans: BTreeSet<San> = request.sans.iter().cloned().collect();
    note(
        sans != facts.sans,
        Drift::Names {
            missing: sans.difference(&facts.sans).cloned().collect(),
            extra: facts.sans.difference(&sans).cloned().collect(),
        },
    );
    note(
        facts.common_name != request.common_name || facts.organization != request.organization,
        Drift::Subject(facts.common_name.clone()),
    );
    let (server, client) = match request.usage {
        Usage::Server => (true, false),
        Usage::Client => (false, true),
        Usage::Both => (true, true),
    };
    note(
        (facts.server, facts.client) != (server, client),
        Drift::Usage,
    );
    Ok(drifts)
}

impl Facts {
    /// Whether this is the key of the certificate.
    pub fn has_key(&self, key: &KeyPair) -> bool {
        key.subject_public_key_info() == self.spki
    }
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |names: &[San]| {
            names
                .iter()
                .map(San::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self {
            Self::Unreadable(why) => write!(f, "it can't be read ({why})"),
            Self::KeyMismatch => f.write_str("its key belongs to another certificate"),
            Self::OtherAuthority => f.write_str("another authority signed it"),
            Self::Expiring(at) => write!(f, "it ends at {at}"),
            Self::Names { missing, extra } if extra.is_empty() => {
                write!(f, "it lacks {}", list(missing))
            }
            Self::Names { missing, extra } if missing.is_empty() => {
                write!(f, "it still names {}", list(extra))
            }
            Self::Names { missing, extra } => {
                write!(
                    f,
                    "it lacks {} and still names {}",
                    list(missing),
                    list(extra)
                )
            }
            Self::Subject(found) => write!(f, "it is made out to {found}"),
            Self::Usage => f.write_str("it is for another use"),
        }
    }
}

fn block(pem: &str) -> Result<Pem, Error> {
    let (_, block) = parse_x509_pem(pem.as_bytes())
        .map_err(|error| Error::ReadCertificate(error.to_string()))?;
    if block.label == "CERTIFICATE" {
        Ok(block)
    } else {
        Err(Error::ReadCertificate(format!(
            "found a block of type {}",
            block.label
        )))
    }
}

fn parse(block: &Pem) -> Result<X509Certificate<'_>, Error> {
    block
        .parse_x509()
        .map_err(|error| Error::ReadCertificate(error.to_string()))
}

fn facts(certificate: &X509Certificate<'_>) -> Result<Facts, Error> {
    let unreadable = |error: &dyn std::fmt::Display| Error::ReadCertificate(error.to_string());
    let usage = certificate
        .extended_key_usage()
        .map_err(|error| unreadable(&error))?;
    let sans = certificate
        .subject_alternative_name()
        .map_err(|error| unreadable(&error))?;
    Ok(Facts {
        common_name: first(certificate.subject().iter_common_name()).unwrap_or_default(),
        organization: organization(certificate.subject()),
        sans: sans
            .map(|found| names(&found.value.general_names))
            .unwrap_or_default(),
        not_before: time(certificate.validity().not_before.timestamp())?,
        not_after: time(certificate.validity().not_after.timestamp())?,
        is_ca: certificate.is_ca(),
        server: usage.as_ref().is_some_and(|usage| usage.value.server_auth),
        client: usage.as_ref().is_some_and(|usage| usage.value.client_auth),
        spki: certificate.public_key().raw.to_vec(),
    })
}

fn time(seconds: i64) -> Result<Timestamp, Error> {
    Timestamp::from_second(seconds).map_err(|error| Error::ReadCertificate(error.to_string()))
}

fn organization(name: &X509Name<'_>) -> Option<String> {
    first(name.iter_organization())
}

fn first<'a>(
    mut values: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> Option<String> {
    values
        .next()
        .and_then(|value| value.as_str().ok())
        .map(str::to_owned)
}

fn names(names: &[GeneralName<'_>]) -> BTreeSet<San> {
    names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(San::Dns((*name).to_ascii_lowercase())),
            GeneralName::IPAddress(bytes) => address(bytes).map(San::Ip),
            _ => None,
        })
        .collect()
}

fn address(bytes: &[u8]) -> Option<std::net::IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(Into::into)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(Into::into))
        .ok()
}

/// Whether this authority signed that certificate, both PEM. What can't be read is not signed.
pub fn is_from(certificate: &str, authority: &str) -> bool {
    let (Ok(certificate), Ok(authority)) = (block(certificate), block(authority)) else {
        return false;
    };
    match (parse(&certificate), parse(&authority)) {
        (Ok(certificate), Ok(authority)) => signed_by(&certificate, &authority),
        _ => false,
    }
}

fn signed_by(certificate: &X509Certificate<'_>, authority: &X509Certificate<'_>) -> bool {
    certificate.issuer() == authority.subject()
        && certificate
            .verify_signature(Some(authority.public_key()))
            .is_ok()
}
