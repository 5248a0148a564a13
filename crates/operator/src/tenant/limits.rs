//! How much of what a tenant's API server answers is read.
//!
//! Owns: the client through which all of a tenant is read and written. An answer has a size, and its JSON an
//! estimated price in memory; one that is over either is an error of that request, whatever the server says about
//! its length. Refuses: trusting a tenant. Its administrator decides how many objects there are and how large, and
//! whoever names its image decides what its API server answers. Nothing is unpacked (the client asks for no
//! compression and knows none), and no redirection is followed.
//!
//! A watch has no end, so that its reader bounds its lines instead (`hear`).

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::{Client, client::Body};
use tower::BoxError;

use crate::lease::Fence;

/// An object has at most 1.5 MiB, or etcd would not take it. Lists are asked for in pages.
pub const BYTES: usize = 2 << 20;

/// What an answer may take once it is read: `[{},{},…` takes a hundred times its own size.
pub const MEMORY: usize = 16 << 20;

/// A refusal is a sentence, perhaps with a list of fields.
pub const REFUSAL: usize = 64 << 10;

/// An answer that was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer to {request} is larger than {limit}: remove what makes it so large, or ask whoever runs the tenant's API server"
)]
pub struct TooMuch {
    request: String,
    limit: &'static str,
}

impl TooMuch {
    /// Whether this is why a request failed.
    pub fn of(error: &kube::Error) -> Option<&Self> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }
}

/// The same client, but it reads no more than it should, and its writes pass the fence.
pub fn client(client: Client, fence: &Fence) -> Client {
    let namespace = client.default_namespace().to_owned();
    let valid_until = *client.valid_until();
    let fence = fence.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (fence, client) = (fence.clone(), client.clone());
        async move {
            let watch = watches(&request);
            let what = format!("{} {}", request.method(), request.uri().path());
            let answer = fence.send(&client, request).await?;
            Ok::<_, BoxError>(bound(answer, watch, what))
        }
    });
    Client::new(service, namespace).with_valid_until(valid_until)
}

fn watches<B>(request: &Request<B>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == Method::GET && query.split('&').any(|pair| pair == "watch=true")
}

fn bound(answer: Response<Body>, watch: bool, request: String) -> Response<Bounded> {
    let limit = if !answer.status().is_success() {
        Some((REFUSAL, "64 KiB"))
    } else if watch {
        None
    } else {
        Some((BYTES, "2 MiB"))
    };
    answer.map(|body| Bounded {
        body,
        limit,
        request,
        price: Price::default(),
    })
}

/// A body of which no more is read than it may have.
struct Bounded {
    body: Body,
    limit: Option<(usize, &'static str)>,
    request: String,
    price: Price,
}

impl Bounded {
    fn check(&mut self, data: &[u8]) -> Result<(), BoxError> {
        let Some((bytes, in_words)) = self.limit else {
            return Ok(());
        };
        self.price.add(data);
        let limit = if self.price.bytes > bytes {
            in_words
        } else if self.price.memory > MEMORY {
            "16 MiB in memory"
        } else {
            return Ok(());
        };
        let request = std::mem::take(&mut self.request);
        Err(TooMuch { request, limit }.into())
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let checked = frame.data_ref().map_or(Ok(()), |data| self.check(data));
        Poll::Ready(Some(checked.map(|()| frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What JSON costs: its text, and roughly what `serde_json` makes of it. Text inside strings is counted as if it
/// were none, which errs on the safe side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Of the text.
    pub bytes: usize,
    /// In memory.
    pub memory: usize,
    last: u8,
}

impl Price {
    /// Of an element or a field.
    const ELEMENT: usize = 80;
    /// Of an object that is not empty.
    const OBJECT: usize = 640;

    /// Of a whole text.
    pub fn of(text: &[u8]) -> Self {
        let mut price = Self::default();
        price.add(text);
        price
    }

    /// Adds a piece of it. A piece costs, too: a server may send a byte at a time.
    fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.memory += piece.len() + Self::ELEMENT;
        for byte in piece {
            match byte {
                b',' | b'[' => self.memory += Self::ELEMENT,
                b'{' => self.memory += Self::OBJECT,
                b'}' if self.last == b'{' => self.memory -= Self::OBJECT - Self::ELEMENT,
                _ => {}
            }
            self.last = *byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_grows_when_it_is_read_is_worth_more_than_its_size() {
        let plain = Price::of(&[b'x'; 1000]);
        assert_eq!((plain.bytes, plain.memory), (1000, 1080));
        let objects = Price::of(r#"{"":0},"#.repeat(1000).as_bytes());
        assert!(objects.memory > 640_000, "{objects:?}");
        // As fields are listed in managedFields.
        let empty = Price::of(r#""f:a":{},"#.repeat(1000).as_bytes());
        assert!(empty.memory < 200_000, "{empty:?}");
    }

    #[test]
    fn pieces_cost_as_much_as_the_whole_and_a_little_for_each() {
        let mut pieces = Price::default();
        for piece in ["[{", "}", ",{}]"] {
            pieces.add(piece.as_bytes());
        }
        let whole = Price::of(b"[{},{}]");
        assert_eq!(pieces.memory, whole.memory + 2 * Price::ELEMENT);
    }

    #[test]
    fn only_a_watch_that_was_granted_has_no_end() {
        let ask = |text: &str| watches(&Request::get(text).body(()).unwrap());
        assert!(ask("/api/v1/nodes?labelSelector=a&watch=true"));
        assert!(!ask("/api/v1/nodes?labelSelector=watch=true"));
        let answer = |code: u16| {
            Response::builder()
                .status(code)
                .body(Body::empty())
                .unwrap()
        };
        let limit = |code, watch| bound(answer(code), watch, String::new()).into_body().limit;
        assert_eq!(limit(200, true), None);
        assert_eq!(limit(410, true).unwrap().0, REFUSAL);
        assert_eq!(limit(302, true).unwrap().0, REFUSAL);
        assert_eq!(limit(200, false).unwrap().0, BYTES);
    }
}
