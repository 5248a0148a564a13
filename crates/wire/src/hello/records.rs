//! TLS records around a `ClientHello`: walks their headers, keeps the place, joins the message.
//!
//! Refuses records that no client sends (empty, oversized, of another kind) as soon as their
//! header is there. A message in one record is borrowed; one in several is copied once, when it
//! is whole, so the copy is never larger than what was received.

use std::borrow::Cow;

use super::{Hello, MAX_INPUT, Malformed, Outcome, body, foreign};

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const MAJOR_VERSION: u8 = 3;
const RECORD_HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;
/// The longest plaintext record.
const MAX_RECORD: usize = 1 << 14;

/// How far the reading of one connection's hello has come.
///
/// Small and `Copy`: a connection that waits for its hello keeps this and its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parser {
    /// Where the first record starts that is not wholly there.
    record_at: usize,
    /// How many bytes of handshake lie before it.
    collected: usize,
    /// How long the message is with its header, once known.
    total: Option<usize>,
}

/// Where one record's content lies in the input; its end may not have been received.
struct Record {
    start: usize,
    end: usize,
}

impl Parser {
    /// Looks at `input`: all bytes received so far, so a continuation of what was given before.
    pub fn advance<'a>(&mut self, input: &'a [u8]) -> Outcome<'a> {
        // What lies beyond the bound does not exist, so that the answer is the same whether it
        // arrived already or not.
        let input = input.get(..MAX_INPUT).unwrap_or(input);
        let outcome = match input.first() {
            None => Outcome::NeedMore,
            Some(&HANDSHAKE) => self.walk(input).unwrap_or_else(Outcome::Malformed),
            Some(_) => foreign::recognise(input),
        };
        if outcome == Outcome::NeedMore && input.len() == MAX_INPUT {
            return Outcome::Malformed(Malformed::TooLong);
        }
        outcome
    }

    fn walk<'a>(&mut self, input: &'a [u8]) -> Result<Outcome<'a>, Malformed> {
        while let Some(record) = record(input, self.record_at)? {
            let have = self.collected + (input.len().min(record.end) - record.start);
            if self.total.is_none() {
                self.total = message_length(input)?;
            }
            if let Some(total) = self.total.filter(|&total| have >= total) {
                return self.whole(input, &record, total).map(Outcome::Hello);
            }
            if input.len() < record.end {
                break;
            }
            self.collected = have;
            self.record_at = record.end;
        }
        Ok(Outcome::NeedMore)
    }

    /// The hello, now that its last byte is known to lie in `last`.
    fn whole<'a>(
        &self,
        input: &'a [u8],
        last: &Record,
        total: usize,
    ) -> Result<Hello<'a>, Malformed> {
        let len = last.start + (total - self.collected);
        let message = if self.collected == 0 {
            Cow::Borrowed(
                input
                    .get(last.start + MESSAGE_HEADER..len)
                    .unwrap_or_default(),
            )
        } else {
            Cow::Owned(joined(input.get(..len).unwrap_or_default(), total))
        };
        let found = body::read(&message)?;
        Ok(Hello {
            sni: found.sni,
            alpn: found.alpn,
            message,
            len,
        })
    }
}

/// The record that starts at `at`: none while its header, or its first byte, is missing.
fn record(input: &[u8], at: usize) -> Result<Option<Record>, Malformed> {
    let header = input.get(at..).unwrap_or_default();
    // Each byte is checked as soon as it is there, in order: a prefix can't be accepted for
    // something that the whole is refused for.
    if header.first().is_some_and(|&kind| kind != HANDSHAKE) {
        return Err(Malformed::Interrupted);
    }
    if header.get(1).is_some_and(|&major| major != MAJOR_VERSION) {
        return Err(Malformed::RecordVersion);
    }
    let &[_, _, _, high, low, ..] = header else {
        return Ok(None);
    };
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len == 0 {
        return Err(Malformed::EmptyRecord);
    }
    if len > MAX_RECORD {
        return Err(Malformed::RecordTooLong);
    }
    let start = at + RECORD_HEADER;
    Ok((start < input.len()).then_some(Record {
        start,
        end: start + len,
    }))
}

/// The length of the message with its header, from the header that may itself be cut.
fn message_length(input: &[u8]) -> Result<Option<usize>, Malformed> {
    let mut header = fragments(input).flatten();
    if header.next().is_some_and(|&kind| kind != CLIENT_HELLO) {
        return Err(Malformed::NotClientHello);
    }
    let (Some(&high), Some(&middle), Some(&low)) = (header.next(), header.next(), header.next())
    else {
        return Ok(None);
    };
    let body = u32::from_be_bytes([0, high, middle, low]) as usize;
    let total = MESSAGE_HEADER + body;
    if RECORD_HEADER + total > MAX_INPUT {
        return Err(Malformed::TooLong);
    }
    Ok(Some(total))
}

/// The contents of the records, as far as they are there.
fn fragments(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let record = record(input, at).ok()??;
        at = record.end;
        input.get(record.start..record.end.min(input.len()))
    })
}

/// The message of `total` bytes, without its header, from records that `input` ends with.
fn joined(input: &[u8], total: usize) -> Vec<u8> {
    let mut message = Vec::with_capacity(total.min(input.len()));
    fragments(input).for_each(|fragment| message.extend_from_slice(fragment));
    message.drain(..MESSAGE_HEADER.min(message.len()));
    message
}
