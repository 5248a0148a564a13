//! When a leader stops, to the second, with an API server that stops answering.

use std::{
    convert::Infallible,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{Method, Request, Response};
use kube::client::Body;
use std::sync::Arc;

use super::*;

/// Keeps one Lease, and hangs when told to.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<Lease>>>,
    hangs: Arc<AtomicBool>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                if server.hangs.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let (code, answer) = server.answer(request).await;
                let answer = Response::builder().status(code).body(Body::from(answer));
                Ok::<_, Infallible>(answer.unwrap())
            }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> (u16, Vec<u8>) {
        let refuse = |code: u16, reason: &str| {
            let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "", "code": code, "reason": reason});
            (code, status.to_string().into_bytes())
        };
        let (method, body) = (request.method().clone(), request.into_body());
        let body = body.collect_bytes().await.unwrap();
        let mut lease = self.lease.lock().unwrap();
        if method == Method::GET {
            return lease.as_ref().map_or_else(
                || refuse(404, "NotFound"),
                |lease| (200, serde_json::to_vec(lease).unwrap()),
            );
        }
        let mut new: Lease = serde_json::from_slice(&body).unwrap();
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        if lease.as_ref().and_then(version) != version(&new) {
            return refuse(409, "Conflict");
        }
        let next = version(&new).map_or(1, |version| version.parse::<u64>().unwrap() + 1);
        new.metadata.resource_version = Some(next.to_string());
        *lease = Some(new.clone());
        (200, serde_json::to_vec(&new).unwrap())
    }
}

/// A replica that takes part.
struct Replica {
    fence: Fence,
    said: watch::Receiver<Leadership>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn replica(server: &Server, name: &str) -> Replica {
    let (sender, said) = watch::channel(Leadership::Standby);
    let (fence, stop) = (Fence::closed(), CancellationToken::new());
    let candidate = Candidate {
        namespace: "default".into(),
        name: "leader".into(),
        identity: name.into(),
        duration: Duration::from_secs(15),
    };
    let task = run(
        server.client(),
        candidate,
        fence.clone(),
        sender,
        stop.clone(),
    );
    Replica {
        fence,
        said,
        stop,
        task: tokio::spawn(task),
    }
}

impl Replica {
    async fn until(&mut self, wanted: Leadership) {
        self.said.wait_for(|now| *now == wanted).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_hang_stops_before_another_can_start() {
    let server = Server::default();
    let mut first = replica(&server, "first");
    first.until(Leadership::Leader).await;
    let acquired = Instant::now();
    let mut second = replica(&server, "second");
    // Just after the renewal at nine seconds: the next one hangs.
    tokio::time::sleep(Duration::from_millis(9500)).await;
    assert!(first.fence.is_open(), "it renews");
    server.hangs.store(true, Ordering::SeqCst);
    let slow = tokio::spawn({
        let fence = first.fence.clone();
        async move {
            fence
                .pass(std::future::pending::<Result<(), Infallible>>())
                .await
        }
    });
    first.until(Leadership::Lost).await;
    assert_eq!(
        acquired.elapsed().as_millis() / 100,
        190,
        "9 s and 2/3 of 15 s"
    );
    assert_eq!(slow.await.unwrap(), Err(fence::Closed));
    assert!(!first.fence.is_open());
    // Only the first was cut off.
    server.hangs.store(false, Ordering::SeqCst);
    second.until(Leadership::Leader).await;
    assert!(
        acquired.elapsed() >= Duration::from_secs(9 + 15),
        "{:?}",
        acquired.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_given_back_unless_a_write_may_still_happen() {
    for cut_off in [false, true] {
        let server = Server::default();
        let mut first = replica(&server, "first");
        first.until(Leadership::Leader).await;
        if cut_off {
            let write = std::future::pending::<Result<(), Infallible>>();
            let cut = tokio::time::timeout(Duration::from_secs(1), first.fence.pass(write));
            assert!(cut.await.is_err());
        }
        first.stop.cancel();
        first.task.await.unwrap();
        assert!(!first.fence.is_open());
        let lease = server.lease.lock().unwrap().clone().unwrap();
        assert_eq!(View::of(&lease).holder.is_some(), cut_off, "{lease:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_makes_a_deleted_lease_again_before_anyone_else_does() {
    let server = Server::default();
    let mut first = replica(&server, "first");
    first.until(Leadership::Leader).await;
    let second = replica(&server, "second");
    tokio::time::sleep(Duration::from_secs(1)).await;
    *server.lease.lock().unwrap() = None;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(first.fence.is_open());
    assert!(!second.fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_process_does_not_go_on_where_one_of_the_same_pod_ended() {
    let server = Server::default();
    let mut first = replica(&server, "pod_1_aa");
    first.until(Leadership::Leader).await;
    let died = Instant::now();
    first.task.abort();
    let mut next = replica(&server, "pod_1_bb");
    next.until(Leadership::Leader).await;
    assert!(
        died.elapsed() >= Duration::from_secs(15),
        "{:?}",
        died.elapsed()
    );
}
