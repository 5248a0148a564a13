//! What comes out of a decision, and what came of carrying it out: the vocabulary
//! between the plan and the operator. Plain data, no behaviour beyond reading it.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kube::ResourceExt as _;
use steward_api::{
    TenantControlPlane, TenantControlPlaneStatus,
    conditions::{ConditionType, Reason},
    tenant_control_plane::ExposureStatus,
};

use crate::{
    names::Names,
    object::{Kind, Object, ObjectKey, Stage},
    observed::Live,
};

/// All that should be so, in the order in which it is made so.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Objects in the management cluster, ordered by [`Stage`].
    pub objects: Vec<Object>,
    /// What else of ours may be removed in the management cluster.
    pub prune: Prune,
    /// What the datastore must hold; fulfilled after [`Stage::Config`], before
    /// [`Stage::Workload`].
    pub datastore: Vec<DatastoreWish>,
    /// Objects inside the tenant, in order; empty while nothing can be written there.
    pub tenant_objects: Vec<Object>,
    /// What else of ours may be removed inside the tenant.
    pub tenant_prune: Prune,
    /// How the tenant is reached from now on, as the status will remember it. Whoever plans
    /// again before the status is written must not decide otherwise.
    pub exposure: Option<ExposureStatus>,
    /// Where the operator should knock to fill [`crate::Observed::reach`] next time.
    pub knock: Option<Knock>,
    /// An annotation on the tenant that has been followed: it can go once the plan is carried out.
    pub answered: Option<&'static str>,
    /// What is waited for. A plan with waits is still applied as far as it goes.
    pub waits: Vec<Wait>,
    /// When to look again though nothing changed: certificate renewal, a wait's end.
    pub next_check: Option<Timestamp>,
}

impl Plan {
    /// The objects, without credentials of the datastore that are not there yet: the account they are for may
    /// be somebody else's.
    pub fn without_new_credentials(&self, tenant: &TenantControlPlane, live: &Live) -> Vec<Object> {
        let names = Names {
            tenant: tenant.name_any(),
            namespace: tenant.namespace().unwrap_or_default(),
        };
        let credentials = ObjectKey::new(
            Kind::Secret,
            &names.namespace,
            names.datastore_certificate(),
        );
        let new =
            |object: &&Object| object.key == credentials && !live.0.contains_key(&credentials);
        self.objects
            .iter()
            .filter(|object| !new(object))
            .cloned()
            .collect()
    }
}

/// An endpoint to dial as a client would: TLS with this server name, and a look at the
/// certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knock {
    /// Name (or address) in the hello and to resolve.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Addresses to dial instead of what DNS says, if any are known.
    pub addresses: Vec<std::net::IpAddr>,
    /// Certificate of the authority that must have signed what is shown, PEM.
    pub authority: String,
}

/// What may be removed: objects of these kinds that carry all of these labels and
/// are neither planned nor kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prune {
    /// Kinds to list.
    pub kinds: Vec<Kind>,
    /// Namespaces to look in; cluster-scoped kinds ignore it.
    pub namespaces: Vec<String>,
    /// Labels an object must carry to be ours.
    pub labels: BTreeMap<String, String>,
    /// Objects that stay although they are not planned (the old way in, until the
    /// new one is checked).
    pub keep: Vec<ObjectKey>,
}

/// What the datastore must hold for this tenant. The operator fulfils it with its
/// driver; fulfilling twice changes nothing.
#[derive(Clone, PartialEq, Eq)]
pub enum DatastoreWish {
    /// User, role and prefix (or database) exist and belong together.
    Tenant {
        /// Which `DataStore`.
        store: String,
        /// The user: CN of the client certificate in etcd.
        user: String,
        /// Prefix `/<schema>/` in etcd, database name elsewhere.
        schema: String,
        /// Password for drivers that have one.
        password: Option<String>,
    },
    /// User, role and all data are gone.
    Gone {
        /// Which `DataStore`.
        store: String,
        /// The user.
        user: String,
        /// The prefix or database.
        schema: String,
    },
}

impl DatastoreWish {
    /// Which `DataStore`.
    pub fn store(&self) -> &str {
        let (Self::Tenant { store, .. } | Self::Gone { store, .. }) = self;
        store
    }
}

/// Something that is not there yet, as a condition says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Which condition is not true because of it.
    pub condition: ConditionType,
    /// Why, for programs.
    pub reason: Reason,
    /// A sentence, for people: what is waited for and what to check.
    pub message: String,
    /// Look again after this long even without an event.
    pub retry: Option<Duration>,
}

/// What came of carrying out a plan.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// The tenant's objects after applying, statuses included.
    pub live: Live,
    /// What was created, changed or removed in the management cluster.
    pub changes: Vec<Change>,
    /// What the API server, the datastore or the tenant refused.
    pub failures: Vec<Failure>,
    /// Whether the datastore wishes were fulfilled (true when there were none).
    pub datastore_ready: bool,
    /// What was done inside the tenant.
    pub inside: InsideApplied,
}

/// One write that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Was not there.
    Created(ObjectKey),
    /// Was there and differed.
    Updated(ObjectKey),
    /// Is not wanted any more.
    Removed(ObjectKey),
}

/// One thing that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which stage it belongs to (`None`: datastore or tenant).
    pub stage: Option<Stage>,
    /// Which condition tells of it.
    pub condition: ConditionType,
    /// Why, for programs (`Error` when nothing fits).
    pub reason: Reason,
    /// Which object or step.
    pub what: String,
    /// What was said, without secrets.
    pub message: String,
}

/// What was done inside the tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InsideApplied {
    /// Nothing was tried (no objects planned, or no pod ready).
    #[default]
    NotTried,
    /// It did not answer, or with too much.
    Unreachable {
        /// What the connection said.
        reason: String,
        /// `TenantUnreachable`, or `TooMuchInside`.
        cause: Reason,
    },
    /// All that was planned is as it should be, or is among the failures.
    Done {
        /// What was written or removed.
        changes: Vec<Change>,
    },
}

/// What to tell about it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The whole status: written once, and only if it differs.
    pub status: TenantControlPlaneStatus,
    /// Events on what changed.
    pub events: Vec<Event>,
    /// When to look again.
    pub next_check: Option<Timestamp>,
}

/// An Event to publish on the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Normal or Warning.
    pub kind: EventKind,
    /// CamelCase reason.
    pub reason: String,
    /// What the operator did (`Reconcile`, `Create`, …).
    pub action: &'static str,
    /// A sentence.
    pub note: String,
}

/// The two types of Events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Something went its way.
    Normal,
    /// Someone should look.
    Warning,
}

/// Never prints a password.
impl std::fmt::Debug for DatastoreWish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (word, store, user, schema) = match self {
            Self::Tenant {
                store,
                user,
                schema,
                ..
            } => ("Tenant", store, user, schema),
            Self::Gone {
                store,
                user,
                schema,
            } => ("Gone", store, user, schema),
        };
        write!(f, "{word}({store}: user {user}, schema {schema})")
    }
}
