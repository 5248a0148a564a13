//! The front doors that there are, and how a tenant asks for each.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use steward_e2e::{Stage, front_door, haproxy};

/// One way to be behind one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    StewardIngress,
    StewardGateway,
    TraefikOwnKind,
    TraefikGateway,
    TraefikNginx,
    HaproxyIngress,
    HaproxyTechnologies,
}

impl Door {
    pub(crate) const ALL: [Self; 7] = [
        Self::StewardIngress,
        Self::StewardGateway,
        Self::TraefikOwnKind,
        Self::TraefikGateway,
        Self::TraefikNginx,
        Self::HaproxyIngress,
        Self::HaproxyTechnologies,
    ];

    /// Those with these names, separated by commas; all without any.
    pub(crate) fn chosen(names: Option<&str>) -> Result<Vec<Self>> {
        let Some(names) = names else {
            return Ok(Self::ALL.to_vec());
        };
        let find = |name: &str| {
            let door = Self::ALL.into_iter().find(|door| door.name() == name);
            let known = Self::ALL.map(Self::name).join(", ");
            door.with_context(|| {
                format!("STEWARD_DOORS: no front door is called {name:?}; there are {known}")
            })
        };
        names.split(',').map(find).collect()
    }

    /// Of its tenants' namespace, and of their domain.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::StewardIngress => "steward-ingress",
            Self::StewardGateway => "steward-gateway",
            Self::TraefikOwnKind => "traefik-own-kind",
            Self::TraefikGateway => "traefik-gateway",
            Self::TraefikNginx => "traefik-nginx",
            Self::HaproxyIngress => "haproxy-ingress-community",
            Self::HaproxyTechnologies => "haproxy-technologies",
        }
    }

    /// A name in its domain.
    pub(crate) fn host(self, label: &str) -> String {
        format!("{label}.{}.example.com", self.name())
    }

    /// What a tenant's spec says.
    pub(crate) fn exposure(self, host: &str) -> String {
        let ingress = |class: &str, type_: &str| {
            format!(
                "ingress: {{ hostname: {host}, ingressClassName: {class}, controllerType: {type_} }}"
            )
        };
        let gateway = |name: &str, namespace: &str| {
            format!(
                "gateway: {{ hostname: {host}, parentRefs: [ {{ name: {name}, namespace: {namespace} }} ] }}"
            )
        };
        match self {
            Self::StewardIngress => ingress("steward", "steward"),
            Self::StewardGateway => gateway("front", "steward-system"),
            Self::TraefikOwnKind => ingress("traefik", "traefik"),
            Self::TraefikGateway => gateway("traefik", "traefik"),
            Self::TraefikNginx => ingress("nginx", "nginx"),
            Self::HaproxyIngress => ingress("haproxy-ingress", "haproxy-ingress"),
            Self::HaproxyTechnologies => ingress("haproxy", "haproxy"),
        }
    }

    /// The kind of object that a route is.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::StewardGateway | Self::TraefikGateway => "tlsroute",
            Self::TraefikOwnKind => "ingressroutetcp",
            _ => "ingress",
        }
    }
}

/// Where each front door is.
pub(crate) struct Addresses {
    steward: Ipv4Addr,
    traefik: Ipv4Addr,
    haproxy_ingress: Ipv4Addr,
}

/// A Gateway of our class, and the class of a controller that is not there: a real HAProxy reads its Ingresses.
const FURNITURE: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: front, namespace: steward-system }
spec:
  gatewayClassName: steward
  listeners:
  - { name: tls, port: 443, protocol: TLS, hostname: '*.steward-gateway.example.com', tls: { mode: Passthrough }, allowedRoutes: { namespaces: { from: All } } }
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: haproxy }
spec: { controller: haproxy.org/ingress-controller/haproxy }
";

impl Addresses {
    /// Installs every front door and lets the names lead there.
    pub(crate) async fn furnish(stage: &Stage) -> Result<Self> {
        stage.apply(FURNITURE).await?;
        let addresses = Self {
            steward: stage
                .address_of("steward-system", "steward-gateway")
                .await?,
            traefik: front_door::install(stage, "traefik").await?,
            haproxy_ingress: front_door::install(stage, "haproxy-ingress").await?,
        };
        for door in Door::ALL {
            stage.kubectl(&["create", "namespace", door.name()]).await?;
            stage.name(&door.host("*"), addresses.of(door))?;
        }
        Ok(addresses)
    }

    pub(crate) const fn of(&self, door: Door) -> Ipv4Addr {
        match door {
            Door::StewardIngress | Door::StewardGateway => self.steward,
            Door::TraefikOwnKind | Door::TraefikGateway | Door::TraefikNginx => self.traefik,
            Door::HaproxyIngress => self.haproxy_ingress,
            Door::HaproxyTechnologies => haproxy::ADDRESS,
        }
    }
}
