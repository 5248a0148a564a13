//! Real clusters on one machine, for the demo, the tests and the benchmarks.
//!
//! Two sizes. [`fixture::ApiServer`] is etcd and an API server on loopback, for
//! tests of controllers: seconds to start, no root needed. [`Lab`] is a whole
//! management cluster with a real node, worker hosts, a client, a router, a name
//! server and a cloud, each host in namespaces of its own: root, and most of a
//! minute.

mod archive;
mod cgroup;
pub mod cli;
pub mod cloud;
mod cluster;
pub mod dns;
mod error;
pub mod faults;
pub mod fixture;
mod forward;
mod guest;
mod host;
mod host_id;
pub mod images;
pub mod init;
mod lab;
mod layout;
mod logs;
mod machine;
mod net;
mod node;
pub mod parts;
mod programs;
pub mod progress;
mod supplies;
mod sweep;
mod usage;
mod wait;
mod witness;

pub use cluster::Cluster;
pub use error::Error;
pub use forward::Forward;
pub use guest::Guest;
pub use host::Host;
pub use host_id::{HostId, LOAD_BALANCERS, LabName, MOST_WORKERS, Network};
pub use init::{Nudge, Unit};
pub use lab::{Builder, KUBERNETES, Lab};
pub use layout::Layout;
pub use wait::{Deadline, poll};
