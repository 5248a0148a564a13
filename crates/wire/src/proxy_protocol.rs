//! The PROXY protocol: who is on the other side of the program in front.

/// What a version 2 header starts with.
pub const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
