//! Waiting with a deadline: the only way the lab and its tests let time pass.
//!
//! Nothing here sleeps for a guessed while: a condition is looked at again and
//! again until it holds or the deadline is over, and what was last seen is kept
//! for the one who has to find out why.

use std::time::{Duration, Instant};

/// How often a condition is looked at. Short against what is waited for (a
/// process, a pod), long against what a look costs.
const PAUSE: Duration = Duration::from_millis(100);

/// The moment after which waiting is given up.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Instant,
    allowed: Duration,
}

impl Deadline {
    /// A deadline this far from now.
    pub fn after(allowed: Duration) -> Self {
        Self {
            end: Instant::now() + allowed,
            allowed,
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// How long was allowed in all.
    pub fn allowed(&self) -> Duration {
        self.allowed
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}

/// Looks until `look` gives `Ok`, and returns that; after the deadline returns
/// what the last look said was missing.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use std::time::Duration;
/// let mut looks = 0;
/// let seen = steward_lab::poll(Duration::from_secs(5), async || {
///     looks += 1;
///     if looks == 3 { Ok("there") } else { Err(format!("looked {looks} times")) }
/// })
/// .await;
/// assert_eq!(seen, Ok("there"));
/// # });
/// ```
pub async fn poll<T, E, F>(allowed: Duration, mut look: F) -> Result<T, E>
where
    F: AsyncFnMut() -> Result<T, E>,
{
    let deadline = Deadline::after(allowed);
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(missing) if deadline.is_over() => return Err(missing),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
