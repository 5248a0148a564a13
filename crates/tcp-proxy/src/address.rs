//! Addresses on `lo` that every node has alike, put there and taken away by us.
//!
//! Idempotent: an address that is there already is used and, at the end, left. When a predecessor
//! on the same node ends and takes its address away, the kernel tells, and it is put back at once;
//! from then on it is ours. Speaks netlink by hand: three messages, and no program to call.

mod netlink;

use std::{
    collections::BTreeSet,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use netlink::{Change, Netlink};

/// Addresses on `lo` for as long as this lives.
#[derive(Debug)]
pub(crate) struct Addresses {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wanted: Vec<IpAddr>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    netlink: Option<Netlink>,
    /// Those that this process put there.
    ours: BTreeSet<IpAddr>,
}

/// Why an address could not be put on `lo`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    /// The kernel said no.
    #[error("--address {address}: can't be put on lo: {}", hint(.source))]
    Put {
        address: IpAddr,
        #[source]
        source: io::Error,
    },
    /// Netlink itself does not work.
    #[error("--address: netlink is not available: check the container's security settings")]
    Netlink(#[source] io::Error),
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "it takes the capability NET_ADMIN",
        _ => "check that it is an address a host may have",
    }
}

impl Addresses {
    /// Puts `wanted` on `lo`. On an error nothing stays behind. Whoever takes over from one
    /// that died is an `heir` to what that one put there.
    pub(crate) fn put(wanted: &[IpAddr], heir: bool) -> Result<Self, AddressError> {
        let ours = wanted.iter().filter(|_| heir);
        let state = State {
            netlink: None,
            ours: ours.copied().collect(),
        };
        let shared = Arc::new(Shared {
            wanted: wanted.to_vec(),
            state: Mutex::new(state),
        });
        let addresses = Self {
            shared: Arc::clone(&shared),
        };
        if wanted.is_empty() {
            return Ok(addresses);
        }
        // Before the first address is put, so that no change of it is missed.
        let changes = Netlink::listen().map_err(AddressError::Netlink)?;
        shared.lock().netlink = Some(Netlink::new().map_err(AddressError::Netlink)?);
        for &address in wanted {
            shared
                .ensure(address)
                .map_err(|source| AddressError::Put { address, source })?;
        }
        thread::Builder::new()
            .name("address".to_owned())
            .spawn(move || shared.guard(&changes))
            .map_err(AddressError::Netlink)?;
        Ok(addresses)
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        // Without it the guard puts nothing back.
        let Some(mut netlink) = state.netlink.take() else {
            return;
        };
        for address in std::mem::take(&mut state.ours) {
            match netlink.change(Change::Remove, address) {
                Ok(()) => tracing::info!(%address, "address taken off lo"),
                Err(error) => tracing::warn!(%address, %error, "address could not be taken off lo"),
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the address there if it is not.
    fn ensure(&self, address: IpAddr) -> io::Result<()> {
        let mut state = self.lock();
        let Some(netlink) = &mut state.netlink else {
            return Ok(());
        };
        match netlink.change(Change::Add, address) {
            Ok(()) => {
                tracing::info!(%address, "address put on lo");
                state.ours.insert(address);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts addresses back when somebody took them away.
    fn guard(&self, changes: &Netlink) {
        while let Ok(removed) = changes.next_removed() {
            // One that was missed because too many came at once may be any.
            let missing = self
                .wanted
                .iter()
                .filter(|&wanted| removed.is_none_or(|it| it == *wanted));
            for &address in missing {
                if self.lock().netlink.is_none() {
                    return;
                }
                if let Err(error) = self.ensure(address) {
                    tracing::warn!(%address, %error, "address could not be put back on lo");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_needs_no_netlink() {
        assert!(Addresses::put(&[], false).is_ok());
    }
}
