//! What kubeadm and kube-proxy read: is it there, and where does it lead?

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::Value;
use steward_doctor::{Seen, Told};

use super::super::unseen;

/// What was seen of it.
pub(super) struct Kubeadm {
    pub(super) missing: Vec<String>,
    pub(super) told: Vec<Told>,
    pub(super) kube_proxy_server: Option<String>,
}

const MAPS: [(&str, &str); 3] = [
    ("kube-public", "cluster-info"),
    ("kube-system", "kubeadm-config"),
    ("kube-system", "kubelet-config"),
];

/// Who may read them, by the names that kubeadm gives.
const READERS: [(&str, &str); 3] = [
    ("kube-public", "kubeadm:bootstrap-signer-clusterinfo"),
    ("kube-system", "kubeadm:nodes-kubeadm-config"),
    ("kube-system", "kubeadm:kubelet-config"),
];

/// What lets a joining node ask for its certificate, and have it.
const BINDINGS: [&str; 4] = [
    "kubeadm:get-nodes",
    "kubeadm:kubelet-bootstrap",
    "kubeadm:node-autoapprove-bootstrap",
    "kubeadm:node-autoapprove-certificate-rotation",
];

/// Looks at all of it.
pub(super) async fn look(client: &Client) -> Seen<Kubeadm> {
    let maps = try_join_all(MAPS.iter().map(|(ns, name)| config_map(client, ns, name)));
    let kube_proxy = config_map(client, "kube-system", "kube-proxy");
    let (maps, kube_proxy, mut unbound) =
        tokio::try_join!(maps, kube_proxy, missing_rights(client))?;
    let mut missing = Vec::new();
    for ((namespace, name), found) in MAPS.iter().zip(&maps) {
        if found.is_none() {
            missing.push(format!("ConfigMap {namespace}/{name}"));
        }
    }
    missing.append(&mut unbound);
    let mut told = Vec::new();
    let mut tell = |place: &str, found: Option<String>| {
        told.extend(found.map(|endpoint| Told {
            place: place.to_owned(),
            endpoint,
        }));
    };
    tell(
        "ConfigMap kube-public/cluster-info",
        maps[0]
            .as_ref()
            .and_then(|m| server(m, "kubeconfig"))
            .and_then(|s| endpoint(&s)),
    );
    tell(
        "ConfigMap kube-system/kubeadm-config",
        maps[1].as_ref().and_then(control_plane_endpoint),
    );
    Ok(Kubeadm {
        missing,
        told,
        kube_proxy_server: kube_proxy.and_then(|m| server(&m, "kubeconfig.conf")),
    })
}

async fn config_map(client: &Client, namespace: &str, name: &str) -> Seen<Option<ConfigMap>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|e| unseen(&e))
}

/// Roles and bindings that kubeadm makes and `kubeadm join` needs.
async fn missing_rights(client: &Client) -> Seen<Vec<String>> {
    let everything = ListParams::default();
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let (bindings, role) = tokio::try_join!(
        bindings.list_metadata(&everything),
        roles.get_metadata_opt("kubeadm:get-nodes"),
    )
    .map_err(|e| unseen(&e))?;
    let there = |name: &str| {
        bindings
            .iter()
            .any(|b| b.metadata.name.as_deref() == Some(name))
    };
    let mut missing: Vec<String> = BINDINGS
        .iter()
        .filter(|name| !there(name))
        .map(|name| format!("ClusterRoleBinding {name}"))
        .collect();
    if role.is_none() {
        missing.push("ClusterRole kubeadm:get-nodes".to_owned());
    }
    for (namespace, name) in READERS {
        let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
        let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
        let (role, binding) = tokio::try_join!(
            roles.get_metadata_opt(name),
            bindings.get_metadata_opt(name)
        )
        .map_err(|e| unseen(&e))?;
        if role.is_none() {
            missing.push(format!("Role {namespace}/{name}"));
        }
        if binding.is_none() {
            missing.push(format!("RoleBinding {namespace}/{name}"));
        }
    }
    Ok(missing)
}

/// The server of the kubeconfig in a `ConfigMap`.
fn server(map: &ConfigMap, key: &str) -> Option<String> {
    let text = map.data.as_ref()?.get(key)?;
    let kubeconfig: Value = serde_saphyr::from_str(text).ok()?;
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str()?;
    Some(server.to_owned())
}

fn control_plane_endpoint(map: &ConfigMap) -> Option<String> {
    let text = map.data.as_ref()?.get("ClusterConfiguration")?;
    let configuration: Value = serde_saphyr::from_str(text).ok()?;
    Some(configuration["controlPlaneEndpoint"].as_str()?.to_owned())
}

/// A URL as `host:port`, the port always said.
pub(super) fn endpoint(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?.trim_end_matches('/');
    let has_port = rest
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.chars().all(|c| c.is_ascii_digit()));
    Some(if has_port {
        rest.to_owned()
    } else {
        format!("{rest}:443")
    })
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn an_endpoint_has_its_port_whether_it_was_written_or_not() {
        assert_eq!(endpoint("https://a.b").as_deref(), Some("a.b:443"));
        assert_eq!(endpoint("https://a.b:6443/").as_deref(), Some("a.b:6443"));
        assert_eq!(endpoint("https://[::1]").as_deref(), Some("[::1]:443"));
        assert_eq!(endpoint("https://[::1]:1").as_deref(), Some("[::1]:1"));
        assert_eq!(endpoint("nonsense"), None);
    }
}
