//! HAProxy: the reference. As a front door it looks hosts up in a map, so that
//! routes can be added at run time; as a node proxy it ends and opens TLS 1.3
//! with session reuse towards the upstream, its default and its best.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{Kind, Proxy, Setting};
use crate::{backend::TLS_PORT, pki::NODE_NAME, process::Program};

/// A front door with the splicing that `prepare` chooses.
pub(crate) const fn front(
    name: &'static str,
    prepare: fn(&Setting<'_>) -> Result<Vec<Program>>,
) -> Proxy {
    Proxy {
        name,
        kind: Kind::Front,
        program: "haproxy",
        version: &["-v"],
        prepare,
    }
}

/// A terminating node proxy.
pub(crate) const fn node(name: &'static str) -> Proxy {
    Proxy {
        name,
        kind: Kind::Node,
        program: "haproxy",
        version: &["-v"],
        prepare: terminate,
    }
}

/// Lets HAProxy decide what to splice: its best for small messages.
pub(crate) fn auto(setting: &Setting<'_>) -> Result<Vec<Program>> {
    passthrough(setting, "option splice-auto", "")
}

/// Forces splicing: its best for bulk, with the kernel's 64 KiB pipes.
pub(crate) fn splice(setting: &Setting<'_>) -> Result<Vec<Program>> {
    passthrough(
        setting,
        "option splice-request\n    option splice-response",
        "",
    )
}

/// Forces splicing through pipes of 1 MiB.
pub(crate) fn splice_1m(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let options = "option splice-request\n    option splice-response";
    passthrough(setting, options, "    tune.pipesize 1048576\n")
}

/// The socket on which a front door takes commands.
pub(crate) fn socket(directory: &Path) -> PathBuf {
    directory.join("stats.sock")
}

/// The map from hosts to backends.
pub(crate) fn map(directory: &Path) -> PathBuf {
    directory.join("hosts.map")
}

/// Says one command to a running HAProxy and returns its answer.
pub(crate) fn command(directory: &Path, text: &str) -> Result<String> {
    let mut stream = UnixStream::connect(socket(directory)).context("reaching HAProxy's socket")?;
    stream.write_all(text.as_bytes())?;
    stream.write_all(b"\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn passthrough(setting: &Setting<'_>, splice: &str, tune: &str) -> Result<Vec<Program>> {
    let mut hosts = String::new();
    let mut backends = std::collections::BTreeSet::new();
    for route in setting.routes {
        writeln!(hosts, "{} b{}", route.host, name(route.backend))?;
        backends.insert(route.backend);
    }
    let map = setting.write("hosts.map", &hosts)?;
    let mut config = global(tune, &socket(&setting.directory));
    write!(
        config,
        "    {splice}

frontend front
    bind 0.0.0.0:{port}
    tcp-request inspect-delay 5s
    tcp-request content accept if {{ req.ssl_hello_type 1 }}
    use_backend %[req.ssl_sni,lower,map({map})]
",
        port = setting.port,
        map = map.display(),
    )?;
    for backend in backends {
        write!(
            config,
            "\nbackend b{}\n    server s {backend}\n",
            name(backend)
        )?;
    }
    start(setting, &config)
}

/// What a backend is called in the configuration.
pub(crate) fn name(backend: std::net::SocketAddrV4) -> String {
    format!("{}-{}", backend.ip(), backend.port())
}

fn terminate(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let mut config = global(
        "    ssl-default-bind-options ssl-min-ver TLSv1.3
    ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
    ssl-default-bind-curves X25519
    ssl-default-server-options ssl-min-ver TLSv1.3
    ssl-default-server-ciphersuites TLS_AES_128_GCM_SHA256
",
        &socket(&setting.directory),
    );
    write!(
        config,
        "
frontend node
    bind 0.0.0.0:{port} ssl crt {bundle}
    default_backend upstream

backend upstream
    server s 127.0.1.1:{TLS_PORT} ssl verify required ca-file {ca} sni str({NODE_NAME}) verifyhost {NODE_NAME}
",
        port = setting.port,
        bundle = setting.pki.bundle.display(),
        ca = setting.pki.ca.display(),
    )?;
    start(setting, &config)
}

fn global(tune: &str, socket: &Path) -> String {
    format!(
        "global
    nbthread 2
    maxconn 9500
    maxpipes 64
    stats socket {} level admin
{tune}
defaults
    mode tcp
    maxconn 9500
    timeout connect 5s
    timeout client 1h
    timeout server 1h
",
        socket.display()
    )
}

fn start(setting: &Setting<'_>, config: &str) -> Result<Vec<Program>> {
    let path = setting.write("haproxy.cfg", config)?;
    Ok(vec![Program::new(
        "haproxy",
        &setting.program,
        ["-db".as_ref(), "-f".as_ref(), path.as_os_str()],
    )])
}
