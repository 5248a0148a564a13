//! The hello parser against rustls: hellos of real clients, whole, cut and damaged.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails should say where"
)]

#[path = "support/against_rustls.rs"]
mod against_rustls;

use std::sync::Arc;

use against_rustls::compare;
use proptest::prelude::*;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName,
};
use steward_wire::hello::{Outcome, parse};

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
        compare(&wire);
        let cut = recut(&wire, fragment);
        prop_assert!(matches!(parse(&cut), Outcome::Hello(_)));
        compare(&cut);
    }

    #[test]
    fn truncated_hellos_are_read_alike(
        wire in hellos(),
        fragment in 1usize..2000,
        end in any::<proptest::sample::Index>(),
    ) {
        let wire = recut(&wire, fragment);
        compare(&wire[..end.index(wire.len())]);
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
        compare(&wire);
    }
}
