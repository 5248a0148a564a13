//! The gateway as users meet it: the real program, real servers, and clients that
//! nobody here wrote.

mod attack;
mod churn;
mod clients;
mod limits;
mod process;
mod support;
