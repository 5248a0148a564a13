//! The picture: one panel per ratio, one bar per proxy, whiskers at the quartiles,
//! a dashed line at the reference's 1, and on our bars a mark at the goal.

use std::fmt::Write as _;

use super::HEADLINES;
use crate::{
    cli::Test,
    goals::GOALS,
    results::{Metric, Results},
    stats::Spread,
};

const WIDTH: f64 = 800.0;
const LABELS: f64 = 190.0;
/// Room for the number after the longest bar.
const NUMBERS: f64 = 110.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 26.0;
const GAP: f64 = 18.0;
/// Bars longer than this many times the reference are cut.
const LONGEST: f64 = 3.0;
const GREEN: &str = "#1a7f37";

struct Bar {
    name: String,
    ratio: Spread,
    goal: Option<f64>,
}

/// The whole picture.
pub(crate) fn render(results: &Results) -> String {
    let mut body = String::new();
    let mut top = GAP;
    for (test, headline) in HEADLINES {
        let bars = bars(results, test);
        if !bars.is_empty() {
            top = panel(&mut body, top, headline, &bars);
        }
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
            let Some(ratio) = results.find(test, name, metric) else {
                continue;
            };
            let goal = GOALS
                .iter()
                .find(|goal| goal.test == test && goal.name == name && goal.metric == metric)
                .map(|goal| goal.limit);
            bars.push(Bar {
                name: format!("{name}{suffix}"),
                ratio,
                goal,
            });
        }
    }
    bars.sort_by(|a, b| a.ratio.middle.total_cmp(&b.ratio.middle));
    bars
}

fn panel(body: &mut String, top: f64, headline: &str, bars: &[Bar]) -> f64 {
    let baseline = top + 14.0;
    let _ = writeln!(
        body,
        "<text x=\"8\" y=\"{baseline:.0}\" font-weight=\"bold\">{headline}</text>"
    );
    let longest = bars
        .iter()
        .map(|bar| bar.ratio.high)
        .fold(1.2, f64::max)
        .min(LONGEST);
    let scale = (WIDTH - LABELS - NUMBERS) / longest;
    let first = top + HEAD;
    let bottom = f64::from(u32::try_from(bars.len()).unwrap_or(0)).mul_add(ROW, first);
    line(
        body,
        scale.mul_add(1.0, LABELS),
        (first, bottom),
        "stroke=\"#555\" stroke-dasharray=\"4 3\"",
    );
    for (number, bar) in (0_u32..).zip(bars) {
        draw(body, f64::from(number).mul_add(ROW, first), scale, bar);
    }
    bottom + GAP
}

fn draw(body: &mut String, top: f64, scale: f64, bar: &Bar) {
    let place = |ratio: f64| ratio.min(LONGEST).mul_add(scale, LABELS);
    let colour = if bar.name.starts_with("steward") {
        "#2f6feb"
    } else {
        "#b6bcc6"
    };
    let middle = top + ROW / 2.0;
    let (low, end, high) = (
        place(bar.ratio.low),
        place(bar.ratio.middle),
        place(bar.ratio.high),
    );
    let _ = writeln!(
        body,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <rect x=\"{LABELS}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>\
         <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"#111\"/>",
        LABELS - 6.0,
        middle + 4.0,
        bar.name,
        top + 3.0,
        end - LABELS,
        ROW - 6.0,
    );
    let mut after = high.max(end) + 6.0;
    let mut words = format!("{:.2}", bar.ratio.middle);
    if let Some(goal) = bar.goal {
        line(
            body,
            place(goal),
            (top, top + ROW),
            &format!("stroke=\"{GREEN}\" stroke-width=\"2\""),
        );
        after = after.max(place(goal) + 6.0);
        let _ = write!(words, " <tspan fill=\"{GREEN}\">goal {goal:.2}</tspan>");
    }
    // A white rim keeps the number readable where it crosses a line.
    let _ = writeln!(
        body,
        "<text x=\"{after:.1}\" y=\"{:.1}\" stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{words}</text>",
        middle + 4.0
    );
}

fn line(body: &mut String, x: f64, (top, bottom): (f64, f64), style: &str) {
    let _ = writeln!(
        body,
        "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\" {style}/>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_bar_comes_first_and_ours_shows_its_goal() {
        let picture = render(&super::super::tests::sample());
        let ours = picture.find(">steward-gateway<").unwrap();
        let theirs = picture.find(">haproxy<").unwrap();
        assert!(ours < theirs);
        assert_eq!(picture.matches(">goal 0.70<").count(), 1);
        assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    }
}
