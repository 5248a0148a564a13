//! The API server's doorman: looks at each `ClientHello` and opens only what is addressed to it.
//!
//! A library so that tests of its neighbours can run a real one; the program adds signals and an
//! exit code.

mod access;
mod args;
mod gate;
mod metrics;
mod run;

pub use args::Args;
pub use run::Running;
