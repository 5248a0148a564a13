//! The members of a managed datastore, each asked itself: well, quick, full?

use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, ResourceExt};
use serde_json::Value;
use steward_doctor::{Member, Unseen};

use super::ask::{self, metric, whole};

/// Between two looks at the counters: long enough for some writes, which leases see to.
const APART: Duration = Duration::from_millis(700);

/// When the questions end, well within the deadline of a look.
const ENDS: Duration = Duration::from_millis(2600);

/// Writes that make an average worth something.
const ENOUGH: f64 = 3.0;

/// Asks every one at once.
pub(super) async fn look(client: &Client, pods: &[Pod]) -> Vec<Member> {
    let running = pods.iter().filter(|p| {
        p.status
            .as_ref()
            .is_some_and(|s| s.phase.as_deref() == Some("Running"))
    });
    join_all(running.map(|pod| member(client, pod))).await
}

/// One that can't be asked, for lack of rights or of a port, is left blank.
async fn member(client: &Client, pod: &Pod) -> Member {
    let name = pod.name_any();
    let blank = Member {
        pod: name.clone(),
        ..Member::default()
    };
    let (Some(namespace), Some(port)) = (pod.namespace(), port(pod)) else {
        return blank;
    };
    let at = |path: &'static str| ask::pod(client, &namespace, &name, port, path);
    let began = Instant::now();
    let health = match at("/health").await {
        Ok(answer) => Some(read_health(&answer.text)),
        Err(Unseen::Failed(why)) => Some(Err(why)),
        Err(Unseen::NotLooked(_)) => None,
    };
    let answered_in = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let asked = Member {
        health,
        answered_in,
        ..blank
    };
    if asked.health != Some(Ok(())) {
        return asked;
    }
    let counters = async {
        let first = at("/metrics").await.ok()?.text;
        tokio::time::sleep(APART).await;
        let second = at("/metrics").await.map(|a| a.text).unwrap_or_default();
        Some((first, second))
    };
    // What is known by now must not be lost to the deadline of the whole look.
    let left = ENDS.saturating_sub(began.elapsed());
    let Ok(Some((first, second))) = tokio::time::timeout(left, counters).await else {
        return asked;
    };
    let count = |name| metric(&first, name).map(whole).unwrap_or_default();
    Member {
        synced_in: synced(&first, &second),
        size: count("etcd_mvcc_db_total_size_in_bytes"),
        quota: count("etcd_server_quota_backend_bytes"),
        ..asked
    }
}

fn port(pod: &Pod) -> Option<i32> {
    let containers = &pod.spec.as_ref()?.containers;
    let ports = containers.iter().flat_map(|c| c.ports.iter().flatten());
    let mut metrics = ports.filter(|p| p.name.as_deref() == Some("metrics"));
    metrics.next().map(|p| p.container_port)
}

/// Etcd says whether, and if not why, in its own few words.
fn read_health(text: &str) -> Result<(), String> {
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    match said["health"].as_str() {
        Some("true") => Ok(()),
        _ => Err(said["reason"]
            .as_str()
            .filter(|r| !r.is_empty())
            .unwrap_or_else(|| text.lines().next().unwrap_or("nothing"))
            .to_owned()),
    }
}

/// Milliseconds from a write to the disk having it, between two looks; since the member
/// began, where too few were written meanwhile.
fn synced(first: &str, second: &str) -> Option<u64> {
    let name = "etcd_disk_wal_fsync_duration_seconds";
    let of = |page: &str| {
        Some((
            metric(page, &format!("{name}_sum"))?,
            metric(page, &format!("{name}_count"))?,
        ))
    };
    let (sum, count) = of(first)?;
    let (sum, count) = match of(second) {
        Some((later, more)) if more - count >= ENOUGH => (later - sum, more - count),
        _ => (sum, count),
    };
    (count > 0.0).then(|| whole((sum / count * 1000.0).round()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(sum: f64, count: u32) -> String {
        format!(
            "etcd_disk_wal_fsync_duration_seconds_bucket{{le=\"1\"}} 7\netcd_disk_wal_fsync_duration_seconds_sum {sum}\netcd_disk_wal_fsync_duration_seconds_count {count}\n"
        )
    }

    #[test]
    fn a_disk_that_has_become_slow_is_not_hidden_by_its_better_days() {
        assert_eq!(synced(&page(10.0, 10_000), &page(12.0, 10_004)), Some(500));
        assert_eq!(synced(&page(10.0, 10_000), &page(12.0, 10_001)), Some(1));
        assert_eq!(synced(&page(10.0, 10_000), ""), Some(1));
        assert_eq!(synced("", ""), None);
    }

    #[test]
    fn an_alarm_is_told_in_etcds_own_words() {
        assert_eq!(read_health("{\"health\":\"true\",\"reason\":\"\"}"), Ok(()));
        let full = read_health("{\"health\":\"false\",\"reason\":\"ALARM NOSPACE\"}");
        assert_eq!(full, Err("ALARM NOSPACE".to_owned()));
        assert_eq!(read_health("gone"), Err("gone".to_owned()));
    }
}
