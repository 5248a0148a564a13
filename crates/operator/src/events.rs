//! Events on objects, for `kubectl describe`.
//!
//! Owns: publishing what a report says happened. Refuses: deciding what is worth an event; failing
//! because an event could not be written.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Publishes events in the name of this replica.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    /// `instance` is the name of this replica.
    pub fn new(client: Client, instance: String) -> Self {
        Self(Recorder::new(
            client,
            Reporter {
                controller: "steward-operator".into(),
                instance: Some(instance),
            },
        ))
    }

    /// Says that something happened. `reason` is one word, `note` a sentence.
    pub async fn publish(
        &self,
        about: &ObjectReference,
        warning: bool,
        reason: &str,
        action: &str,
        note: &str,
    ) {
        let event = Event {
            type_: if warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: clip(reason, 128),
            // The API server refuses longer notes.
            note: Some(clip(note, 1024)),
            action: clip(action, 128),
            secondary: None,
        };
        if let Err(error) = self.0.publish(&event, about).await {
            // The namespace may be going away; conditions carry the same news.
            tracing::debug!(%error, reason, "event not published");
        }
    }
}

/// The text, cut between characters if it is longer than `most` bytes.
pub(crate) fn clip(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let clipped = clip(&"ä".repeat(600), 1024);
        assert!(clipped.len() <= 1024 && clipped.ends_with('…'));
        assert_eq!(clip("short", 1024), "short");
    }
}
