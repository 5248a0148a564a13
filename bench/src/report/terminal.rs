//! The tables for a terminal: aligned columns, remarks below.

use std::fmt::Write as _;

use super::{HEADLINES, Table};
use crate::results::Results;

/// Everything as text.
pub(crate) fn render(results: &Results) -> String {
    let mut text = String::new();
    for (test, headline) in HEADLINES {
        let remarks: Vec<_> = results
            .remarks
            .iter()
            .filter(|(of, _)| *of == test)
            .collect();
        let table = Table::of(results, test);
        if table.is_none() && remarks.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{headline}");
        if let Some(table) = table {
            text.push_str(&align(&table));
        }
        for (_, remark) in remarks {
            let _ = writeln!(text, "  ! {remark}");
        }
    }
    let _ = writeln!(text, "\nGoals");
    text.push_str(&align(&Table::of_goals(results)));
    for (name, why) in &results.missing {
        let _ = writeln!(text, "not run: {name}: {why}");
    }
    text
}

/// First column to the left, the others to the right.
fn align(table: &Table) -> String {
    let width = |column: usize| {
        let cells = table
            .rows
            .iter()
            .chain([&table.head])
            .filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let mut text = String::new();
    for row in [&table.head].into_iter().chain(&table.rows) {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = if column == 0 {
                write!(text, "  {cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_what_was_not_run_is_named() {
        let text = render(&super::super::tests::sample());
        assert!(
            text.contains("  haproxy             470   1.00 (0.99–1.01)"),
            "{text}"
        );
        assert!(
            text.contains("  ! noisy: identical proxies at 1.050"),
            "{text}"
        );
        assert!(text.contains("not run: traefik: not installed"), "{text}");
    }
}
