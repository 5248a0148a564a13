//! Upkeep of an etcd that we run: giving freed space back, one member at a time.
//!
//! etcd compacts by itself, but its file never shrinks, and the quota counts the file. Owns: who is next and
//! doing it. Refuses: touching a cluster of which a member is missing (a member that defragments is missing,
//! too, for as long), and the leader while a follower needs it as much.

use std::{
    cmp::Reverse,
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, Client};

use super::{
    Error, Health,
    etcd::{Access, explain, options},
};

/// A large database on a slow disk takes minutes.
const PATIENCE: Duration = Duration::from_mins(10);

/// A fresh file has some air, too: less than this is never worth it, or it would be done again and again.
const LEAST: u64 = 1 << 20;

/// One member, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// `host:port`.
    pub endpoint: String,
    /// Whether the others follow it.
    pub leads: bool,
    /// Bytes of its file.
    pub bytes: u64,
    /// Bytes of them that hold something.
    pub in_use: u64,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// This member's file was written anew.
    Defragmented {
        /// As it was.
        before: Member,
        /// Bytes of its file afterwards.
        bytes: u64,
    },
    /// There is room again: writes are no longer refused.
    AlarmDisarmed,
}

/// When a file is worth being written anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thrift {
    /// It has at least this size, and half of it is air.
    Usual(u64),
    /// A tenth of it is air: the datastore is full, and takes what it can get.
    Desperate,
}

impl Thrift {
    /// Whether it is worth it.
    pub const fn worth_it(self, bytes: u64, in_use: u64) -> bool {
        let air = bytes.saturating_sub(in_use);
        let share = match self {
            Self::Usual(above) if bytes < above => return false,
            Self::Usual(_) => 2,
            Self::Desperate => 10,
        };
        air >= LEAST && air >= bytes.div_ceil(share)
    }
}

/// Who is next: followers before the leader, large files first.
pub fn next(members: &[Member], thrift: Thrift) -> Option<&Member> {
    members
        .iter()
        .filter(|member| thrift.worth_it(member.bytes, member.in_use))
        .min_by_key(|member| (member.leads, Reverse(member.bytes)))
}

/// Does the next thing that is worth doing, if any.
///
/// # Errors
/// When a member does not answer or refuses.
pub async fn step(access: &Access, health: &Health, thrift: Thrift) -> Result<Option<Done>, Error> {
    let members = members(access).await?;
    if let Some(member) = next(&members, thrift) {
        let bytes = defragment(access, &member.endpoint).await?;
        let before = member.clone();
        return Ok(Some(Done::Defragmented { before, bytes }));
    }
    if health.full && room(&members, health.quota) {
        disarm(access).await?;
        return Ok(Some(Done::AlarmDisarmed));
    }
    Ok(None)
}

/// Whether every member could take writes again for a while.
fn room(members: &[Member], quota: Option<u64>) -> bool {
    quota.is_some_and(|quota| members.iter().all(|member| member.bytes < quota / 10 * 9))
}

/// Every member, asked by itself.
///
/// # Errors
/// When one of them does not answer.
pub async fn members(access: &Access) -> Result<Vec<Member>, Error> {
    let mut all = Vec::new();
    for endpoint in &access.endpoints {
        let status = dial(access, endpoint)
            .await?
            .maintenance_client()
            .status()
            .await
            .map_err(|error| explain(endpoint, "tell its status", &error))?;
        let own = status.header().map(etcd_client::ResponseHeader::member_id);
        all.push(Member {
            endpoint: endpoint.clone(),
            leads: own == Some(status.leader()),
            bytes: u64::try_from(status.db_size()).unwrap_or(0),
            in_use: u64::try_from(status.raft_used_db_size()).unwrap_or(0),
        });
    }
    Ok(all)
}

async fn defragment(access: &Access, endpoint: &str) -> Result<u64, Error> {
    let mut member = dial(access, endpoint).await?.maintenance_client();
    member
        .defragment()
        .await
        .map_err(|error| explain(endpoint, "defragment", &error))?;
    let status = member
        .status()
        .await
        .map_err(|error| explain(endpoint, "tell its status", &error))?;
    Ok(u64::try_from(status.db_size()).unwrap_or(0))
}

/// An alarm is a member's own, and is disarmed by its name.
async fn disarm(access: &Access) -> Result<(), Error> {
    let endpoint = access.endpoints.join(",");
    let any = access.endpoints.first().map_or("", String::as_str);
    let refused = |error: etcd_client::Error| explain(&endpoint, "disarm its alarm", &error);
    let mut member = dial(access, any).await?.maintenance_client();
    let raised = member
        .alarm(AlarmAction::Get, AlarmType::Nospace, None)
        .await
        .map_err(refused)?;
    for alarm in raised.alarms() {
        let mut options = AlarmOptions::new();
        options.with_member(alarm.member_id());
        member
            .alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options))
            .await
            .map_err(refused)?;
    }
    Ok(())
}

async fn dial(access: &Access, endpoint: &str) -> Result<Client, Error> {
    let options = options(access).with_timeout(PATIENCE);
    Client::connect([endpoint], Some(options))
        .await
        .map_err(|error| explain(endpoint, "be reached", &error))
}

/// Datastores on which upkeep is being done: one thing at a time.
#[derive(Clone, Default)]
pub struct Upkeep(Arc<Mutex<HashSet<String>>>);

/// Upkeep of one datastore, until dropped.
pub struct Running {
    all: Upkeep,
    name: String,
}

impl Upkeep {
    /// Begins, unless it is being done already.
    pub fn begin(&self, name: &str) -> Option<Running> {
        self.lock().insert(name.to_owned()).then(|| Running {
            all: self.clone(),
            name: name.to_owned(),
        })
    }

    /// Whether it is being done.
    pub fn runs(&self, name: &str) -> bool {
        self.lock().contains(name)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.all.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, leads: bool, bytes: u64, in_use: u64) -> Member {
        Member {
            endpoint: name.into(),
            leads,
            bytes: bytes << 20,
            in_use: in_use << 20,
        }
    }

    #[test]
    fn followers_come_before_the_leader_and_large_files_first() {
        let mut members = vec![
            member("leader", true, 900, 100),
            member("small", false, 300, 100),
            member("large", false, 500, 100),
        ];
        for expected in ["large", "small", "leader"] {
            let found = next(&members, Thrift::Usual(200 << 20))
                .unwrap()
                .endpoint
                .clone();
            assert_eq!(found, expected);
            for member in &mut members {
                if member.endpoint == found {
                    member.bytes = member.in_use;
                }
            }
        }
        assert_eq!(next(&members, Thrift::Usual(200 << 20)), None);
    }

    #[test]
    fn a_file_in_use_or_a_small_one_is_left_alone_until_the_datastore_is_full() {
        let worth_it =
            |thrift: Thrift, bytes: u64, in_use: u64| thrift.worth_it(bytes << 20, in_use << 20);
        let usual = Thrift::Usual(1000 << 20);
        assert!(worth_it(usual, 1000, 500));
        assert!(!worth_it(usual, 1000, 501));
        assert!(!worth_it(usual, 999, 0));
        assert!(worth_it(Thrift::Desperate, 999, 899));
        assert!(!worth_it(Thrift::Desperate, 999, 950));
        assert!(!Thrift::Desperate.worth_it(24 << 10, 4 << 10));
    }

    #[test]
    fn writes_are_allowed_again_only_when_every_member_has_room() {
        let members = [member("a", true, 80, 10), member("b", false, 95, 10)];
        assert!(!room(&members, Some(100 << 20)));
        assert!(room(&members[..1], Some(100 << 20)));
        assert!(!room(&members, None));
    }

    #[test]
    fn one_thing_is_done_at_a_time() {
        let upkeep = Upkeep::default();
        let running = upkeep.begin("a");
        assert!(upkeep.runs("a") && upkeep.begin("a").is_none());
        drop(running);
        assert!(!upkeep.runs("a") && upkeep.begin("a").is_some());
    }
}
