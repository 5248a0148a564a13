//! The decision: from a validated tenant and what was seen to everything that should be.

mod reachability;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use steward_api::{
    conditions::{ConditionType, Reason},
    metadata::{annotations, labels},
    tenant_control_plane::ExposureMode,
};
use steward_pki::{KeySource, Pair};

use crate::{
    build::{
        deployment, disruption, front_door, inside, kubeadm, network_policy,
        pki::{Workshop, content_checksum},
        service,
    },
    names::PROJECT,
    object::{Kind, Object, ObjectKey},
    observed::{Observed, Platform},
    outcome::{DatastoreWish, Knock, Plan, Prune, Wait},
    report::exposure,
    settings::Settings,
    validate::{Validated, Wish, wait},
    way::{self, Ways},
};

use reachability::Inner;
pub(crate) use reachability::{inner, serving};

/// Why no plan could be made. Only the cryptographic library can fail: everything else
/// was checked before.
#[derive(Debug, thiserror::Error)]
#[error("make the keys and certificates of {tenant}")]
pub struct Error {
    /// `namespace/name`.
    pub tenant: String,
    /// What went wrong.
    #[source]
    pub source: steward_pki::Error,
}

/// Kinds that a tenant consists of in the management cluster: what to list, to watch and
/// to remove.
pub fn managed_kinds(platform: &Platform) -> Vec<Kind> {
    let mut kinds = vec![
        Kind::Secret,
        Kind::ConfigMap,
        Kind::Service,
        Kind::Deployment,
        Kind::PodDisruptionBudget,
        Kind::Ingress,
        Kind::NetworkPolicy,
    ];
    if platform.ingress_route_tcp {
        kinds.push(Kind::IngressRouteTcp);
    }
    if platform.tls_route.is_some() {
        kinds.push(front_door::tls_route_kind(platform));
    }
    kinds
}

/// Everything that should be, now.
pub fn plan(
    settings: &Settings,
    tenant: &Validated,
    observed: &Observed,
    keys: &dyn KeySource,
) -> Result<Plan, Error> {
    Draft::new(settings, tenant, observed, keys)
        .and_then(Draft::finish)
        .map_err(|source| {
            let names = &tenant.names;
            Error {
                tenant: format!("{}/{}", names.namespace, names.tenant),
                source,
            }
        })
}

/// A new key that the user asked for is looked at again: the wish must not lie in wait for the next loss.
const WISH: Duration = Duration::from_secs(1);

/// A plan in the making.
struct Draft<'a> {
    settings: &'a Settings,
    tenant: &'a Validated,
    observed: &'a Observed,
    workshop: Workshop<'a>,
    plan: Plan,
}

impl<'a> Draft<'a> {
    fn new(
        settings: &'a Settings,
        tenant: &'a Validated,
        observed: &'a Observed,
        keys: &'a dyn KeySource,
    ) -> Result<Self, steward_pki::Error> {
        let workshop = Workshop::open(settings, tenant, observed, keys)?;
        let plan = Plan {
            waits: tenant.waits.clone(),
            answered: (tenant.certificates.key_wish == Wish::Done)
                .then_some(annotations::REPLACE_LOST_KEY),
            ..Plan::default()
        };
        Ok(Self {
            settings,
            tenant,
            observed,
            workshop,
            plan,
        })
    }

    fn finish(mut self) -> Result<Plan, steward_pki::Error> {
        let ways = way::resolve(self.tenant, self.observed);
        let service = service::service(self.tenant, ways.as_ref().ok());
        self.plan.objects.push(service);
        let foundations = self.workshop.foundations()?;
        self.plan.objects.extend(foundations);
        self.plan.exposure = ways.as_ref().ok().map(exposure);
        let complete = match ways {
            Ok(ways) => self.with_endpoint(&ways)?,
            Err(wait) => {
                self.plan.waits.push(wait);
                false
            }
        };
        // What isn't planned because something is waited for must not be removed.
        if complete {
            self.plan.prune.kinds = managed_kinds(&self.observed.platform);
        }
        self.plan.prune.namespaces = vec![self.tenant.names.namespace.clone()];
        self.plan.prune.labels = prune_labels(self.tenant);
        self.plan.objects.sort_by_key(|object| object.stage);
        self.plan.next_check = self.next_check();
        Ok(self.plan)
    }

    /// Everything that carries the endpoint. Tells whether the plan is whole.
    fn with_endpoint(&mut self, ways: &Ways) -> Result<bool, steward_pki::Error> {
        let inner = inner(self.tenant, self.observed, ways);
        let servers = self.workshop.servers(ways, inner.gate)?;
        self.plan.objects.extend(servers);
        let kubeconfigs = self.workshop.kubeconfigs(ways)?;
        self.plan.objects.extend(kubeconfigs);
        self.plan
            .objects
            .push(kubeadm::config_map(self.tenant, ways));
        self.plan
            .objects
            .extend(deployment::egress_selector(self.tenant));
        let proxy_pair = self.proxy_certificate()?;
        self.front_door(ways);
        let whole = self.workload(ways, &inner)?;
        self.inside(ways, inner, proxy_pair.as_ref());
        Ok(whole)
    }

    fn proxy_certificate(&mut self) -> Result<Option<Pair>, steward_pki::Error> {
        if !reachability::terminates(self.tenant) {
            return Ok(None);
        }
        let (object, pair) = self.workshop.terminating_proxy()?;
        self.plan.objects.push(object);
        Ok(Some(pair))
    }

    fn workload(&mut self, ways: &Ways, inner: &Inner) -> Result<bool, steward_pki::Error> {
        let Some(storage) = &self.tenant.storage else {
            return Ok(false);
        };
        let secrets = self.workshop.datastore(storage)?;
        self.plan.objects.extend(secrets);
        if storage.ready {
            self.plan.datastore.push(DatastoreWish::Tenant {
                store: storage.store.name.clone(),
                user: storage.user.clone(),
                schema: storage.schema.clone(),
                password: None,
            });
            self.plan
                .datastore
                .extend(
                    storage
                        .overrides
                        .iter()
                        .map(|(_, store)| DatastoreWish::Tenant {
                            store: store.name.clone(),
                            user: storage.user.clone(),
                            schema: storage.schema.clone(),
                            password: None,
                        }),
                );
        }
        self.plan.objects.extend(network_policy::control_plane(
            self.settings,
            self.tenant,
            storage,
        ));
        let inputs = deployment::Inputs {
            settings: self.settings,
            tenant: self.tenant,
            storage,
            ways,
            gate: inner.gate,
            checksums: checksums(self.tenant, &self.plan.objects),
        };
        let (object, ignored) = deployment::deployment(&inputs);
        self.plan.objects.push(object);
        self.plan.objects.extend(disruption::budget(self.tenant));
        if !ignored.is_empty() {
            self.plan.waits.push(ignored_arguments(&ignored));
        }
        Ok(true)
    }

    fn front_door(&mut self, ways: &Ways) {
        self.plan
            .objects
            .extend(front_door::objects(self.tenant, &self.observed.platform));
        let old = ways.all().filter(|way| way.mode != ways.wanted.mode);
        self.plan.prune.keep = old
            .flat_map(|way| front_door_of(self.tenant, self.observed, way.mode))
            .collect();
        if let Some(left) = &ways.leaving {
            self.plan
                .waits
                .push(way::leaving::kept(self.observed, left));
        }
        if ways.moving() {
            let message = format!(
                "clients still go to {}: {} is being checked",
                ways.active.authority(),
                ways.wanted.authority()
            );
            self.plan
                .waits
                .push(wait(ConditionType::EndpointReady, Reason::Moving, message));
        }
        if serving(self.tenant, self.observed) && self.tenant.replicas() > 0 {
            self.plan.knock = Some(Knock {
                host: ways.wanted.host.clone(),
                port: ways.wanted.port,
                addresses: ways.wanted.addresses.clone(),
                authority: self.workshop.ca.pair().certificate.clone(),
            });
        }
    }

    fn inside(&mut self, ways: &Ways, inner: Inner, proxy_certificate: Option<&Pair>) {
        if !serving(self.tenant, self.observed) || self.tenant.replicas() == 0 {
            return;
        }
        let authority = self.workshop.ca.pair().certificate.clone();
        let inputs = inside::Inputs {
            settings: self.settings,
            tenant: self.tenant,
            observed: self.observed,
            ways,
            authority: &authority,
            proxy_certificate,
            endpoints: inner.endpoints,
        };
        self.plan.tenant_objects = inside::objects(&inputs);
        self.plan.tenant_prune = inside::prune(&self.tenant.version);
        self.plan.tenant_prune.keep.extend(inner.keep);
        self.plan.waits.extend(inner.waits);
    }

    fn next_check(&self) -> Option<Timestamp> {
        let retries = self.plan.waits.iter().filter_map(|wait| wait.retry);
        let wish = (self.tenant.certificates.key_wish == Wish::UnderWay).then_some(WISH);
        let soonest = retries
            .chain(wish)
            .min()
            .and_then(|retry| self.observed.now.checked_add(retry).ok());
        [self.workshop.due, soonest].into_iter().flatten().min()
    }
}

/// Checksums of what the pods mount, by component.
fn checksums(tenant: &Validated, objects: &[Object]) -> BTreeMap<String, String> {
    let names = &tenant.names;
    let all = [
        ("api-server-certificate", names.api_server()),
        (
            "api-server-kubelet-client-certificate",
            names.kubelet_client(),
        ),
        ("ca", names.ca()),
        (
            "controller-manager-kubeconfig",
            names.controller_manager_kubeconfig(),
        ),
        ("front-proxy-ca-certificate", names.front_proxy_ca()),
        ("front-proxy-client-certificate", names.front_proxy_client()),
        ("service-account", names.service_account()),
        ("scheduler-kubeconfig", names.scheduler_kubeconfig()),
        ("datastore-config", names.datastore_config()),
        ("datastore-certificate", names.datastore_certificate()),
        ("konnectivity-certificate", names.konnectivity_certificate()),
        ("konnectivity-kubeconfig", names.konnectivity_kubeconfig()),
        ("egress-selector", names.egress_selector()),
    ];
    // The gate follows its certificate by itself.
    all.into_iter()
        .filter_map(|(component, name)| {
            let object = objects.iter().find(|object| object.key.name == name)?;
            Some((component.to_owned(), content_checksum(object)))
        })
        .collect()
}

fn prune_labels(tenant: &Validated) -> BTreeMap<String, String> {
    let mut all = tenant.names.selector();
    all.insert(labels::PROJECT.into(), PROJECT.into());
    all
}

/// Objects of a mode at the front door.
fn front_door_of(tenant: &Validated, observed: &Observed, mode: ExposureMode) -> Vec<ObjectKey> {
    let kinds: Vec<Kind> = match mode {
        ExposureMode::Ingress => vec![Kind::Ingress, Kind::IngressRouteTcp],
        ExposureMode::Gateway => vec![front_door::tls_route_kind(&observed.platform)],
        ExposureMode::ClusterIP | ExposureMode::NodePort | ExposureMode::LoadBalancer => vec![],
    };
    let names = [
        tenant.names.tenant.clone(),
        tenant.names.konnectivity_route(),
    ];
    kinds
        .iter()
        .flat_map(|kind| {
            names
                .iter()
                .map(|name| ObjectKey::new(*kind, tenant.names.namespace.clone(), name))
        })
        .collect()
}

fn ignored_arguments(ignored: &[String]) -> Wait {
    let message = format!(
        "these arguments set what Steward must set itself and are left out: {}",
        ignored.join(" ")
    );
    wait(ConditionType::Accepted, Reason::ArgumentIgnored, message)
}

impl Prune {
    /// Whether anything may be removed at all.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
}
