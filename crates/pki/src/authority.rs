//! Authorities and the certificates they sign.
//!
//! An [`Authority`] is either new, or read from PEM: ours of earlier, or one the
//! user brought. Nothing here decides when a certificate is due; see `inspect`.

use std::{net::IpAddr, str::FromStr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use time::OffsetDateTime;

use crate::{Error, KeyKind, KeySource, inspect::inspect};

/// Clocks of nodes may be behind ours: a certificate is valid a little before it
/// was made, as kubeadm does it.
const BACKDATE: Duration = Duration::from_mins(5);

/// A certificate and its private key, both PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS#8.
    pub key: String,
}

/// From when to when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// First moment.
    pub not_before: Timestamp,
    /// Last moment.
    pub not_after: Timestamp,
}

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// A server shows it.
    Server,
    /// A client shows it.
    Client,
    /// Both, as members of etcd do among each other.
    Both,
}

/// A name in a certificate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum San {
    /// A DNS name, lower case.
    Dns(String),
    /// An address.
    Ip(IpAddr),
}

/// A certificate that is wished for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Subject CN: for Kubernetes clients the user name.
    pub common_name: String,
    /// Subject O: for Kubernetes clients the group.
    pub organization: Option<String>,
    /// What it is for.
    pub usage: Usage,
    /// The names it answers to.
    pub sans: Vec<San>,
}

/// A certificate that can sign others, with its key.
pub struct Authority {
    pair: Pair,
    issuer: Issuer<'static, KeyPair>,
    not_after: Timestamp,
}

impl Validity {
    /// Valid from now on, for so long.
    pub fn starting(now: Timestamp, lifetime: Duration) -> Self {
        let clamp = |time: Option<Timestamp>, otherwise| time.unwrap_or(otherwise);
        Self {
            not_before: clamp(now.checked_sub(BACKDATE).ok(), now),
            not_after: clamp(now.checked_add(lifetime).ok(), Timestamp::MAX),
        }
    }
}

impl San {
    /// An address if it is one, a DNS name otherwise.
    pub fn parse(text: &str) -> Self {
        text.parse()
            .map_or_else(|_| Self::Dns(text.to_ascii_lowercase()), Self::Ip)
    }
}

impl std::fmt::Display for San {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::Ip(address) => address.fmt(f),
        }
    }
}

impl Authority {
    /// A new authority that signs itself.
    pub fn new(
        keys: &dyn KeySource,
        kind: KeyKind,
        common_name: &str,
        validity: Validity,
    ) -> Result<Self, Error> {
        let key = keys.key_pair(kind)?;
        let mut params = params(common_name, None, validity)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyCertSign,
        ];
        // kubeadm puts the CN among the names too: some clients look nowhere else.
        params.subject_alt_names = vec![dns(common_name)?];
        let certificate = params.self_signed(&key).map_err(|source| Error::Sign {
            subject: common_name.into(),
            source,
        })?;
        let pair = Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        };
        Self::from_pair(pair)
    }

    /// An authority from its PEM texts: checks that the two belong together and that
    /// the certificate may sign.
    pub fn from_pair(pair: Pair) -> Result<Self, Error> {
        let facts = inspect(&pair.certificate)?;
        if !facts.is_ca {
            return Err(Error::NotAnAuthority {
                subject: facts.common_name,
            });
        }
        let key = KeyPair::from_pem(&pair.key).map_err(Error::ReadKey)?;
        if !facts.has_key(&key) {
            return Err(Error::KeyMismatch {
                subject: facts.common_name,
            });
        }
        let issuer = Issuer::from_ca_cert_pem(&pair.certificate, key)
            .map_err(|error| Error::ReadCertificate(error.to_string()))?;
        Ok(Self {
            pair,
            issuer,
            not_after: facts.not_after,
        })
    }

    /// Its certificate and key.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// A new certificate with a new key. It never outlives the authority.
    pub fn issue(
        &self,
        keys: &dyn KeySource,
        kind: KeyKind,
        request: &Request,
        validity: Validity,
    ) -> Result<Pair, Error> {
        let key = keys.key_pair(kind)?;
        let not_after = validity.not_after.min(self.not_after);
        let validity = Validity {
            not_after,
            ..validity
        };
        let mut params = params(
            &request.common_name,
            request.organization.as_deref(),
            validity,
        )?;
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if kind == KeyKind::Rsa2048 {
            params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        params.extended_key_usages = request.usage.purposes();
        params.subject_alt_names = request.sans.iter().map(san).collect::<Result<_, _>>()?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .map_err(|source| Error::Sign {
                subject: request.common_name.clone(),
                source,
            })?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

impl Usage {
    fn purposes(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Self::Both => {
                vec![
                    ExtendedKeyUsagePurpose::ServerAuth,
                    ExtendedKeyUsagePurpose::ClientAuth,
                ]
            }
        }
    }
}

fn params(
    common_name: &str,
    organization: Option<&str>,
    validity: Validity,
) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common_name);
    params.distinguished_name = name;
    params.not_before = offset(validity.not_before)?;
    params.not_after = offset(validity.not_after)?;
    Ok(params)
}

fn offset(time: Timestamp) -> Result<OffsetDateTime, Error> {
    OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(|_| Error::Time(time))
}

fn san(name: &San) -> Result<SanType, Error> {
    match name {
        San::Dns(name) => dns(name),
        San::Ip(address) => Ok(SanType::IpAddress(*address)),
    }
}

fn dns(name: &str) -> Result<SanType, Error> {
    rcgen::string::Ia5String::from_str(name)
        .map(SanType::DnsName)
        .map_err(|_| Error::Name {
            name: name.to_owned(),
        })
}

/// Never prints the key.
impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// Never prints the key.
impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pair.fmt(f)
    }
}
