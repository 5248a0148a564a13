//! What may sit between a socket and the relay: TLS, without any I/O.
//!
//! A [`Transform`] turns bytes of the wire into plaintext and back. It never
//! touches a socket and never blocks; the engine gives it bytes and scratch
//! space, writes what it produces, and keeps back-pressure: it does not call
//! [`Transform::seal`] again before the last output left, and does not read a
//! socket whose plaintext has nowhere to go. So a transform needs no limits of
//! its own, and an idle one should hold no buffer.

use std::fmt;

/// A sans-I/O filter on one leg of a connection.
pub trait Transform: Send + fmt::Debug {
    /// Bytes came from this leg's socket (at most 64 KiB). They may be
    /// overwritten, for decryption in place. All of them must be taken: keep an
    /// incomplete record inside.
    ///
    /// Called once with no bytes before a server is dialled, so that a TLS client
    /// can say hello. Plaintext is appended to `plain`; bytes that must go
    /// back to the same peer (handshake, alerts, tickets) to `reply`. On an error
    /// `reply` is still sent, so that the alert arrives.
    fn open(
        &mut self,
        wire: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, TransformError>;

    /// Plaintext for this leg's peer (at most 64 KiB and some): append the
    /// sealed records to `wire`. Called only while [`Transform::ready`].
    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> Result<(), TransformError>;

    /// No more plaintext will come for this peer: append a `close_notify`.
    fn close(&mut self, wire: &mut Vec<u8>);

    /// Whether the handshake is done and [`Transform::seal`] may be called.
    fn ready(&self) -> bool;

    /// The protocol both sides agreed on, once ready.
    fn alpn(&self) -> Option<&[u8]> {
        None
    }
}

/// What [`Transform::open`] found besides bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The stream goes on.
    Open,
    /// The peer said it will send no more (`close_notify`).
    Eof,
}

/// The peer broke the protocol, or was not who it had to be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);
