//! Open connections to datastores, by name; made anew when address or credentials change.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    Error,
    etcd::{Access, Etcd},
};

/// All open connections.
#[derive(Default)]
pub struct Connections(Mutex<HashMap<String, (Access, Arc<Etcd>)>>);

impl Connections {
    /// The connection to a datastore. `ours` means that we run it and turn its authentication on.
    ///
    /// # Errors
    /// When it can't be reached or refuses.
    pub async fn get(&self, name: &str, access: &Access, ours: bool) -> Result<Arc<Etcd>, Error> {
        if let Some((_, etcd)) = self.lock().get(name).filter(|(known, _)| known == access) {
            return Ok(etcd.clone());
        }
        let mut etcd = Etcd::connect(access).await?;
        if ours && !etcd.authenticated() {
            etcd.bootstrap().await?;
        }
        let etcd = Arc::new(etcd);
        // Without authentication there is nothing worth keeping: it may be turned on at any time.
        if etcd.authenticated() {
            self.lock()
                .insert(name.to_owned(), (access.clone(), etcd.clone()));
        }
        Ok(etcd)
    }

    /// Closes a connection that no longer works or is no longer wanted.
    pub fn forget(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Access, Arc<Etcd>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
