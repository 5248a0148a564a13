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

pub mod api;
pub mod compare;
pub mod condition;
pub mod object;
pub mod observed;
pub mod outcome;
pub mod problem;
pub mod settings;

pub use condition::ConditionType;
pub use object::{Kind, Object, ObjectKey, Stage};
pub use observed::{
    Datastore, DatastoreSeen, HostnameClaim, Inside, Live, NodeSeen, Observed, Platform, Rollout,
    TlsRouteVersion,
};
pub use outcome::{
    Applied, Change, DatastoreWish, Event, EventKind, Failure, InsideApplied, Plan, Prune, Report,
    Wait,
};
pub use problem::{Problem, ProblemKind};
pub use settings::Settings;
