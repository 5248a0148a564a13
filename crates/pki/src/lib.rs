//! Certificate authorities, certificates and kubeconfigs as pure functions.
//!
//! This crate owns everything X.509 about a tenant: making authorities and
//! certificates, looking into existing ones, deciding when one has to be replaced,
//! and writing kubeconfigs. It refuses to read clocks and files: the time is an
//! argument, what goes in and comes out is PEM text. Randomness comes from a
//! [`KeySource`], so that tests can bring their own.

mod authority;
mod error;
mod inspect;
mod keys;
mod kubeconfig;
mod presented;
mod token;

pub use authority::{Authority, Pair, Request, San, Usage, Validity};
pub use error::Error;
pub use inspect::{Drift, Facts, Wanted, ca_hash, drift, inspect, is_from, renew_at};
pub use keys::{KeyKind, KeySource, ServiceAccountKeys, SystemKeys, service_account_drift};
pub use kubeconfig::{Kubeconfig, Reading};
pub use presented::{is_signed_by, to_pem};
pub use token::BootstrapToken;
