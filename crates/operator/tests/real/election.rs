//! Two operators, one leader.

use std::time::{Duration, Instant};

use serde_json::json;

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
