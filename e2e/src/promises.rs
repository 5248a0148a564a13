//! What holds behind every front door, whoever made it: nodes that come up from nothing, pods that
//! need not know, people outside with all of kubectl, neighbours that can do nothing to each other.
//!
//! Owns the asking. Refuses to know which front door it is.

pub mod clients;
pub mod neighbours;
pub mod nodes;
pub mod pods;
