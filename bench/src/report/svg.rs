//! The picture: one panel per ratio, one bar per proxy, whiskers at the
//! quartiles, a line at the reference's 1 and one at the goal.

use std::fmt::Write as _;

use super::HEADLINES;
use crate::{
    cli::Test,
    goals::GOALS,
    results::{Metric, Results},
    stats::Spread,
};

const WIDTH: f64 = 760.0;
const LABELS: f64 = 170.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 34.0;
const GAP: f64 = 18.0;
/// Bars longer than this many times the reference are cut and say so.
const LONGEST: f64 = 3.0;

struct Bar {
    name: String,
    ratio: Spread,
}

/// The whole picture.
pub(crate) fn render(results: &Results) -> String {
    let mut body = String::new();
    let mut top = GAP;
    for (test, headline) in HEADLINES {
        let bars = bars(results, test);
        if bars.is_empty() {
            continue;
        }
        top = panel(&mut body, top, test, headline, &bars);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

fn bars(results: &Results, test: Test) -> Vec<Bar> {
    let mut bars = Vec::new();
    for name in results.names(test) {
        for (metric, suffix) in [(Metric::Ratio, ""), (Metric::RatioWithGate, " + gate")] {
            if let Some(ratio) = results.find(test, name, metric) {
                bars.push(Bar {
                    name: format!("{name}{suffix}"),
                    ratio,
                });
            }
        }
    }
    bars.sort_by(|a, b| a.ratio.middle.total_cmp(&b.ratio.middle));
    bars
}

fn panel(body: &mut String, top: f64, test: Test, headline: &str, bars: &[Bar]) -> f64 {
    let _ = writeln!(
        body,
        "<text x=\"8\" y=\"{:.0}\" font-weight=\"bold\">{headline}</text>",
        top + 14.0
    );
    let longest = bars
        .iter()
        .map(|bar| bar.ratio.high)
        .fold(1.2, f64::max)
        .min(LONGEST);
    let scale = (WIDTH - LABELS - 60.0) / longest;
    let first = top + HEAD;
    for (number, bar) in (0_u32..).zip(bars) {
        draw(body, f64::from(number).mul_add(ROW, first), scale, bar);
    }
    let bottom = f64::from(u32::try_from(bars.len()).unwrap_or(0)).mul_add(ROW, first);
    line(body, 1.0, scale, (first, bottom), "#555");
    let goals = GOALS.iter().filter(|goal| goal.test == test);
    for goal in goals.filter(|goal| matches!(goal.metric, Metric::Ratio | Metric::RatioWithGate)) {
        line(body, goal.limit, scale, (first, bottom), "#1a7f37");
        let x = goal.limit.mul_add(scale, LABELS);
        let _ = writeln!(
            body,
            "<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"#1a7f37\" font-size=\"10\" text-anchor=\"middle\">{:.2}</text>",
            first - 3.0,
            goal.limit
        );
    }
    bottom + GAP
}

fn draw(body: &mut String, y: f64, scale: f64, bar: &Bar) {
    let colour = if bar.name.starts_with("steward") {
        "#2f6feb"
    } else {
        "#b6bcc6"
    };
    let length = bar.ratio.middle.min(LONGEST) * scale;
    let (low, high) = (
        bar.ratio.low.min(LONGEST) * scale,
        bar.ratio.high.min(LONGEST) * scale,
    );
    let middle = y + ROW / 2.0;
    let _ = writeln!(
        body,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <rect x=\"{LABELS}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\
         <line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"#111\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{:.2}</text>",
        LABELS - 6.0,
        middle + 4.0,
        bar.name,
        y + 3.0,
        ROW - 6.0,
        LABELS + low,
        LABELS + high,
        LABELS + high.max(length) + 6.0,
        middle + 4.0,
        bar.ratio.middle,
    );
}

fn line(body: &mut String, at: f64, scale: f64, (top, bottom): (f64, f64), colour: &str) {
    let x = at.mul_add(scale, LABELS);
    let _ = writeln!(
        body,
        "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" stroke=\"{colour}\" stroke-dasharray=\"4 3\"/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_bar_comes_first_and_the_goal_is_drawn() {
        let picture = render(&super::super::tests::sample());
        let ours = picture.find(">steward-gateway<").unwrap();
        let theirs = picture.find(">haproxy<").unwrap();
        assert!(ours < theirs);
        assert!(picture.contains(">0.70</text>"));
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    }
}
