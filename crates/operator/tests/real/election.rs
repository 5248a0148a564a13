//! Two operators, one leader.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use http::{HeaderValue, Request, header::USER_AGENT};
use jiff::Timestamp;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use steward_operator::run::{self, Extras};

use crate::harness::{Operator, World, until};

const FLAGS: [&str; 2] = ["--leader-elect=true", "--leader-election-lease-duration=5s"];

fn leads(operator: &Operator) -> bool {
    operator.metric("steward_leader") > 0.0
}

async fn until_leads(operator: &Operator) {
    until("leadership", async || {
        if leads(operator) {
            Ok(())
        } else {
            Err("it stands by")
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_writes_and_the_other_takes_over_at_once_when_it_stops_and_in_time_when_it_dies() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let first = world.start(&[&FLAGS[..], &["--pod-name=first"]].concat());
    until_leads(&first).await;
    let second = world.start(&[&FLAGS[..], &["--pod-name=second"]].concat());
    world.make_tenant("one", &json!({})).await;
    world.until_planned("one").await;
    assert!(!leads(&second), "two leaders");
    assert!(
        second.metric("steward_writes_total") < 0.5,
        "a standby wrote"
    );

    let asked = Instant::now();
    first.stop().await;
    until_leads(&second).await;
    assert!(
        asked.elapsed() < Duration::from_secs(5),
        "a lease that was given back was not taken at once: {:?}",
        asked.elapsed()
    );
    world.make_tenant("two", &json!({})).await;
    world.until_planned("two").await;

    let third = world.start(&[&FLAGS[..], &["--pod-name=third"]].concat());
    second.kill().await;
    world.make_tenant("three", &json!({})).await;
    until_leads(&third).await;
    world.until_planned("three").await;
    third.stop().await;
    cloud.abort();
}

/// A client that signs its requests, and when told to lets no request for a Lease through and takes its time for
/// writes.
#[derive(Clone, Default)]
struct Link {
    broken: Arc<AtomicBool>,
    tried: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

/// Less than what a leader has left when its link breaks, and more than half of it: the first write of a reconcile
/// still comes through, the next would not.
const SLOW: Duration = Duration::from_secs(2);

impl Link {
    fn client(&self, inner: Client, name: &'static str) -> Client {
        let link = self.clone();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (link, inner) = (link.clone(), inner.clone());
            let agent = HeaderValue::from_static(name);
            request.headers_mut().insert(USER_AGENT, agent);
            async move {
                if link.broken.load(Ordering::SeqCst) {
                    if request.uri().path().contains("/leases/") {
                        std::future::pending::<()>().await;
                    }
                    if !request.method().is_safe() {
                        link.tried.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(SLOW).await;
                        link.sent.fetch_add(1, Ordering::SeqCst);
                    }
                }
                inner.send(request).await
            }
        });
        Client::new(service, "default")
    }
}

/// One request, as the API server itself saw it.
struct Seen {
    agent: String,
    verb: String,
    resource: String,
    uri: String,
    code: i64,
    received: Timestamp,
    done: Timestamp,
}

fn audit(world: &World) -> Vec<Seen> {
    let log = std::fs::read_to_string(world.server.audit_log()).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    events
        .filter(|event: &Value| event["stage"] == "ResponseComplete")
        .map(|event| Seen {
            agent: text(&event["userAgent"]),
            verb: text(&event["verb"]),
            resource: text(&event["objectRef"]["resource"]),
            uri: text(&event["requestURI"]),
            code: event["responseStatus"]["code"].as_i64().unwrap_or_default(),
            received: text(&event["requestReceivedTimestamp"]).parse().unwrap(),
            done: text(&event["stageTimestamp"]).parse().unwrap(),
        })
        .collect()
}

impl Seen {
    fn writes(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_leader_that_can_not_renew_arrives_after_another_leads() {
    let world = World::new().await;
    let cloud = world.play_cloud();
    let link = Link::default();
    let first = world.start_with(
        link.client(world.client.clone(), "first"),
        &[&FLAGS[..], &["--pod-name=first"]].concat(),
        Extras::default(),
    );
    until_leads(&first).await;
    let second = world.start_with(
        Link::default().client(world.client.clone(), "second"),
        &[&FLAGS[..], &["--pod-name=second"]].concat(),
        Extras::default(),
    );
    until("the second to stand by", async || {
        let asks = |seen: &Seen| seen.agent == "second" && seen.resource == "leases";
        if audit(&world).iter().any(asks) {
            Ok(())
        } else {
            Err("it has not asked for the Lease")
        }
    })
    .await;

    link.broken.store(true, Ordering::SeqCst);
    world.make_tenant("one", &json!({})).await;
    until_leads(&second).await;
    world.until_planned("one").await;
    let ended = first.ended().await;
    assert!(
        matches!(ended, Err(run::Error::LostLeadership)),
        "{ended:?}"
    );
    second.stop().await;

    let seen = audit(&world);
    let took = seen
        .iter()
        .filter(|seen| seen.agent == "second" && seen.resource == "leases" && seen.writes())
        .filter(|seen| seen.code == 200)
        .map(|seen| seen.received)
        .min()
        .unwrap();
    let mut writes = 0;
    for write in seen
        .iter()
        .filter(|seen| seen.agent == "first" && seen.writes())
    {
        writes += 1;
        assert!(
            write.done < took,
            "{} was carried out at {}, the second leads since {took}",
            write.uri,
            write.done
        );
        assert!(
            write.resource == "leases" || write.uri.contains("timeout="),
            "{} has no limit",
            write.uri
        );
    }
    assert!(writes > 0, "the first wrote nothing at all");
    let (tried, sent) = (&link.tried, &link.sent);
    let (tried, sent) = (tried.load(Ordering::SeqCst), sent.load(Ordering::SeqCst));
    assert!(
        tried > sent,
        "no write was under way: {tried} tried, {sent} sent"
    );
    cloud.abort();
}
