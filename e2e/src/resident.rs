//! A tenant behind a front door, with the one worker that it has.

use anyhow::Result;
use steward_lab::Host;

use crate::stage::Stage;
use crate::tenant::Tenant;

/// Who lives behind a front door.
pub struct Resident {
    /// The tenant.
    pub tenant: Tenant,
    /// Its hostname.
    pub host: String,
    /// The number of its worker.
    pub worker: u8,
}

impl Resident {
    /// The host of its worker.
    pub fn worker(&self, stage: &Stage) -> Result<Host> {
        Ok(stage.lab.worker(self.worker)?)
    }

    /// Its worker's name as a node.
    pub fn node(&self) -> String {
        format!("worker-{}", self.worker)
    }
}
