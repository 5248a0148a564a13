//! The rules, on a real API server: what is refused, with which sentence, and what is accepted.
//!
//! Needs etcd, kube-apiserver and kubectl, found as the light fixture finds them.

mod accepted;
mod allowed;
mod before_the_rules;
mod egress;
mod oldest;
mod people;
mod refused_datastores;
mod refused_pods;
mod refused_tenants;
mod rights;
mod server;
mod status;
mod transitions;
