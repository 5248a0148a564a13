//! The user stories, told to real clusters.
//!
//! Owns the stage they are played on: a lab with our images and our chart
//! installed, tenants on it, workers that join them, pods inside. The stories
//! themselves are in `tests/`. Everything here does what a user would do, with
//! the tools a user has: helm, kubectl, kubeadm.

mod crowd;
mod etcd;
pub mod front_door;
pub mod haproxy;
mod load;
mod pod_load;
mod pods;
pub mod promises;
mod resident;
mod stage;
mod tenant;
mod watch;

pub use crowd::{Crowd, Figures, Target};
pub use etcd::{Etcd, Login};
pub use load::Load;
pub use pod_load::PodLoad;
pub use pods::Pod;
pub use resident::Resident;
pub use stage::{Stage, wait_for};
pub use tenant::Tenant;
pub use watch::Watch;
