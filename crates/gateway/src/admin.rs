//! The gateway's admin pages: probes, metrics, and the table as it is.
//!
//! The table names every tenant and its pods: only a local client is shown it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

use serde::Serialize;
use steward_wire::{
    CountersHandle,
    admin::{Request, Response},
};

use crate::{
    limits::Clock,
    metrics::Metrics,
    route::{ProxyVersion, Route},
    shares::Shares,
    table::Router,
};

/// What the pages are made from.
#[derive(Debug)]
pub struct Pages {
    /// The table.
    pub router: Arc<Router>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Who has what of the gateway.
    pub shares: Arc<Shares>,
    /// Whether metrics by route, which name tenants too, are for local clients only.
    pub private_metrics: bool,
    /// The engine's counters, once it runs.
    pub engine: std::sync::OnceLock<CountersHandle>,
    /// Set while the process finishes its last connections.
    pub draining: AtomicBool,
    /// Set once the table is complete: at once with a file, after the first look at a cluster.
    pub synced: Arc<AtomicBool>,
    /// When the process started.
    pub start: Instant,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownRoute {
    host: String,
    backends: Vec<ShownBackend>,
    connections: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    send_proxy: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allow: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_connections: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_handshakes_per_second: Option<u32>,
}

#[derive(Serialize)]
struct ShownBackend {
    address: String,
    healthy: bool,
    connections: u32,
}

const LOCAL_ONLY: &str = "the table of routes names every tenant and is shown on the loopback \
    address only: use `kubectl port-forward` to the pod, or ask on 127.0.0.1\n";

impl Pages {
    /// Answers a request.
    pub fn answer(&self, request: &Request<'_>) -> Option<Response> {
        match request.path {
            "/livez" | "/healthz" => Some(Response::ok("ok\n")),
            "/readyz" => Some(self.ready()),
            "/metrics" => Some(self.metrics(request.is_local() || !self.private_metrics)),
            "/routes" if request.is_local() => Some(self.routes()),
            "/routes" => Some(Response::forbidden(LOCAL_ONLY)),
            _ => None,
        }
    }

    fn ready(&self) -> Response {
        if self.draining.load(Relaxed) {
            return Response::unavailable("draining: finishing the last connections\n");
        }
        if self.engine.get().is_none() {
            return Response::unavailable("starting: not listening yet\n");
        }
        if !self.synced.load(Relaxed) {
            return Response::unavailable("starting: the cluster's routes are not read yet\n");
        }
        Response::ok("ok\n")
    }

    fn metrics(&self, by_route: bool) -> Response {
        self.metrics
            .routes
            .store(self.router.table().len() as u64, Relaxed);
        let engine = self
            .engine
            .get()
            .map(CountersHandle::snapshot)
            .unwrap_or_default();
        Response::metrics(self.metrics.render(&engine, &self.shares, by_route))
    }

    fn routes(&self) -> Response {
        let now = Clock::since(self.start, Instant::now());
        let table = self.router.table();
        let mut routes: Vec<_> = table
            .iter()
            .map(|route| ShownRoute::new(route, now))
            .collect();
        routes.sort_by(|left, right| left.host.cmp(&right.host));
        match serde_json::to_string(&routes) {
            Ok(body) => Response::json(body),
            Err(error) => Response::unavailable(format!("cannot show the routes: {error}\n")),
        }
    }
}

impl ShownRoute {
    fn new(route: &Route, now: Clock) -> Self {
        let spec = route.spec();
        let backends = route.backends().iter().map(|backend| ShownBackend {
            address: backend.address().to_string(),
            healthy: backend.healthy(now),
            connections: backend.live(),
        });
        Self {
            host: route.host().to_string(),
            backends: backends.collect(),
            connections: route.live(),
            send_proxy: spec.send_proxy.map(|version| match version {
                ProxyVersion::V1 => "v1",
                ProxyVersion::V2 => "v2",
            }),
            allow: spec.allow.iter().map(ToString::to_string).collect(),
            max_connections: spec.max_connections,
            max_handshakes_per_second: spec.max_handshakes_per_second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{route::RouteSpec, shares::Limits, table::Table};

    fn pages(table: Table, private_metrics: bool) -> Pages {
        Pages {
            router: Arc::new(Router::new(table)),
            metrics: Arc::new(Metrics::new(1)),
            shares: Arc::new(Shares::new(Limits::none())),
            private_metrics,
            engine: std::sync::OnceLock::new(),
            draining: AtomicBool::new(false),
            synced: Arc::new(AtomicBool::new(true)),
            start: Instant::now(),
        }
    }

    fn ask(pages: &Pages, path: &str, peer: &str) -> Option<Response> {
        let peer = peer.parse().unwrap();
        pages.answer(&Request { path, peer })
    }

    #[test]
    fn the_routes_page_shows_the_table_in_order() {
        let spec = RouteSpec {
            backends: vec!["10.0.0.1:6443".parse().unwrap()],
            allow: vec!["192.0.2.0/24".parse().unwrap()],
            ..RouteSpec::default()
        };
        let table = Table::new()
            .with_route("b.example.com".parse().unwrap(), &spec)
            .with_route("*.example.com".parse().unwrap(), &RouteSpec::default());
        let pages = pages(table, false);
        let local = |path| ask(&pages, path, "127.0.0.1");
        assert_eq!(
            local("/routes").unwrap().body,
            concat!(
                r#"[{"host":"*.example.com","backends":[],"connections":0},"#,
                r#"{"host":"b.example.com","backends":[{"address":"10.0.0.1:6443","healthy":true,"#,
                r#""connections":0}],"connections":0,"allow":["192.0.2.0/24"]}]"#
            )
        );
        assert_eq!(local("/readyz").unwrap().status, 503);
        assert!(
            local("/metrics")
                .unwrap()
                .body
                .contains("steward_gateway_routes 2\n")
        );
        assert!(local("/secret").is_none());
    }

    #[test]
    fn who_is_not_local_sees_no_table_and_with_private_metrics_no_route() {
        for private in [false, true] {
            let pages = pages(Table::new(), private);
            pages.metrics.route("t1.example.com");
            let far = |path| ask(&pages, path, "10.0.0.7").unwrap();
            let refused = far("/routes");
            assert_eq!(refused.status, 403);
            assert!(refused.body.contains("port-forward"), "{}", refused.body);
            assert_eq!(far("/livez").status, 200);
            let metrics = far("/metrics").body;
            assert!(metrics.contains("steward_gateway_connections 0\n"));
            assert_eq!(metrics.contains("t1.example.com"), !private);
            let near = ask(&pages, "/metrics", "::1").unwrap().body;
            assert!(near.contains("t1.example.com"));
        }
    }
}
