//! Builders: from validated values to objects. Each is a total function; none reads
//! anything but its arguments.

pub(crate) mod deployment;
pub(crate) mod disruption;
pub(crate) mod front_door;
pub(crate) mod inside;
pub(crate) mod kubeadm;
pub(crate) mod kubelet;
pub(crate) mod meta;
pub(crate) mod network_policy;
pub(crate) mod pki;
pub(crate) mod service;
