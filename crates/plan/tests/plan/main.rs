//! The plan as a whole: goldens that are read in review, and properties that hold for
//! every tenant.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail loudly"
)]

mod datastores;
mod egress;
mod flags;
mod front_doors;
mod golden;
mod keys;
mod lifecycle;
mod moves;
mod problems;
mod world;
