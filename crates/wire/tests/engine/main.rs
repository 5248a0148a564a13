//! The engine from the outside: real sockets, a program that decides little.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't set up its scene fails"
)]

mod bytes;
mod dialling;
mod limits;
mod support;
mod transforms;
