//! One rustls connection, driven by bytes: the part that both sides share.

use rustls::{
    AlertDescription, CertificateError, Error, ProtocolVersion,
    client::{ClientConnectionData, UnbufferedClientConnection},
    server::{ServerConnectionData, UnbufferedServerConnection},
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus},
};

use crate::transform::{Opened, TransformError};

const RECORD_HEADER: usize = 5;
/// What sealing adds to each record at most: header, content type, tag, explicit nonce.
const RECORD_OVERHEAD: usize = 40;
/// The most plaintext in one record.
const MAX_FRAGMENT: usize = 1 << 14;

/// rustls' two unbuffered connections have the same methods and no common type.
pub(super) trait Connection {
    type Data;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Whether there is something for the peer.
    fn has_output(&self) -> bool;

    fn chosen_alpn(&self) -> Option<&[u8]>;

    /// Whether the peer waits for what ends the handshake on this side. A TLS 1.3 client does
    /// not: it gets a ticket for another day, which may as well travel with the first answer.
    fn peer_waits(&self) -> bool;
}

pub(super) struct Leg<C> {
    connection: C,
    /// Bytes that rustls has not consumed: the beginning of a record, or, during the handshake,
    /// of a message in several records. Empty and without memory at rest.
    pending: Vec<u8>,
    ready: bool,
    /// The peer said that it will send no more; what comes after is not looked at.
    ended: bool,
    /// rustls gave up, and must not be called again: it asserts that it is not.
    failed: bool,
    /// Said by rustls, and in no hurry: goes with whatever is sent next.
    unhurried: Vec<u8>,
}

impl<C> Leg<C> {
    pub(super) fn new(connection: C) -> Self {
        Self {
            connection,
            pending: Vec::new(),
            ready: false,
            ended: false,
            failed: false,
            unhurried: Vec::new(),
        }
    }

    pub(super) fn ready(&self) -> bool {
        self.ready
    }

    #[cfg(test)]
    pub(super) fn pending_capacity(&self) -> usize {
        self.pending.capacity()
    }

    #[cfg(test)]
    pub(super) fn unhurried(&self) -> usize {
        self.unhurried.len()
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &C {
        &self.connection
    }
}

impl<C: Connection> Leg<C> {
    pub(super) fn open(
        &mut self,
        wire: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, TransformError> {
        if self.failed {
            return Err(failed_before());
        }
        let (start, was_ready) = (reply.len(), self.ready);
        if let Err(error) = self.consume(wire, plain, reply) {
            // In the order in which it was sealed.
            reply.splice(start..start, std::mem::take(&mut self.unhurried));
            return Err(explained(error));
        }
        if !was_ready && self.ready && !self.connection.peer_waits() {
            self.unhurried = reply.split_off(start);
        } else if reply.len() > start && !self.unhurried.is_empty() {
            reply.splice(start..start, std::mem::take(&mut self.unhurried));
        }
        Ok(if self.ended {
            Opened::Eof
        } else {
            Opened::Open
        })
    }

    /// Takes all of `wire`. A record that was begun earlier is completed in `pending`; all whole
    /// records after it are opened where they lie.
    fn consume(
        &mut self,
        mut wire: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<(), Error> {
        while !self.pending.is_empty() && !wire.is_empty() {
            let (head, rest) = wire.split_at_mut(missing(&self.pending).min(wire.len()));
            self.pending.extend_from_slice(head);
            wire = rest;
            if missing(&self.pending) == RECORD_HEADER {
                let mut pending = std::mem::take(&mut self.pending);
                let used = self.process(&mut pending, plain, reply)?;
                if used < pending.len() {
                    pending.drain(..used);
                    self.pending = pending;
                }
            }
        }
        if self.pending.is_empty() {
            let used = self.process(wire, plain, reply)?;
            self.pending
                .extend_from_slice(wire.get(used..).unwrap_or_default());
        }
        if self.ended {
            self.pending = Vec::new();
        }
        Ok(())
    }

    /// Lets rustls work on `incoming` until it wants more, and says how much it used.
    fn process(
        &mut self,
        incoming: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            let rest = incoming.get_mut(used..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = self.connection.process(rest);
            let state = match state {
                Ok(state) => state,
                Err(error) => {
                    let rest = incoming.get_mut(used + discard..).unwrap_or_default();
                    self.flush_alert(rest, reply);
                    return Err(error);
                }
            };
            let mut more = true;
            match state {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    append(reply, 0, |place| {
                        data.encode(place).map_err(required_to_encode)
                    })?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                // Said once, and perhaps in the same flight that ends the handshake: the state
                // after it tells whether sending is possible.
                ConnectionState::PeerClosed => self.ended = true,
                ConnectionState::Closed => {
                    self.ended = true;
                    more = false;
                }
                ConnectionState::WriteTraffic(_) => {
                    self.ready = true;
                    more = false;
                }
                // Early data is never offered and never accepted.
                _ => more = false,
            }
            used += discard;
            if !more {
                return Ok(used);
            }
        }
    }

    pub(super) fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), TransformError> {
        wire.append(&mut self.unhurried);
        self.unhurried = Vec::new();
        let records = plain.len() / MAX_FRAGMENT + 1;
        let expected = plain.len() + records * RECORD_OVERHEAD;
        loop {
            if self.failed {
                return Err(failed_before());
            }
            // With what is pending: rustls may have its finger in it.
            match self
                .connection
                .process(&mut self.pending)
                .state
                .map_err(explained)?
            {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return append(wire, expected, |place| {
                        traffic.encrypt(plain, place).map_err(required_to_encrypt)
                    })
                    .map_err(explained);
                }
                // A key update that the peer asked for goes first.
                ConnectionState::EncodeTlsData(mut data) => {
                    append(wire, 0, |place| {
                        data.encode(place).map_err(required_to_encode)
                    })
                    .map_err(explained)?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                // Said once; writing goes on.
                ConnectionState::PeerClosed => self.ended = true,
                _ => return Err(TransformError("TLS is not ready to send".to_owned())),
            }
        }
    }

    pub(super) fn close(&mut self, wire: &mut Vec<u8>) {
        wire.append(&mut self.unhurried);
        for _ in 0..if self.failed { 0 } else { MAX_QUEUED } {
            match self.connection.process(&mut self.pending).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    // Nothing to tell the peer is the worst that can happen here.
                    let _ = append(wire, RECORD_OVERHEAD, |place| {
                        traffic
                            .queue_close_notify(place)
                            .map_err(required_to_encrypt)
                    });
                    return;
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    let _ = append(wire, 0, |place| {
                        data.encode(place).map_err(required_to_encode)
                    });
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.ended = true,
                _ => return,
            }
        }
    }

    /// After an error: the alert that rustls has for the peer. What is queued comes out before
    /// any byte is looked at, and looking at more of them is not allowed any more.
    fn flush_alert(&mut self, rest: &mut [u8], reply: &mut Vec<u8>) {
        self.failed = true;
        self.pending = Vec::new();
        while self.connection.has_output() {
            let Ok(ConnectionState::EncodeTlsData(mut data)) = self.connection.process(rest).state
            else {
                return;
            };
            let _ = append(reply, 0, |place| {
                data.encode(place).map_err(required_to_encode)
            });
        }
    }

    pub(super) fn alpn(&self) -> Option<&[u8]> {
        self.connection.chosen_alpn()
    }
}

/// How many messages rustls may have queued when a connection ends; a bound, never reached.
const MAX_QUEUED: usize = 64;

fn failed_before() -> TransformError {
    TransformError("TLS failed before".to_owned())
}

/// How many bytes complete the last record in `pending`, or its header if that is cut.
/// [`RECORD_HEADER`] when it ends with a whole record.
fn missing(pending: &[u8]) -> usize {
    let mut rest = pending;
    while let &[_, _, _, high, low, ref tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([high, low]));
        match tail.get(len..) {
            Some(next) => rest = next,
            None => return len - tail.len(),
        }
    }
    RECORD_HEADER - rest.len()
}

/// Appends what `write` puts into the space it is given. It answers how much space it needs when
/// that is more; asked once more, it has it.
fn append(
    to: &mut Vec<u8>,
    expected: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), Error> {
    let start = to.len();
    let mut space = expected;
    for _ in 0..2 {
        to.resize(start + space, 0);
        match write(to.get_mut(start..).unwrap_or_default()) {
            Ok(written) => {
                to.truncate(start + written);
                return Ok(());
            }
            Err(Some(required)) => space = required,
            Err(None) => break,
        }
    }
    to.truncate(start);
    Err(Error::EncryptError)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "used as a function in map_err"
)]
fn required_to_encode(error: EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(size) => Some(size.required_size),
        EncodeError::AlreadyEncoded => None,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "used as a function in map_err"
)]
fn required_to_encrypt(error: EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(size) => Some(size.required_size),
        EncryptError::EncryptExhausted => None,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "used as a function in map_err"
)]
pub(super) fn explained(error: Error) -> TransformError {
    TransformError(explain(&error))
}

/// What went wrong, in words that say where to look.
pub fn explain(error: &Error) -> String {
    use CertificateError as Certificate;
    match error {
        Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
            "its certificate is not signed by the CA in --ca".to_owned()
        }
        Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => format!("its certificate is for another name ({error}): check --server-name"),
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            format!("its certificate has expired, or the clock is wrong ({error})")
        }
        Error::NoApplicationProtocol
        | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "no protocol in common: the other side speaks none of those offered".to_owned()
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the front door has no route for this name".to_owned()
        }
        _ => error.to_string(),
    }
}

impl Connection for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn has_output(&self) -> bool {
        self.wants_write()
    }

    fn chosen_alpn(&self) -> Option<&[u8]> {
        self.alpn_protocol()
    }

    fn peer_waits(&self) -> bool {
        self.protocol_version() != Some(ProtocolVersion::TLSv1_3)
    }
}

impl Connection for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn has_output(&self) -> bool {
        self.wants_write()
    }

    fn chosen_alpn(&self) -> Option<&[u8]> {
        self.alpn_protocol()
    }

    fn peer_waits(&self) -> bool {
        true
    }
}
