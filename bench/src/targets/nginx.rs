//! nginx: stream with `ssl_preread`, hosts in a map, one listener per worker.

use std::{fmt::Write as _, path::Path};

use anyhow::Result;

use super::{Kind, Proxy, Setting};
use crate::process::Program;

/// Debian ships the stream module apart from the program.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// The front door.
pub(crate) const FRONT: Proxy = Proxy {
    name: "nginx",
    kind: Kind::Front,
    program: "nginx",
    version: &["-v"],
    prepare: front,
};

fn front(setting: &Setting<'_>) -> Result<Vec<Program>> {
    let module = if Path::new(STREAM_MODULE).exists() {
        format!("load_module {STREAM_MODULE};\n")
    } else {
        String::new()
    };
    let mut hosts = String::new();
    for route in setting.routes {
        writeln!(hosts, "    {} {};", route.host, route.backend)?;
    }
    setting.write("hosts.map", &hosts)?;
    let path = setting.write("nginx.conf", &config(setting, &module))?;
    let arguments = [
        "-c".as_ref(),
        path.as_os_str(),
        "-p".as_ref(),
        setting.directory.as_os_str(),
    ];
    Ok(vec![Program::new("nginx", &setting.program, arguments)])
}

fn config(setting: &Setting<'_>, module: &str) -> String {
    format!(
        "{module}daemon off;
user root;
worker_processes 2;
worker_rlimit_nofile 20000;
error_log stderr crit;
pid {directory}/nginx.pid;
events {{ worker_connections 19000; }}
stream {{
  map_hash_max_size 262144;
  map_hash_bucket_size 128;
  map $ssl_preread_server_name $backend {{
    include {directory}/hosts.map;
  }}
  server {{
    listen 0.0.0.0:{port} reuseport backlog=4096;
    ssl_preread on;
    proxy_timeout 1h;
    proxy_pass $backend;
  }}
}}
",
        directory = setting.directory.display(),
        port = setting.port,
    )
}
