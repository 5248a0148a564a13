//! The gateway as users meet it: the real program, real servers, and clients that
//! nobody here wrote.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't set up its scene fails"
)]

mod admin;
mod attack;
mod churn;
mod clients;
mod holder;
mod keeper;
mod limits;
mod process;
mod shares;
mod support;
