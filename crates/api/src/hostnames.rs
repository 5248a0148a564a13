//! A tenant's public names: given, or made from its domain. One place decides, for everyone.

use kube::ResourceExt;

use crate::TenantControlPlane;
use crate::flags;
use crate::metadata::annotations;

/// Port of a front door that names none.
pub const DEFAULT_FRONT_DOOR_PORT: i32 = 443;

/// The names under which a tenant is reached behind a shared address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PublicNames {
    /// Name of the API server, lower case.
    pub api: String,
    /// Name for konnectivity agents; the same as `api` unless asked for.
    pub konnectivity: String,
    /// Port that the user named, in `port` or after the hostname.
    pub explicit_port: Option<i32>,
}

impl PublicNames {
    /// Port of the front door.
    pub fn port(&self) -> i32 {
        self.explicit_port.unwrap_or(DEFAULT_FRONT_DOOR_PORT)
    }

    /// Whether konnectivity has a name of its own.
    pub fn separate_konnectivity(&self) -> bool {
        self.api != self.konnectivity
    }
}

impl TenantControlPlane {
    /// The names of this tenant in Ingress or Gateway mode; `None` in other modes, or when neither a
    /// hostname nor a domain is given anywhere.
    ///
    /// Names made from a domain come in pairs, as clients of the ingress addon expect. A hostname
    /// given alone serves for everything, unless the agents' own arguments name another one: they
    /// will dial it whatever we think, so it must be routed.
    pub fn public_names(&self) -> Option<PublicNames> {
        let control_plane = &self.spec.control_plane;
        let (hostname, own_domain, konnectivity, port) =
            match (&control_plane.ingress, &control_plane.gateway) {
                (Some(i), _) => (&i.hostname, &i.domain, &i.konnectivity_hostname, i.port),
                (None, Some(g)) => (&g.hostname, &g.domain, &g.konnectivity_hostname, g.port),
                (None, None) => return None,
            };
        let domain = own_domain.as_deref().or_else(|| self.annotated_domain());
        let (api, port_in_name) = match (hostname, domain) {
            (Some(given), _) => split_port(given),
            (None, Some(domain)) => (self.name_under("k8s", domain), None),
            (None, None) => return None,
        };
        let konnectivity = konnectivity
            .clone()
            .or_else(|| self.host_of_agent_arguments())
            .or_else(|| domain.map(|domain| self.name_under("konnectivity", domain)))
            .unwrap_or_else(|| api.clone());
        Some(PublicNames {
            api: api.to_ascii_lowercase(),
            konnectivity: konnectivity.to_ascii_lowercase(),
            explicit_port: port.or(port_in_name),
        })
    }

    fn host_of_agent_arguments(&self) -> Option<String> {
        let konnectivity = self.spec.addons.konnectivity.as_ref()?;
        let value = flags::value(&konnectivity.agent.extra_args, "--proxy-server-host")?;
        let is_name = !value.is_empty() && value.parse::<std::net::IpAddr>().is_err();
        is_name.then(|| value.to_owned())
    }

    fn annotated_domain(&self) -> Option<&str> {
        [
            annotations::INGRESS_DOMAIN,
            annotations::KAMAJI_INGRESS_DOMAIN,
        ]
        .iter()
        .find_map(|key| self.annotations().get(*key))
        .map(String::as_str)
        .filter(|domain| !domain.is_empty())
    }

    fn name_under(&self, label: &str, domain: &str) -> String {
        let namespace = self.namespace().unwrap_or_default();
        format!("{namespace}-{}.{label}.{domain}", self.name_any())
    }
}

fn split_port(given: &str) -> (String, Option<i32>) {
    match given.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), port.parse().ok()),
        None => (given.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TenantControlPlaneSpec;
    use crate::tenant_control_plane::{GatewaySpec, IngressSpec, Konnectivity};

    fn tenant(change: impl FnOnce(&mut TenantControlPlane)) -> TenantControlPlane {
        let mut tenant = TenantControlPlane::new("blue", TenantControlPlaneSpec::default());
        tenant.metadata.namespace = Some("team".into());
        change(&mut tenant);
        tenant
    }

    fn ingress(change: impl FnOnce(&mut IngressSpec)) -> TenantControlPlane {
        tenant(|tenant| {
            change(
                tenant
                    .spec
                    .control_plane
                    .ingress
                    .insert(IngressSpec::default()),
            );
        })
    }

    #[test]
    fn a_given_hostname_serves_for_everything_on_443() {
        let names = ingress(|i| i.hostname = Some("Blue.example.com".into()))
            .public_names()
            .unwrap();
        assert_eq!(names.api, "blue.example.com");
        assert!(!names.separate_konnectivity());
        assert_eq!(names.port(), 443);
    }

    #[test]
    fn a_port_after_the_hostname_counts() {
        let names = ingress(|i| i.hostname = Some("blue.example.com:8443".into()))
            .public_names()
            .unwrap();
        assert_eq!(
            (names.api.as_str(), names.port()),
            ("blue.example.com", 8443)
        );
    }

    #[test]
    fn a_domain_makes_both_names() {
        let names = ingress(|i| i.domain = Some("example.com".into()))
            .public_names()
            .unwrap();
        assert_eq!(names.api, "team-blue.k8s.example.com");
        assert_eq!(names.konnectivity, "team-blue.konnectivity.example.com");
    }

    #[test]
    fn a_name_in_the_agents_own_arguments_is_routed() {
        let mut tenant = ingress(|i| i.hostname = Some("blue.k8s.example.com".into()));
        let konnectivity = tenant
            .spec
            .addons
            .konnectivity
            .insert(Konnectivity::default());
        konnectivity.agent.extra_args = vec!["--proxy-server-host=blue.agents.example.com".into()];
        assert_eq!(
            tenant.public_names().unwrap().konnectivity,
            "blue.agents.example.com"
        );
    }

    #[test]
    fn a_domain_beside_a_hostname_names_the_agents() {
        let names = ingress(|i| {
            i.hostname = Some("blue.example.org:443".into());
            i.domain = Some("example.org".into());
        })
        .public_names()
        .unwrap();
        assert_eq!(names.api, "blue.example.org");
        assert_eq!(names.konnectivity, "team-blue.konnectivity.example.org");
    }

    #[test]
    fn the_annotations_of_both_products_name_the_domain() {
        for key in [
            annotations::INGRESS_DOMAIN,
            annotations::KAMAJI_INGRESS_DOMAIN,
        ] {
            let tenant = tenant(|tenant| {
                tenant.spec.control_plane.gateway = Some(GatewaySpec::default());
                tenant
                    .annotations_mut()
                    .insert(key.into(), "example.org".into());
            });
            assert_eq!(
                tenant.public_names().unwrap().api,
                "team-blue.k8s.example.org"
            );
        }
    }

    #[test]
    fn without_hostname_and_domain_there_is_no_name() {
        assert_eq!(ingress(|_| ()).public_names(), None);
        assert_eq!(tenant(|_| ()).public_names(), None);
    }
}
