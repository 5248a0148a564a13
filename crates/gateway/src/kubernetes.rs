//! The gateway as a Kubernetes front door: ordinary Ingress, Gateway and TLSRoute
//! objects become routes.
//!
//! Owns reading those objects and writing their status. It has no private path:
//! what another controller could not read, it does not read either. The bytes of
//! a connection never come near this module.

pub mod access;
pub mod claims;
pub mod conditions;
pub mod controller;
pub mod follow;
pub mod hostname;
pub mod ingresses;
pub mod listeners;
pub mod routes;
pub mod status;
pub mod translate;
pub mod watch;
pub mod world;
