//! The lab is made of real parts: each test here fails if one of them were fake.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on says where"
)]

mod commands;
mod faults;
mod guest;
mod parts;
mod shared;
