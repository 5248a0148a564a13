//! A management cluster that grants every wish at once: applies what is planned, gives
//! addresses to Services and readiness to pods. No judge of what an API server accepts.

use std::{collections::BTreeMap, sync::OnceLock};

use jiff::Timestamp;
use serde_json::{Value, json};
use steward_api::{TenantControlPlane, conditions};
use steward_pki::{Authority, KeyKind, SystemKeys, Validity};
use steward_plan::{
    Applied, Change, Datastore, DatastoreSeen, Endpoints, Inside, InsideApplied, Kind, Live,
    NodeSeen, Object, ObjectKey, Observed, Plan, Platform, Reach, Report, Rollout, Settings,
    TlsRouteVersion, compare, plan, report, validate,
};

/// A fixed moment.
pub(crate) fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// A tenant from its manifest, with what an API server would have added.
pub(crate) fn tenant(manifest: &str) -> TenantControlPlane {
    let mut tenant: TenantControlPlane = serde_saphyr::from_str(manifest).unwrap();
    let metadata = &mut tenant.metadata;
    metadata.namespace.get_or_insert_with(|| "default".into());
    metadata.uid = Some("0c6f3d5e-2f5c-4a3e-9a55-0c7c1f9d1a11".into());
    metadata.generation = Some(1);
    metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    tenant
}

/// One tenant in its cluster.
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) observed: Observed,
    /// Whether pods become ready when they are applied.
    pub(crate) pods_start: bool,
    /// Whether load balancers give addresses.
    pub(crate) addresses: bool,
    /// What is inside the tenant.
    pub(crate) inside: Live,
    /// By when replaced node proxies have to be gone.
    pub(crate) leaving: Option<Timestamp>,
}

/// What one round came to.
pub(crate) struct Round {
    pub(crate) plan: Plan,
    pub(crate) report: Report,
    pub(crate) writes: usize,
}

impl World {
    pub(crate) fn new(manifest: &str) -> Self {
        let stores = ["default", "etcd-main"];
        let datastores = stores.map(|name| (name.to_owned(), DatastoreSeen::Ready(store(name))));
        Self {
            settings: Settings::default(),
            observed: Observed {
                now: now(),
                tenant: tenant(manifest),
                live: Live::default(),
                datastores: datastores.into(),
                claims: Vec::new(),
                platform: Platform {
                    tls_route: Some(TlsRouteVersion::V1),
                    ingress_route_tcp: true,
                    ingress_classes: None,
                    node_addresses: vec!["192.0.2.10".parse().unwrap()],
                    front_door: vec!["192.0.2.50".parse().unwrap()],
                    nodes: 1,
                },
                inside: Inside::NotTried,
                reach: Reach::NotTried,
                knocked: None,
                trouble: None,
            },
            pods_start: true,
            addresses: true,
            inside: Live::default(),
            leaving: None,
        }
    }

    /// Reconciles once: validate, plan, apply, report.
    pub(crate) fn round(&mut self) -> Round {
        let validated = validate(&self.settings, &self.observed)
            .unwrap_or_else(|problems| panic!("{problems:#?}"));
        let plan = plan(&self.settings, &validated, &self.observed, &SystemKeys).unwrap();
        let mut applied = Applied {
            datastore_ready: true,
            ..Applied::default()
        };
        let mut live = self.observed.live.clone();
        for object in &plan.objects {
            let change = write(&mut live, object);
            if change.is_some() {
                grant(
                    live.get_mut(&object.key).unwrap(),
                    self.pods_start,
                    self.addresses,
                );
            }
            applied.changes.extend(change);
        }
        applied.changes.extend(prune(&mut live, &plan));
        let mut writes = applied.changes.len();
        if !plan.tenant_objects.is_empty() {
            let changes: Vec<Change> = plan
                .tenant_objects
                .iter()
                .filter_map(|o| write(&mut self.inside, o))
                .collect();
            let planned: Vec<_> = plan
                .tenant_objects
                .iter()
                .map(|object| &object.key)
                .collect();
            let keep = &plan.tenant_prune.keep;
            self.inside
                .0
                .retain(|key, _| planned.contains(&key) || keep.contains(key));
            writes += changes.len();
            applied.inside = InsideApplied::Done { changes };
            self.observed.inside = self.look_inside();
        }
        applied.live = live.clone();
        let report = report(&self.settings, &validated, &self.observed, &plan, &applied);
        self.observed.live = live;
        self.observed.tenant.status = Some(report.status.clone());
        Round {
            plan,
            report,
            writes,
        }
    }

    /// Rounds until nothing changes any more.
    pub(crate) fn settle(&mut self) -> Round {
        let mut before = None;
        for _ in 0..8 {
            let round = self.round();
            let status = serde_json::to_value(&round.report.status).unwrap();
            if round.writes == 0 && before.as_ref() == Some(&status) {
                return round;
            }
            before = Some(status);
        }
        panic!("the tenant does not settle");
    }

    /// Whether a condition holds.
    pub(crate) fn holds(&self, type_: conditions::ConditionType) -> bool {
        let status = self.observed.tenant.status.as_ref().unwrap();
        conditions::holds(&status.conditions, type_)
    }

    /// Reason and message of a condition.
    pub(crate) fn condition(&self, type_: conditions::ConditionType) -> (String, String) {
        let status = self.observed.tenant.status.as_ref().unwrap();
        let found = conditions::find(&status.conditions, type_).unwrap();
        (found.reason.clone(), found.message.clone())
    }

    /// An object in the management cluster.
    pub(crate) fn live(&self, kind: Kind, name: &str) -> Option<&Value> {
        let namespace = self.observed.tenant.metadata.namespace.clone().unwrap();
        self.observed.live.get(kind, &namespace, name)
    }

    /// Sets an annotation on the tenant.
    pub(crate) fn annotate(&mut self, name: &str, value: &str) {
        let notes = self
            .observed
            .tenant
            .metadata
            .annotations
            .get_or_insert_default();
        notes.insert(name.into(), value.into());
    }

    /// What the endpoint says when one knocks where the last plan says.
    pub(crate) fn knock(&mut self, round: &Round, reach: Reach) {
        let knock = round.plan.knock.as_ref().unwrap();
        self.observed.knocked = Some(knock.clone());
        self.observed.reach = reach;
    }

    /// Where the `kubernetes` Service leads.
    fn endpoints(&self) -> Option<Endpoints> {
        let key = ObjectKey::new(Kind::EndpointSlice, "default", "kubernetes");
        let slice = self.inside.0.get(&key)?;
        let endpoints = slice["endpoints"].as_array()?;
        let address = |e: &Value| e["addresses"][0].as_str().unwrap().parse().unwrap();
        Some(Endpoints {
            addresses: endpoints.iter().map(address).collect(),
            port: u16::try_from(slice["ports"][0]["port"].as_u64()?).unwrap(),
        })
    }

    fn look_inside(&self) -> Inside {
        let workloads: BTreeMap<_, _> = self
            .inside
            .0
            .iter()
            .filter(|(key, _)| matches!(key.kind, Kind::DaemonSet | Kind::Deployment))
            .map(|(key, body)| {
                (
                    key.clone(),
                    Rollout {
                        desired: 1,
                        ready: 1,
                        updated: 1,
                        current: true,
                        endpoint:
                            body["metadata"]["annotations"]["steward.butlerlabs.dev/endpoint"]
                                .as_str()
                                .map(str::to_owned),
                    },
                )
            })
            .collect();
        let terminating =
            |key: &ObjectKey| key.kind == Kind::Deployment && key.name == "steward-tcp-proxy";
        let proxies = workloads
            .keys()
            .any(terminating)
            .then(|| "198.51.100.7".parse().unwrap());
        let node = NodeSeen {
            name: "worker-1".into(),
            kubelet: self.observed.tenant.spec.kubernetes.version.clone(),
            ready: true,
            address: Some("198.51.100.7".parse().unwrap()),
        };
        Inside::Reachable {
            version: self.observed.tenant.spec.kubernetes.version.clone(),
            nodes: vec![node],
            workloads,
            proxies: proxies.into_iter().collect(),
            leaving: self.leaving,
            endpoints: self.endpoints(),
        }
    }
}

fn write(live: &mut Live, object: &Object) -> Option<Change> {
    let before = live.0.get(&object.key);
    let change = match before {
        None => Change::Created(object.key.clone()),
        Some(found) if compare::difference(&object.body, found).is_some() => {
            Change::Updated(object.key.clone())
        }
        Some(_) => return None,
    };
    let mut body = object.body.clone();
    if let Some(found) = before {
        body["status"] = found["status"].clone();
        body["metadata"]["generation"] = found["metadata"]["generation"].clone();
    }
    let generation = body["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
    body["metadata"]["generation"] = json!(generation);
    live.insert(object.key.clone(), body);
    Some(change)
}

fn prune(live: &mut Live, plan: &Plan) -> Vec<Change> {
    let gone: Vec<_> =
        live.0
            .iter()
            .filter(|(key, body)| {
                let ours = plan.prune.labels.iter().all(|(label, value)| {
                    body["metadata"]["labels"][label].as_str() == Some(value)
                });
                let planned = plan.objects.iter().any(|object| object.key == **key);
                let kept = plan.prune.keep.contains(key);
                plan.prune.kinds.contains(&key.kind) && ours && !planned && !kept
            })
            .map(|(key, _)| key.clone())
            .collect();
    gone.into_iter()
        .map(|key| {
            live.0.remove(&key);
            Change::Removed(key)
        })
        .collect()
}

/// What controllers of the cluster would do.
fn grant(object: &mut Value, pods_start: bool, addresses: bool) {
    match object["kind"].as_str() {
        Some("Service") => {
            object["spec"]["clusterIP"] = json!("10.0.0.77");
            if object["spec"]["type"] == "LoadBalancer" && addresses {
                object["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.77"}]}});
            }
            if object["spec"]["type"] == "NodePort" {
                for (index, port) in object["spec"]["ports"]
                    .as_array_mut()
                    .unwrap()
                    .iter_mut()
                    .enumerate()
                {
                    if port["nodePort"].is_null() {
                        port["nodePort"] = json!(31000 + index);
                    }
                }
            }
        }
        Some("Deployment") => {
            let replicas = object["spec"]["replicas"].clone();
            let ready = if pods_start {
                replicas.clone()
            } else {
                json!(0)
            };
            object["status"] = json!({
                "observedGeneration": object["metadata"]["generation"],
                "replicas": replicas,
                "updatedReplicas": replicas,
                "readyReplicas": ready,
            });
        }
        Some("Ingress") => {
            object["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.50"}]}});
        }
        Some("TLSRoute") => {
            object["status"] = json!({"parents": [{
                "parentRef": {"name": "front"},
                "controllerName": "example.com/gateway",
                "conditions": [{
                    "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                    "lastTransitionTime": "2026-11-15T12:00:00Z",
                }],
            }]});
        }
        _ => {}
    }
}

/// A datastore; all tests share its authority, which takes time to make.
pub(crate) fn store(name: &str) -> Datastore {
    static AUTHORITY: OnceLock<(String, String)> = OnceLock::new();
    let (certificate, key) = AUTHORITY.get_or_init(|| {
        let validity = Validity::starting(now(), std::time::Duration::from_hours(24 * 3650));
        let authority =
            Authority::new(&SystemKeys, KeyKind::EcdsaP256, "etcd-ca", validity).unwrap();
        (
            authority.pair().certificate.clone(),
            authority.pair().key.clone(),
        )
    });
    Datastore {
        name: name.into(),
        driver: "etcd".into(),
        endpoints: vec![
            "etcd-0.etcd.example:2379".into(),
            "etcd-1.etcd.example:2379".into(),
        ],
        ca_certificate: certificate.clone(),
        ca_key: key.clone(),
        vulnerable: None,
        other_tenant: None,
    }
}
