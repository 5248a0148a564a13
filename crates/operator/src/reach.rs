//! Whether a tenant's endpoint answers, tried as a client would: name, SNI, certificate.
//!
//! Owns: knocking in the background and remembering the last answer. A reconcile never waits for it; a
//! new answer wakes the tenant. Refuses: sending anything after the handshake.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use steward_api::conditions::Reason;
use steward_plan::{Knock, Reach};
use tokio::{net::TcpStream, sync::mpsc};

use crate::tenant::Key;

mod handshake;

/// One knock takes no longer than this.
const PATIENCE: Duration = Duration::from_secs(5);
/// An endpoint that did not answer is tried again after this.
const AGAIN: Duration = Duration::from_secs(5);

/// The last answers, by tenant.
#[derive(Clone)]
pub struct Reaches {
    known: Arc<Mutex<HashMap<Key, Known>>>,
    wake: mpsc::UnboundedSender<Key>,
}

struct Known {
    knock: Knock,
    answer: Reach,
    busy: bool,
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
        self.lock().remove(key);
    }

    /// Knocks in the background, unless the same place has answered or is being tried.
    pub fn knock(&self, key: &Key, knock: &Knock) {
        {
            let mut known = self.lock();
            match known.get_mut(key) {
                Some(before) if before.knock == *knock => {
                    if before.busy || before.answer == Reach::Answers {
                        return;
                    }
                    before.busy = true;
                }
                _ => {
                    let new = Known {
                        knock: knock.clone(),
                        answer: Reach::NotTried,
                        busy: true,
                    };
                    known.insert(key.clone(), new);
                }
            }
        }
        tokio::spawn(self.clone().carry_out(key.clone(), knock.clone()));
    }

    /// Knocks until it answers, or until nobody wants to know any more.
    async fn carry_out(self, key: Key, knock: Knock) {
        loop {
            let answer = tokio::time::timeout(PATIENCE, dial(&knock)).await.unwrap_or_else(|_| Reach::Fails {
                reason: Reason::EndpointUnreachable,
                message: format!("{}:{} did not answer within {PATIENCE:?}; check that the front door runs and lets us in", knock.host, knock.port),
            });
            let answers = answer == Reach::Answers;
            let news = {
                let mut known = self.lock();
                let Some(entry) = known.get_mut(&key).filter(|entry| entry.knock == knock) else {
                    return;
                };
                let news = entry.answer != answer;
                *entry = Known {
                    knock: knock.clone(),
                    answer,
                    busy: !answers,
                };
                news
            };
            if news {
                // The receiver is gone only when the operator stops.
                let _ = self.wake.send(key.clone());
            }
            if answers {
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
