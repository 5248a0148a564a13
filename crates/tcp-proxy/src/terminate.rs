//! Terminate mode's own part: the client's side of TLS, with the upstream's choice of protocol.
//!
//! What the client is told must be what the upstream chose, so the upstream is asked first. Its
//! choice depends on what was offered and hardly ever changes, so it is remembered by the offer,
//! and the next connection shakes hands on both sides at once. If the upstream then chooses
//! differently, that connection fails before a byte passed, and the memory of it is dropped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::ServerConfig;
use steward_wire::{TransformError, hello::Hello, tls::ServerLeg};

/// What a client offers by ALPN: as in its hello, each protocol after its length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Offer(Vec<u8>);

/// What an upstream chose, perhaps nothing.
pub(crate) type Choice = Option<Arc<[u8]>>;

/// The client's side.
#[derive(Debug)]
pub(crate) struct Terminate {
    /// Without ALPN.
    base: ServerConfig,
    /// By the protocol that is answered.
    configs: Mutex<HashMap<Vec<u8>, Arc<ServerConfig>>>,
    /// What the upstream chose from each offer.
    choices: Mutex<HashMap<Offer, Choice>>,
}

/// How many offers and answers are remembered. Clients in one cluster make a handful; more are
/// somebody playing, and start the memory anew.
const MOST: usize = 64;
/// The longest offer that is remembered.
const LONGEST: usize = 128;

impl Offer {
    pub(crate) fn of(hello: &Hello<'_>) -> Self {
        let mut offer = Vec::new();
        for protocol in hello.alpn() {
            // Lengths come from one byte and fit in one.
            offer.push(u8::try_from(protocol.len()).unwrap_or(u8::MAX));
            offer.extend_from_slice(protocol);
        }
        Self(offer)
    }

    pub(crate) fn protocols(&self) -> Vec<Vec<u8>> {
        let mut rest = &self.0[..];
        let mut protocols = Vec::new();
        while let [len, tail @ ..] = rest {
            let (protocol, tail) = tail.split_at(usize::from(*len).min(tail.len()));
            protocols.push(protocol.to_vec());
            rest = tail;
        }
        protocols
    }
}

impl Terminate {
    pub(crate) fn new(base: ServerConfig) -> Self {
        Self {
            base,
            configs: Mutex::default(),
            choices: Mutex::default(),
        }
    }

    /// A leg that answers with `protocol`, or with none.
    pub(crate) fn leg(&self, protocol: Option<&[u8]>) -> Result<ServerLeg, TransformError> {
        ServerLeg::new(self.config(protocol.unwrap_or_default()))
    }

    fn config(&self, protocol: &[u8]) -> Arc<ServerConfig> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = configs.get(protocol) {
            return Arc::clone(config);
        }
        if configs.len() >= MOST {
            configs.clear();
        }
        let mut config = self.base.clone();
        if !protocol.is_empty() {
            config.alpn_protocols = vec![protocol.to_vec()];
        }
        let config = Arc::new(config);
        configs.insert(protocol.to_vec(), Arc::clone(&config));
        config
    }

    /// What the upstream chose from this offer the last time.
    pub(crate) fn choice_for(&self, offer: &Offer) -> Option<Choice> {
        if offer.0.is_empty() {
            // Nothing was offered, so nothing can be chosen.
            return Some(None);
        }
        self.choices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(offer)
            .cloned()
    }

    pub(crate) fn learn(&self, offer: Offer, chosen: Option<&[u8]>) {
        if offer.0.len() > LONGEST {
            return;
        }
        let mut choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
        if choices.len() >= MOST {
            choices.clear();
        }
        choices.insert(offer, chosen.map(Arc::from));
    }

    pub(crate) fn forget(&self, offer: &Offer) {
        self.choices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(offer);
    }
}
