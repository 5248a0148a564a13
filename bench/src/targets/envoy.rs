//! Envoy: `tls_inspector` and one filter chain per host as a front door, as Gateway
//! implementations configure it; a TLS listener and a verified TLS cluster on a node.

use std::{collections::BTreeMap, net::SocketAddrV4};

use anyhow::Result;
use serde_json::{Value, json};

use super::{Kind, Proxy, Setting};
use crate::{backend::TLS_PORT, pki::NODE_NAME, process::Program};

const TYPE: &str = "type.googleapis.com/envoy.extensions";

/// The front door.
pub(crate) const FRONT: Proxy = Proxy {
    name: "envoy",
    kind: Kind::Front,
    program: "envoy",
    version: &["--version"],
    prepare: front,
};

/// The terminating node proxy.
pub(crate) const NODE: Proxy = Proxy {
    name: "envoy-tls",
    kind: Kind::Node,
    prepare: node,
    ..FRONT
};

fn front(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let mut clusters = BTreeMap::new();
    let mut chains = Vec::new();
    for route in setting.routes {
        let name = cluster_name(route.backend);
        clusters
            .entry(name.clone())
            .or_insert_with(|| cluster(&name, route.backend));
        chains.push(json!({
            "filter_chain_match": { "server_names": [route.host] },
            "filters": [tcp_proxy(&name)],
        }));
    }
    let inspector = json!({
        "name": "tls_inspector",
        "typed_config": {
            "@type": format!("{TYPE}.filters.listener.tls_inspector.v3.TlsInspector"),
        },
    });
    let listener = listener(setting.port, &json!([inspector]), &json!(chains));
    start(
        setting,
        &listener,
        &json!(clusters.into_values().collect::<Vec<_>>()),
    )
}

fn node(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let parameters = json!({
        "tls_minimum_protocol_version": "TLSv1_3",
        "tls_maximum_protocol_version": "TLSv1_3",
        "ecdh_curves": ["X25519"],
    });
    let downstream = json!({
        "@type": format!("{TYPE}.transport_sockets.tls.v3.DownstreamTlsContext"),
        "common_tls_context": {
            "tls_params": parameters,
            "tls_certificates": [{
                "certificate_chain": { "filename": setting.pki.cert },
                "private_key": { "filename": setting.pki.key },
            }],
        },
    });
    let upstream = json!({
        "@type": format!("{TYPE}.transport_sockets.tls.v3.UpstreamTlsContext"),
        "sni": NODE_NAME,
        // Envoy resumes upstream sessions from a cache of this size.
        "max_session_keys": 1,
        "common_tls_context": {
            "tls_params": parameters,
            "validation_context": {
                "trusted_ca": { "filename": setting.pki.ca },
                "match_typed_subject_alt_names": [
                    { "san_type": "DNS", "matcher": { "exact": format!("*.{}", crate::pki::DOMAIN) } },
                ],
            },
        },
    });
    let chain = json!({
        "transport_socket": { "name": "tls", "typed_config": downstream },
        "filters": [tcp_proxy("upstream")],
    });
    let mut cluster = cluster(
        "upstream",
        SocketAddrV4::new([127, 0, 1, 1].into(), TLS_PORT),
    );
    cluster["transport_socket"] = json!({ "name": "tls", "typed_config": upstream });
    start(
        setting,
        &listener(setting.port, &json!([]), &json!([chain])),
        &json!([cluster]),
    )
}

fn cluster_name(backend: SocketAddrV4) -> String {
    format!("b-{}-{}", backend.ip(), backend.port())
}

fn tcp_proxy(cluster: &str) -> Value {
    json!({
        "name": "tcp_proxy",
        "typed_config": {
            "@type": format!("{TYPE}.filters.network.tcp_proxy.v3.TcpProxy"),
            "stat_prefix": "bench",
            "cluster": cluster,
            "idle_timeout": "0s",
        },
    })
}

fn cluster(name: &str, backend: SocketAddrV4) -> Value {
    let address = json!({ "address": { "socket_address": {
        "address": backend.ip().to_string(), "port_value": backend.port(),
    } } });
    json!({
        "name": name,
        "type": "STATIC",
        // The default of 1024 would refuse the idle connections.
        "circuit_breakers": { "thresholds": [{ "max_connections": 20000, "max_pending_requests": 20000 }] },
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{ "lb_endpoints": [{ "endpoint": address }] }],
        },
    })
}

fn listener(port: u16, listener_filters: &Value, chains: &Value) -> Value {
    json!({
        "name": "front",
        "address": { "socket_address": { "address": "0.0.0.0", "port_value": port } },
        "tcp_backlog_size": 4096,
        "listener_filters": listener_filters,
        "filter_chains": chains,
    })
}

fn start(setting: &Setting<'_>, listener: &Value, clusters: &Value) -> Result<Vec<Program>> {
    let config = json!({ "static_resources": { "listeners": [listener], "clusters": clusters } });
    let path = setting.write("envoy.json", &config.to_string())?;
    let arguments = [
        "-c".as_ref(),
        path.as_os_str(),
        "--concurrency".as_ref(),
        "2".as_ref(),
        "--disable-hot-restart".as_ref(),
        "-l".as_ref(),
        "error".as_ref(),
    ];
    Ok(vec![Program::new("envoy", &setting.program, arguments)])
}
