//! Lists of servers that are not trusted: page by page, up to a number.
//!
//! Owns: asking for the next page, and when that is enough. Refuses: keeping a page (whoever asks takes what it
//! needs of each object), and believing a server that it sends no more than it was asked for.

use std::{
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicUsize, Ordering},
};

use kube::{Client, api::ListParams, core::Request};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor},
};

use crate::{
    error::Error,
    tenant::limits::{Price, TooMuch},
};

/// Objects per page: a node with its list of images is some ten kilobytes, sometimes forty.
pub const PAGE: usize = 20;

/// The longest text that says where the next page starts.
const TOKEN: usize = 4096;

/// What to list.
pub(crate) struct List<'a> {
    /// URL of the kind.
    pub(crate) path: String,
    /// Which of them.
    pub(crate) labels: Option<&'a str>,
    /// Whether their metadata is enough.
    pub(crate) metadata: bool,
    /// For people: `nodes`.
    pub(crate) what: &'a str,
    /// More than so many are too much.
    pub(crate) most: usize,
    /// What may still be kept in memory, where it is kept.
    pub(crate) budget: Option<&'a AtomicUsize>,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Page<T> {
    #[serde(default)]
    metadata: Next,
    items: Option<Few<T, PAGE>>,
}

#[derive(Default, Deserialize)]
struct Next {
    #[serde(rename = "continue")]
    token: Option<String>,
}

/// Gives every object of a list to `take`. A kind that is not served has none.
///
/// # Errors
/// The client's; [`Error::TooMuchInside`] when there is more than should be.
pub(crate) async fn each<T: DeserializeOwned>(
    client: &Client,
    list: &List<'_>,
    mut take: impl FnMut(T),
) -> Result<(), Error> {
    let mut params = ListParams::default().limit(u32::try_from(PAGE).unwrap_or(u32::MAX));
    params.label_selector = list.labels.map(str::to_owned);
    // Counted by pages: an empty one counts as well.
    for _ in 0..list.most.div_ceil(PAGE) {
        let request = Request::new(&list.path);
        let request = if list.metadata {
            request.list_metadata(&params)
        } else {
            request.list(&params)
        };
        let request = request.map_err(|error| list.failed(kube::Error::BuildRequest(error)))?;
        let text = match client.request_text(request).await {
            Ok(text) => text,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(list.failed(error)),
        };
        if !list.affords(&text) {
            return Err(list.too_large());
        }
        let page: Page<T> =
            serde_json::from_str(&text).map_err(|error| unreadable(list.what, &error))?;
        let items = page.items.unwrap_or_default();
        if items.more {
            return Err(list.too_many());
        }
        items.all.into_iter().for_each(&mut take);
        match page.metadata.token.filter(|token| !token.is_empty()) {
            Some(token) if token.len() > TOKEN => return Err(list.too_many()),
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
    Err(list.too_many())
}

/// What a server that is not trusted answered is not what was asked for. Answers are not read by the client itself,
/// which would log all of what it can't read.
pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> Error {
    Error::TenantAccess {
        reason: format!("it answers something else than {what}: {error}"),
    }
}

impl List<'_> {
    fn failed(&self, error: kube::Error) -> Error {
        match TooMuch::of(&error) {
            Some(too_much) => Error::TooMuchInside {
                reason: format!("{}: {too_much}", self.what),
            },
            None => Error::Read {
                what: format!("its {}", self.what),
                error,
            },
        }
    }

    fn too_many(&self) -> Error {
        let (what, most) = (self.what, self.most);
        let reason = match self.labels {
            None => format!("there are more than {most} {what}; remove some"),
            Some(labels) => format!(
                "more than {most} {what} carry the label {labels}, which is Steward's own; remove it from those that are yours: `kubectl get {what} -A -l {labels}`"
            ),
        };
        Error::TooMuchInside { reason }
    }

    fn affords(&self, text: &str) -> bool {
        let Some(budget) = self.budget else {
            return true;
        };
        let price = Price::of(text.as_bytes()).memory;
        let spent = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(price)
        });
        spent.is_ok()
    }

    fn too_large(&self) -> Error {
        let (what, labels) = (self.what, self.labels.unwrap_or_default());
        Error::TooMuchInside {
            reason: format!(
                "the objects with the label {labels}, which is Steward's own, are too large, among them {what}; remove it from those that are yours: `kubectl get {what} -A -l {labels}`"
            ),
        }
    }
}

/// A list of which at most `N` are kept.
pub(crate) struct Few<T, const N: usize> {
    pub(crate) all: Vec<T>,
    /// There were more.
    pub(crate) more: bool,
}

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            more: false,
        }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Few<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

struct Elements<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
    type Value = Few<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T, N>, A::Error> {
        let mut few = Few::default();
        while few.all.len() < N {
            match list.next_element()? {
                Some(element) => few.all.push(element),
                None => return Ok(few),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            few.more = true;
        }
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_list_a_few_are_kept() {
        let read = |text: &str| serde_json::from_str::<Few<u8, 3>>(text).unwrap();
        assert_eq!(read("[]").all, [0; 0]);
        let just = read("[1,2,3]");
        assert_eq!(
            (just.all.as_slice(), just.more),
            ([1, 2, 3].as_slice(), false)
        );
        let long = read(r#"[1,2,3,{"a":[4]},5]"#);
        assert_eq!(
            (long.all.as_slice(), long.more),
            ([1, 2, 3].as_slice(), true)
        );
    }
}
