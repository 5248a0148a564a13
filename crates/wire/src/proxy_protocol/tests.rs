//! Headers as HAProxy and load balancers write them, and as nobody should.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn v2(fields: &[u8]) -> Vec<u8> {
    [V2_SIGNATURE, fields].concat()
}

#[test]
fn a_line_names_both_ends() {
    let line = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\nrest";
    let header = Header {
        source: Some(addr("192.0.2.1:56324")),
        destination: Some(addr("198.51.100.7:443")),
    };
    assert_eq!(parse(line), Ok(Some((header, line.len() - 4))));
    let line = b"PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n";
    let header = Header {
        source: Some(addr("[2001:db8::1]:1")),
        destination: Some(addr("[2001:db8::2]:65535")),
    };
    assert_eq!(parse(line), Ok(Some((header, line.len()))));
}

#[test]
fn an_unknown_client_is_none() {
    for line in [
        &b"PROXY UNKNOWN\r\n"[..],
        b"PROXY UNKNOWN ffff::1 whatever 1\r\n",
    ] {
        assert_eq!(parse(line), Ok(Some((Header::default(), line.len()))));
    }
}

#[test]
fn lines_that_are_almost_right_are_refused() {
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(107));
    let cases: [(&[u8], Error); 14] = [
        (b"PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n", Error::Line("family")),
        (b"PROXY \r\n", Error::Line("family")),
        (
            b"PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
            Error::Line("family"),
        ),
        (
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            Error::Line("number of fields"),
        ),
        (
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n",
            Error::Line("number of fields"),
        ),
        (b"PROXY TCP4 ::1 ::1 1 1\r\n", Error::Line("address")),
        (
            b"PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n",
            Error::Line("address"),
        ),
        (
            b"PROXY TCP4 1.2.3.04 1.2.3.4 1 1\r\n",
            Error::Line("address"),
        ),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n", Error::Line("port")),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n", Error::Line("port")),
        (
            b"PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n",
            Error::Line("port"),
        ),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 \r\n", Error::Line("port")),
        (b"PROXY TCP4 \xff 1.2.3.4 1 1\r\n", Error::Line("character")),
        (long.as_bytes(), Error::Endless),
    ];
    for (line, error) in cases {
        assert_eq!(parse(line), Err(error), "{}", line.escape_ascii());
    }
}

#[test]
fn binary_headers_name_both_ends() {
    let fields = [
        0x21, 0x11, 0, 12, 192, 0, 2, 1, 198, 51, 100, 7, 0xdc, 4, 1, 187, b'x',
    ];
    let header = Header {
        source: Some(addr("192.0.2.1:56324")),
        destination: Some(addr("198.51.100.7:443")),
    };
    assert_eq!(parse(&v2(&fields)), Ok(Some((header, 28))));
}

#[test]
fn extensions_are_checked_and_skipped() {
    let addresses = [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2];
    let with = |extensions: &[u8]| {
        let len = u8::try_from(12 + extensions.len()).unwrap();
        v2(&[&[0x21, 0x11, 0, len][..], &addresses, extensions].concat())
    };
    let good = with(&[4, 0, 0, 0xee, 0, 2, 1, 2]);
    assert_eq!(parse(&good).unwrap().unwrap().1, good.len());
    for bad in [&[4][..], &[4, 0], &[4, 0, 1], &[4, 0, 0, 9]] {
        assert_eq!(parse(&with(bad)), Err(Error::Length("extensions")));
    }
}

#[test]
fn a_health_check_of_the_front_door_has_no_client() {
    assert_eq!(parse(&encode_v2_local()), Ok(Some((Header::default(), 16))));
    // Whatever addresses it carries are not the client's.
    let carried = v2(&[0x20, 0x11, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2]);
    assert_eq!(parse(&carried), Ok(Some((Header::default(), 28))));
}

#[test]
fn binary_headers_that_are_almost_right_are_refused() {
    let cases: [(&[u8], Error); 8] = [
        (&[0x11], Error::Unknown("version")),
        (&[0x22], Error::Unknown("command")),
        (&[0x21, 0x12], Error::Unknown("address family or protocol")),
        (&[0x21, 0x31], Error::Unknown("address family or protocol")),
        (&[0x21, 0x41], Error::Unknown("address family or protocol")),
        (&[0x21, 0x11, 0, 11], Error::Length("addresses")),
        (&[0x21, 0x21, 0, 35], Error::Length("addresses")),
        (&[0x21, 0x11, 2, 9], Error::TooLong),
    ];
    for (fields, error) in cases {
        assert_eq!(parse(&v2(fields)), Err(error), "{fields:?}");
        assert_eq!(
            parse(&v2(&fields[..fields.len() - 1])),
            Ok(None),
            "{fields:?}"
        );
    }
}

#[test]
fn anything_else_is_no_header() {
    for bytes in [
        &b"\x16\x03\x01"[..],
        b"PROXX",
        b"proxy TCP4",
        b"\r\n\r\nX",
        b"GET / HTTP/1.1",
    ] {
        assert_eq!(parse(bytes), Err(Error::Missing));
    }
    assert_eq!(parse(b""), Ok(None));
}

fn addresses() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let v4 = any::<(u32, u32)>().prop_map(|(a, b)| {
        (
            IpAddr::from(Ipv4Addr::from(a)),
            IpAddr::from(Ipv4Addr::from(b)),
        )
    });
    let v6 = any::<(u128, u128)>().prop_map(|(a, b)| {
        (
            IpAddr::from(Ipv6Addr::from(a)),
            IpAddr::from(Ipv6Addr::from(b)),
        )
    });
    (prop_oneof![v4, v6], any::<(u16, u16)>()).prop_map(|((from, to), (from_port, to_port))| {
        (
            SocketAddr::new(from, from_port),
            SocketAddr::new(to, to_port),
        )
    })
}

/// The first answer is the answer to the whole.
fn check_prefixes(bytes: &[u8]) {
    let whole = parse(bytes);
    for end in 0..bytes.len() {
        match parse(&bytes[..end]) {
            Ok(None) => {}
            decided => assert_eq!(decided, whole, "at {end}"),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read((source, destination) in addresses(), rest: Vec<u8>) {
        let header = Header { source: Some(source), destination: Some(destination) };
        for written in [encode_v1(source, destination), encode_v2(source, destination)] {
            prop_assert!(written.len() <= MAX_HEADER);
            let bytes = [&written[..], &rest].concat();
            prop_assert_eq!(parse(&bytes), Ok(Some((header, written.len()))));
            check_prefixes(&bytes);
        }
    }

    #[test]
    fn damage_never_panics(
        (source, destination) in addresses(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for mut bytes in [encode_v1(source, destination), encode_v2(source, destination)] {
            for (place, value) in &damage {
                *place.get_mut(&mut bytes) = *value;
            }
            check_prefixes(&bytes);
        }
    }

    #[test]
    fn a_header_is_decided_within_its_bound(tail in proptest::collection::vec(any::<u8>(), 600)) {
        for start in [&b"PROXY "[..], V2_SIGNATURE] {
            let bytes = [start, &tail].concat();
            prop_assert_ne!(parse(&bytes), Ok(None));
        }
    }
}
