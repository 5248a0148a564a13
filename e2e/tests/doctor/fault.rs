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
    Clock,
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

/// What it takes to follow the advice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Repair {
    /// The command is all.
    Paste,
    /// The command prints records, which whoever runs the name server makes.
    Records,
    /// A command for the node that can't be run there: all hosts of a lab share one clock.
    /// The same command is pasted where doctor runs on a machine with a clock of its own.
    OnTheNode,
}

impl Fault {
    pub(crate) const ALL: [Self; 21] = [
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
        Self::Clock,
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
            Self::Clock => &["clock"],
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

    /// How what doctor prints is followed.
    pub(crate) fn repair(self) -> Repair {
        match self {
            Self::DnsWrong | Self::DnsMissing | Self::ProxyOpensTls => Repair::Records,
            Self::NodeClock => Repair::OnTheNode,
            _ => Repair::Paste,
        }
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
