//! Ours: the gateway as a front door; the tcp-proxy on a node, terminating, or end
//! to end with the gate behind it.

use std::net::SocketAddrV4;

use anyhow::{Context as _, Result};

use super::{Kind, Proxy, Setting};
use crate::{backend::TLS_PORT, pki::NODE_NAME, process::Program};

/// The front door.
pub(crate) const GATEWAY: Proxy = Proxy {
    name: "steward-gateway",
    kind: Kind::Front,
    program: "steward-gateway",
    version: &["--version"],
    prepare: gateway,
};

/// The node proxy that ends TLS and opens it again.
pub(crate) const TERMINATE: Proxy = Proxy {
    name: "steward-terminate",
    kind: Kind::Node,
    program: "steward-tcp-proxy",
    version: &["--version"],
    prepare: terminate,
};

/// The node proxy that wraps the client's TLS, and the gate that unwraps it.
pub(crate) const END_TO_END: Proxy = Proxy {
    name: "steward-end-to-end",
    prepare: end_to_end,
    ..TERMINATE
};

/// One entry of the gateway's route file.
pub(crate) fn route(host: &str, backend: SocketAddrV4) -> String {
    format!("- host: {host}\n  backends: [\"{backend}\"]\n")
}

fn gateway(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let mut text = "routes:\n".to_owned();
    for route in setting.routes {
        text.push_str(&self::route(&route.host, route.backend));
    }
    let routes = setting.write("routes.yaml", &text)?;
    let listen = format!("0.0.0.0:{}", setting.port);
    let admin = format!("127.0.0.1:{}", setting.second_port);
    let arguments = [
        "--listen".as_ref(),
        listen.as_ref(),
        "--routes".as_ref(),
        routes.as_os_str(),
        "--admin".as_ref(),
        admin.as_ref(),
        "--workers".as_ref(),
        "2".as_ref(),
        // The crowd of a benchmark comes from few addresses.
        "--source-share=100".as_ref(),
        "--source-handshakes=0".as_ref(),
        "--route-share=100".as_ref(),
        "--route-handshakes=0".as_ref(),
    ];
    Ok(vec![Program::new(
        "steward-gateway",
        &setting.program,
        arguments,
    )])
}

#[expect(clippy::unnecessary_wraps, reason = "has the shape of all the others")]
fn terminate(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let upstream = format!("127.0.1.1:{TLS_PORT}");
    let mut program = proxy(setting, "terminate", &upstream, setting.second_port);
    let pair = [
        "--cert".as_ref(),
        setting.pki.cert.as_os_str(),
        "--key".as_ref(),
        setting.pki.key.as_os_str(),
    ];
    program.arguments.extend(pair.map(Into::into));
    Ok(vec![program])
}

fn end_to_end(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let gate = setting
        .tools
        .find("steward-gate")
        .context("steward-gate is not installed")?;
    // The gate's own ports lie apart from everybody else's.
    let (listen, admin) = (setting.port + 2000, setting.second_port + 2000);
    let upstream = format!("127.0.1.1:{listen}");
    let gate = Program::new(
        "steward-gate",
        &gate,
        [
            "--listen".to_owned(),
            format!("0.0.0.0:{listen}"),
            "--apiserver".to_owned(),
            format!("127.0.1.1:{TLS_PORT}"),
            "--cert".to_owned(),
            setting.pki.cert.display().to_string(),
            "--key".to_owned(),
            setting.pki.key.display().to_string(),
            "--admin".to_owned(),
            format!("127.0.0.1:{admin}"),
            "--workers".to_owned(),
            "2".to_owned(),
        ],
    );
    Ok(vec![
        proxy(setting, "end-to-end", &upstream, setting.second_port),
        gate,
    ])
}

fn proxy(setting: &Setting<'_>, mode: &str, upstream: &str, admin: u16) -> Program {
    Program::new(
        "steward-tcp-proxy",
        &setting.program,
        [
            "--mode".to_owned(),
            mode.to_owned(),
            "--listen".to_owned(),
            format!("0.0.0.0:{}", setting.port),
            "--upstream".to_owned(),
            upstream.to_owned(),
            "--ca".to_owned(),
            setting.pki.ca.display().to_string(),
            "--server-name".to_owned(),
            NODE_NAME.to_owned(),
            "--admin".to_owned(),
            format!("127.0.0.1:{admin}"),
            "--workers".to_owned(),
            "2".to_owned(),
        ],
    )
}
