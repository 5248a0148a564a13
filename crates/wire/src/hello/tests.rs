//! Hellos made by hand, so that every length in them can be wrong.

use proptest::prelude::*;

use super::*;

/// A `ClientHello` to be written, with whatever extensions a test wants.
struct Draft {
    extensions: Vec<(u16, Vec<u8>)>,
}

impl Draft {
    fn new() -> Self {
        // GREASE first, as browsers do, and supported_versions with GREASE inside.
        Self {
            extensions: vec![(0x0a0a, vec![]), (43, vec![4, 0x3a, 0x3a, 3, 4])],
        }
    }

    fn extension(mut self, kind: u16, content: impl Into<Vec<u8>>) -> Self {
        self.extensions.push((kind, content.into()));
        self
    }

    fn sni(self, name: &str) -> Self {
        let mut entry = vec![0];
        push_vector(&mut entry, name.as_bytes());
        let mut content = Vec::new();
        push_vector(&mut content, &entry);
        self.extension(0, content)
    }

    fn alpn(self, protocols: &[&str]) -> Self {
        let mut list = Vec::new();
        for protocol in protocols {
            list.push(u8::try_from(protocol.len()).unwrap());
            list.extend_from_slice(protocol.as_bytes());
        }
        let mut content = Vec::new();
        push_vector(&mut content, &list);
        self.extension(16, content)
    }

    /// The handshake message with its header.
    fn message(&self) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        push_vector(&mut body, &[0x2a, 0x2a, 0x13, 0x01]);
        body.extend([1, 0]);
        let mut block = Vec::new();
        for (kind, content) in &self.extensions {
            block.extend(kind.to_be_bytes());
            push_vector(&mut block, content);
        }
        push_vector(&mut body, &block);
        let mut message = vec![1];
        message.extend(&u32::try_from(body.len()).unwrap().to_be_bytes()[1..]);
        message.extend(body);
        message
    }

    /// The message in records of at most `fragment` bytes.
    fn wire(&self, fragment: usize) -> Vec<u8> {
        records(&self.message(), fragment)
    }
}

fn push_vector(into: &mut Vec<u8>, content: &[u8]) {
    into.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
    into.extend_from_slice(content);
}

fn records(message: &[u8], fragment: usize) -> Vec<u8> {
    let mut wire = Vec::new();
    for piece in message.chunks(fragment) {
        wire.extend([22, 3, 1]);
        push_vector(&mut wire, piece);
    }
    wire
}

fn hello(wire: &[u8]) -> Hello<'_> {
    match parse(wire) {
        Outcome::Hello(hello) => hello,
        other => panic!("expected a hello, got {other:?}"),
    }
}

fn alpn_of<'a>(hello: &'a Hello<'_>) -> Vec<&'a str> {
    hello
        .alpn()
        .map(|protocol| str::from_utf8(protocol).unwrap())
        .collect()
}

#[test]
fn a_hello_names_its_server_and_its_protocols() {
    let wire = Draft::new()
        .sni("t1.k8s.example.com")
        .alpn(&["steward-tunnel/1", "h2"])
        .wire(9999);
    let hello = hello(&wire);
    assert_eq!(hello.sni(), Some("t1.k8s.example.com"));
    assert_eq!(alpn_of(&hello), ["steward-tunnel/1", "h2"]);
    assert!(hello.offers(b"h2"));
    assert!(!hello.offers(b"h3"));
    assert_eq!(hello.len(), wire.len());
}

#[test]
fn a_hello_without_names_is_a_hello() {
    let wire = Draft::new().wire(9999);
    let hello = hello(&wire);
    assert_eq!(hello.sni(), None);
    assert_eq!(hello.alpn().count(), 0);
}

#[test]
fn a_hello_without_an_extension_block_is_a_hello() {
    let mut body = vec![3, 1];
    body.extend([0; 32]);
    body.extend([0, 0, 2, 0, 0x2f, 1, 0]);
    let mut message = vec![1, 0, 0, u8::try_from(body.len()).unwrap()];
    message.extend(body);
    assert_eq!(hello(&records(&message, 100)).sni(), None);
}

#[test]
fn names_are_folded_and_lose_their_trailing_dot() {
    let wire = Draft::new().sni("T1.K8s.Example.COM.").wire(9999);
    assert_eq!(hello(&wire).sni(), Some("t1.k8s.example.com"));
}

#[test]
fn an_address_is_no_name() {
    for address in ["192.0.2.7", "2001:db8::1", "10.0.0.1."] {
        let wire = Draft::new().sni(address).wire(9999);
        assert_eq!(hello(&wire).sni(), None, "{address}");
    }
}

#[test]
fn a_name_that_is_none_is_refused() {
    let long_label = "a".repeat(64);
    let long_name = "abcdefgh.".repeat(29);
    let bad = [
        ("", BadName::Empty),
        (".", BadName::Empty),
        ("a..b", BadName::EmptyLabel),
        (".a", BadName::EmptyLabel),
        ("a..", BadName::EmptyLabel),
        ("-a.b", BadName::Hyphen),
        ("a-.b", BadName::Hyphen),
        ("a b", BadName::Character),
        ("a\0.b", BadName::Character),
        ("*.example.com", BadName::Character),
        ("bücher.example", BadName::Character),
        (&long_label, BadName::LongLabel),
        (&long_name, BadName::TooLong),
    ];
    for (name, reason) in bad {
        let wire = Draft::new().sni(name).wire(9999);
        let expected = Outcome::Malformed(Malformed::ServerName(reason));
        assert_eq!(parse(&wire), expected, "{name:?}");
    }
}

#[test]
fn the_longest_name_passes() {
    let label = "a".repeat(63);
    let name = [label.as_str(), &label, &label, &label[..61]].join(".");
    assert_eq!(name.len(), 253);
    let wire = Draft::new().sni(&name).wire(9999);
    assert_eq!(hello(&wire).sni(), Some(name.as_str()));
    let wire = Draft::new().sni(&format!("{name}.")).wire(9999);
    assert_eq!(hello(&wire).sni(), Some(name.as_str()));
}

#[test]
fn two_answers_to_one_question_are_refused() {
    let twice = Draft::new().sni("a.example").sni("b.example").wire(9999);
    assert_eq!(
        parse(&twice),
        Outcome::Malformed(Malformed::Duplicate(Field::ServerName))
    );
    let twice = Draft::new().alpn(&["h2"]).alpn(&["h2"]).wire(9999);
    assert_eq!(
        parse(&twice),
        Outcome::Malformed(Malformed::Duplicate(Field::Alpn))
    );
    let mut entries = vec![0];
    push_vector(&mut entries, b"a.example");
    entries.extend_from_within(..);
    let mut content = Vec::new();
    push_vector(&mut content, &entries);
    let twice = Draft::new().extension(0, content).wire(9999);
    assert_eq!(parse(&twice), Outcome::Malformed(Malformed::NameList));
    let other_type = Draft::new().extension(0, [0, 4, 1, 0, 1, b'a']).wire(9999);
    assert_eq!(parse(&other_type), Outcome::Malformed(Malformed::NameList));
}

#[test]
fn an_outer_hello_of_ech_is_read_like_any_other() {
    let ech = [
        vec![0, 0, 1, 0, 1, 42, 0, 32],
        vec![9; 32],
        vec![0, 144],
        vec![5; 144],
    ]
    .concat();
    let wire = Draft::new()
        .extension(0xfe0d, ech)
        .sni("public.example")
        .wire(9999);
    assert_eq!(hello(&wire).sni(), Some("public.example"));
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let wrong: [(u16, &[u8], Field); 12] = [
        (0, &[], Field::ServerName),
        (0, &[0, 0], Field::ServerName),
        (0, &[0, 5, 0, 0, 1, b'a'], Field::ServerName),
        (0, &[0, 4, 0, 0, 2, b'a'], Field::ServerName),
        (0, &[0, 4, 0, 0, 1, b'a', 0], Field::ServerName),
        (0, &[0, 1, 0], Field::ServerName),
        (16, &[], Field::Alpn),
        (16, &[0, 0], Field::Alpn),
        (16, &[0, 1, 0], Field::Alpn),
        (16, &[0, 3, 3, b'h', b'2'], Field::Alpn),
        (16, &[0, 3, 2, b'h', b'2', 0], Field::Alpn),
        (16, &[0, 4, 2, b'h', b'2'], Field::Alpn),
    ];
    for (kind, content, field) in wrong {
        let wire = Draft::new().extension(kind, content).wire(9999);
        assert_eq!(
            parse(&wire),
            Outcome::Malformed(Malformed::Length(field)),
            "{content:?}"
        );
    }
}

#[test]
fn a_post_quantum_hello_of_several_records_is_read() {
    let share = vec![0xab; 4096];
    let draft = Draft::new()
        .extension(51, share)
        .sni("pq.example")
        .alpn(&["h2"]);
    for fragment in [1, 5, 100, 1400, 4000] {
        let wire = draft.wire(fragment);
        let hello = hello(&wire);
        assert_eq!(hello.sni(), Some("pq.example"));
        assert_eq!(alpn_of(&hello), ["h2"]);
        assert_eq!(hello.len(), wire.len());
    }
}

#[test]
fn what_follows_the_hello_is_left_alone() {
    let mut wire = Draft::new().sni("a.example").wire(50);
    let len = wire.len();
    wire.extend(b"\x14\x03\x03\x00\x01\x01early data");
    assert_eq!(hello(&wire).len(), len);
}

#[test]
fn the_largest_hello_ends_at_the_bound() {
    let fits = Draft::new()
        .extension(21, vec![0; 64_000])
        .sni("a.example")
        .wire(16_384);
    assert_eq!(hello(&fits).sni(), Some("a.example"));
    let mut too_long = records(&[1, 1, 0, 0], 4);
    assert_eq!(parse(&too_long), Outcome::Malformed(Malformed::TooLong));
    // Small enough by its own account, too large with the headers around it.
    too_long = Draft::new()
        .extension(21, vec![0; 60_000])
        .sni("a.example")
        .wire(20);
    assert_eq!(parse(&too_long), Outcome::Malformed(Malformed::TooLong));
    assert_eq!(
        parse(&too_long[..MAX_INPUT]),
        Outcome::Malformed(Malformed::TooLong)
    );
    assert_eq!(parse(&too_long[..MAX_INPUT - 1]), Outcome::NeedMore);
}

#[test]
fn records_that_no_client_sends_are_refused() {
    let cases: [(&[u8], Malformed); 6] = [
        (&[22, 2], Malformed::RecordVersion),
        (&[22, 3, 1, 0, 0], Malformed::EmptyRecord),
        (&[22, 3, 1, 0x40, 1], Malformed::RecordTooLong),
        (&[22, 3, 1, 0, 4, 2], Malformed::NotClientHello),
        (&[22, 3, 1, 0, 1, 1, 21], Malformed::Interrupted),
        (&[22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 0], Malformed::EmptyRecord),
    ];
    for (wire, reason) in cases {
        assert_eq!(parse(wire), Outcome::Malformed(reason), "{wire:?}");
        assert_eq!(
            parse(&wire[..wire.len() - 1]),
            Outcome::NeedMore,
            "{wire:?}"
        );
    }
}

#[test]
fn other_protocols_are_recognised() {
    let cases: [(&[u8], NotTls); 10] = [
        (b"GET / HTTP/1.1\r\n", NotTls::Http),
        (b"POST /api HTTP/1.1", NotTls::Http),
        (b"PRI * HTTP/2.0\r\n\r\nSM", NotTls::Http),
        (b"SSH-2.0-OpenSSH_9.2", NotTls::Ssh),
        (b"PROXY TCP4 1.2.3.4", NotTls::ProxyProtocol),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11", NotTls::ProxyProtocol),
        (&[0x80, 46, 1, 3, 1, 0, 0x15], NotTls::Sslv2),
        (&[0x80, 46, 4], NotTls::Unknown),
        (&[21, 3, 3, 0, 2, 1, 0], NotTls::Unknown),
        (b"GETTY", NotTls::Unknown),
    ];
    for (bytes, kind) in cases {
        assert_eq!(parse(bytes), Outcome::NotTls(kind), "{bytes:?}");
    }
    for prefix in [
        &b""[..],
        b"P",
        b"PR",
        b"SS",
        b"\r\n\r",
        &[0x80],
        &[0x80, 1],
        &[22],
        &[22, 3],
    ] {
        assert_eq!(parse(prefix), Outcome::NeedMore, "{prefix:?}");
    }
}

/// Whatever the cuts, the first answer is the answer to the whole.
fn check_prefixes(wire: &[u8]) {
    let whole = parse(wire);
    let mut parser = Parser::default();
    let mut decided = false;
    for end in 0..=wire.len() {
        let stateless = parse(&wire[..end]);
        if !decided {
            let incremental = parser.advance(&wire[..end]);
            assert_eq!(incremental, stateless, "at {end}");
            decided = incremental != Outcome::NeedMore;
        }
        if stateless == Outcome::NeedMore {
            assert!(!decided, "an answer was taken back at {end}");
        } else {
            assert_eq!(stateless, whole, "at {end}");
        }
    }
}

fn drafts() -> impl Strategy<Value = Vec<u8>> {
    let name = proptest::option::of("[a-zA-Z0-9._-]{0,40}");
    let protocols = proptest::collection::vec("[ -~]{1,12}", 0..4);
    let other = proptest::collection::vec(
        (1u16.., proptest::collection::vec(any::<u8>(), 0..60)),
        0..3,
    );
    (name, protocols, other).prop_map(|(name, protocols, other)| {
        let mut draft = Draft::new();
        for (kind, content) in other {
            draft = draft.extension(kind, content);
        }
        if let Some(name) = name {
            draft = draft.sni(&name);
        }
        if !protocols.is_empty() {
            draft = draft.alpn(&protocols.iter().map(String::as_str).collect::<Vec<_>>());
        }
        draft.message()
    })
}

proptest! {
    #[test]
    fn cuts_change_nothing(message in drafts(), fragment in 1usize..300) {
        check_prefixes(&records(&message, fragment));
        let one = records(&message, 16_384);
        let many = records(&message, fragment);
        match (parse(&one), parse(&many)) {
            (Outcome::Hello(one), Outcome::Hello(many)) => {
                prop_assert_eq!(one.sni(), many.sni());
                prop_assert!(one.alpn().eq(many.alpn()));
            }
            (one, many) => prop_assert_eq!(one, many),
        }
    }

    #[test]
    fn damage_never_panics_and_answers_alike_for_all_cuts(
        message in drafts(),
        fragment in 1usize..300,
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut wire = records(&message, fragment);
        for (place, value) in damage {
            *place.get_mut(&mut wire) = value;
        }
        check_prefixes(&wire);
    }

    #[test]
    fn noise_never_panics(wire in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_prefixes(&wire);
    }

    #[test]
    fn a_name_is_what_its_own_text_parses_to(raw in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(name) = Name::parse(&raw) {
            prop_assert_eq!(Name::parse(name.as_bytes()), Ok(name));
            prop_assert_eq!(name.as_str(), name.to_ascii_lowercase());
            prop_assert!(!name.ends_with('.'));
        }
    }
}
