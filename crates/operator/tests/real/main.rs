//! The operator against real programs: etcd and kube-apiserver, started by the tests on loopback.

mod crash;
mod election;
mod engine;
mod etcd;
mod faults;
mod harness;
mod inside;
mod programs;
mod rbac;
mod rest;
mod tenant;
mod troubles;
