//! The faults, and what doctor has to say of each.

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    DnsWrong,
    DnsMissing,
    FrontDoorDown,
    ClassMissing,
    PassthroughOff,
    SliceEdited,
    ProxyGoneFromOneNode,
    KubeProxyOldAddress,
    AgentsCut,
    NodeClock,
    LeftoverRoute,
    ProxyOpensTls,
    HostnameTwice,
    Quota,
    VersionWithoutImage,
    WrongCredentials,
    ReconcilerFlagRemoved,
    CertificateWithoutName,
    CertificateExpired,
    DatastoreDown,
}

impl Fault {
    pub(crate) const ALL: [Self; 20] = [
        Self::DnsWrong,
        Self::DnsMissing,
        Self::FrontDoorDown,
        Self::ClassMissing,
        Self::PassthroughOff,
        Self::SliceEdited,
        Self::ProxyGoneFromOneNode,
        Self::KubeProxyOldAddress,
        Self::AgentsCut,
        Self::NodeClock,
        Self::LeftoverRoute,
        Self::ProxyOpensTls,
        Self::HostnameTwice,
        Self::Quota,
        Self::VersionWithoutImage,
        Self::WrongCredentials,
        Self::ReconcilerFlagRemoved,
        Self::CertificateWithoutName,
        Self::CertificateExpired,
        Self::DatastoreDown,
    ];

    /// The checks that may name it: agents that are cut off are missed on the way to the
    /// kubelets first, by the servers next, and by their own probes later.
    pub(crate) fn checks(self) -> &'static [&'static str] {
        match self {
            Self::DnsWrong => &["dns-address"],
            Self::DnsMissing => &["dns-resolves"],
            Self::FrontDoorDown => &["front-door-runs"],
            Self::ClassMissing => &["front-door-class"],
            Self::PassthroughOff => &["front-door-passthrough"],
            Self::SliceEdited => &["kubernetes-endpointslice"],
            Self::ProxyGoneFromOneNode => &["tcp-proxy"],
            Self::KubeProxyOldAddress => &["kube-proxy-server"],
            Self::AgentsCut => &[
                "kubelets-reached",
                "konnectivity-connections",
                "konnectivity",
            ],
            Self::NodeClock => &["node-clocks"],
            Self::LeftoverRoute => &["front-door-leftovers"],
            Self::ProxyOpensTls => &["tls-passthrough"],
            Self::HostnameTwice => &["hostname-unique"],
            Self::Quota => &["quota"],
            Self::VersionWithoutImage => &["images"],
            Self::WrongCredentials => &["datastore-credentials"],
            Self::ReconcilerFlagRemoved => &["endpoint-reconciler"],
            Self::CertificateWithoutName => &["tls-names"],
            Self::CertificateExpired => &["tls-expiry"],
            Self::DatastoreDown => &["datastore"],
        }
    }

    /// Whether the command that doctor prints is the whole repair. Of the others it prints
    /// where to look, or what only the owner of a name server or a proxy can do.
    pub(crate) fn is_fixed_by_pasting(self) -> bool {
        !matches!(
            self,
            Self::DnsWrong
                | Self::DnsMissing
                | Self::NodeClock
                | Self::ProxyOpensTls
                | Self::Quota
                | Self::DatastoreDown
                | Self::AgentsCut
        )
    }

    /// Whether only the public way is broken: inside, everything can still be looked at.
    pub(crate) fn is_of_the_public_way(self) -> bool {
        matches!(
            self,
            Self::DnsWrong | Self::DnsMissing | Self::FrontDoorDown | Self::ProxyOpensTls
        )
    }

    /// Whom to examine: two faults are those of a second tenant.
    pub(crate) fn patient(self) -> &'static str {
        match self {
            Self::HostnameTwice | Self::Quota => "t2",
            _ => "t1",
        }
    }
}
