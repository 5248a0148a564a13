//! Datastores: what the operator asks of one, whatever it is made of.
//!
//! Owns: the small trait every driver implements, and its errors. Refuses: knowing tenants; it hears of
//! users and prefixes only. Every call may be repeated: doing it twice changes nothing.

use std::{future::Future, pin::Pin, time::Duration};

use steward_api::conditions::Reason;

use crate::{datastore::claims::Account, error::Class};

pub mod claims;
pub mod connections;
pub mod etcd;
pub mod upkeep;

/// What a call to a datastore gives back; boxed so that drivers can live behind `dyn`.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// One datastore.
pub trait Datastore: Send + Sync {
    /// Records that user and schema belong to the tenant, unless they are another's. Comes before anything
    /// that gives the tenant credentials.
    fn claim<'a>(&'a self, account: &'a Account) -> Answer<'a, ()>;

    /// Makes sure the user may read and write the schema, and nothing else. Heals what someone changed.
    /// Says whether anything had to be done. Refuses what is not claimed for the tenant.
    fn ensure<'a>(&'a self, account: &'a Account) -> Answer<'a, bool>;

    /// Removes the data, the user and its rights, as far as they are the tenant's. Says what it left because
    /// it is not.
    fn remove<'a>(&'a self, account: &'a Account) -> Answer<'a, Option<String>>;

    /// How it is.
    fn health(&self) -> Answer<'_, Health>;
}

/// How a datastore is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What the server calls itself.
    pub version: String,
    /// Bytes its database takes on disk.
    pub bytes: u64,
    /// Bytes of them that hold something.
    pub in_use: u64,
    /// Bytes it may take, where known.
    pub quota: Option<u64>,
    /// It refuses writes because it is full.
    pub full: bool,
    /// Whether authentication is on, where the driver can tell.
    pub authenticated: bool,
    /// How long the answer took.
    pub latency: Duration,
}

/// A call to a datastore that failed.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// No answer.
    #[error(
        "datastore {endpoints} can't be reached: {reason}; check that it runs, and that address and certificates fit"
    )]
    Unreachable {
        /// Where it was dialled.
        endpoints: String,
        /// What the connection said.
        reason: String,
    },
    /// An answer, and it was no.
    #[error(
        "datastore {endpoints} refused to {what}: {reason}; check that the client certificate belongs to an administrator (CN root)"
    )]
    Refused {
        /// Where.
        endpoints: String,
        /// What was asked.
        what: &'static str,
        /// What it said.
        reason: String,
    },
    /// It takes no more data.
    #[error(
        "datastore {endpoints} is full and refuses writes: raise its quota, or compact and defragment it, then disarm the alarm"
    )]
    Full {
        /// Where.
        endpoints: String,
    },
    /// A user or schema that another tenant has.
    #[error(
        "the {what} {name} of the datastore belongs to {owner}: choose another {field}, or ask who runs the datastore"
    )]
    Taken {
        /// `user` or `schema`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The field that names it.
        field: &'static str,
        /// Who has it.
        owner: String,
    },
    /// Certificates or addresses that can't be used at all.
    #[error("datastore configuration: {reason}")]
    Configuration {
        /// What is wrong and what to do.
        reason: String,
    },
}

impl Error {
    /// How a condition names it.
    pub const fn reason(&self) -> Reason {
        match self {
            Self::Unreachable { .. } => Reason::DatastoreUnreachable,
            Self::Refused { .. } => Reason::DatastoreDenied,
            Self::Full { .. } => Reason::DatastoreFull,
            Self::Taken { .. } => Reason::DatastoreNameTaken,
            Self::Configuration { .. } => Reason::SecretInvalid,
        }
    }

    /// What this error asks for.
    pub const fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. } | Self::Full { .. } | Self::Refused { .. } => Class::Transient,
            Self::Configuration { .. } | Self::Taken { .. } => Class::Invalid,
        }
    }
}
