//! Traefik: TCP routers with TLS passthrough from its file provider.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Kind, Proxy, Setting};
use crate::process::Program;

/// The front door.
pub(crate) const FRONT: Proxy = Proxy {
    name: "traefik",
    kind: Kind::Front,
    program: "traefik",
    version: &["version"],
    prepare: front,
};

fn front(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let mut routers = Map::new();
    let mut services = Map::new();
    for (number, route) in setting.routes.iter().enumerate() {
        let service = format!("b-{}-{}", route.backend.ip(), route.backend.port());
        let router = json!({
            "entryPoints": ["tcp"],
            "rule": format!("HostSNI(`{}`)", route.host),
            "service": service,
            "tls": { "passthrough": true },
        });
        routers.insert(format!("r{number}"), router);
        let servers =
            json!({ "loadBalancer": { "servers": [{ "address": route.backend.to_string() }] } });
        services.insert(service, servers);
    }
    let dynamic = json!({ "tcp": { "routers": Value::Object(routers), "services": Value::Object(services) } });
    // JSON is YAML, and Traefik goes by the name.
    let path = setting.write("routes.yaml", &dynamic.to_string())?;
    let mut program = Program::new(
        "traefik",
        &setting.program,
        [
            format!("--entryPoints.tcp.address=0.0.0.0:{}", setting.port),
            format!("--providers.file.filename={}", path.display()),
            "--log.level=ERROR".to_owned(),
            "--global.checkNewVersion=false".to_owned(),
            "--global.sendAnonymousUsage=false".to_owned(),
        ],
    );
    program.environment.push(("GOMAXPROCS", "2".to_owned()));
    Ok(vec![program])
}
