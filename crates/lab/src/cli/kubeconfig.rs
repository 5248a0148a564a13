//! `kubeconfig`.

use clap::Args;

use super::Name;
use crate::{Error, Lab};

/// Print the path of a kubeconfig that works on the lab's hosts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  steward-lab exec client -- kubectl --kubeconfig $(steward-lab kubeconfig) get nodes
  steward-lab exec client -- kubectl --kubeconfig $(steward-lab kubeconfig team-a/t1) get nodes")]
pub(super) struct Kubeconfig {
    /// A tenant, as NAME or NAMESPACE/NAME; the management cluster if none is named.
    tenant: Option<String>,
    #[command(flatten)]
    name: Name,
}

impl Kubeconfig {
    pub(super) async fn run(self) -> Result<(), Error> {
        super::need_root()?;
        let lab = Lab::find(&self.name.name)?;
        let path = match &self.tenant {
            None => lab.cluster()?.kubeconfig(),
            Some(tenant) => {
                let (namespace, name) = tenant.split_once('/').unwrap_or(("default", tenant));
                lab.tenant_kubeconfig(namespace, name).await?
            }
        };
        println!("{}", path.display());
        Ok(())
    }
}
