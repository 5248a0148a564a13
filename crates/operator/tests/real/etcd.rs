//! The etcd driver against a real etcd.

use steward_operator::datastore::{
    Datastore, Error,
    claims::{Account, Owner},
    etcd::Etcd,
    upkeep::{self, Done, Thrift},
};

use crate::{harness::until, programs::EtcdServer};

/// A tenant whose user and schema are called like itself.
fn account(name: &str) -> Account {
    owned(name, name, name)
}

/// A tenant that asks for this user and this schema.
fn owned(tenant: &str, user: &str, schema: &str) -> Account {
    Account {
        user: user.into(),
        schema: schema.into(),
        owner: Owner {
            cluster: "cluster".into(),
            namespace: "tenants".into(),
            name: tenant.into(),
            uid: format!("uid-of-{tenant}"),
        },
        rival: None,
    }
}

async fn bootstrapped(server: &EtcdServer) -> Etcd {
    let mut etcd = Etcd::connect(&server.root()).await.unwrap();
    etcd.bootstrap().await.unwrap();
    etcd
}

#[tokio::test]
async fn bootstrap_turns_authentication_on_once_and_may_be_repeated() {
    let server = EtcdServer::start(&[]).await;
    let mut etcd = Etcd::connect(&server.root()).await.unwrap();
    assert!(!etcd.authenticated());
    assert!(!etcd.health().await.unwrap().authenticated);
    etcd.bootstrap().await.unwrap();
    etcd.bootstrap().await.unwrap();
    let again = Etcd::connect(&server.root()).await.unwrap();
    let health = again.health().await.unwrap();
    assert!(
        health.authenticated && !health.full && health.bytes > 0,
        "{health:?}"
    );
}

#[tokio::test]
async fn a_tenant_reads_and_writes_its_own_keys_and_nobody_else_s() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    for tenant in ["blue", "blueberry"] {
        etcd.claim(&account(tenant)).await.unwrap();
        assert!(etcd.ensure(&account(tenant)).await.unwrap(), "made");
        assert!(
            !etcd.ensure(&account(tenant)).await.unwrap(),
            "nothing left to do"
        );
        server
            .etcdctl(tenant, &["put", &format!("/{tenant}/registry/a"), "secret"])
            .unwrap();
    }
    assert!(
        server
            .etcdctl("blue", &["get", "/blue/", "--prefix"])
            .unwrap()
            .contains("secret")
    );
    for forbidden in [
        &["get", "/blueberry/registry/a"][..],
        &["get", "/blue", "--prefix"],
        &["get", "", "--from-key"],
        &["put", "/blueberry/registry/a", "mine"],
        &["user", "list"],
        &["role", "grant-permission", "blue", "readwrite", "/", "0"],
    ] {
        let said = server.etcdctl("blue", forbidden).unwrap_err();
        assert!(said.contains("permission denied"), "{forbidden:?}: {said}");
    }
}

#[tokio::test]
async fn rights_that_someone_changed_are_healed() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    for tenant in ["blue", "red"] {
        etcd.claim(&account(tenant)).await.unwrap();
        etcd.ensure(&account(tenant)).await.unwrap();
    }
    for tampering in [
        &[
            "role",
            "grant-permission",
            "blue",
            "readwrite",
            "/red/",
            "/red0",
        ][..],
        &["role", "revoke-permission", "blue", "/blue/", "/blue0"],
        &[
            "role",
            "grant-permission",
            "blue",
            "read",
            "/blue/",
            "/blue0",
        ],
        &["user", "grant-role", "blue", "red"],
        &["user", "revoke-role", "blue", "blue"],
        &["user", "delete", "blue"],
        &["role", "delete", "blue"],
    ] {
        server.etcdctl("root", tampering).unwrap();
        assert!(
            etcd.ensure(&account("blue")).await.unwrap(),
            "{tampering:?}"
        );
        assert!(
            !etcd.ensure(&account("blue")).await.unwrap(),
            "{tampering:?}"
        );
        server.etcdctl("blue", &["put", "/blue/x", "1"]).unwrap();
        server
            .etcdctl("blue", &["get", "/red/", "--prefix"])
            .unwrap_err();
    }
}

#[tokio::test]
async fn removal_takes_data_user_and_role_and_spares_the_neighbours() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    for tenant in ["blue", "blueberry"] {
        etcd.claim(&account(tenant)).await.unwrap();
        etcd.ensure(&account(tenant)).await.unwrap();
    }
    // More than one chunk.
    for number in 0..1200 {
        server_put(&server, &format!("/blue/registry/{number:04}")).await;
    }
    server
        .etcdctl("blueberry", &["put", "/blueberry/x", "1"])
        .unwrap();
    for _ in 0..2 {
        assert_eq!(etcd.remove(&account("blue")).await.unwrap(), None);
    }
    let left = server
        .etcdctl("root", &["get", "/", "--prefix", "--keys-only"])
        .unwrap();
    assert_eq!(
        left.split_whitespace().collect::<Vec<_>>(),
        ["/blueberry/x"]
    );
    assert_eq!(
        server.etcdctl("root", &["user", "list"]).unwrap(),
        "blueberry\nroot\n"
    );
    assert_eq!(
        server.etcdctl("root", &["role", "list"]).unwrap(),
        "blueberry\nroot\n"
    );
}

#[tokio::test]
async fn a_neighbour_s_user_and_schema_can_be_neither_had_nor_removed() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    etcd.claim(&account("victim")).await.unwrap();
    etcd.ensure(&account("victim")).await.unwrap();
    server
        .etcdctl("victim", &["put", "/victim/x", "secret"])
        .unwrap();
    for thief in [
        owned("thief", "victim", "thief"),
        owned("thief", "thief", "victim"),
        owned("thief", "victim", "victim"),
        owned("thief", "root", "thief"),
        owned("thief", "thief", "root"),
        owned("thief", "ROOT", "thief"),
    ] {
        let error = etcd.claim(&thief).await.unwrap_err();
        assert!(matches!(error, Error::Taken { .. }), "{thief:?}: {error}");
        let error = etcd.ensure(&thief).await.unwrap_err();
        assert!(matches!(error, Error::Taken { .. }), "{thief:?}: {error}");
        etcd.remove(&thief).await.unwrap();
    }
    let kept = server.etcdctl("victim", &["get", "/victim/x"]).unwrap();
    assert!(kept.contains("secret"), "{kept}");
    assert_eq!(
        server.etcdctl("root", &["user", "list"]).unwrap(),
        "root\nvictim\n"
    );
    assert_eq!(
        server.etcdctl("root", &["role", "list"]).unwrap(),
        "root\nvictim\n"
    );
    // A tenant's own role does not reach the records.
    for words in [
        &["get", "steward", "--prefix"][..],
        &["del", "steward.butlerlabs.dev/claims/users/victim"],
    ] {
        let said = server.etcdctl("victim", words).unwrap_err();
        assert!(said.contains("permission denied"), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn of_many_that_claim_a_name_at_once_one_has_it() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    let accounts: Vec<Account> = (0..8)
        .map(|number| owned(&format!("t{number}"), "same", "same"))
        .collect();
    let claimed =
        futures::future::join_all(accounts.iter().map(|account| etcd.claim(account))).await;
    assert_eq!(claimed.iter().filter(|one| one.is_ok()).count(), 1);
    // The names are free again when their tenant is gone.
    let winner = claimed.iter().position(Result::is_ok).unwrap();
    etcd.ensure(&accounts[winner]).await.unwrap();
    etcd.remove(&accounts[winner]).await.unwrap();
    etcd.claim(&accounts[(winner + 1) % accounts.len()])
        .await
        .unwrap();
}

#[tokio::test]
async fn names_from_before_there_were_records_are_kept_by_who_has_the_better_right() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    server.etcdctl("root", &["put", "/old/x", "1"]).unwrap();
    server.etcdctl("root", &["role", "add", "old"]).unwrap();
    let mut thief = owned("thief", "old", "old");
    thief.rival = Some("tenants/victim".into());
    let error = etcd.claim(&thief).await.unwrap_err();
    assert!(error.to_string().contains("tenants/victim"), "{error}");
    let left = etcd.remove(&thief).await.unwrap();
    assert!(left.is_some_and(|left| left.contains("/old/")));
    let kept = server.etcdctl("root", &["get", "/old/x"]).unwrap();
    assert!(kept.contains('1'), "{kept}");
    etcd.claim(&owned("victim", "old", "old")).await.unwrap();
}

#[tokio::test]
async fn what_was_never_a_tenant_s_is_not_given_away_nor_removed() {
    let server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    let root = |words: &[&str]| server.etcdctl("root", words).unwrap();
    root(&["put", "/registry/secrets/a", "secret"]);
    root(&["role", "add", "app"]);
    root(&["user", "add", "app", "--no-password"]);
    root(&["user", "grant-role", "app", "app"]);
    for thief in [
        owned("thief", "thief", "registry"),
        owned("thief", "app", "mine"),
    ] {
        let error = etcd.claim(&thief).await.unwrap_err();
        assert!(error.to_string().contains("no tenant"), "{error}");
        assert!(etcd.remove(&thief).await.unwrap().is_some());
    }
    assert!(root(&["get", "/registry/", "--prefix"]).contains("secret"));
    assert!(root(&["user", "list"]).contains("app"));
}

async fn server_put(server: &EtcdServer, key: &str) {
    use etcd_client::{Certificate, Client, ConnectOptions, Identity, TlsOptions};
    use tokio::sync::OnceCell;
    static CLIENT: OnceCell<Client> = OnceCell::const_new();
    let client = CLIENT.get_or_init(async || {
        let access = server.root();
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(access.ca))
            .identity(Identity::from_pem(access.certificate, access.key));
        Client::connect(&access.endpoints, Some(ConnectOptions::new().with_tls(tls)))
            .await
            .unwrap()
    });
    client
        .await
        .kv_client()
        .put(key, "value", None)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_full_etcd_says_so() {
    let server = EtcdServer::start(&["--quota-backend-bytes=1048576"]).await;
    let etcd = bootstrapped(&server).await;
    let value = "x".repeat(100_000);
    let full = (0..40).any(|number| {
        server
            .etcdctl("root", &["put", &format!("/k{number}"), &value])
            .is_err()
    });
    assert!(full, "the quota was not reached");
    assert!(etcd.health().await.unwrap().full);
}

#[tokio::test]
async fn a_stopped_etcd_is_unreachable_and_usable_again_when_it_is_back() {
    let mut server = EtcdServer::start(&[]).await;
    let etcd = bootstrapped(&server).await;
    etcd.claim(&account("blue")).await.unwrap();
    server.stop();
    assert!(
        matches!(etcd.health().await, Err(Error::Unreachable { .. })),
        "{:?}",
        etcd.health().await
    );
    assert!(matches!(
        etcd.ensure(&account("blue")).await,
        Err(Error::Unreachable { .. })
    ));
    server.run().await;
    let back = steward_lab::poll(std::time::Duration::from_secs(20), async || {
        etcd.ensure(&account("blue")).await
    });
    assert!(back.await.unwrap());
}

#[tokio::test]
async fn credentials_of_nobody_are_refused_with_advice() {
    let server = EtcdServer::start(&[]).await;
    bootstrapped(&server).await;
    let stranger = Etcd::connect(&server.access("stranger")).await.unwrap();
    let error = stranger.ensure(&account("blue")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("CN root"), "{error}");
}

#[tokio::test]
async fn certificates_that_can_not_be_read_are_a_configuration_error() {
    let server = EtcdServer::start(&[]).await;
    let mut access = server.root();
    access.key = "nonsense".into();
    let error = Etcd::connect(&access).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Configuration { .. }), "{error:?}");
}

#[tokio::test]
async fn a_full_etcd_is_defragmented_and_takes_writes_again() {
    let server = EtcdServer::start(&["--quota-backend-bytes=8388608"]).await;
    let etcd = bootstrapped(&server).await;
    let value = "x".repeat(100_000);
    let put = |number: usize| server.etcdctl("root", &["put", &format!("/k{number}"), &value]);
    assert!(
        (0..200).any(|number| put(number).is_err()),
        "the quota was not reached"
    );
    let root = |words: &[&str]| server.etcdctl("root", words).unwrap();
    root(&["del", "/k", "--prefix"]);
    let status = root(&["endpoint", "status", "-w", "fields"]);
    let revision = status
        .lines()
        .find_map(|line| line.strip_prefix("\"Revision\" : "));
    root(&["compact", revision.unwrap(), "--physical"]);

    let step = async || {
        let health = etcd.health().await.unwrap();
        upkeep::step(&server.root(), &health, Thrift::Desperate)
            .await
            .unwrap()
    };
    // How much is in use is known with etcd's next commit, a moment after the compaction.
    let done = until("something to be done", async || {
        step().await.ok_or("nothing was done")
    })
    .await;
    let Done::Defragmented { before, bytes } = done else {
        panic!("{done:?}");
    };
    assert!(bytes * 2 < before.bytes, "{before:?}, now {bytes}");
    assert_eq!(step().await, Some(Done::AlarmDisarmed));
    assert!(!etcd.health().await.unwrap().full);
    put(1).unwrap();
    assert_eq!(step().await, None);
}
