//! Certificates are judged by others than their maker: rustls and `OpenSSL`.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail loudly")]

use std::{io::Write as _, process::Command, sync::Arc, time::Duration};

use jiff::Timestamp;
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier as _},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _},
};
use steward_pki::{
    Authority, BootstrapToken, Drift, KeyKind, KeySource as _, Kubeconfig, Pair, Reading, Request,
    San, ServiceAccountKeys, SystemKeys, Usage, Validity, Wanted, ca_hash, drift, inspect,
    renew_at, service_account_drift,
};

const DAY: Duration = Duration::from_hours(24);

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn authority(kind: KeyKind) -> Authority {
    Authority::new(
        &SystemKeys,
        kind,
        "kubernetes",
        Validity::starting(now(), 3650 * DAY),
    )
    .unwrap()
}

fn server() -> Request {
    Request {
        common_name: "kube-apiserver".into(),
        organization: None,
        usage: Usage::Server,
        sans: vec![
            San::parse("t1.example.com"),
            San::parse("10.96.0.1"),
            San::parse("fd00::1"),
        ],
    }
}

fn issue(authority: &Authority, request: &Request) -> Pair {
    let validity = Validity::starting(now(), 365 * DAY);
    authority
        .issue(&SystemKeys, KeyKind::EcdsaP256, request, validity)
        .unwrap()
}

fn drifts(found: &Pair, request: &Request, authority: &Authority, now: Timestamp) -> Vec<Drift> {
    let wanted = Wanted {
        request,
        authority: &authority.pair().certificate,
        now,
        renew_before: Some(30 * DAY),
    };
    drift(found, &wanted)
}

#[test]
fn rustls_accepts_a_server_certificate_by_name_and_by_address() {
    for kind in [KeyKind::EcdsaP256, KeyKind::Rsa2048] {
        let authority = authority(kind);
        let pair = issue(&authority, &server());
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(der(&authority.pair().certificate)).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .unwrap();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(
            u64::try_from(now().as_second()).unwrap(),
        ));
        for (name, accepted) in [
            ("t1.example.com", true),
            ("10.96.0.1", true),
            ("fd00::1", true),
            ("other", false),
        ] {
            let name = ServerName::try_from(name).unwrap();
            let result = verifier.verify_server_cert(&der(&pair.certificate), &[], &name, &[], at);
            assert_eq!(result.is_ok(), accepted, "{name:?}: {result:?}");
        }
    }
}

#[test]
fn openssl_accepts_the_chain() {
    let authority = authority(KeyKind::EcdsaP256);
    let client = Request {
        common_name: "kubernetes-admin".into(),
        organization: Some("kubeadm:cluster-admins".into()),
        usage: Usage::Client,
        sans: vec![],
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::File::create(&path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        path
    };
    let ca = write("ca.crt", &authority.pair().certificate);
    for (name, request, purpose) in [
        ("server", server(), "sslserver"),
        ("client", client, "sslclient"),
    ] {
        let leaf = write(name, &issue(&authority, &request).certificate);
        let output = Command::new("openssl")
            .args(["verify", "-x509_strict", "-purpose", purpose, "-attime"])
            .arg(now().as_second().to_string())
            .arg("-CAfile")
            .args([&ca, &leaf])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_fresh_certificate_has_no_drift() {
    let authority = authority(KeyKind::EcdsaP256);
    let pair = issue(&authority, &server());
    assert_eq!(drifts(&pair, &server(), &authority, now()), vec![]);
}

#[test]
fn a_new_name_an_old_name_and_another_subject_are_noticed() {
    let authority = authority(KeyKind::EcdsaP256);
    let pair = issue(&authority, &server());
    let mut wanted = server();
    wanted.sans[0] = San::parse("new.example.com");
    wanted.common_name = "else".into();
    let found = drifts(&pair, &wanted, &authority, now());
    let names = Drift::Names {
        missing: vec![San::parse("new.example.com")],
        extra: vec![San::parse("t1.example.com")],
    };
    assert_eq!(found, vec![names, Drift::Subject("kube-apiserver".into())]);
}

#[test]
fn another_authority_and_another_key_are_noticed() {
    let (first, second) = (authority(KeyKind::EcdsaP256), authority(KeyKind::EcdsaP256));
    let mut pair = issue(&first, &server());
    assert_eq!(
        drifts(&pair, &server(), &second, now()),
        vec![Drift::OtherAuthority]
    );
    pair.key = SystemKeys
        .key_pair(KeyKind::EcdsaP256)
        .unwrap()
        .serialize_pem();
    assert_eq!(
        drifts(&pair, &server(), &first, now()),
        vec![Drift::KeyMismatch]
    );
    pair.certificate = "rubbish".into();
    assert!(matches!(
        drifts(&pair, &server(), &first, now())[..],
        [Drift::Unreadable(_)]
    ));
}

#[test]
fn a_certificate_is_due_before_it_ends_and_a_short_one_after_two_thirds() {
    let authority = authority(KeyKind::EcdsaP256);
    let pair = issue(&authority, &server());
    let later = now() + 340 * DAY;
    assert!(matches!(
        drifts(&pair, &server(), &authority, later)[..],
        [Drift::Expiring(_)]
    ));

    let validity = Validity::starting(now(), Duration::from_mins(10));
    let pair = authority
        .issue(&SystemKeys, KeyKind::EcdsaP256, &server(), validity)
        .unwrap();
    let due = renew_at(&inspect(&pair.certificate).unwrap(), None);
    assert_eq!(
        due,
        now() + Duration::from_mins(5),
        "a third of 15 minutes before its end"
    );
    let facts = inspect(&pair.certificate).unwrap();
    assert_eq!(
        renew_at(&facts, Some(Duration::from_hours(1))),
        now() + Duration::from_secs(150),
        "half of 15 minutes before its end, however early it is asked for"
    );
}

#[test]
fn a_certificate_never_outlives_its_authority() {
    let authority = Authority::new(
        &SystemKeys,
        KeyKind::EcdsaP256,
        "ca",
        Validity::starting(now(), DAY),
    )
    .unwrap();
    let facts = inspect(&issue(&authority, &server()).certificate).unwrap();
    assert_eq!(facts.not_after, now() + DAY);
}

#[test]
fn an_authority_made_by_openssl_is_accepted_and_a_leaf_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (bits, name) in [("rsa:2048", "rsa"), ("ec", "ec")] {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-newkey", bits, "-nodes", "-days", "10"]);
        if bits == "ec" {
            command.args(["-pkeyopt", "ec_paramgen_curve:P-384"]);
        }
        command
            .args(["-subj", "/O=Example Corp/CN=Example CA", "-keyout"])
            .arg(path("key"));
        assert!(
            command
                .arg("-out")
                .arg(path("crt"))
                .output()
                .unwrap()
                .status
                .success(),
            "{name}"
        );
        let read = |name| std::fs::read_to_string(path(name)).unwrap();
        let pair = Pair {
            certificate: read("crt"),
            key: read("key"),
        };
        let authority = Authority::from_pair(pair).unwrap();
        let request = server();
        let validity = Validity::starting(now(), DAY);
        let leaf = authority
            .issue(&SystemKeys, KeyKind::EcdsaP256, &request, validity)
            .unwrap();
        assert_eq!(drifts(&leaf, &request, &authority, now()), vec![], "{name}");
        let error = Authority::from_pair(leaf).unwrap_err().to_string();
        assert!(error.contains("not an authority"), "{error}");
    }
}

#[test]
fn the_ca_hash_is_the_one_openssl_computes() {
    let authority = authority(KeyKind::EcdsaP256);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, &authority.pair().certificate).unwrap();
    let script = "openssl x509 -pubkey -noout -in \"$0\" | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -hex | sed 's/^.* //'";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(&file)
        .output()
        .unwrap();
    let expected = format!(
        "sha256:{}",
        String::from_utf8(output.stdout).unwrap().trim()
    );
    assert_eq!(ca_hash(&authority.pair().certificate).unwrap(), expected);
}

#[test]
fn service_account_keys_belong_together() {
    let keys = ServiceAccountKeys::new(&SystemKeys, KeyKind::EcdsaP256).unwrap();
    assert_eq!(service_account_drift(&keys), vec![]);
    let other = ServiceAccountKeys::new(&SystemKeys, KeyKind::EcdsaP256).unwrap();
    let mixed = ServiceAccountKeys {
        public: other.public,
        ..keys
    };
    assert_eq!(service_account_drift(&mixed), vec![Drift::KeyMismatch]);
}

#[test]
fn a_kubeconfig_reads_back_as_it_was_written() {
    let authority = authority(KeyKind::EcdsaP256);
    let pair = issue(&authority, &server());
    let config = Kubeconfig {
        cluster: "t1",
        server: "https://t1.example.com:443",
        authority: &authority.pair().certificate,
        user: "admin",
        client: Some(&pair),
    };
    let text = config.render().unwrap();
    let reading = Reading::parse(&text).unwrap();
    assert_eq!(reading.server, config.server);
    assert_eq!(reading.authority, config.authority);
    assert_eq!(reading.client.as_ref(), Some(&pair));
    assert!(Reading::parse("a: b").is_none());
}

#[test]
fn a_token_has_the_form_kubeadm_demands_and_hides_its_secret() {
    let token = BootstrapToken::new(&SystemKeys).unwrap();
    assert_eq!((token.id.len(), token.secret.len()), (6, 16));
    let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    assert!(token.id.chars().chain(token.secret.chars()).all(ok));
    assert!(!format!("{token:?}").contains(&token.secret));
}
