//! The PROXY header: what is read is what would be written, and a prefix never says otherwise.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steward_wire::proxy_protocol::{MAX_HEADER, encode_v1, encode_v2, parse};

fuzz_target!(|bytes: &[u8]| {
    let whole = parse(bytes);
    for end in 0..bytes.len().min(MAX_HEADER + 1) {
        match parse(&bytes[..end]) {
            Ok(None) => {}
            decided => assert_eq!(decided, whole, "the first {end} bytes say otherwise"),
        }
    }
    match whole {
        Ok(None) => assert!(
            bytes.len() <= MAX_HEADER,
            "undecided after {} bytes",
            bytes.len()
        ),
        Ok(Some((header, len))) => {
            assert!(len <= MAX_HEADER && len <= bytes.len());
            if let (Some(source), Some(destination)) = (header.source, header.destination) {
                for written in [
                    encode_v1(source, destination),
                    encode_v2(source, destination),
                ] {
                    assert_eq!(parse(&written), Ok(Some((header, written.len()))));
                }
            }
        }
        Err(_) => {}
    }
});
