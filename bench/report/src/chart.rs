//! Charts as SVG: how much better each row of a group is, and how costs grow.

use std::fmt::Write;

use crate::number::digits;
use crate::{Curve, Point, Row, Samples, Target};

const FONT: &str = "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\"";
const OURS: &str = "#1f6feb";
const SHORT: &str = "#d1242f";
const PEER: &str = "#8c959f";

/// Bars on a logarithmic scale, one for each row that has a peer: to the right of the line is better than the peer. A tick
/// shows what was aimed at, and a bar that falls short of it is red.
pub struct Bars<'a> {
    title: &'a str,
    bars: Vec<(&'a Row, f64)>,
}

impl<'a> Bars<'a> {
    /// Of a group. Nothing if no row of it was measured beside a peer.
    pub fn of(title: &'a str, rows: impl IntoIterator<Item = &'a Row>) -> Option<Self> {
        let bars: Vec<_> = rows.into_iter().filter_map(|row| Some((row, row.times_better()?))).collect();
        (!bars.is_empty()).then_some(Self { title, bars })
    }

    /// The image.
    pub fn svg(&self) -> String {
        const LEFT: f64 = 520.0;
        const WIDTH: f64 = 360.0;
        const LINE: f64 = 22.0;
        let target = |row: &Row| match row.target {
            Some(Target::TimesBetter(times)) => Some(times),
            _ => None,
        };
        let all = || self.bars.iter().flat_map(|(row, times)| [Some(*times), target(row)]).flatten();
        // Whole powers of ten around everything, and 1 in any case.
        let low = all().fold(1.0, f64::min).log10().floor();
        let high = all().fold(10.0, f64::max).log10().ceil();
        let x = |times: f64| LEFT + (times.log10() - low) / (high - low) * WIDTH;
        let height = 60.0 + LINE * self.bars.len() as f64;
        let mut body = String::new();
        for power in low as i32..=high as i32 {
            let (at, bottom) = (x(10f64.powi(power)), height - 20.0);
            let color = if power == 0 { "#57606a" } else { "#d8dee4" };
            let _ =
                writeln!(body, r#"<line x1="{at:.1}" x2="{at:.1}" y1="32" y2="{bottom}" stroke="{color}"/>"#);
            let _ = writeln!(
                body,
                r#"<text {FONT} x="{at:.1}" y="{:.1}" text-anchor="middle">{}x</text>"#,
                bottom + 14.0,
                10f64.powi(power)
            );
        }
        for (at, (row, times)) in self.bars.iter().enumerate() {
            let top = 36.0 + LINE * at as f64;
            let (from, to) = (x(1.0).min(x(*times)), x(1.0).max(x(*times)));
            let _ = writeln!(
                body,
                r#"<text {FONT} x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                LEFT - 8.0,
                top + 13.0,
                escape(&shortened(&row.what, 82))
            );
            let _ = writeln!(
                body,
                r#"<rect x="{from:.1}" y="{top:.1}" width="{:.1}" height="16" fill="{}"/>"#,
                (to - from).max(1.0),
                if row.met() { OURS } else { SHORT }
            );
            let _ = writeln!(
                body,
                r#"<text {FONT} x="{:.1}" y="{:.1}">{}x</text>"#,
                to + 4.0,
                top + 13.0,
                digits(*times)
            );
            if let Some(aim) = target(row).map(x) {
                let bottom = top + 18.0;
                let _ = writeln!(
                    body,
                    r##"<line x1="{aim:.1}" x2="{aim:.1}" y1="{:.1}" y2="{bottom:.1}" stroke="#222" stroke-width="2"/>"##,
                    top - 2.0
                );
            }
        }
        page(LEFT + WIDTH + 60.0, height, self.title, &body)
    }
}

/// Small charts with both scales logarithmic, one for each curve: a slope of one square each way is linear.
pub fn lines(title: &str, curves: &[&Curve]) -> String {
    const SIDE: f64 = 220.0;
    const COLUMNS: usize = 3;
    let mut body = String::new();
    for (number, curve) in curves.iter().enumerate() {
        let left = 70.0 + (number % COLUMNS) as f64 * (SIDE + 110.0);
        let top = 70.0 + (number / COLUMNS) as f64 * (SIDE + 90.0);
        let _ = writeln!(
            body,
            r#"<text {FONT} font-weight="bold" x="{left}" y="{:.1}">{}</text>"#,
            top - 10.0,
            escape(&shortened(&format!("{}: {}", curve.group, curve.what), 44))
        );
        one(&mut body, curve, left, top, SIDE);
    }
    let height = 40.0 + curves.len().div_ceil(COLUMNS) as f64 * (SIDE + 90.0);
    page(COLUMNS as f64 * (SIDE + 110.0) + 40.0, height, title, &body)
}

/// What to draw of each point, in which colour, and how it grows.
type Side = (fn(&Point) -> &Samples, &'static str, Option<f64>);

/// Draws one curve into a square.
fn one(body: &mut String, curve: &Curve, left: f64, top: f64, side: f64) {
    let sides: [Side; 2] =
        [(|point| &point.peer, PEER, curve.peer_exponent()), (|point| &point.ours, OURS, curve.exponent())];
    let costs: Vec<f64> =
        curve.points.iter().flat_map(|point| [point.ours.median(), point.peer.median()]).flatten().collect();
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        (low.max(1e-12).log10().floor(), high.max(1e-12).log10().ceil())
    };
    let (x0, x1) = range(&mut curve.points.iter().map(|point| point.count));
    let (y0, y1) = range(&mut costs.iter().copied());
    // The same length for a factor of ten both ways, so that slopes can be seen.
    let decade = side / (x1 - x0).max(y1 - y0).max(1.0);
    let x = |count: f64| left + (count.log10() - x0) * decade;
    let y = |cost: f64| top + side - (cost.max(1e-12).log10() - y0) * decade;
    for power in x0 as i32..=x1 as i32 {
        let at = x(10f64.powi(power));
        let _ = writeln!(
            body,
            r##"<line x1="{at:.1}" x2="{at:.1}" y1="{top}" y2="{:.1}" stroke="#eaeef2"/>"##,
            top + side
        );
        let _ = writeln!(
            body,
            r#"<text {FONT} x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            top + side + 15.0,
            10f64.powi(power)
        );
    }
    for power in y0 as i32..=y1 as i32 {
        let at = y(10f64.powi(power));
        let _ = writeln!(
            body,
            r##"<line x1="{left}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}" stroke="#eaeef2"/>"##,
            left + side
        );
        let _ = writeln!(
            body,
            r#"<text {FONT} x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            left - 5.0,
            at + 4.0,
            curve.unit.show(10f64.powi(power))
        );
    }
    for (row, (of, color, exponent)) in sides.into_iter().enumerate() {
        let points: Vec<(f64, f64)> =
            curve.points.iter().filter_map(|point| Some((x(point.count), y(of(point).median()?)))).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            body,
            r#"<polyline points="{}" fill="none" stroke="{color}" stroke-width="2"/>"#,
            path.join(" ")
        );
        for (x, y) in points {
            let _ = writeln!(body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{color}"/>"#);
        }
        let name = if row == 0 { curve.peer_name.as_deref() } else { Some("ours") };
        if let (Some(name), Some(exponent)) = (name, exponent) {
            let _ = writeln!(
                body,
                r#"<text font-family="sans-serif" font-size="12" fill="{color}" x="{left}" y="{:.1}">{}: exponent {exponent:.2}</text>"#,
                top + side + 32.0 + 15.0 * (1 - row) as f64,
                escape(name)
            );
        }
    }
}

fn page(width: f64, height: f64, title: &str, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text font-family=\"sans-serif\" font-size=\"15\" font-weight=\"bold\" fill=\"#222\" x=\"12\" y=\"22\">{}</text>\n\
         {body}</svg>\n",
        escape(title)
    )
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.into()
    } else {
        text.chars().take(most - 1).chain(['…']).collect()
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    #[test]
    fn a_bar_that_falls_short_is_red_and_names_are_escaped() {
        let row =
            |ours| Row::new("g", "a < b", Unit::Seconds, Samples::from(ours)).beside("them", 1.0.into());
        let rows = [row(0.1).aims(Target::TimesBetter(5.0)), row(0.5).aims(Target::TimesBetter(5.0))];
        let svg = Bars::of("title", &rows).map(|bars| bars.svg()).unwrap_or_default();
        assert_eq!((svg.matches(OURS).count(), svg.matches(SHORT).count()), (1, 1));
        assert!(svg.contains("a &lt; b") && !svg.contains("a < b"));
        assert!(Bars::of("title", &[Row::new("g", "alone", Unit::Seconds, 1.0.into())]).is_none());
    }

    #[test]
    fn a_linear_curve_is_drawn_with_a_slope_of_one() {
        let point = |count: f64| Point { count, ours: (count * 1e-3).into(), peer: Samples::default() };
        let points = [100.0, 1_000.0].map(point).to_vec();
        let curve =
            Curve { group: "g".into(), what: "it".into(), unit: Unit::Seconds, peer_name: None, points };
        let svg = lines("title", &[&curve]);
        let drawn = svg.lines().find_map(|line| {
            line.strip_prefix("<polyline points=\"")?
                .split_once("\" ")
                .filter(|(points, _)| !points.is_empty())
        });
        assert_eq!(drawn.map(|(points, _)| points), Some("70.0,290.0 290.0,70.0"));
    }
}
