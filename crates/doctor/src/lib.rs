//! Checks as data: what is looked at, why it matters, what was seen, how to fix it.
//!
//! Owns the catalogue of checks and their judgement over [`Evidence`]. It gathers
//! nothing and fixes nothing: the command line, a console and the operator bring
//! the evidence and show the findings, and all tell the same story.

mod checks;
mod evidence;
mod explain;
mod finding;

pub use checks::{Check, all, run};
pub use evidence::{
    Addon, Certificate, Condition, Datastore, Evidence, FrontDoor, Inside, Member, Node, Reached,
    Rival, Seen, Slice, Told, Tunnel, Unseen, Workload,
};
pub use explain::explain;
pub use finding::{Act, Finding, Group, Remedy, Severity, Side};
