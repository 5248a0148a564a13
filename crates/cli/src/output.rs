//! Tables and trees for people, JSON and YAML for programs.
//!
//! Owns columns and widths. Colour is the terminal's business: it goes through
//! anstream, which drops it for pipes and for `NO_COLOR`.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::args::{Manifest, Output};
use crate::problem::Problem;

/// Prints to standard output, in colour where that is a terminal.
macro_rules! out {
    ($($words:tt)*) => { $crate::output::print(format_args!($($words)*)) };
}

/// The same with a line end.
macro_rules! outln {
    ($($words:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($words)*))) };
}

/// Writes, and ends the program quietly when nobody reads any more: `steward get | head`.
#[expect(clippy::exit, reason = "there is nobody left to tell anything")]
pub fn print(words: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    if anstream::stdout().write_fmt(words).is_err() {
        std::process::exit(0);
    }
}

/// Space between columns.
const GAP: usize = 3;

/// A column is never cut to less than this.
const LEAST: usize = 12;

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Good,
    /// Works, or will soon; worth a look.
    Warn,
    /// Broken.
    Bad,
}

impl Health {
    /// The colour it is printed in.
    pub fn style(self) -> Style {
        let colour = match self {
            Self::Good => AnsiColor::Green,
            Self::Warn => AnsiColor::Yellow,
            Self::Bad => AnsiColor::Red,
        };
        Style::new().fg_color(Some(colour.into()))
    }

    /// A sign that says the same without colour.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Good => "✓",
            Self::Warn => "!",
            Self::Bad => "✗",
        }
    }

    /// The sign in its colour.
    pub fn painted(self) -> String {
        let style = self.style();
        format!("{style}{}{style:#}", self.sign())
    }
}

/// What is secondary.
pub fn dim(text: &str) -> String {
    let style = Style::new().dimmed();
    format!("{style}{text}{style:#}")
}

/// What is a headline.
pub fn bold(text: &str) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

/// As programs read it; nothing for the forms that people read.
pub fn machine(value: &impl Serialize, output: Output) -> Result<Option<String>, Problem> {
    match output {
        Output::Json => Ok(Some(manifest(value, Manifest::Json)?)),
        Output::Yaml => Ok(Some(manifest(value, Manifest::Yaml)?)),
        Output::Table | Output::Wide => Ok(None),
    }
}

/// A manifest as text, with a line end.
pub fn manifest(value: &impl Serialize, output: Manifest) -> Result<String, Problem> {
    let text = match output {
        Manifest::Json => serde_json::to_string_pretty(value).map_err(|e| e.to_string()),
        Manifest::Yaml => serde_saphyr::to_string(value).map_err(|e| e.to_string()),
    };
    let text = text.map_err(Problem::Argument)?;
    Ok(format!("{}\n", text.trim_end()))
}

/// How wide the terminal is; unlimited where there is none.
pub fn width() -> usize {
    use std::io::IsTerminal as _;
    if !std::io::stdout().is_terminal() {
        return usize::MAX;
    }
    terminal_size::terminal_size().map_or(usize::MAX, |(width, _)| usize::from(width.0))
}

/// Lays rows out under their heads, as wide as the widest of each column. The last
/// column is cut when the whole would be wider than the terminal; where even that does not
/// help, each row becomes a block of lines.
pub fn table(head: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let mut widths: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let all: usize = widths.iter().map(|w| w + GAP).sum();
    // Where it gets tight, the space between columns goes first.
    let gap = if all > width { 1 } else { GAP };
    if let Some((last, others)) = widths.split_last_mut() {
        let taken: usize = others.iter().map(|w| w + gap).sum();
        if taken.saturating_add((*last).min(LEAST)) > width {
            return blocks(head, rows, width);
        }
        *last = (*last).min(width.saturating_sub(taken).max(LEAST));
    }
    let mut out = String::new();
    let heads: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{:<width$}{:gap$}", cut(cell, *width), "");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// One line for each cell, its head before it; an empty line between rows.
fn blocks(head: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let margin = head.iter().map(|h| h.chars().count()).max().unwrap_or(0) + GAP;
    let block = |row: &Vec<String>| -> String {
        let line = |(head, cell): (&&str, &String)| {
            let cell = wrap(cell, margin, width);
            format!("{}\n", format!("{head:<margin$}{cell}").trim_end())
        };
        head.iter().zip(row).map(line).collect()
    };
    rows.iter().map(block).collect::<Vec<_>>().join("\n")
}

/// Cuts to a width, and shows that it was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Breaks at spaces so that no line is wider than asked; the lines after the first
/// are indented.
pub fn wrap(text: &str, indent: usize, width: usize) -> String {
    let room = width.saturating_sub(indent).max(LEAST * 2);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let long = lines[last].chars().count() + 1 + word.chars().count() > room;
        if long && !lines[last].is_empty() {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines.join(&format!("\n{:indent$}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        vec![
            vec!["a-long-name".into(), "yes, and much more to say".into()],
            vec!["b".into(), String::new()],
        ]
    }

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_space() {
        let text = table(&["NAME", "READY"], &rows(), usize::MAX);
        assert_eq!(
            text,
            "NAME          READY\na-long-name   yes, and much more to say\nb\n"
        );
    }

    #[test]
    fn a_terminal_too_narrow_for_columns_gets_a_block_for_each_row() {
        let rows = vec![
            vec![
                "tenant-one".into(),
                "Ready".into(),
                "waits for nothing at all now".into(),
            ],
            vec!["two".into(), "Sleeping".into(), "-".into()],
        ];
        let text = table(&["NAME", "STATE", "WAITING FOR"], &rows, 30);
        assert_eq!(
            text,
            "NAME          tenant-one\nSTATE         Ready\nWAITING FOR   waits for nothing at all\n              now\n\n\
             NAME          two\nSTATE         Sleeping\nWAITING FOR   -\n"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_last_column_only() {
        let text = table(&["NAME", "READY"], &rows(), 28);
        assert_eq!(text, "NAME        READY\na-long-name yes, and much m…\nb\n");
    }

    #[test]
    fn long_sentences_are_broken_at_spaces() {
        let text = wrap("one two three four five six seven", 4, 28);
        assert_eq!(text, "one two three four five\n    six seven");
    }
}
