//! Real clusters on one machine, for the demo, the tests and the benchmarks.
//!
//! Two sizes. [`fixture::ApiServer`] is etcd and an API server on loopback, for
//! tests of controllers: seconds to start, no root needed. [`Lab`] is a whole
//! management cluster with real nodes, worker hosts, a client, a router, a name
//! server and a cloud, each host in namespaces of its own: root, and most of a
//! minute.

pub mod fixture;
mod programs;
mod wait;

pub use programs::{Programs, ProgramsError};
pub use wait::{Deadline, poll};
