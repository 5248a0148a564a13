//! Undoes faults, and what following the advice left behind, so that the next starts afresh.

use anyhow::Result;
use steward_lab::Nudge;

use crate::fault::Fault;
use crate::scene::{DOMAIN, HOST, Scene};

impl Scene {
    /// Undoes it; nothing happens where it is undone already.
    pub(crate) async fn undo(&self, fault: Fault) -> Result<()> {
        let stage = &self.stage;
        match fault {
            Fault::DnsWrong | Fault::ProxyOpensTls => stage.lab.dns_unset(HOST)?,
            Fault::DnsMissing => {
                stage.name(&format!("*.{DOMAIN}"), self.front_door)?;
                stage.lab.dns_unset(HOST)?;
            }
            Fault::AgentsCut => {
                for number in [1, 2] {
                    stage
                        .lab
                        .worker(number)?
                        .nudge_all("proxy-agent", Nudge::Thaw);
                }
            }
            Fault::NodeClock => self.turn_clock(0).await?,
            Fault::Clock => self.get_up()?,
            Fault::DatastoreDown => self.etcd("CONT").await?,
            other => {
                self.on_mgmt(command(other)).await?;
            }
        }
        Ok(())
    }
}

/// The command that undoes a fault made with kubectl.
fn command(fault: Fault) -> &'static str {
    match fault {
        Fault::Quota | Fault::HostnameTwice => {
            "kubectl delete resourcequota -n tenants small --ignore-not-found; kubectl delete tcp -n tenants t2 --ignore-not-found --timeout=180s"
        }
        Fault::FrontDoorDown => {
            "kubectl scale -n steward-system deployment/steward-gateway --replicas=1"
        }
        Fault::LeftoverRoute => {
            "kubectl delete ingressroutetcp -n tenants from-before --ignore-not-found"
        }
        Fault::ClassMissing => {
            "printf 'apiVersion: networking.k8s.io/v1\\nkind: IngressClass\\nmetadata: { name: steward }\\nspec: { controller: steward.butlerlabs.dev/gateway }\\n' | kubectl apply -f -"
        }
        Fault::VersionWithoutImage => {
            r#"kubectl patch tcp -n tenants t1 --type=merge -p '{"spec":{"kubernetes":{"version":"v1.36.3"}}}'"#
        }
        _ => "kubectl annotate tcp -n tenants t1 steward.butlerlabs.dev/paused-",
    }
}
