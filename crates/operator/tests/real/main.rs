//! The operator against real programs: etcd and kube-apiserver, started by each test on loopback.

mod etcd;
mod programs;
