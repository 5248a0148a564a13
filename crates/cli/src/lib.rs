//! The `steward` command as a library, so that its reference page is generated
//! from the very arguments it reads.
//!
//! Owns everything a person with a kubeconfig can do from one binary.

#[macro_use]
pub mod output;

pub mod args;
pub mod chart;
pub mod cluster;
pub mod commands;
pub mod dns;
pub mod evidence;
pub mod import;
pub mod problem;
pub mod reference;
