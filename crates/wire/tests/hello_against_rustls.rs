//! The hello parser against rustls: hellos of real clients, whole, cut and damaged.
//!
//! Where both accept, both must say the same. Where rustls accepts, so must we, except for the
//! few things we refuse on purpose. We may accept what rustls refuses: it also checks extensions
//! that a router does not look at.

use std::{io::Cursor, sync::Arc};

use proptest::prelude::*;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName,
    server::Acceptor,
};
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
fn compare(wire: &[u8]) -> Result<(), TestCaseError> {
    let ours = parse(wire);
    let mut rustls = rustls_says(wire);
    if matches!(ours, Outcome::Hello(_)) && rustls == Verdict::NeedMore {
        // The message is whole, its record is not: only rustls waits for the rest of that.
        let padding = vec![0; usize::from(u16::MAX)];
        rustls = rustls_says(&[wire, &padding].concat());
    }
    match (&ours, rustls) {
        (Outcome::Hello(hello), Verdict::Accepted { sni, alpn }) => {
            prop_assert_eq!(hello.sni(), sni.as_deref());
            prop_assert!(hello.alpn().eq(alpn.iter().map(Vec::as_slice)));
        }
        (_, Verdict::Refused) | (Outcome::NeedMore, Verdict::NeedMore) => {}
        // Refused on the header alone, while rustls waits for the rest.
        (Outcome::Malformed(_) | Outcome::NotTls(_), Verdict::NeedMore) => {}
        (Outcome::Malformed(reason), Verdict::Accepted { .. }) => {
            prop_assert!(
                refused_on_purpose(*reason),
                "rustls accepts what we call {reason:?}"
            );
        }
        (ours, rustls) => prop_assert!(false, "we say {ours:?}, rustls says {rustls:?}"),
    }
    Ok(())
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

fn config(versions: u8, post_quantum: bool, alpn: Vec<Vec<u8>>) -> ClientConfig {
    let mut provider = aws_lc_rs::default_provider();
    if !post_quantum {
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1];
    }
    let versions: &[&rustls::SupportedProtocolVersion] = match versions {
        0 => &[&rustls::version::TLS12],
        1 => &[&rustls::version::TLS13],
        _ => rustls::ALL_VERSIONS,
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = alpn;
    config
}

fn real_hello(config: ClientConfig, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut wire = Vec::new();
    client.write_tls(&mut wire).unwrap();
    wire
}

/// The same message in other records.
fn recut(wire: &[u8], fragment: usize) -> Vec<u8> {
    let mut message = Vec::new();
    let mut rest = wire;
    while let [_, _, _, high, low, tail @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        message.extend_from_slice(&tail[..len]);
        rest = &tail[len..];
    }
    message
        .chunks(fragment)
        .flat_map(|piece| {
            let len = u16::try_from(piece.len()).unwrap().to_be_bytes();
            [&[22, 3, 1], &len[..], piece].concat()
        })
        .collect()
}

fn hellos() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        "[a-z0-9]{1,20}(\\.[A-Za-z0-9]{1,10}){1,4}",
        Just("192.0.2.1".to_owned())
    ]
    .prop_filter("is a name", |name| {
        ServerName::try_from(name.as_str()).is_ok()
    });
    let alpn = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..4);
    (0u8..3, any::<bool>(), alpn, name)
        .prop_map(|(versions, pq, alpn, name)| real_hello(config(versions, pq, alpn), &name))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn real_hellos_are_read_alike(wire in hellos(), fragment in 1usize..2000) {
        prop_assert!(matches!(parse(&wire), Outcome::Hello(_)));
        compare(&wire)?;
        let cut = recut(&wire, fragment);
        prop_assert!(matches!(parse(&cut), Outcome::Hello(_)));
        compare(&cut)?;
    }

    #[test]
    fn truncated_hellos_are_read_alike(
        wire in hellos(),
        fragment in 1usize..2000,
        end in any::<proptest::sample::Index>(),
    ) {
        let wire = recut(&wire, fragment);
        compare(&wire[..end.index(wire.len())])?;
    }

    #[test]
    fn damaged_hellos_are_read_alike(
        wire in hellos(),
        fragment in 1usize..2000,
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut wire = recut(&wire, fragment);
        for (place, value) in damage {
            *place.get_mut(&mut wire) = value;
        }
        compare(&wire)?;
    }
}
