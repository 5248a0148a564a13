//! The alerts a router sends before it closes: a client that is told why says so to its user.

/// A fatal TLS alert, by its registered number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Alert {
    /// A message at the wrong time.
    UnexpectedMessage = 10,
    /// A record that is too long.
    RecordOverflow = 22,
    /// A field with a value that makes no sense.
    IllegalParameter = 47,
    /// The server does not let this client in.
    AccessDenied = 49,
    /// A message that can't be read.
    DecodeError = 50,
    /// A version nobody speaks.
    ProtocolVersion = 70,
    /// The server can't go on; not the client's fault.
    InternalError = 80,
    /// A name must be given, and none was.
    MissingExtension = 109,
    /// No route has this name.
    UnrecognizedName = 112,
}

/// The record that carries `alert`, as sent before any version was agreed on.
pub const fn alert_record(alert: Alert) -> [u8; 7] {
    const FATAL: u8 = 2;
    [21, 3, 3, 0, 2, FATAL, alert as u8]
}
