//! Hearing that something of ours inside a tenant changed.
//!
//! Owns: the watch of one kind, metadata only, through disconnections. Refuses: handing out or keeping objects:
//! only the version at which to go on is read, and of a line no more than an object's metadata can be. Each tenant has a dozen of these, waiting all the time, so that
//! what one of them holds while it waits is part of what a tenant costs: kube's own watcher has a buffer of
//! eight kilobytes.

use std::io;

use futures::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};
use kube::{
    Client, Error,
    api::{ApiResource, DynamicObject, ListParams},
    core::{Request, Resource},
    runtime::watcher::DefaultBackoff,
};
use serde::Deserialize;

/// Of an object only its metadata.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The longest line. Annotations have at most 256 KiB, and what else there is in metadata is less.
const LINE: u64 = 1 << 20;

/// What is watched: a kind, everywhere, by label.
pub(super) struct Watched {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    pub(super) labels: String,
}

/// A list, an object, or a `Status`: all have metadata, and nothing else is read.
#[derive(Deserialize)]
struct Versioned {
    metadata: Version,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
}

impl Versioned {
    /// What is too long for a version is none: it would be kept until the next one comes.
    fn version(self) -> Option<String> {
        const LONGEST: usize = 64;
        self.metadata.version.filter(|text| text.len() <= LONGEST)
    }
}

/// One line of a watch.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    event: Event,
    object: Versioned,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Event {
    Added,
    Modified,
    Deleted,
    Bookmark,
    /// Mostly that the version is too old to go on from.
    Error,
}

/// Calls `touched` whenever something watched may have changed, until dropped. Told are also the start, since
/// what happened before it went unheard, and a loss: once until the watch is back.
pub(super) async fn hear(watched: Watched, touched: impl Fn() + Send) {
    let mut version = None;
    let mut lost = false;
    let mut pauses = DefaultBackoff::default();
    loop {
        match listen(&watched, version.take(), &mut lost, &touched).await {
            Ok(next) => version = next,
            Err(error) => {
                tracing::debug!(%error, kind = watched.resource.kind, "watch interrupted; it goes on by itself");
                if !std::mem::replace(&mut lost, true) {
                    touched();
                }
            }
        }
        // Also after an orderly end: nothing is missed meanwhile.
        tokio::time::sleep(pauses.next().unwrap_or_default()).await;
    }
}

/// Listens until the server ends it. Returns the version at which to go on, if there is one. Nothing is `lost` any
/// more once the server listens, too.
pub(super) async fn listen(
    watched: &Watched,
    version: Option<String>,
    lost: &mut bool,
    touched: &impl Fn(),
) -> Result<Option<String>, Error> {
    let mut version = if let Some(version) = version {
        version
    } else {
        let now = Box::pin(watched.now()).await?;
        touched();
        now
    };
    let mut lines = Box::pin(watched.open(&version)).await?;
    *lost = false;
    loop {
        // Not kept: an object's metadata is some kilobytes, and the next one may take hours.
        let line = next(&mut lines).await.map_err(Error::ReadEvents)?;
        if line.is_empty() {
            return Ok(Some(version));
        }
        let line: Line = serde_json::from_slice(&line).map_err(Error::SerdeError)?;
        match line.event {
            Event::Error => return Ok(None),
            Event::Bookmark => {}
            Event::Added | Event::Modified | Event::Deleted => touched(),
        }
        version = line.object.version().unwrap_or(version);
    }
}

/// The next line; an empty one at the end.
async fn next(lines: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut limited = lines.take(LINE);
    limited.read_until(b'\n', &mut line).await?;
    if limited.limit() == 0 && line.last() != Some(&b'\n') {
        return Err(io::Error::other("a line of a watch is longer than 1 MiB"));
    }
    Ok(line)
}

impl Watched {
    /// The version from which to listen.
    async fn now(&self) -> Result<String, Error> {
        let params = ListParams::default().labels(&self.labels).limit(1);
        let request = Request::new(DynamicObject::url_path(&self.resource, None))
            .list_metadata(&params)
            .map_err(Error::BuildRequest)?;
        let list: Versioned = self.client.request(request).await?;
        // Every list has one; without, the server is asked for what is newest.
        Ok(list.version().unwrap_or_default())
    }

    /// Not kube's own request, which ends after five minutes in case its connection died unnoticed: ours is tried
    /// every half minute. The server ends it after half an hour to an hour. Nor are there bookmarks: one a minute for
    /// each kind of each tenant would be most of what an operator at rest does, and without them a watch that breaks
    /// off has to start anew at worst.
    async fn open(&self, version: &str) -> Result<impl AsyncBufRead + Unpin + use<>, Error> {
        let path = DynamicObject::url_path(&self.resource, None);
        let labels = &self.labels;
        let request = http::Request::get(format!(
            "{path}?watch=true&resourceVersion={version}&labelSelector={labels}"
        ))
        .header(http::header::ACCEPT, METADATA)
        .body(Vec::new())
        .map_err(Error::HttpError)?;
        self.client.request_stream(request).await
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use kube::client::Body;
    use steward_plan::Kind;

    use super::*;

    /// A server that answers with these bodies in turn, and what it was asked for.
    fn scripted(answers: &[(u16, &str)]) -> (Watched, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut left = answers
            .iter()
            .map(|(code, body)| (*code, (*body).to_owned()))
            .collect::<Vec<_>>()
            .into_iter();
        let heard = asked.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            heard.lock().unwrap().push(request.uri().to_string());
            let (code, body) = left.next().expect("asked too often");
            let answer = http::Response::builder().status(code);
            async move { Ok::<_, Infallible>(answer.body(Body::from(body.into_bytes())).unwrap()) }
        });
        let watched = Watched {
            client: Client::new(service, "default"),
            resource: Kind::ConfigMap.api_resource(),
            labels: "a=b".into(),
        };
        (watched, asked)
    }

    const LIST: &str = r#"{"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7", "remainingItemCount": 3}, "items": []}"#;
    const EVENTS: &str = concat!(
        r#"{"type":"MODIFIED","object":{"metadata":{"name":"c","resourceVersion":"8"}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#,
        "\n",
    );
    const TOO_OLD: &str = concat!(
        r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"status":"Failure","code":410}}"#,
        "\n",
    );

    #[tokio::test]
    async fn it_goes_on_where_the_last_watch_ended_and_starts_anew_when_that_is_too_old() {
        let (watched, asked) = scripted(&[(200, LIST), (200, EVENTS), (200, TOO_OLD)]);
        let count = AtomicUsize::new(0);
        let touched = || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let next = listen(&watched, None, &mut false, &touched).await.unwrap();
        assert_eq!(next.as_deref(), Some("9"));
        assert_eq!(
            count.load(Ordering::Relaxed),
            2,
            "its start and the change, not the bookmark"
        );
        let last = listen(&watched, next, &mut false, &touched).await;
        assert_eq!(last.unwrap(), None);
        let asked = asked.lock().unwrap();
        assert!(
            !asked[0].contains("watch=") && asked[0].contains("limit=1"),
            "{asked:?}"
        );
        let path = "/api/v1/configmaps?watch=true&resourceVersion";
        assert_eq!(asked[1], format!("{path}=7&labelSelector=a=b"));
        assert_eq!(asked[2], format!("{path}=9&labelSelector=a=b"));
    }

    #[tokio::test]
    async fn a_refusal_and_half_a_line_are_errors() {
        let status = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410}"#;
        let (watched, _) = scripted(&[(410, status), (200, r#"{"type":"ADD"#)]);
        // The second was heard of before it broke off, so that this is a new loss.
        for still_lost in [true, false] {
            let mut lost = true;
            let ended = listen(&watched, Some("7".into()), &mut lost, &|| ()).await;
            assert!(ended.is_err(), "{ended:?}");
            assert_eq!(lost, still_lost);
        }
    }
}
