//! The hello parser: agrees with rustls, and with itself however the bytes are cut.

#![no_main]

#[path = "../../crates/wire/tests/support/against_rustls.rs"]
mod against_rustls;

use libfuzzer_sys::fuzz_target;
use steward_wire::hello::{Outcome, Parser, parse};

fuzz_target!(|bytes: &[u8]| {
    // Two bytes steer how the rest is cut.
    let [steps, fragment, wire @ ..] = bytes else {
        return;
    };
    against_rustls::compare(wire);

    let whole = parse(wire);
    let mut parser = Parser::default();
    let step = usize::from(*steps) + 1;
    for end in (0..wire.len()).step_by(step).chain([wire.len()]) {
        match parser.advance(&wire[..end]) {
            Outcome::NeedMore => {}
            answer => {
                assert_eq!(answer, whole, "the first {end} bytes say otherwise");
                break;
            }
        }
    }

    // The same message in other records says the same.
    if let Outcome::Hello(hello) = &whole
        && let Some(message) = single_record(wire, hello.len())
    {
        let recut = records(message, usize::from(*fragment) + 1);
        match parse(&recut) {
            Outcome::Hello(other) => {
                assert_eq!(other.sni(), hello.sni());
                assert!(other.alpn().eq(hello.alpn()));
            }
            // The headers may take it over the bound.
            other => assert!(recut.len() > steward_wire::hello::MAX_INPUT, "{other:?}"),
        }
    }
});

/// The message, if it lies in one record.
fn single_record(wire: &[u8], len: usize) -> Option<&[u8]> {
    let &[_, _, _, high, low, ..] = wire else {
        return None;
    };
    let record = usize::from(u16::from_be_bytes([high, low]));
    (len <= 5 + record).then(|| &wire[5..len])
}

fn records(message: &[u8], fragment: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for piece in message.chunks(fragment) {
        wire.extend([22, 3, 1]);
        wire.extend(u16::try_from(piece.len()).unwrap().to_be_bytes());
        wire.extend_from_slice(piece);
    }
    wire
}
