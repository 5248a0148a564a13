//! The comparison of the hello parser with rustls on the same bytes, for tests and for fuzzing.
//!
//! Where both accept, both must say the same. Where rustls accepts, so must we, except for the
//! few things we refuse on purpose. We may accept what rustls refuses: it also checks extensions
//! that a router does not look at.

use std::io::Cursor;

use rustls::server::Acceptor;
use steward_wire::hello::{Malformed, Outcome, parse};

/// What rustls makes of the bytes.
#[derive(Debug, PartialEq)]
enum Verdict {
    NeedMore,
    Refused,
    Accepted {
        sni: Option<String>,
        alpn: Vec<Vec<u8>>,
    },
}

fn rustls_says(mut wire: &[u8]) -> Verdict {
    let mut acceptor = Acceptor::default();
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                let sni = hello
                    .server_name()
                    .map(|name| name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase());
                let alpn = hello
                    .alpn()
                    .into_iter()
                    .flatten()
                    .map(<[u8]>::to_vec)
                    .collect();
                return Verdict::Accepted { sni, alpn };
            }
            Ok(None) if wire.is_empty() => return Verdict::NeedMore,
            Ok(None) => {
                let mut rest = Cursor::new(wire);
                match acceptor.read_tls(&mut rest) {
                    Ok(0) | Err(_) => return Verdict::Refused,
                    Ok(read) => wire = &wire[read..],
                }
            }
            Err(_) => return Verdict::Refused,
        }
    }
}

/// Compares the two on the same bytes.
pub(crate) fn compare(wire: &[u8]) {
    let ours = parse(wire);
    let mut rustls = rustls_says(wire);
    if matches!(ours, Outcome::Hello(_)) && rustls == Verdict::NeedMore {
        // The message is whole, its record is not: only rustls waits for the rest of that.
        let padding = vec![0; usize::from(u16::MAX)];
        rustls = rustls_says(&[wire, &padding].concat());
    }
    match (&ours, rustls) {
        (Outcome::Hello(hello), Verdict::Accepted { sni, alpn }) => {
            assert_eq!(hello.sni(), sni.as_deref());
            assert!(hello.alpn().eq(alpn.iter().map(Vec::as_slice)));
        }
        // A hello that is malformed or no TLS at all is refused on its header alone, while rustls
        // waits for the rest.
        (_, Verdict::Refused)
        | (Outcome::NeedMore | Outcome::Malformed(_) | Outcome::NotTls(_), Verdict::NeedMore) => {}
        (Outcome::Malformed(reason), Verdict::Accepted { .. }) => {
            assert!(
                refused_on_purpose(*reason),
                "rustls accepts what we call {reason:?}"
            );
        }
        (ours, rustls) => panic!("we say {ours:?}, rustls says {rustls:?}"),
    }
}

fn refused_on_purpose(reason: Malformed) -> bool {
    matches!(
        reason,
        Malformed::RecordTooLong
            | Malformed::TooLong
            | Malformed::NameList
            | Malformed::ServerName(_)
    )
}
