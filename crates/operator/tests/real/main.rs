//! The operator against real programs: etcd and kube-apiserver, started by the tests on loopback.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    clippy::large_futures,
    reason = "these are tests, helpers included: whatever fails must stop them"
)]

mod bad_input;
mod claims;
mod crash;
mod egress;
mod election;
mod engine;
mod etcd;
mod faults;
mod front_doors;
mod harness;
mod hostile;
mod inside;
mod keys;
mod ownership;
mod programs;
mod rbac;
mod rest;
mod tenant;
mod troubles;
