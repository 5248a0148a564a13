//! Interleaved measuring: short windows, proxies in random order, round after
//! round, so that whatever else the machine does hits all of them alike.

use std::{
    thread,
    time::{Duration, Instant},
};

use rand::seq::SliceRandom as _;

use crate::{
    load::Window,
    process::{Process, own_cpu},
    stats::Spread,
    targets::Target,
};

/// Time for the last closes of a window to be done before the clocks are read.
const SETTLE: Duration = Duration::from_millis(15);
/// Less than this share of the offered rate, and a repetition does not count.
const LEAST_ACHIEVED: f64 = 0.95;

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    /// Length of a window.
    pub(crate) window: Duration,
    /// Rounds of a repetition that count; one more goes before them.
    pub(crate) rounds: usize,
    /// Repetitions.
    pub(crate) repetitions: usize,
    /// Repetitions that may be thrown away and made again.
    pub(crate) spare: usize,
}

/// CPU time spent in one window, by whom, and on what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// By the proxy.
    pub(crate) proxy: Duration,
    /// By what it needs beside it.
    pub(crate) beside: Duration,
    /// By the load generator.
    pub(crate) client: Duration,
    /// By the backend.
    pub(crate) backend: Duration,
    /// What was done for it.
    pub(crate) window: Window,
}

/// One round: a sample of every proxy, in the order of the list.
pub(crate) type Round = Vec<Sample>;

/// Which CPU time a proxy's is divided by, to take the machine's changing speed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Yardstick {
    /// Client and backend: both do the same work whatever the proxy is.
    Ends,
    /// The client only: a node proxy that resumes spares the backend work.
    Client,
    /// Nothing: in a closed loop the ends' work per byte depends on the proxy.
    Nothing,
}

/// What makes a repetition count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The yardstick of its ratios.
    pub(crate) yardstick: Yardstick,
    /// How far the reference's twin may be from it.
    pub(crate) twin_slack: f64,
}

/// Why a repetition does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Invalid {
    /// Operations failed.
    Errors(u64),
    /// The rate was not reached; the worst share.
    TooSlow(f64),
    /// Two identical proxies differ by more than they may; their ratio.
    Twins(f64),
}

impl Sample {
    /// CPU seconds of the proxy per operation.
    pub(crate) fn per_operation(&self) -> f64 {
        self.proxy.as_secs_f64() / self.window.done
    }

    /// The same with what stands beside it.
    pub(crate) fn per_operation_with_beside(&self) -> f64 {
        (self.proxy + self.beside).as_secs_f64() / self.window.done
    }

    fn yardstick(&self, yardstick: Yardstick) -> f64 {
        let ends = match yardstick {
            Yardstick::Ends => self.client + self.backend,
            Yardstick::Client => self.client,
            Yardstick::Nothing => return 1.0,
        };
        ends.as_secs_f64() / self.window.done
    }

    /// This proxy's cost against another's of the same round.
    pub(crate) fn ratio(&self, reference: &Self, rules: Rules) -> f64 {
        let cost = |sample: &Self| sample.per_operation() / sample.yardstick(rules.yardstick);
        cost(self) / cost(reference)
    }

    /// The same with what stands beside it.
    pub(crate) fn ratio_with_beside(&self, reference: &Self, rules: Rules) -> f64 {
        let mine = self.per_operation_with_beside() / self.yardstick(rules.yardstick);
        mine / (reference.per_operation_with_beside() / reference.yardstick(rules.yardstick))
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Errors(count) => write!(formatter, "{count} operations failed"),
            Self::TooSlow(share) => write!(formatter, "only {:.0} % of the rate", share * 100.0),
            Self::Twins(ratio) => write!(formatter, "identical proxies at {ratio:.3}"),
        }
    }
}

/// Measures one window of one proxy.
pub(crate) fn measure(target: &Target, backend: &Process, work: impl FnOnce() -> Window) -> Sample {
    let clocks = || {
        let beside: Duration = target.beside.iter().map(Process::cpu).sum();
        (target.process.cpu(), beside, own_cpu(), backend.cpu())
    };
    let before = clocks();
    let window = work();
    thread::sleep(SETTLE);
    let after = clocks();
    Sample {
        proxy: after.0.saturating_sub(before.0),
        beside: after.1.saturating_sub(before.1),
        client: after.2.saturating_sub(before.2),
        backend: after.3.saturating_sub(before.3),
        window,
    }
}

/// Measures all proxies for some rounds, in a new random order each; the first
/// round warms everything up and is thrown away.
pub(crate) fn rounds(
    count: usize,
    proxies: usize,
    mut one: impl FnMut(usize) -> Sample,
) -> Vec<Round> {
    let mut order: Vec<usize> = (0..proxies).collect();
    let mut rounds = Vec::with_capacity(count);
    for round in 0..=count {
        order.shuffle(&mut rand::rng());
        let mut samples: Vec<(usize, Sample)> =
            order.iter().map(|&number| (number, one(number))).collect();
        samples.sort_by_key(|(number, _)| *number);
        if round > 0 {
            rounds.push(samples.into_iter().map(|(_, sample)| sample).collect());
        }
    }
    rounds
}

/// Whether the rounds of a repetition count. The reference comes first in a
/// round and its twin, where there is one, second.
pub(crate) fn judge(rounds: &[Round], twins: bool, rules: Rules) -> Result<(), Invalid> {
    let samples = || rounds.iter().flatten();
    let errors = samples().map(|sample| sample.window.errors).sum();
    if errors > 0 {
        return Err(Invalid::Errors(errors));
    }
    let slowest = samples()
        .map(|sample| sample.window.achieved())
        .fold(1.0, f64::min);
    let typical = Spread::of(samples().map(|sample| sample.window.achieved()));
    if typical.is_some_and(|spread| spread.low < LEAST_ACHIEVED)
        && samples().any(|sample| sample.window.wanted.is_some())
    {
        return Err(Invalid::TooSlow(slowest));
    }
    let ratios = rounds
        .iter()
        .filter_map(|round| Some(round.get(1)?.ratio(round.first()?, rules)));
    match Spread::of(ratios) {
        Some(spread) if twins && (spread.middle - 1.0).abs() > rules.twin_slack => {
            Err(Invalid::Twins(spread.middle))
        }
        _ => Ok(()),
    }
}

/// Repeats until enough repetitions count or none are spare. Returns the rounds,
/// and why the last refused repetition was, if refused ones had to be used.
pub(crate) fn repeat(
    rhythm: Rhythm,
    mut repetition: impl FnMut() -> anyhow::Result<Result<Vec<Round>, (Invalid, Vec<Round>)>>,
) -> anyhow::Result<(Vec<Round>, Option<Invalid>)> {
    let mut good = Vec::new();
    let mut refused: Option<(Invalid, Vec<Round>)> = None;
    let (mut counted, mut spare) = (0, rhythm.spare);
    let begun = Instant::now();
    while counted < rhythm.repetitions {
        match repetition()? {
            Ok(rounds) => {
                counted += 1;
                good.extend(rounds);
            }
            Err(invalid) => {
                eprintln!(
                    "  repetition refused after {:?}: {}",
                    begun.elapsed(),
                    invalid.0
                );
                refused = Some(invalid);
                if spare == 0 {
                    break;
                }
                spare -= 1;
            }
        }
    }
    match refused {
        Some((why, rounds)) if counted < rhythm.repetitions => {
            good.extend(rounds);
            Ok((good, Some(why)))
        }
        _ => Ok((good, None)),
    }
}

#[cfg(test)]
mod tests;
