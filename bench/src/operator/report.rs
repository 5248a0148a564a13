//! The table of all rounds, with the goals beside ours.

use std::fmt::Write as _;

use super::round::{Cost, Outcome};
use crate::machine::Machine;

/// Reads a number from a round.
type Value = fn(&Cost) -> f64;

/// A row: what it says, how it is read from a round, and its goal.
struct Line {
    title: &'static str,
    cell: fn(&Cost) -> String,
    /// At most this, and the number it is about.
    goal: Option<(f64, Value)>,
    /// The rounds that the goal is about.
    of: &'static [&'static str],
}

const fn line(title: &'static str, cell: fn(&Cost) -> String) -> Line {
    Line {
        title,
        cell,
        goal: None,
        of: &["steward"],
    }
}

const fn with_goal(
    title: &'static str,
    cell: fn(&Cost) -> String,
    limit: f64,
    value: Value,
) -> Line {
    Line {
        title,
        cell,
        goal: Some((limit, value)),
        of: &["steward"],
    }
}

fn lines() -> Vec<Line> {
    let change = with_goal(
        "one change, others present, ms",
        |cost| format!("{:.0}", cost.change * 1e3),
        100.0,
        |cost| cost.change * 1e3,
    );
    vec![
        with_goal(
            "operator CPU, s",
            |cost| format!("{:.3}", cost.cpu),
            0.05,
            |cost| cost.cpu,
        ),
        line("private keys", |cost| cost.keys.to_string()),
        Line {
            of: &["steward", "steward, 1 worker"],
            ..with_goal(
                "wall, s",
                |cost| format!("{:.3}", cost.wall),
                0.1,
                |cost| cost.wall,
            )
        },
        with_goal(
            "API writes",
            |cost| format!("{:.1}", cost.writes),
            30.0,
            |cost| cost.writes,
        ),
        with_goal(
            "of which refused",
            |cost| format!("{:.1}", cost.refused),
            0.0,
            |cost| cost.refused,
        ),
        line("of which status", |cost| format!("{:.1}", cost.status)),
        with_goal(
            "API server CPU, s",
            |cost| format!("{:.3}", cost.server_cpu),
            0.2,
            |cost| cost.server_cpu,
        ),
        with_goal(
            "memory, waiting, MiB",
            |cost| memory(cost, false),
            0.1,
            |cost| cost.memory,
        ),
        Line {
            of: &["steward, Ready"],
            ..with_goal(
                "memory, Ready, MiB",
                |cost| memory(cost, true),
                0.5,
                |cost| cost.memory,
            )
        },
        line("memory for 32 MiB of one tenant's own, MiB", |cost| {
            cost.filled
                .map_or_else(|| "–".to_owned(), |grown| format!("{grown:.1}"))
        }),
        line("operator without tenants, MiB", |cost| {
            format!("{:.1}", cost.at_start)
        }),
        Line {
            of: &["steward", "steward, Ready"],
            ..with_goal(
                "at rest, all: share of a core",
                |cost| format!("{:.4}", cost.rest_cpu),
                0.001,
                |cost| cost.rest_cpu,
            )
        },
        Line {
            of: &["steward", "steward, Ready"],
            ..with_goal(
                "at rest, all: writes per second",
                |cost| format!("{:.1}", cost.rest_writes),
                0.0,
                |cost| cost.rest_writes,
            )
        },
        Line {
            of: &["steward, many"],
            ..change
        },
    ]
}

/// Memory of a tenant in one of its states.
fn memory(cost: &Cost, ready: bool) -> String {
    if cost.ready == ready {
        format!("{:.3}", cost.memory)
    } else {
        "–".to_owned()
    }
}

/// The table as rows of words: a head, then one row per line.
fn table(outcomes: &[Outcome]) -> Vec<Vec<String>> {
    let mut head = vec!["per tenant".to_owned()];
    head.extend(
        outcomes
            .iter()
            .map(|outcome| format!("{} ({})", outcome.name, outcome.tenants)),
    );
    head.push("goal for ours".to_owned());
    let mut rows = vec![head];
    for line in lines() {
        let mut row = vec![line.title.to_owned()];
        let cell = |outcome: &Outcome| {
            outcome
                .cost
                .as_ref()
                .map_or_else(|_| "–".to_owned(), line.cell)
        };
        row.extend(outcomes.iter().map(cell));
        row.push(verdict(&line, outcomes));
        rows.push(row);
    }
    rows
}

fn verdict(line: &Line, outcomes: &[Outcome]) -> String {
    let Some((limit, value)) = line.goal else {
        return String::new();
    };
    let judged = |name: &&str| {
        let round = outcomes.iter().find(|outcome| outcome.name == **name)?;
        round.cost.as_ref().ok().map(value)
    };
    let found: Vec<f64> = line.of.iter().filter_map(judged).collect();
    let word = match found.iter().copied().reduce(f64::max) {
        None => "not run",
        Some(worst) if worst <= limit => "met",
        Some(_) => "missed",
    };
    format!("≤ {limit}: {word}")
}

fn failures(outcomes: &[Outcome]) -> impl Iterator<Item = (&str, &str)> {
    outcomes
        .iter()
        .filter_map(|outcome| Some((outcome.name.as_str(), outcome.cost.as_ref().err()?.as_str())))
}

/// For a terminal.
pub(super) fn terminal(outcomes: &[Outcome]) -> String {
    let rows = table(outcomes);
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(text, "{cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        text.push('\n');
    }
    for (name, why) in failures(outcomes) {
        let _ = writeln!(text, "not measured: {name}: {why}");
    }
    text
}

/// To be kept: the table, and what was written.
pub(super) fn markdown(machine: &Machine, outcomes: &[Outcome]) -> String {
    let mut text = format!(
        "# Measured: the operator\n\nWritten by `make bench-operator`; do not edit. How to read it: \
         [docs/performance.md](../docs/performance.md).\n\n- {}\n- {}, {}, Linux {}\n- load average when it began: {}\n\n",
        machine.date, machine.processor, machine.memory, machine.kernel, machine.load
    );
    let rows = table(outcomes);
    for (number, row) in rows.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if number == 0 {
            let _ = writeln!(text, "|---|{}", "---:|".repeat(row.len() - 1));
        }
    }
    for (name, why) in failures(outcomes) {
        let _ = writeln!(text, "\n> not measured: {name}: {}", why.replace('\n', " "));
    }
    text.push_str("\n## Writes per tenant\n");
    for outcome in outcomes {
        let Ok(cost) = &outcome.cost else { continue };
        let _ = writeln!(text, "\n### {}\n", outcome.name);
        for (kind, count) in &cost.kinds.kinds {
            #[expect(clippy::cast_precision_loss, reason = "thousands of writes")]
            let per = *count as f64 / outcome.tenants as f64;
            let _ = writeln!(text, "- {kind}: {per:.1}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::{audit::Writes, keys::KeyCount};

    fn outcome(name: &str, cpu: f64) -> Outcome {
        let cost = Cost {
            cpu,
            wall: 0.08,
            writes: 28.0,
            refused: 0.0,
            status: 2.0,
            server_cpu: 0.1,
            memory: 0.05,
            ready: false,
            filled: None,
            at_start: 12.0,
            keys: KeyCount { rsa: 0, ec: 12 },
            rest_cpu: 0.0004,
            rest_writes: 0.0,
            change: 0.05,
            kinds: Writes {
                all: 2800,
                kinds: [("patch secrets".to_owned(), 1200)].into(),
                ..Writes::default()
            },
        };
        Outcome {
            name: name.to_owned(),
            tenants: 100,
            cost: Ok(cost),
        }
    }

    #[test]
    fn goals_are_judged_by_our_round_alone() {
        let text = terminal(&[outcome("steward", 0.03), outcome("kamaji", 1.5)]);
        assert!(text.contains("≤ 0.05: met"), "{text}");
        assert!(text.contains("≤ 100: not run"), "{text}");
        assert!(terminal(&[outcome("steward", 0.3)]).contains("≤ 0.05: missed"));
    }

    #[test]
    fn a_round_that_failed_says_why() {
        let failed = Outcome {
            name: "kamaji".to_owned(),
            tenants: 5,
            cost: Err("it ended".to_owned()),
        };
        assert!(terminal(&[failed]).contains("not measured: kamaji: it ended"));
    }

    #[test]
    fn the_page_lists_what_was_written() {
        let text = markdown(&Machine::read(), &[outcome("steward", 0.03)]);
        assert!(text.contains("- patch secrets: 12.0"), "{text}");
    }
}
