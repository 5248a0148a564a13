//! Tests: a tenant's API server that answers whatever an attacker likes. It plays the attacker on loopback; the
//! client is the operator's own.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use kube::{Client, Config};
use serde_json::json;
use steward_plan::Kind;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::task::AbortOnDropHandle;

use super::{hear, limits, look};
use crate::{
    apply::{Cluster, Engine},
    error::Error,
    lease::Fence,
    metrics::Metrics,
    pages::PAGE,
};

/// What the attacker is willing to send in one answer. Somebody who reads on gets all of it.
const OFFERED: usize = 256 << 20;

/// Of it at most so much may leave the attacker: what the client reads, and what fits into sockets' buffers.
const BOUND: usize = 48 << 20;

/// The start of an answer, and what is repeated until nobody listens any more.
type Answer = (String, &'static [u8]);

struct Attacker {
    address: SocketAddr,
    sent: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Attacker {
    async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sent, asked) = (
            Arc::<AtomicUsize>::default(),
            Arc::<Mutex<Vec<_>>>::default(),
        );
        let (counted, heard, answer) = (sent.clone(), asked.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (counted, heard, answer) = (counted.clone(), heard.clone(), answer.clone());
                tokio::spawn(async move {
                    serve(connection, &heard, &counted, answer.as_ref()).await;
                });
            }
        });
        Self {
            address,
            sent,
            asked,
            _task: AbortOnDropHandle::new(task),
        }
    }

    /// Always the same answer.
    async fn with(start: &str, repeated: &'static [u8]) -> Self {
        let start = start.to_owned();
        Self::start(move |_| (start.clone(), repeated)).await
    }

    fn client(&self) -> Client {
        let url = format!("http://{}", self.address).parse().unwrap();
        let client = crate::client::client(Config::new(url)).unwrap();
        limits::client(client, &Fence::unbounded())
    }

    fn engine(&self) -> Engine {
        Engine::new(self.client(), Cluster::Tenant, Metrics::default())
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    async fn look(&self) -> Error {
        let looked = look::inside(&self.client(), &self.engine(), true).await;
        looked.expect_err("nothing of this is an answer")
    }
}

async fn serve(
    mut connection: TcpStream,
    asked: &Mutex<Vec<String>>,
    sent: &AtomicUsize,
    answer: &(impl Fn(&str) -> Answer + ?Sized),
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = connection.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let (start, repeated) = answer(&path);
    asked.lock().unwrap().push(path);
    if connection.write_all(start.as_bytes()).await.is_err() || repeated.is_empty() {
        return;
    }
    let many = repeated.repeat((64 << 10) / repeated.len());
    let mut left = OFFERED;
    while left > 0 && connection.write_all(&many).await.is_ok() {
        sent.fetch_add(many.len(), Ordering::SeqCst);
        left = left.saturating_sub(many.len());
    }
}

/// An answer that ends with its connection.
fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
}

fn too_much(error: &Error) -> String {
    match error {
        Error::TooMuchInside { reason } => reason.clone(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_read_up_to_a_limit() {
    let attacker = Attacker::with(&ok(r#"{"gitVersion": ""#), b"v1.36.3").await;
    let said = too_much(&attacker.look().await);
    assert!(
        said.contains("GET /version") && said.contains("2 MiB"),
        "{said}"
    );
    assert!(attacker.sent() < BOUND, "{}", attacker.sent());
}

#[tokio::test]
async fn a_refusal_without_an_end_is_read_up_to_a_limit() {
    let attacker = Attacker::with("HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n", b"no ").await;
    let said = too_much(&attacker.look().await);
    assert!(said.contains("64 KiB"), "{said}");
    assert!(attacker.sent() < BOUND, "{}", attacker.sent());
}

#[tokio::test]
async fn headers_without_an_end_are_read_up_to_a_limit() {
    let attacker = Attacker::with("HTTP/1.1 200 OK\r\n", b"a: b\r\n").await;
    let error = attacker.look().await;
    assert!(matches!(error, Error::Read { .. }), "{error}");
    assert!(attacker.sent() < BOUND, "{}", attacker.sent());
}

#[tokio::test]
async fn json_that_explodes_in_memory_is_refused_before_it_is_read() {
    let attacker = Attacker::start(|path| {
        let bomb = r#"{"":0},"#.repeat(100_000);
        match path {
            "/version" => (ok(r#"{"gitVersion": "v1.36.3"}"#), b"".as_slice()),
            _ => (ok(&format!(r#"{{"items": [{bomb}{{}}]}}"#)), b"".as_slice()),
        }
    })
    .await;
    let said = too_much(&attacker.look().await);
    assert!(said.contains("16 MiB in memory"), "{said}");
}

#[tokio::test]
async fn a_list_that_goes_on_for_ever_ends_at_a_number() {
    let attacker = Attacker::start(|path| {
        let node = |number: usize| json!({"metadata": {"name": format!("n{number}")}});
        let items: Vec<_> = (0..PAGE).map(node).collect();
        let answer = match path {
            "/version" => json!({"gitVersion": "v1.36.3"}),
            nodes if nodes.starts_with("/api/v1/nodes?") => {
                json!({"metadata": {"continue": "more"}, "items": items})
            }
            _ => json!({"items": []}),
        };
        (ok(&answer.to_string()), b"".as_slice())
    })
    .await;
    let said = too_much(&attacker.look().await);
    assert!(said.contains("more than 5000 nodes"), "{said}");
    let asked = attacker.asked.lock().unwrap();
    let pages = asked.iter().filter(|path| path.contains("/nodes?")).count();
    assert_eq!(pages, 5000 / PAGE);
}

#[tokio::test]
async fn a_page_with_more_than_was_asked_for_is_refused_and_our_label_named() {
    let attacker = Attacker::start(|_| {
        let item = json!({"metadata": {"name": "a", "namespace": "b"}});
        let items = vec![item; PAGE + 1];
        (ok(&json!({"items": items}).to_string()), b"".as_slice())
    })
    .await;
    let listed = attacker
        .engine()
        .list_inside(&[Kind::ConfigMap], "a=b")
        .await;
    let said = too_much(&listed.expect_err("too many"));
    assert!(said.contains("kubectl get configmaps -A -l a=b"), "{said}");
}

#[tokio::test]
async fn what_is_kept_of_a_tenant_is_bounded_in_all() {
    let attacker = Attacker::start(|_| {
        let fields = r#"{"a":0},"#.repeat(1000);
        let item = format!(
            r#"{{"metadata": {{"name": "a", "namespace": "b", "managedFields": [{fields}{{}}]}}}}"#
        );
        let page = format!(r#"{{"metadata": {{"continue": "more"}}, "items": [{item}]}}"#);
        (ok(&page), b"".as_slice())
    })
    .await;
    let listed = attacker
        .engine()
        .list_inside(&[Kind::ConfigMap, Kind::Secret], "a=b")
        .await;
    let said = too_much(&listed.expect_err("too large"));
    assert!(said.contains("are too large"), "{said}");
    let pages = attacker.asked.lock().unwrap().len();
    assert!(pages < 2 * 500 / PAGE, "{pages}");
}

#[tokio::test]
async fn a_watch_line_without_an_end_is_read_up_to_a_limit() {
    let attacker = Attacker::with(&ok(r#"{"type": "ADDED", "object": ""#), b"endless").await;
    let watched = hear::Watched {
        client: attacker.client(),
        resource: Kind::ConfigMap.api_resource(),
        labels: "a=b".into(),
    };
    let heard = hear::listen(&watched, Some("1".into()), &mut false, &|| ()).await;
    let said = heard.expect_err("it never ends").to_string();
    assert!(said.contains("longer than 1 MiB"), "{said}");
    assert!(attacker.sent() < BOUND, "{}", attacker.sent());
}

#[tokio::test]
async fn nothing_is_unpacked() {
    let attacker = Attacker::with(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n\u{1f}",
        b"",
    )
    .await;
    let error = attacker.look().await;
    assert!(matches!(error, Error::TenantAccess { .. }), "{error}");
}

#[tokio::test]
async fn no_redirection_is_followed() {
    let elsewhere = Attacker::with(&ok(r#"{"gitVersion": "v1.36.3"}"#), b"").await;
    let there = format!(
        "HTTP/1.1 307 There\r\nlocation: http://{}/version\r\nconnection: close\r\n\r\n",
        elsewhere.address
    );
    let attacker = Attacker::with(&there, b"").await;
    let error = attacker.look().await;
    assert!(matches!(error, Error::TenantAccess { .. }), "{error}");
    assert!(elsewhere.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_told_about_it_fits_into_a_condition() {
    let page = "x".repeat(60 << 10);
    let attacker = Attacker::with(
        &format!("HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n{page}"),
        b"",
    )
    .await;
    let (_, sentence) = attacker.look().await.unreached("https://10.0.0.1:6443");
    assert!(sentence.len() <= 2048, "{}", sentence.len());
}
