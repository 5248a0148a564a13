//! The conditions of a tenant: their types, and how a new set is merged with the
//! old one so that `lastTransitionTime` moves only when a status does.

/// Types of conditions, in the order they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionType {
    /// The tenant's API can be used: the conjunction of the rest that matters.
    Available,
    /// Something is being changed or waited for.
    Progressing,
    /// User, role and prefix exist in a reachable DataStore.
    DatastoreReady,
    /// Keys, certificates and kubeconfigs are there and valid.
    CertificatesReady,
    /// The pods run what the spec says.
    ControlPlaneReady,
    /// Clients outside can reach it: address known, front door accepts.
    EndpointReady,
    /// What belongs inside the tenant is there.
    AddonsReady,
}

impl ConditionType {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Available,
        Self::Progressing,
        Self::DatastoreReady,
        Self::CertificatesReady,
        Self::ControlPlaneReady,
        Self::EndpointReady,
        Self::AddonsReady,
    ];

    /// As it stands in `status.conditions[].type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Available => "Available",
            Self::Progressing => "Progressing",
            Self::DatastoreReady => "DatastoreReady",
            Self::CertificatesReady => "CertificatesReady",
            Self::ControlPlaneReady => "ControlPlaneReady",
            Self::EndpointReady => "EndpointReady",
            Self::AddonsReady => "AddonsReady",
        }
    }
}
