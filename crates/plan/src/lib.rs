//! What a tenant should look like, decided purely.
//!
//! This crate owns every decision about a tenant: which objects exist, what is in
//! them, in which order they are written, what is waited for and what the status
//! says. It refuses to read or write anything: no client, no clock, no tokio. What
//! was read comes in as [`Observed`], time included; what should be written goes
//! out as a [`Plan`].
//!
//! ```text
//! Observed ──validate──▶ Validated ──plan──▶ Plan ──(operator applies)──▶ Applied ──report──▶ Report
//!                └─▶ Vec<Problem> ─────────────────────────────────────────────▶ report_problems
//! ```

mod build;
pub mod claims;
pub mod compare;
pub mod datastore;
pub mod names;
pub mod object;
pub mod observed;
pub mod outcome;
pub mod ownership;
mod plan;
pub mod problem;
mod report;
pub mod secret;
pub mod settings;
mod teardown;
mod validate;
pub mod version;
mod way;

pub use build::inside::operator_access::{USER as OPERATOR_USER, objects as operator_access};
pub use build::inside::workloads as inside_workloads;
pub use object::{Kind, Object, ObjectKey, Stage};
pub use observed::{
    Datastore, DatastoreSeen, Endpoints, HostnameClaim, Inside, Live, NodeSeen, Observed, Platform,
    PodTrouble, Reach, Rollout, TlsRouteVersion,
};
pub use outcome::{
    Applied, Change, DatastoreWish, Event, EventKind, Failure, InsideApplied, Knock, Plan, Prune,
    Report, Wait,
};
pub use ownership::{Owner, Standing};
pub use plan::{Error, managed_kinds, plan};
pub use problem::Problem;
pub use report::{report, report_problems};
pub use settings::{Destination, Settings};
pub use teardown::{Teardown, teardown};
pub use validate::{
    AuthoritySource, Certificates, Egress, Exposure, Network, NodeProxy, Storage, Validated, Wish,
    datastore_names, hostnames, named_secrets, validate,
};
pub use version::Version;
pub use way::remembered;
