//! A client that fails as asked: the operator dies at the n-th write, the API server is away, slow or
//! contrary.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::{Body, ClientBuilder};
use steward_lab::fixture::ApiServer;
use tokio::sync::Notify;
use tower::{BoxError, Layer, Service};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The operator dies just before the n-th write is sent.
    DieBefore(usize),
    /// The operator dies just after the n-th write was carried out.
    DieAfter(usize),
    /// Nothing reaches the API server.
    Away,
    /// One write in n, as if by chance, is answered with this code.
    Refuse(usize, u16),
    /// Writes are carried out at once, but their answers take this long.
    Late(Duration),
}

/// The switch, shared with the client.
#[derive(Clone)]
pub(crate) struct Faults {
    fault: Arc<Mutex<Fault>>,
    writes: Arc<AtomicUsize>,
    died: Arc<Notify>,
}

impl Faults {
    pub(crate) fn new(fault: Fault) -> Self {
        Self {
            fault: Arc::new(Mutex::new(fault)),
            writes: Arc::default(),
            died: Arc::default(),
        }
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    /// Writes that were tried.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Waits until the operator has died.
    pub(crate) async fn death(&self) {
        self.died.notified().await;
    }

    pub(crate) async fn client(&self, server: &ApiServer) -> kube::Client {
        let mut config = server.config().await.unwrap();
        config.default_retry = false;
        ClientBuilder::try_from(config)
            .unwrap()
            .with_layer(self)
            .build()
    }
}

impl<S> Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty {
            inner,
            faults: self.clone(),
        }
    }
}

/// The service that fails.
pub(crate) struct Faulty<S> {
    inner: S,
    faults: Faults,
}

/// What kube's own stack answers with.
type Answer = Response<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send + Unpin>>;

impl<S> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Answer> + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let write = *request.method() != Method::GET;
        let number = if write {
            self.faults.writes.fetch_add(1, Ordering::SeqCst) + 1
        } else {
            0
        };
        let fault = *self.faults.fault.lock().unwrap();
        let died = self.faults.died.clone();
        let dead = async move {
            died.notify_one();
            std::future::pending::<Result<Answer, BoxError>>().await
        };
        match fault {
            Fault::Away => Box::pin(async { Err("the API server is away".into()) }),
            Fault::DieBefore(at) if write && number >= at => Box::pin(dead),
            Fault::Refuse(every, code) if write && (number * 7919 % 97) % every == 0 => {
                Box::pin(async move { Ok(refusal(code)) })
            }
            Fault::DieAfter(at) if write && number > at => Box::pin(dead),
            Fault::DieAfter(at) if write && number == at => {
                let carried_out = self.inner.call(request);
                Box::pin(async move {
                    let _ = carried_out.await;
                    dead.await
                })
            }
            Fault::Late(pause) if write => {
                let answer = self.inner.call(request);
                Box::pin(async move {
                    let answer = answer.await.map_err(Into::into);
                    tokio::time::sleep(pause).await;
                    answer
                })
            }
            _ => {
                let answer = self.inner.call(request);
                Box::pin(async move { answer.await.map_err(Into::into) })
            }
        }
    }
}

fn refusal(code: u16) -> Answer {
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": match code { 409 => "Conflict", 429 => "TooManyRequests", _ => "InternalError" },
        "message": "the test wants it so"});
    let body = Full::new(Bytes::from(status.to_string())).map_err(BoxError::from);
    Response::builder()
        .status(code)
        .body(Box::new(body) as _)
        .unwrap()
}
