//! Waiting for something in a lab, and saying what was there instead.

use std::{fmt::Write as _, time::Duration};

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};

use crate::{Cluster, Error, Lab, logs, poll};

/// The newest events are the ones that matter; all of them would bury the reader.
const EVENTS: usize = 15;

impl Lab {
    /// Waits for a condition; see [`Cluster::wait_for`]. Looks at the management
    /// cluster, and adds what the hosts' programs complained about.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        allowed: Duration,
        condition: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T, Error> {
        match self.cluster()?.wait_for(what, allowed, condition).await {
            Err(Error::Timeout {
                what,
                allowed,
                last,
            }) => {
                let last = format!("{last}\nerrors in logs:\n{}", logs::digest(&self.hosts()));
                Err(Error::Timeout {
                    what,
                    allowed,
                    last,
                })
            }
            other => other,
        }
    }
}

impl Cluster {
    /// Waits for a condition, which says what is missing as long as it does not
    /// hold. In vain, the error tells what it said last, which pods are not ready,
    /// and the newest events.
    ///
    /// ```no_run
    /// # async fn test(lab: steward_lab::Lab) -> Result<(), steward_lab::Error> {
    /// # use std::time::Duration;
    /// let cluster = lab.cluster()?;
    /// let client = cluster.client().await?;
    /// cluster
    ///     .wait_for("two nodes", Duration::from_secs(60), async || {
    ///         let nodes = kube::Api::<k8s_openapi::api::core::v1::Node>::all(client.clone());
    ///         let nodes = nodes.list(&Default::default()).await.map_err(|e| e.to_string())?;
    ///         if nodes.items.len() == 2 { Ok(()) } else { Err(format!("{} nodes", nodes.items.len())) }
    ///     })
    ///     .await
    /// # }
    /// ```
    pub async fn wait_for<T>(
        &self,
        what: &str,
        allowed: Duration,
        condition: impl AsyncFnMut() -> Result<T, String>,
    ) -> Result<T, Error> {
        let last = match poll(allowed, condition).await {
            Ok(found) => return Ok(found),
            Err(last) => last,
        };
        let seen = match self.client().await {
            Ok(client) => look_around(client).await,
            Err(error) => error.chain(),
        };
        Err(Error::Timeout {
            what: what.into(),
            allowed: allowed.as_secs(),
            last: format!("{last}\n{seen}"),
        })
    }
}

/// Pods that are not ready, and the newest events.
async fn look_around(client: Client) -> String {
    let mut seen = String::from("pods that are not ready:\n");
    let all = ListParams::default();
    match Api::<Pod>::all(client.clone()).list(&all).await {
        Ok(pods) => pods.iter().filter_map(unready).for_each(|line| {
            let _ = writeln!(seen, "  {line}");
        }),
        Err(error) => {
            let _ = writeln!(seen, "  unknown: {error}");
        }
    }
    seen.push_str("newest events:\n");
    match Api::<Event>::all(client).list(&all).await {
        Ok(events) => newest(events.items).iter().for_each(|line| {
            let _ = writeln!(seen, "  {line}");
        }),
        Err(error) => {
            let _ = writeln!(seen, "  unknown: {error}");
        }
    }
    seen
}

fn unready(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let phase = status.phase.as_deref().unwrap_or("no phase");
    let containers = status.container_statuses.clone().unwrap_or_default();
    let not_ready: Vec<String> = containers
        .iter()
        .filter(|container| !container.ready)
        .map(|container| {
            let waiting = container.state.as_ref().and_then(|s| s.waiting.as_ref());
            let why = waiting.and_then(|w| w.reason.clone()).unwrap_or_default();
            format!("{} {why}", container.name)
        })
        .collect();
    let done = phase == "Succeeded" || (phase == "Running" && not_ready.is_empty());
    let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    (!done).then(|| format!("{name}: {phase}; {}", not_ready.join(", ")))
}

fn newest(mut events: Vec<Event>) -> Vec<String> {
    events.sort_by_key(|event| {
        let time = event.last_timestamp.as_ref().map(|t| t.0);
        time.or_else(|| event.event_time.as_ref().map(|t| t.0))
    });
    let start = events.len().saturating_sub(EVENTS);
    let line = |event: &Event| {
        let object = &event.involved_object;
        format!(
            "{} {}/{}: {}: {}",
            object.kind.as_deref().unwrap_or_default(),
            object.namespace.as_deref().unwrap_or_default(),
            object.name.as_deref().unwrap_or_default(),
            event.reason.as_deref().unwrap_or_default(),
            event.message.as_deref().unwrap_or_default(),
        )
    };
    events[start..].iter().map(line).collect()
}
