//! What an upstream must have agreed to before bytes go its way.

use std::sync::Arc;

use crate::transform::TransformError;

/// The protocol that the upstream has to choose.
#[derive(Debug, Clone)]
pub enum Expected {
    /// The tunnel: anything else would be given bytes that it can't read.
    Tunnel(Arc<[u8]>),
    /// What it chose last time, and the client was told already.
    Same(Option<Arc<[u8]>>),
}

impl Expected {
    pub(super) fn check(&self, chosen: Option<&[u8]>) -> Result<(), TransformError> {
        match self {
            Self::Tunnel(id) if chosen == Some(id) => Ok(()),
            Self::Tunnel(id) => Err(TransformError(format!(
                "the upstream did not choose the tunnel protocol {}: is there a gate behind this \
                 name, and the same --tunnel-alpn on both sides?",
                id.escape_ascii()
            ))),
            Self::Same(last) if last.as_deref() == chosen => Ok(()),
            Self::Same(_) => Err(TransformError(
                "the upstream changed its choice of protocol: the next connection follows it"
                    .to_owned(),
            )),
        }
    }
}
