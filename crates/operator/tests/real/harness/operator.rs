//! The operator under test: started, stopped, killed and asked for its metrics.

use steward_operator::run::{self, Extras};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running operator.
pub(crate) struct Operator {
    pub extras: Extras,
    pub(super) stop: CancellationToken,
    pub(super) task: JoinHandle<Result<(), run::Error>>,
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Operator {
    /// Stops as on SIGTERM.
    pub(crate) async fn stop(mut self) {
        self.finish().await;
    }

    /// The same, when something else may still happen to it meanwhile.
    pub(crate) async fn finish(&mut self) {
        self.stop.cancel();
        (&mut self.task).await.unwrap().unwrap();
    }

    /// Waits until it ends by itself, and says why.
    pub(crate) async fn ended(mut self) -> Result<(), run::Error> {
        (&mut self.task).await.unwrap()
    }

    /// Dies as on SIGKILL.
    pub(crate) async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    pub(crate) fn metric(&self, starts: &str) -> f64 {
        let text = self.extras.metrics.render();
        text.lines()
            .filter(|line| line.starts_with(starts))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}
