//! The command against a real API server: what a person types, what comes back, and the
//! code it ends with.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod bad_input;
mod import;
mod install;
mod look;
mod people;
mod scene;
