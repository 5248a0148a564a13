//! The conditions, one function each.

use steward_api::{
    conditions::{ConditionType, Finding, Reason},
    tenant_control_plane::{ExposureMode, TenantState},
};

use super::status::{Facts, Parent, route_parents};
use crate::{
    build::front_door,
    observed::{Observed, Reach},
    outcome::{Applied, Failure, InsideApplied, Plan, Wait},
    validate::Validated,
    way::{self, Ways},
};

/// Everything that one condition is made from.
struct View<'a> {
    tenant: &'a Validated,
    observed: &'a Observed,
    plan: &'a Plan,
    applied: &'a Applied,
    facts: &'a Facts,
}

/// All conditions, in the order they are shown.
pub(super) fn findings(
    tenant: &Validated,
    observed: &Observed,
    plan: &Plan,
    applied: &Applied,
    facts: &Facts,
) -> Vec<Finding> {
    let view = View {
        tenant,
        observed,
        plan,
        applied,
        facts,
    };
    let steps = [
        view.accepted(),
        view.datastore(),
        view.certificates(),
        view.control_plane(),
        view.endpoint(),
        view.addons(),
        view.skew(),
    ];
    let mut all = vec![view.available(&steps), view.progressing(&steps)];
    all.extend(steps);
    all
}

fn holds(finding: &Finding) -> bool {
    finding.status == steward_api::conditions::ConditionStatus::True
}

impl View<'_> {
    /// What is waited for or failed, if it concerns this condition. Notices don't count.
    fn obstacle(&self, type_: ConditionType) -> Option<Finding> {
        let failure = |failure: &&Failure| failure.condition == type_;
        if let Some(failure) = self.applied.failures.iter().find(failure) {
            let message = format!("{}: {}", failure.what, failure.message);
            return Some(Finding::no(type_, failure.reason, message));
        }
        let wait = |wait: &&Wait| wait.condition == type_ && !notice(wait);
        let wait = self.plan.waits.iter().find(wait)?;
        Some(Finding::no(type_, wait.reason, wait.message.clone()))
    }

    /// A condition that holds, with what is worth knowing about it.
    fn fine(&self, type_: ConditionType, message: &str) -> Finding {
        let notices: Vec<&Wait> = self
            .plan
            .waits
            .iter()
            .filter(|wait| wait.condition == type_ && notice(wait))
            .collect();
        match notices.first() {
            None => Finding::yes(type_, Reason::Ready, message),
            Some(first) => {
                let all: Vec<&str> = notices.iter().map(|wait| wait.message.as_str()).collect();
                Finding::yes(type_, first.reason, all.join(". "))
            }
        }
    }

    fn accepted(&self) -> Finding {
        let type_ = ConditionType::Accepted;
        self.obstacle(type_)
            .unwrap_or_else(|| self.fine(type_, "the spec can be followed"))
    }

    fn datastore(&self) -> Finding {
        let type_ = ConditionType::DatastoreReady;
        if let Some(finding) = self.obstacle(type_) {
            return finding;
        }
        match &self.tenant.storage {
            Some(storage) if self.applied.datastore_ready => {
                let name = &storage.store.name;
                let message = format!(
                    "the DataStore {name} holds the tenant under /{}/",
                    storage.schema
                );
                self.fine(type_, &message)
            }
            _ => Finding::no(type_, Reason::Reconciling, "the datastore isn't set up yet"),
        }
    }

    fn certificates(&self) -> Finding {
        let type_ = ConditionType::CertificatesReady;
        if let Some(finding) = self.obstacle(type_) {
            return finding;
        }
        if self.facts.ways.is_some() {
            return self.fine(type_, "certificates and kubeconfigs are valid");
        }
        let message = "certificates wait for the address that they are made out to";
        Finding::no(type_, Reason::WaitingForAddress, message)
    }

    fn control_plane(&self) -> Finding {
        let type_ = ConditionType::ControlPlaneReady;
        if let Some(finding) = self.obstacle(type_) {
            return finding;
        }
        if self.tenant.replicas() == 0 {
            return Finding::no(type_, Reason::Sleeping, "scaled to zero; nothing is lost");
        }
        let pods = &self.facts.pods;
        if pods.done {
            let message = format!("{} pods run {}", pods.ready, self.tenant.version);
            return self.fine(type_, &message);
        }
        if let Some(trouble) = &self.observed.trouble {
            return Finding::no(type_, trouble.reason, trouble.message.clone());
        }
        let message = format!(
            "{} of {} pods are ready, {} of them run {}",
            pods.ready, pods.wanted, pods.updated, self.tenant.version
        );
        let reason = if self.facts.state == TenantState::Upgrading {
            Reason::Upgrading
        } else {
            Reason::WaitingForPods
        };
        Finding::no(type_, reason, message)
    }

    fn endpoint(&self) -> Finding {
        let type_ = ConditionType::EndpointReady;
        if let Some(finding) = self.obstacle(type_) {
            return finding;
        }
        let Some(ways) = &self.facts.ways else {
            return Finding::no(type_, Reason::WaitingForAddress, "there is no address yet");
        };
        if let Some(finding) = self.route(ways) {
            return finding;
        }
        let way = &ways.wanted;
        let knocked = way::knocked_at(self.observed, way);
        match &self.observed.reach {
            Reach::AnswersBut { reason, message } if knocked => {
                let fine = self.fine(type_, message);
                match fine.reason {
                    Reason::Ready => Finding::yes(type_, *reason, message.clone()),
                    _ => fine,
                }
            }
            Reach::Answers if knocked => {
                let message = format!("{} answers as it should", way.authority());
                self.fine(type_, &message)
            }
            Reach::Fails { reason, message } if knocked => {
                let known = self.nobody_routes();
                known.unwrap_or_else(|| Finding::no(type_, *reason, message.clone()))
            }
            _ => self.nobody_routes().unwrap_or_else(|| {
                let message = format!("{} is where clients go", way.authority());
                self.fine(type_, &message)
            }),
        }
    }

    /// Why nobody can answer at the front door: the user has to make the route himself, or the
    /// class of the Ingress is not there.
    fn nobody_routes(&self) -> Option<Finding> {
        let type_ = ConditionType::EndpointReady;
        if let Some(text) = front_door::instructions(self.tenant) {
            return Some(Finding::no(type_, Reason::RouteNotDeployed, text));
        }
        let text = front_door::missing_class(self.tenant, &self.observed.platform)?;
        Some(Finding::no(type_, Reason::ControllerMissing, text))
    }

    /// What the Gateway says against the route.
    fn route(&self, ways: &Ways) -> Option<Finding> {
        let type_ = ConditionType::EndpointReady;
        if ways.wanted.mode != ExposureMode::Gateway || way::answers(self.observed, &ways.wanted) {
            return None;
        }
        let parents = route_parents(self.tenant, self.observed);
        if parents.is_empty() {
            let message = format!(
                "no Gateway has taken up the TLSRoute {} yet: check that parentRefs names one that \
                 exists",
                self.tenant.names.tenant
            );
            return Some(Finding::no(type_, Reason::WaitingForRoute, message));
        }
        let refusal = parents.iter().find_map(Parent::refusal)?;
        Some(Finding::no(type_, Reason::RouteNotAccepted, refusal))
    }

    fn addons(&self) -> Finding {
        let type_ = ConditionType::AddonsReady;
        if let Some(finding) = self.obstacle(type_) {
            return finding;
        }
        if self.tenant.replicas() == 0 {
            return Finding::no(type_, Reason::Sleeping, "scaled to zero; nothing is lost");
        }
        match &self.applied.inside {
            InsideApplied::Done { .. } => {
                self.fine(type_, "what belongs inside the tenant is there")
            }
            InsideApplied::Unreachable { reason, cause } => {
                Finding::no(type_, *cause, reason.clone())
            }
            InsideApplied::NotTried => {
                let message = "waits for the API server";
                Finding::no(type_, Reason::WaitingForPods, message)
            }
        }
    }

    fn skew(&self) -> Finding {
        let type_ = ConditionType::VersionSkewSupported;
        self.obstacle(type_)
            .unwrap_or_else(|| self.fine(type_, "the nodes allow the version asked for"))
    }

    /// Everything that a user of the tenant needs. Pods that are being replaced don't
    /// count as long as others answer; nor does a knock that fails where clients come by
    /// an address of the tenant's own, which we may not be able to reach ourselves.
    fn available(&self, steps: &[Finding]) -> Finding {
        let type_ = ConditionType::Available;
        if self.tenant.replicas() == 0 {
            return Finding::no(type_, Reason::Sleeping, "scaled to zero; nothing is lost");
        }
        let by_name = self
            .facts
            .ways
            .as_ref()
            .is_some_and(|ways| ways.wanted.by_name());
        let knock = |finding: &Finding| {
            matches!(
                finding.reason,
                Reason::EndpointUnreachable
                    | Reason::HostnameNotResolved
                    | Reason::HostnameElsewhere
                    | Reason::Moving
            ) && (!by_name || finding.reason == Reason::Moving)
        };
        let counts = |finding: &&Finding| match finding.type_ {
            ConditionType::ControlPlaneReady => !self.facts.pods.serving(),
            ConditionType::VersionSkewSupported => false,
            ConditionType::EndpointReady => !knock(finding),
            _ => true,
        };
        let missing = steps.iter().filter(counts).find(|finding| !holds(finding));
        if let Some(missing) = missing {
            let message = format!("{}: {}", missing.type_.as_str(), missing.message);
            return Finding::no(type_, missing.reason, message);
        }
        let endpoint = self.facts.ways.as_ref().map(|ways| ways.active.authority());
        let message = format!("the API server answers at {}", endpoint.unwrap_or_default());
        Finding::yes(type_, Reason::Ready, message)
    }

    fn progressing(&self, steps: &[Finding]) -> Finding {
        let type_ = ConditionType::Progressing;
        let reason = match self.facts.state {
            TenantState::Sleeping => {
                return Finding::no(type_, Reason::Sleeping, "scaled to zero; nothing is lost");
            }
            TenantState::Provisioning => Reason::Provisioning,
            TenantState::Upgrading => Reason::Upgrading,
            TenantState::Migrating => Reason::Migrating,
            _ => Reason::Reconciling,
        };
        match steps.iter().find(|finding| !holds(finding)) {
            Some(step) => Finding::yes(
                type_,
                reason,
                format!("{}: {}", step.type_.as_str(), step.message),
            ),
            None => Finding::no(type_, Reason::Reconciled, "everything is as the spec says"),
        }
    }
}

/// Whether a wait is only something to know.
fn notice(wait: &Wait) -> bool {
    matches!(
        wait.reason,
        Reason::ArgumentIgnored
            | Reason::EgressClosed
            | Reason::EgressKept
            | Reason::EndpointKept
            | Reason::NotRequested
            | Reason::NotSupported
            | Reason::WriteLimited
    )
}
