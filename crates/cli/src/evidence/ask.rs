//! Questions to programs in pods, put through an API server, and their counters.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::Api;
use steward_doctor::{Seen, Unseen};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::unseen;

/// What one answer may take, within the deadline of a look.
const PATIENCE: Duration = Duration::from_secs(2);

/// An answer, whatever its status.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

/// Asks a pod at a port that is open to its network, through the API server's proxy.
pub(super) async fn pod(
    client: &Client,
    namespace: &str,
    pod: &str,
    port: i32,
    path: &str,
) -> Seen<Answer> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
    let request = http::Request::get(path)
        .body(kube::client::Body::empty())
        .map_err(|e| Unseen::Failed(e.to_string()))?;
    let asked = async {
        let response = client.send(request).await.map_err(|e| unseen(&e))?;
        let status = response.status().as_u16();
        let body = response.into_body().collect_bytes().await;
        let body = body.map_err(|e| unseen(&e))?;
        Ok(Answer {
            status,
            text: String::from_utf8_lossy(&body).into_owned(),
        })
    };
    let answer = in_time(asked).await?;
    if answer.status == 403 {
        return Err(Unseen::NotLooked(answer.text));
    }
    Ok(answer)
}

/// Asks a pod at a port that only the pod itself can reach, by a forwarded port.
pub(super) async fn loopback(pods: &Api<Pod>, pod: &str, port: u16, path: &str) -> Seen<String> {
    let asked = async {
        let mut forwarder = pods
            .portforward(pod, &[port])
            .await
            .map_err(|e| unseen(&e))?;
        let stream = forwarder.take_stream(port);
        let mut stream = stream.ok_or_else(|| Unseen::Failed("no stream".to_owned()))?;
        // The old version of the protocol answers in one piece, and then hangs up.
        let question = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let failed = |e: std::io::Error| Unseen::Failed(e.to_string());
        stream
            .write_all(question.as_bytes())
            .await
            .map_err(failed)?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.map_err(failed)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    in_time(asked).await
}

async fn in_time<T>(asked: impl Future<Output = Seen<T>>) -> Seen<T> {
    let late = || format!("no answer within {} s", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, asked)
        .await
        .unwrap_or_else(|_| Err(Unseen::Failed(late())))
}

/// A counter's value in a page of metrics, over all its labels.
pub(super) fn metric(page: &str, name: &str) -> Option<f64> {
    let values = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = match rest.chars().next()? {
            ' ' => rest,
            '{' => rest.split_once('}')?.1,
            _ => return None,
        };
        value.split_whitespace().next()?.parse::<f64>().ok()
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// A number that is whole and not negative, as counters of things are.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is right for a count"
)]
pub(super) fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_over_their_labels_and_not_mixed_up() {
        let page = "# HELP a\na_total{x=\"1\"} 2\na_total{x=\"}\"} 3e1\na_total_more 9\nb 1.5\n";
        assert_eq!(metric(page, "b"), Some(1.5));
        assert_eq!(metric(page, "missing"), None);
        assert_eq!(metric("a{x=\"1\"} 2\na{x=\"2\"} 3e1\n", "a"), Some(32.0));
        assert_eq!(metric(page, "a_total_more"), Some(9.0));
    }
}
