//! What the load generator and the backend say to each other, after the TLS
//! handshake or, in raw mode, after a `ClientHello` that nobody answers.
//!
//! A frame is one byte of operation and four of length (big endian, of the
//! whole frame for an echo, of the wanted answer for a download).

/// Bytes of a frame's header.
pub(crate) const HEADER: usize = 5;
/// Largest echo a backend accepts.
pub(crate) const MAX_ECHO: usize = 64 * 1024;

/// What a frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Send these many bytes back, header included.
    Echo(usize),
    /// Send these many bytes of anything.
    Download(usize),
}

impl Request {
    /// Reads a header; `None` for one that nobody here wrote.
    pub(crate) fn decode(header: [u8; HEADER]) -> Option<Self> {
        let [operation, a, b, c, d] = header;
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
        match operation {
            b'E' if (HEADER..=MAX_ECHO).contains(&length) => Some(Self::Echo(length)),
            b'D' => Some(Self::Download(length)),
            _ => None,
        }
    }

    /// Writes a header.
    pub(crate) fn encode(self) -> [u8; HEADER] {
        let (operation, length) = match self {
            Self::Echo(length) => (b'E', length),
            Self::Download(length) => (b'D', length),
        };
        let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        [operation, a, b, c, d]
    }

    /// A whole echo frame of this many bytes.
    pub(crate) fn echo_frame(length: usize) -> Vec<u8> {
        let mut frame = vec![b'x'; length];
        if let Some(header) = frame.get_mut(..HEADER) {
            header.copy_from_slice(&Self::Echo(length).encode());
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_way_there_and_back() {
        for request in [Request::Echo(1024), Request::Download(1 << 26)] {
            assert_eq!(Request::decode(request.encode()), Some(request));
        }
    }

    #[test]
    fn an_echo_longer_than_the_buffer_is_refused() {
        assert_eq!(Request::decode(Request::Echo(MAX_ECHO + 1).encode()), None);
        assert_eq!(Request::decode(*b"GET /"), None);
    }
}
