//! Results for people: a table on the terminal, a page, a picture. Nothing here
//! computes; what is printed was measured or judged elsewhere.

pub(crate) mod markdown;
pub(crate) mod svg;
pub(crate) mod terminal;

use crate::{
    cli::Test,
    goals::GOALS,
    results::{Metric, Results},
};

/// The tests in the order of a report, with their headlines.
const HEADLINES: [(Test, &str); 11] = [
    (Test::Conn, "Front doors: CPU per TLS 1.3 connection, 600/s"),
    (Test::Rt, "Front doors: CPU per 1 KiB round trip, 8 000/s"),
    (
        Test::Bulk,
        "Front doors: CPU per GB, plain bytes, 4 streams",
    ),
    (
        Test::BulkTls,
        "Front doors: CPU per GB, TLS records, 4 streams",
    ),
    (
        Test::NodeConn,
        "Node proxies: CPU per TLS 1.3 connection, 400/s",
    ),
    (
        Test::NodeRt,
        "Node proxies: CPU per 1 KiB round trip, 5 000/s",
    ),
    (
        Test::Latency,
        "Connect to first byte, one connection at a time",
    ),
    (
        Test::Path,
        "The whole path: connect to first byte, then 1 KiB round trips",
    ),
    (Test::Syscalls, "System calls"),
    (Test::Routes, "One new route among 100 000"),
    (Test::Idle, "Memory"),
];

/// A table of words: a head and rows.
#[derive(Debug, PartialEq, Eq)]
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// What a test found, one row per proxy; `None` if it was not run.
    fn of(results: &Results, test: Test) -> Option<Self> {
        let metrics = results.metrics(test);
        if metrics.is_empty() {
            return None;
        }
        let mut head = vec![String::new()];
        head.extend(metrics.iter().map(|metric| metric.title(test).to_owned()));
        let row = |name: &str| {
            let cell = |metric: &Metric| cell(results, test, name, *metric);
            std::iter::once(name.to_owned())
                .chain(metrics.iter().map(cell))
                .collect()
        };
        Some(Self {
            head,
            rows: results.names(test).into_iter().map(row).collect(),
        })
    }

    /// The goals beside what was measured.
    fn of_goals(results: &Results) -> Self {
        let head = ["goal", "at most", "measured", ""]
            .map(str::to_owned)
            .to_vec();
        let row = |goal: &crate::goals::Goal| {
            let verdict = goal.judge(results);
            let measured = verdict.value().map_or_else(|| "–".to_owned(), number);
            vec![
                goal.text.to_owned(),
                number(goal.limit),
                measured,
                verdict.word().to_owned(),
            ]
        };
        Self {
            head,
            rows: GOALS.iter().map(row).collect(),
        }
    }
}

fn cell(results: &Results, test: Test, name: &str, metric: Metric) -> String {
    match results.find(test, name, metric) {
        None => "–".to_owned(),
        Some(spread) if metric.has_spread() => {
            format!(
                "{:.2} ({:.2}–{:.2})",
                spread.middle, spread.low, spread.high
            )
        }
        Some(spread) => number(spread.middle),
    }
}

/// Three digits that matter.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        medium if medium >= 10.0 => format!("{value:.1}"),
        small if small >= 0.095 || small == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{machine::Machine, stats::Spread};

    /// A small run for the renderers' tests.
    pub(super) fn sample() -> Results {
        let mut results = Results::new(Machine {
            date: "2026-11-15 12:00 UTC".to_owned(),
            processor: "2 × Processor".to_owned(),
            memory: "24 GiB".to_owned(),
            kernel: "6.18".to_owned(),
            load: "0.10".to_owned(),
        });
        results
            .versions
            .push(("haproxy".to_owned(), "2.6.12".to_owned()));
        results
            .missing
            .push(("traefik".to_owned(), "not installed".to_owned()));
        for (name, cpu, ratio) in [("haproxy", 470.0, 1.0), ("steward-gateway", 330.0, 0.69)] {
            results.add_one(Test::Conn, name, Metric::Cpu, cpu);
            let spread = Spread {
                low: ratio - 0.01,
                middle: ratio,
                high: ratio + 0.01,
            };
            results.add(Test::Conn, name, Metric::Ratio, Some(spread));
        }
        results
            .remarks
            .push((Test::Conn, "noisy: identical proxies at 1.050".to_owned()));
        results
    }

    #[test]
    fn a_test_that_was_not_run_has_no_table() {
        assert_eq!(Table::of(&sample(), Test::Idle), None);
    }

    #[test]
    fn a_row_holds_the_median_and_the_quartiles_of_ratios() {
        let table = Table::of(&sample(), Test::Conn).unwrap();
        assert_eq!(table.head, ["", "CPU µs", "ratio (quartiles)"]);
        assert_eq!(
            table.rows[1],
            ["steward-gateway", "330", "0.69 (0.68–0.70)"]
        );
    }

    #[test]
    fn numbers_show_three_digits() {
        assert_eq!(
            [number(1234.5), number(26.84), number(0.695), number(0.013)],
            ["1234", "26.8", "0.69", "0.013"]
        );
    }
}
