//! The operator: controllers that make tenants what their specs say.
//!
//! Every tenant goes through the same five steps: observe → validate → plan → apply → report. Decisions
//! are made by `steward-plan`, which is pure; this crate reads before them and writes after them.
//! It owns clients, watches, leader election, metrics and the drivers of datastores. It refuses to decide
//! what a tenant should look like.

pub mod accounts;
pub mod admin;
pub mod apply;
pub mod backoff;
pub mod carry_out;
pub mod claims;
pub mod client;
pub mod config;
pub mod context;
pub mod controllers;
pub mod datastore;
pub mod error;
pub mod events;
pub mod follow;
pub mod front_door;
pub mod lease;
pub mod metrics;
pub mod observe;
pub mod pages;
pub mod platform;
pub mod reach;
pub mod run;
pub mod stores;
pub mod telemetry;
pub mod tenant;
pub mod trouble;
pub mod underway;
pub mod watches;
