//! The plan as a whole: goldens that are read in review, and properties that hold for
//! every tenant.

mod datastores;
mod golden;
mod lifecycle;
mod problems;
mod world;
