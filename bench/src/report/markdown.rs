//! The page that is kept: RESULTS.md.

use std::fmt::Write as _;

use super::{HEADLINES, Table};
use crate::results::Results;

/// Everything as Markdown.
pub(crate) fn render(results: &Results) -> String {
    let machine = &results.machine;
    let mut text = "# Measured\n\nWritten by `make bench`; do not edit. How to read it: \
        [docs/performance.md](../docs/performance.md).\n\n"
        .to_owned();
    let versions: Vec<String> = results
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let _ = writeln!(text, "- {}", machine.date);
    let _ = writeln!(
        text,
        "- {}, {}, Linux {}",
        machine.processor, machine.memory, machine.kernel
    );
    let _ = writeln!(text, "- load average when it began: {}", machine.load);
    let _ = writeln!(text, "- {}", versions.join(", "));
    for (name, why) in &results.missing {
        let _ = writeln!(text, "- not run: {name}: {}", why.replace('\n', " "));
    }
    text.push_str("\n![ratios to HAProxy](results.svg)\n\n## Goals\n\n");
    text.push_str(&table(&Table::of_goals(results)));
    for (test, headline) in HEADLINES {
        let remarks: Vec<_> = results
            .remarks
            .iter()
            .filter(|(of, _)| *of == test)
            .collect();
        let found = Table::of(results, test);
        if found.is_none() && remarks.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n## {headline}\n");
        if let Some(found) = found {
            text.push_str(&table(&found));
        }
        for (_, remark) in remarks {
            let _ = writeln!(text, "\n> {}", remark.replace('\n', " "));
        }
    }
    text
}

fn table(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut rule = "|---|".to_owned();
    rule.push_str(&"---:|".repeat(table.head.len().saturating_sub(1)));
    let rows: String = table.rows.iter().map(|row| line(row)).collect();
    format!("{}{rule}\n{rows}", line(&table.head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_machine_versions_and_goals() {
        let text = render(&super::super::tests::sample());
        for part in [
            "- 2 × Processor, 24 GiB, Linux 6.18",
            "- haproxy 2.6.12",
            "- not run: traefik: not installed",
            "| steward-gateway | 330 | 0.69 (0.68–0.70) |",
            "| front door: CPU per TLS connection, vs HAProxy | 0.70 | 0.69 | met |",
            "> noisy: identical proxies at 1.050",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }
}
