//! etcd, shared by many tenants: one user, one role and one prefix each.
//!
//! Users have no password: etcd takes the CN of the client certificate as the user, so a tenant's
//! credentials are its certificate and nothing else. The role is called like the schema and allows
//! exactly `/<schema>/…`. Refuses: anything outside that prefix, and reading tenants' values.

use std::time::{Duration, Instant};

use etcd_client::{
    AlarmAction, AlarmType, Certificate, Client, Compare, CompareOp, ConnectOptions, DeleteOptions,
    GetOptions, Identity, Permission, PermissionType, RoleRevokePermissionOptions, TlsOptions, Txn,
    TxnOp, TxnOpResponse, UserAddOptions,
};

use super::{
    Answer, Datastore, Error, Health,
    claims::{self, Account, Claim},
};

/// Long enough for a slow disk, short enough that a broken store holds nobody up.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Keys removed at once when a tenant's data goes: small transactions do not stall the neighbours.
const CHUNK: i64 = 500;

/// The user and role that etcd itself wants for administration.
const ROOT: &str = "root";

/// How to reach an etcd as its administrator. PEM throughout.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// `host:port`, without scheme.
    pub endpoints: Vec<String>,
    /// Certificate of the authority that signed the servers.
    pub ca: String,
    /// Certificate with CN `root`.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Never prints the key.
impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

/// A connection to one etcd cluster.
pub struct Etcd {
    client: Client,
    endpoints: String,
    authenticated: bool,
}

impl Etcd {
    /// Connects, and asks whether authentication is on.
    ///
    /// # Errors
    /// When certificates can't be used or nothing answers.
    pub async fn connect(access: &Access) -> Result<Self, Error> {
        let names = access.endpoints.join(",");
        let options = options(access);
        let client = Client::connect(&access.endpoints, Some(options.clone()))
            .await
            .map_err(|error| Error::Configuration {
                reason: format!("{names}: {}", text(&error)),
            })?;
        let mut etcd = Self {
            client,
            endpoints: names,
            authenticated: false,
        };
        etcd.probe(access, options).await?;
        Ok(etcd)
    }

    /// A login that can't succeed tells whether authentication is on: etcd has no other way to ask that
    /// all its versions know.
    async fn probe(&mut self, access: &Access, options: ConnectOptions) -> Result<(), Error> {
        let login = options.with_user("steward-probe", "steward-probe");
        let said = match Client::connect(&access.endpoints, Some(login)).await {
            Ok(_) => String::new(),
            Err(error) if unreachable(&error) => return Err(self.explain("be reached", &error)),
            Err(error) => text(&error),
        };
        self.authenticated = !said.contains("authentication is not enabled");
        Ok(())
    }

    /// Turns authentication on for an etcd of our own: the `root` user and role first, since nobody could
    /// administer it afterwards without them.
    ///
    /// # Errors
    /// When etcd refuses or does not answer.
    pub async fn bootstrap(&mut self) -> Result<(), Error> {
        let mut auth = self.client.auth_client();
        allow(auth.role_add(ROOT).await, "already exists")
            .map_err(|e| self.explain("add role root", &e))?;
        let options = UserAddOptions::new().with_no_pwd();
        allow(
            auth.user_add(ROOT, "", Some(options)).await,
            "already exists",
        )
        .map_err(|e| self.explain("add user root", &e))?;
        auth.user_grant_role(ROOT, ROOT)
            .await
            .map_err(|e| self.explain("grant role root", &e))?;
        auth.auth_enable()
            .await
            .map_err(|e| self.explain("enable authentication", &e))?;
        self.authenticated = true;
        Ok(())
    }

    /// Whether authentication is on.
    pub const fn authenticated(&self) -> bool {
        self.authenticated
    }

    async fn ensure_role(&self, schema: &str) -> Result<bool, Error> {
        let mut auth = self.client.auth_client();
        let wanted = Permission::read_write(prefix(schema)).with_prefix();
        let found = match allow(auth.role_get(schema).await, "not found") {
            Ok(found) => found,
            Err(error) => return Err(self.explain("read a role", &error)),
        };
        let Some(found) = found else {
            // Another try of ours may have been quicker.
            allow(auth.role_add(schema).await, "already exists")
                .map_err(|e| self.explain("add a role", &e))?;
            auth.role_grant_permission(schema, wanted)
                .await
                .map_err(|e| self.explain("grant a permission", &e))?;
            return Ok(true);
        };
        let mut changed = false;
        let mut granted = false;
        for permission in found.permissions() {
            if same(&permission, schema) {
                granted = true;
                continue;
            }
            let options = RoleRevokePermissionOptions::new().with_range_end(permission.range_end());
            auth.role_revoke_permission(schema, permission.key(), Some(options))
                .await
                .map_err(|e| self.explain("revoke a permission", &e))?;
            changed = true;
        }
        if !granted {
            auth.role_grant_permission(schema, wanted)
                .await
                .map_err(|e| self.explain("grant a permission", &e))?;
        }
        Ok(changed || !granted)
    }

    async fn ensure_user(&self, user: &str, role: &str) -> Result<bool, Error> {
        let mut auth = self.client.auth_client();
        let found = allow(auth.user_get(user).await, "not found")
            .map_err(|e| self.explain("read a user", &e))?;
        let Some(found) = found else {
            let options = UserAddOptions::new().with_no_pwd();
            allow(
                auth.user_add(user, "", Some(options)).await,
                "already exists",
            )
            .map_err(|e| self.explain("add a user", &e))?;
            auth.user_grant_role(user, role)
                .await
                .map_err(|e| self.explain("grant a role", &e))?;
            return Ok(true);
        };
        let mut changed = false;
        for other in found.roles().iter().filter(|name| *name != role) {
            auth.user_revoke_role(user, other.as_str())
                .await
                .map_err(|e| self.explain("revoke a role", &e))?;
            changed = true;
        }
        if !found.roles().iter().any(|name| name == role) {
            auth.user_grant_role(user, role)
                .await
                .map_err(|e| self.explain("grant a role", &e))?;
            changed = true;
        }
        Ok(changed)
    }

    /// What is recorded of an account.
    async fn claims(&self, account: &Account) -> Result<Claims, Error> {
        let mut kv = self.client.kv_client();
        let keys = [
            claims::user_key(&account.user),
            claims::schema_key(&account.schema),
        ];
        let read = Txn::new().and_then(keys.map(|key| TxnOp::get(key, None)));
        let answer = kv
            .txn(read)
            .await
            .map_err(|e| self.explain("read who owns a user", &e))?;
        let mut found = answer.op_responses().into_iter().map(|one| match one {
            TxnOpResponse::Get(got) => {
                let record = got.kvs().first().map(|pair| pair.value().to_vec());
                claims::read(record.as_deref(), &account.owner)
            }
            // Only reads were asked for.
            _ => Claim::Theirs("an answer that can't be read".into()),
        });
        let mut next = || {
            let missing = || Claim::Theirs("an answer that is cut off".into());
            found.next().unwrap_or_else(missing)
        };
        Ok(Claims {
            user: next(),
            schema: next(),
        })
    }

    /// What of an account is in this etcd and was never a tenant's: a user with other roles than a tenant has, keys
    /// without the role that a tenant has for them. A tenant's own uid is nobody else's.
    async fn strangers(&self, account: &Account) -> Result<Strangers, Error> {
        let mut auth = self.client.auth_client();
        let schema = account.schema.as_str();
        let user = allow(auth.user_get(account.user.as_str()).await, "not found")
            .map_err(|e| self.explain("read a user", &e))?;
        let role = allow(auth.role_get(schema).await, "not found")
            .map_err(|e| self.explain("read a role", &e))?;
        let one = GetOptions::new()
            .with_prefix()
            .with_keys_only()
            .with_limit(1);
        let keys = self
            .client
            .kv_client()
            .get(prefix(schema), Some(one))
            .await
            .map_err(|e| self.explain("list keys", &e))?;
        let uid = &account.owner.uid;
        Ok(Strangers {
            user: account.user != *uid
                && user.is_some_and(|user| user.roles().iter().any(|role| role != schema)),
            schema: account.schema != *uid && role.is_none() && !keys.kvs().is_empty(),
        })
    }

    /// Records an account as the tenant's, if nobody else was first.
    async fn record(&self, account: &Account) -> Result<(), Error> {
        let found = self.claims(account).await?;
        if found.all_ours(account).is_ok() {
            return Ok(());
        }
        found.none_theirs(account)?;
        if let Some(rival) = account.rival.as_ref().filter(|_| found.any_free()) {
            return Err(taken_schema(account, &format!("the tenant {rival}")));
        }
        let strangers = self.strangers(account).await?;
        if found.user == Claim::Free && strangers.user {
            return Err(taken_user(account, NO_TENANT));
        }
        if found.schema == Claim::Free && strangers.schema {
            return Err(taken_schema(account, NO_TENANT));
        }
        let mut absent = Vec::new();
        let mut puts = Vec::new();
        for (claim, key) in [
            (&found.user, claims::user_key(&account.user)),
            (&found.schema, claims::schema_key(&account.schema)),
        ] {
            if *claim == Claim::Free {
                absent.push(Compare::version(key.clone(), CompareOp::Equal, 0));
                puts.push(TxnOp::put(key, account.owner.record(), None));
            }
        }
        let written = self
            .client
            .kv_client()
            .txn(Txn::new().when(absent).and_then(puts))
            .await
            .map_err(|e| self.explain("record who owns a user", &e))?;
        if written.succeeded() {
            return Ok(());
        }
        // Somebody was quicker: their record decides.
        self.claims(account).await?.all_ours(account)
    }

    /// Removes what is the tenant's of an account. What was made before there were records is the tenant's if
    /// nobody has a better right to it.
    async fn clean(&self, account: &Account) -> Result<Option<String>, Error> {
        let found = self.claims(account).await?;
        let strangers = self.strangers(account).await?;
        let ours = |claim: &Claim, stranger: bool| match claim {
            Claim::Ours => true,
            Claim::Free => account.rival.is_none() && !stranger,
            Claim::Theirs(_) => false,
        };
        let mut left = Vec::new();
        let mut auth = self.client.auth_client();
        // The user goes first, so that nothing can write while the data goes.
        if !reserved(&account.user) && ours(&found.user, strangers.user) {
            allow(auth.user_delete(account.user.as_str()).await, "not found")
                .map_err(|e| self.explain("delete a user", &e))?;
        } else {
            left.push(format!("the user {}", account.user));
        }
        if !reserved(&account.schema) && ours(&found.schema, strangers.schema) {
            self.remove_keys(&account.schema).await?;
            allow(auth.role_delete(account.schema.as_str()).await, "not found")
                .map_err(|e| self.explain("delete a role", &e))?;
        } else {
            left.push(format!("the keys under /{}/", account.schema));
        }
        self.forget(account, &found).await?;
        Ok((!left.is_empty()).then(|| left.join(" and ")))
    }

    /// Removes the records that are the tenant's. They go last, so that a removal that was cut off is repeated.
    async fn forget(&self, account: &Account, found: &Claims) -> Result<(), Error> {
        let mut kv = self.client.kv_client();
        for (claim, key) in [
            (&found.user, claims::user_key(&account.user)),
            (&found.schema, claims::schema_key(&account.schema)),
        ] {
            if *claim == Claim::Ours {
                kv.delete(key, None)
                    .await
                    .map_err(|e| self.explain("remove the record of a user", &e))?;
            }
        }
        Ok(())
    }

    async fn remove_keys(&self, schema: &str) -> Result<(), Error> {
        let mut kv = self.client.kv_client();
        loop {
            let options = GetOptions::new()
                .with_prefix()
                .with_keys_only()
                .with_limit(CHUNK);
            let page = kv
                .get(prefix(schema), Some(options))
                .await
                .map_err(|e| self.explain("list keys", &e))?;
            let (Some(first), Some(last)) = (page.kvs().first(), page.kvs().last()) else {
                return Ok(());
            };
            let mut end = last.key().to_vec();
            end.push(0);
            kv.delete(first.key(), Some(DeleteOptions::new().with_range(end)))
                .await
                .map_err(|e| self.explain("delete keys", &e))?;
        }
    }

    async fn check(&self) -> Result<Health, Error> {
        let started = Instant::now();
        let mut maintenance = self.client.maintenance_client();
        let status = maintenance
            .status()
            .await
            .map_err(|e| self.explain("tell its status", &e))?;
        let latency = started.elapsed();
        if self.authenticated {
            // Whoever shows a certificate may ask how an etcd is; only an administrator may ask this.
            self.client
                .auth_client()
                .role_get(ROOT)
                .await
                .map_err(|e| self.explain("show the role root", &e))?;
        }
        let alarms = maintenance
            .alarm(AlarmAction::Get, AlarmType::None, None)
            .await
            .map_err(|e| self.explain("tell its alarms", &e))?;
        Ok(Health {
            version: status.version().to_owned(),
            bytes: u64::try_from(status.db_size()).unwrap_or(0),
            in_use: u64::try_from(status.raft_used_db_size()).unwrap_or(0),
            quota: u64::try_from(status.db_size_quota())
                .ok()
                .filter(|quota| *quota > 0),
            full: alarms
                .alarms()
                .iter()
                .any(|alarm| alarm.alarm() == AlarmType::Nospace),
            authenticated: self.authenticated,
            latency,
        })
    }

    fn explain(&self, what: &'static str, error: &etcd_client::Error) -> Error {
        explain(&self.endpoints, what, error)
    }
}

impl Datastore for Etcd {
    fn claim<'a>(&'a self, account: &'a Account) -> Answer<'a, ()> {
        Box::pin(self.record(account))
    }

    fn ensure<'a>(&'a self, account: &'a Account) -> Answer<'a, bool> {
        Box::pin(async move {
            let claims = self.claims(account).await?;
            claims.all_ours(account)?;
            // Role before user: a user never has more rights than it should, at any moment.
            let role = self.ensure_role(&account.schema).await?;
            let user = self.ensure_user(&account.user, &account.schema).await?;
            Ok(role || user)
        })
    }

    fn remove<'a>(&'a self, account: &'a Account) -> Answer<'a, Option<String>> {
        Box::pin(self.clean(account))
    }

    fn health(&self) -> Answer<'_, Health> {
        Box::pin(self.check())
    }
}

/// Who has what was there before Steward.
const NO_TENANT: &str = "somebody who is no tenant";

/// What was never a tenant's.
struct Strangers {
    user: bool,
    schema: bool,
}

/// What is recorded of a user and a schema.
struct Claims {
    user: Claim,
    schema: Claim,
}

impl Claims {
    fn any_free(&self) -> bool {
        self.user == Claim::Free || self.schema == Claim::Free
    }

    fn none_theirs(&self, account: &Account) -> Result<(), Error> {
        if reserved(&account.user) {
            return Err(taken_user(account, "the datastore itself"));
        }
        if reserved(&account.schema) {
            return Err(taken_schema(account, "the datastore itself"));
        }
        match (&self.user, &self.schema) {
            (Claim::Theirs(owner), _) => Err(taken_user(account, owner)),
            (_, Claim::Theirs(owner)) => Err(taken_schema(account, owner)),
            _ => Ok(()),
        }
    }

    fn all_ours(&self, account: &Account) -> Result<(), Error> {
        self.none_theirs(account)?;
        if self.any_free() {
            return Err(taken_schema(account, "nobody yet"));
        }
        Ok(())
    }
}

/// Names that mean something to etcd: its role and user `root` may do anything.
fn reserved(name: &str) -> bool {
    steward_api::reserved::is_datastore_name(name)
}

fn taken_user(account: &Account, owner: &str) -> Error {
    Error::Taken {
        what: "user",
        name: account.user.clone(),
        field: "dataStoreUsername",
        owner: owner.to_owned(),
    }
}

fn taken_schema(account: &Account, owner: &str) -> Error {
    Error::Taken {
        what: "schema",
        name: account.schema.clone(),
        field: "dataStoreSchema",
        owner: owner.to_owned(),
    }
}

/// A failure in words.
pub(super) fn explain(endpoints: &str, what: &'static str, error: &etcd_client::Error) -> Error {
    let endpoints = endpoints.to_owned();
    let reason = text(error);
    if reason.contains("database space exceeded") {
        Error::Full { endpoints }
    } else if unreachable(error) {
        Error::Unreachable { endpoints, reason }
    } else {
        Error::Refused {
            endpoints,
            what,
            reason,
        }
    }
}

pub(super) fn options(access: &Access) -> ConnectOptions {
    let tls = TlsOptions::new()
        .ca_certificate(Certificate::from_pem(&access.ca))
        .identity(Identity::from_pem(&access.certificate, &access.key));
    ConnectOptions::new()
        .with_tls(tls)
        .with_timeout(TIMEOUT)
        .with_connect_timeout(TIMEOUT)
        .with_keep_alive(Duration::from_secs(30), TIMEOUT)
        .with_require_leader(true)
}

/// The keys a tenant may touch. The slash at the end keeps `/a` out of `/ab`.
fn prefix(schema: &str) -> String {
    format!("/{schema}/")
}

fn same(permission: &Permission, schema: &str) -> bool {
    let key = prefix(schema).into_bytes();
    // The end of a prefix is the prefix with its last byte (here '/') one higher.
    let mut end = key.clone();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    permission.get_type() == PermissionType::Readwrite as i32
        && permission.key() == key
        && (permission.is_prefix() || permission.range_end() == end)
}

/// Takes an answer etcd gives as an error, and which is fine for us, as `None`. etcd has no codes for
/// these, only texts, unchanged since 3.0.
fn allow<T>(
    answer: Result<T, etcd_client::Error>,
    fine: &str,
) -> Result<Option<T>, etcd_client::Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if text(&error).contains(fine) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The message without gRPC's metadata, which may be long.
fn text(error: &etcd_client::Error) -> String {
    match error {
        etcd_client::Error::GRpcStatus(status) => {
            let mut text = status.message().to_owned();
            let mut source = std::error::Error::source(status);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            text
        }
        other => other.to_string(),
    }
}

fn unreachable(error: &etcd_client::Error) -> bool {
    /// gRPC's numbers: cancelled, unknown (broken transport), deadline exceeded, unavailable.
    const CODES: [i32; 4] = [1, 2, 4, 14];
    match error {
        etcd_client::Error::GRpcStatus(status) => CODES.contains(&(status.code() as i32)),
        etcd_client::Error::TransportError(_) | etcd_client::Error::IoError(_) => true,
        _ => false,
    }
}
