//! The operator against real programs: etcd and kube-apiserver, started by the tests on loopback.

mod engine;
mod etcd;
mod harness;
mod programs;
mod tenant;
