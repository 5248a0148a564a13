//! Whether a tenant's endpoint answers, tried as a client would: name, SNI, certificate.
//!
//! Owns: knocking in the background, now and then for ever, and remembering the last answer. A reconcile never waits for it; a
//! new answer wakes the tenant. Refuses: sending anything after the handshake.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steward_api::conditions::Reason;
use steward_plan::{Knock, Reach};
use tokio::{
    net::TcpStream,
    sync::{Notify, mpsc},
};

use crate::tenant::Key;

mod handshake;

/// One knock takes no longer than this.
const PATIENCE: Duration = Duration::from_secs(5);
/// A name server that does not answer must not hold up the rest.
const DNS: Duration = Duration::from_secs(2);
/// An endpoint that did not answer is tried again after this.
const AGAIN: Duration = Duration::from_secs(5);
/// One that answers, but not quite as it should, after this.
const SOON: Duration = Duration::from_secs(30);
/// One that answers, after this: a front door may be changed by somebody else.
const LATER: Duration = Duration::from_mins(5);
/// When something of the tenant changed, after each of these: a front door takes a moment.
const AFTER_CHANGE: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(10),
    Duration::from_secs(20),
];

/// The last answers, by tenant.
#[derive(Clone)]
pub struct Reaches {
    known: Arc<Mutex<HashMap<Key, Known>>>,
    wake: mpsc::UnboundedSender<Key>,
}

struct Known {
    knock: Knock,
    answer: Reach,
    /// Tells the task that knocks here of a change; a task without it ends.
    changed: Arc<Notify>,
}

impl Reaches {
    /// None known yet. `wake` hears of tenants whose answer changed.
    pub fn new(wake: mpsc::UnboundedSender<Key>) -> Self {
        Self {
            known: Arc::default(),
            wake,
        }
    }

    /// The last answer, and to which knock.
    pub fn get(&self, key: &Key) -> (Reach, Option<Knock>) {
        let known = self.lock();
        let Some(known) = known
            .get(key)
            .filter(|known| known.answer != Reach::NotTried)
        else {
            return (Reach::NotTried, None);
        };
        (known.answer.clone(), Some(known.knock.clone()))
    }

    /// Forgets a tenant.
    pub fn forget(&self, key: &Key) {
        if let Some(known) = self.lock().remove(key) {
            known.changed.notify_one();
        }
    }

    /// Knocks in the background from now on, and again soon where that is done already.
    pub fn knock(&self, key: &Key, knock: &Knock) {
        let changed = Arc::new(Notify::new());
        {
            let mut known = self.lock();
            if let Some(before) = known.get(key) {
                before.changed.notify_one();
                if before.knock == *knock {
                    return;
                }
            }
            let new = Known {
                knock: knock.clone(),
                answer: Reach::NotTried,
                changed: Arc::clone(&changed),
            };
            known.insert(key.clone(), new);
        }
        tokio::spawn(self.clone().carry_out(key.clone(), knock.clone(), changed));
    }

    /// Knocks until nobody wants to know any more.
    async fn carry_out(self, key: Key, knock: Knock, changed: Arc<Notify>) {
        let mut pauses = AFTER_CHANGE.iter();
        let mut failed = false;
        loop {
            let answer = attempt(&knock).await;
            // One failure between two answers is no news: somebody restarts something.
            let doubtful = !answer.answers() && !failed;
            failed = !answer.answers();
            let pause = match (&answer, pauses.next()) {
                (Reach::Fails { .. } | Reach::NotTried, _) => AGAIN,
                (_, Some(pause)) => *pause,
                (Reach::AnswersBut { .. }, None) => SOON,
                (Reach::Answers, None) => LATER,
            };
            match self.note(&key, &changed, answer, doubtful) {
                None => return,
                // The receiver is gone only when the operator stops.
                Some(true) => drop(self.wake.send(key.clone())),
                Some(false) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = changed.notified() => {
                    pauses = AFTER_CHANGE.iter();
                    // Changes come in bursts.
                    tokio::time::sleep(AFTER_CHANGE[0]).await;
                }
            }
        }
    }

    /// Remembers an answer, and says whether it is a new one; nothing if nobody asks any more.
    fn note(&self, key: &Key, mine: &Arc<Notify>, answer: Reach, doubtful: bool) -> Option<bool> {
        let mut known = self.lock();
        let entry = known.get_mut(key)?;
        if !Arc::ptr_eq(&entry.changed, mine) {
            return None;
        }
        let news = entry.answer != answer && !(doubtful && entry.answer.answers());
        if news {
            entry.answer = answer;
        }
        Some(news)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One knock: as a client would, if addresses are known at those; then whether the name leads there.
async fn attempt(knock: &Knock) -> Reach {
    let answer = tokio::time::timeout(PATIENCE, dial(knock)).await;
    let answer = answer.unwrap_or_else(|_| Reach::Fails {
        reason: Reason::EndpointUnreachable,
        message: format!("{}:{} did not answer within {PATIENCE:?}; check that the front door runs and lets us in", knock.host, knock.port),
    });
    match answer {
        Reach::Answers => about_name(knock).await.unwrap_or(Reach::Answers),
        other => other,
    }
}

/// What is wrong with the name of an endpoint that answers at the addresses we know.
async fn about_name(knock: &Knock) -> Option<Reach> {
    let here = knock.addresses.first()?;
    if knock.host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let host = &knock.host;
    let found = tokio::net::lookup_host((host.as_str(), knock.port));
    let found: Vec<IpAddr> = match tokio::time::timeout(DNS, found).await {
        // A slow name server is no verdict.
        Err(_) => return None,
        Ok(Err(error)) => {
            return Some(Reach::AnswersBut {
                reason: Reason::HostnameNotResolved,
                message: format!(
                    "{here} answers for {host} as it should, but {host} is not in DNS ({error}): clients need a record that leads there; `steward dns` prints it"
                ),
            });
        }
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
    };
    if found
        .iter()
        .any(|address| knock.addresses.contains(address))
    {
        return None;
    }
    // Another address may be the same place, seen from elsewhere.
    let there = Knock {
        addresses: found.clone(),
        ..knock.clone()
    };
    let answer = tokio::time::timeout(PATIENCE, dial(&there)).await;
    let answers = answer.is_ok_and(|answer| answer.answers());
    (!answers).then(|| Reach::AnswersBut {
        reason: Reason::HostnameElsewhere,
        message: format!(
            "{here} answers for {host} as it should, but {host} leads to {}, which does not: correct its DNS record",
            found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ),
    })
}

async fn dial(knock: &Knock) -> Reach {
    let addresses = match addresses(knock).await {
        Ok(addresses) => addresses,
        Err(reach) => return reach,
    };
    let mut last = String::from("it has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return handshake::look(stream, knock).await,
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Reach::Fails {
        reason: Reason::EndpointUnreachable,
        message: format!("{}:{} can't be reached: {last}", knock.host, knock.port),
    }
}

async fn addresses(knock: &Knock) -> Result<Vec<SocketAddr>, Reach> {
    if !knock.addresses.is_empty() {
        return Ok(knock
            .addresses
            .iter()
            .map(|address| SocketAddr::new(*address, knock.port))
            .collect());
    }
    if let Ok(address) = knock.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, knock.port)]);
    }
    let found = tokio::net::lookup_host((knock.host.as_str(), knock.port)).await;
    found.map(Iterator::collect).map_err(|error| Reach::Fails {
        reason: Reason::HostnameNotResolved,
        message: format!(
            "{} is not in DNS: {error}; make a record that leads to the front door",
            knock.host
        ),
    })
}
