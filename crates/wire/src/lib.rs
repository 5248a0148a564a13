//! The data plane's core: `ClientHello`, PROXY protocol, relay, TLS identity, dial, drain.

pub mod admin;
mod counters;
mod descriptors;
pub mod dial;
pub mod engine;
pub mod hello;
#[cfg(feature = "tls")]
pub mod identity;
mod inbox;
pub mod keeper;
mod listener;
pub mod logging;
mod memory;
pub mod metrics;
mod pipes;
mod poller;
pub mod program;
pub mod proxy_protocol;
mod relay;
mod session;
pub mod signals;
mod slab;
#[cfg(feature = "tls")]
pub mod tls;
pub mod transform;
mod wheel;
mod worker;

pub use counters::Snapshot;
pub use engine::{Config, CountersHandle, Drained, Engine, StartError};
pub use inbox::Waker;
pub use listener::{Listen, ListenError, Listeners};
pub use program::{
    Accepted, ClientLeg, Context, DialFailure, End, First, Next, Peek, Program, Refusal, Route,
    Summary,
};
pub use transform::{Opened, Transform, TransformError};
