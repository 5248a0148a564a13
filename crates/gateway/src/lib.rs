//! The SNI passthrough front door, as a library.
//!
//! A [`Router`] holds an immutable [`Table`] of routes; whoever feeds it (a file,
//! or a Kubernetes controller) makes a new table from the old one and swaps it in.
//! The [`Gateway`] asks it once per connection, on top of [`steward_wire`]'s
//! engine. Nothing here opens TLS.

pub mod admin;
pub mod backend;
pub mod capacity;
pub mod cli;
pub mod file;
pub mod host;
pub mod kubernetes;
pub mod limits;
pub mod metrics;
pub mod proxy;
pub mod reload;
pub mod route;
pub mod run;
pub mod shares;
pub mod sources;
pub mod spec;
pub mod table;
pub mod trie;

pub use host::Host;
pub use proxy::{Gateway, Trust};
pub use route::Route;
pub use spec::{ProxyVersion, RouteSpec};
pub use table::{Router, Table};
