//! A lab: made, found again, removed.
//!
//! [`Builder::up`] makes one from nothing and returns when its management cluster
//! works. What is made is written down before, so that [`Lab::down`] finds it even
//! if the maker was killed at any moment.

mod builder;
mod make;
mod names;
mod owner;
mod record;
mod tenants;

use std::path::PathBuf;

pub use self::builder::Builder;
pub(crate) use self::make::{lock_machine, own_unit};
use self::owner::Owner;
pub(crate) use self::owner::clean_up_after_owner;
pub(crate) use self::record::Record;
use crate::{
    Cluster, Error, Host, HostId, LabName, Layout, cluster,
    images::catalogue::Item,
    node,
    parts::Release,
    progress::Progress,
    supplies,
    sweep::{self, sweep},
};

/// The release of the management cluster, unless another is asked for.
pub const KUBERNETES: &str = "1.36.3";

/// A running lab. One that was made here for a test is removed when dropped; one
/// that was found by name stays.
#[derive(Debug)]
pub struct Lab {
    layout: Layout,
    record: Record,
    owner: Option<Owner>,
}

impl Lab {
    /// Settings for a lab to be made.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Finds a lab that is up.
    pub fn find(name: &LabName) -> Result<Self, Error> {
        let layout = Layout::new(name.clone());
        let record = Record::read(&layout)?;
        Ok(Self {
            layout,
            record,
            owner: None,
        })
    }

    /// Every lab of this machine.
    pub fn all() -> Vec<LabName> {
        sweep::labs()
    }

    /// Removes a lab and every trace of it. Fine if there is none.
    pub fn down(name: &LabName) -> Result<(), Error> {
        let layout = Layout::new(name.clone());
        record::end_maker(&layout);
        sweep(&layout)
    }

    /// Its name.
    pub fn name(&self) -> &LabName {
        self.layout.name()
    }

    /// The release of its management cluster, as `1.36.3`.
    pub fn kubernetes(&self) -> &str {
        &self.record.kubernetes
    }

    /// All its hosts.
    pub fn hosts(&self) -> Vec<Host> {
        HostId::all(self.record.workers)
            .into_iter()
            .map(|id| Host::new(&self.layout, id))
            .collect()
    }

    /// One of its hosts.
    pub fn host(&self, id: HostId) -> Result<Host, Error> {
        self.hosts().into_iter().find(|host| host.id() == id).ok_or_else(|| {
            Error::Invalid(format!(
                "lab {} has no host {id}: it was made with {} workers; see `steward-lab status`",
                self.name(),
                self.record.workers
            ))
        })
    }

    /// The management cluster's host.
    pub fn mgmt(&self) -> Host {
        Host::new(&self.layout, HostId::Mgmt)
    }

    /// The host outside of everything.
    pub fn client_host(&self) -> Host {
        Host::new(&self.layout, HostId::Client)
    }

    /// The host that joins the networks.
    pub fn router(&self) -> Host {
        Host::new(&self.layout, HostId::Router)
    }

    /// A worker host, counted from 1.
    pub fn worker(&self, number: u8) -> Result<Host, Error> {
        self.host(HostId::Worker(number))
    }

    /// The management cluster.
    pub fn cluster(&self) -> Result<Cluster, Error> {
        Cluster::on(&self.mgmt())
    }

    /// Makes another cluster, with its control plane and first node on a host that
    /// is in no cluster yet, as `kubeadm init` would.
    pub async fn make_cluster(&self, on: HostId) -> Result<Cluster, Error> {
        let host = self.host(on)?;
        if !matches!(on, HostId::Worker(_)) {
            return Err(Error::Invalid(format!(
                "a cluster can only be made on a worker, not on {on}"
            )));
        }
        let version = format!("v{}", self.record.kubernetes);
        let cluster = cluster::start_control_plane(&host, &version).await?;
        cluster::furnish(&cluster).await?;
        cluster.wait_node(on, true).await?;
        Ok(cluster)
    }

    /// Makes images known to every node.
    pub async fn load(&self, images: &[PathBuf]) -> Result<(), Error> {
        for image in images {
            crate::archive::check(image)?;
        }
        let nodes = self.hosts().into_iter().filter(|host| host.id().is_node());
        let loads = nodes.map(|host| async move {
            for image in images {
                node::load(&host, image).await?;
            }
            Ok(())
        });
        futures::future::try_join_all(loads)
            .await
            .map(|_: Vec<()>| ())
    }

    /// Makes images of the catalogue known to every node: Traefik, another
    /// release's control plane, and so on. What is not there yet is built.
    pub async fn load_items(&self, items: &[Item], progress: &Progress) -> Result<(), Error> {
        let images = supplies::archives(items.to_vec(), progress).await?;
        self.load(&images).await
    }

    /// Puts another release's programs on a host, as its package manager would. A kubelet
    /// that runs there already is the new one from its next start.
    pub async fn install(
        &self,
        on: HostId,
        release: Release,
        progress: &Progress,
    ) -> Result<(), Error> {
        let folder = self.host(on)?.own_programs();
        let programs = supplies::kubernetes(release, progress).await?;
        supplies::link(programs.iter(), &folder)
    }

    /// Where its files are.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Leaves the lab up when this value is dropped.
    pub fn keep(mut self) {
        if let Some(owner) = self.owner.take() {
            owner.release();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.owner.take().is_some()
            && let Err(error) = sweep(&self.layout)
        {
            eprintln!("cannot remove lab {}: {}", self.name(), error.chain());
        }
    }
}
