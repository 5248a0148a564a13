//! Tables for people.
//!
//! Owns columns and widths. Colour is the terminal's business: it goes through
//! anstream, which drops it for pipes and for NO_COLOR.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

/// How well something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// Lays rows out under their heads, as wide as the widest of each column.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|h| h.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let heads: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}   ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_space() {
        let text = table(
            &["NAME", "READY"],
            &[
                vec!["a-long-name".into(), "yes".into()],
                vec!["b".into(), String::new()],
            ],
        );
        assert_eq!(text, "NAME          READY\na-long-name   yes\nb\n");
    }
}
