//! Published figures against ours: a point for each, by its verdict.

use super::html::{escape, svg};
use super::plot::{Axis, Frame, axes, marker};
use super::scale::Scale;
use super::table::{Cell, Table, Tone};
use crate::format::figure;
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Chart with a point for each published figure.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Points. Their units may differ: only the two figures of one point are compared.
    pub points: Vec<ScatterPoint>,
}

/// Published figure beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ScatterPoint {
    /// Published figure, in words.
    pub what: String,
    /// Published figure.
    pub published: f64,
    /// Our figure in the same unit.
    pub ours: f64,
    /// Judgement by the rule of this point, which may be stricter or wider than the band of the chart.
    pub verdict: Verdict,
}

/// Judgement of a published figure or statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not hold.
    Misses,
    /// There are too few runs to judge.
    CannotTell,
    /// It is not judged.
    NotJudged,
}

impl Verdict {
    /// All of them, in drawing order: those that matter most are on top.
    const ALL: [Verdict; 4] = [Verdict::NotJudged, Verdict::CannotTell, Verdict::Holds, Verdict::Misses];

    fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Misses => "misses",
            Verdict::CannotTell => "too few runs",
            Verdict::NotJudged => "not judged",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Verdict::Holds => Tone::Good,
            Verdict::Misses => Tone::Bad,
            Verdict::CannotTell | Verdict::NotJudged => Tone::Faint,
        }
    }

    /// Class of the colour, and number of the marker: the shape alone tells verdicts apart, too.
    fn look(self) -> (&'static str, usize) {
        match self {
            Verdict::Holds => ("holds", 0),
            Verdict::Misses => ("misses", 3),
            Verdict::CannotTell => ("hollow", 2),
            Verdict::NotJudged => ("hollow", 0),
        }
    }
}

/// Both axes have the same scale and the same length.
const SQUARE: Frame =
    Frame { width: 480.0, height: 480.0, left: 74.0, right: 464.0, top: 34.0, bottom: 424.0, ticks: [6, 6] };
/// Half the width of the band around equality, as a share of the published figure.
const BAND: f64 = 0.1;
/// Ratio of the largest to the smallest figure from which the axes are logarithmic.
const LOG_RATIO: f64 = 30.0;

impl Scatter {
    fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().flat_map(|point| [point.published, point.ours]).filter(|value| value.is_finite())
    }

    fn is_log(&self) -> bool {
        let least = self.values().fold(f64::INFINITY, f64::min);
        let most = self.values().fold(0.0, f64::max);
        least > 0.0 && most >= LOG_RATIO * least
    }

    /// Draws the chart with its legend.
    pub(super) fn picture(&self) -> Markup {
        let swatch = |drawing: String| {
            html! { svg viewBox="0 0 34 14" aria-hidden="true" { (PreEscaped(drawing)) } }
        };
        html! {
            ul.legend {
                @for verdict in Verdict::ALL.into_iter().rev().filter(|verdict| self.has(*verdict)) {
                    li { (swatch(mark(verdict, 17.0, 7.0, ""))) (verdict.words()) }
                }
                li {
                    (swatch("<path class=\"band\" d=\"M1 2H33V12H1z\"/><path class=\"equal\" d=\"M1 7H33\"/>".to_owned()))
                    "equal, and 10 % around it"
                }
            }
            (self.svg())
        }
    }

    fn has(&self, verdict: Verdict) -> bool {
        self.points.iter().any(|point| point.verdict == verdict)
    }

    fn svg(&self) -> Markup {
        let axis = |name: &str| {
            let axis = Axis::new(name, "");
            if self.is_log() { axis.log() } else { axis.from_zero() }
        };
        let (x, y) = (axis("published"), axis("ours"));
        let xs = Scale::of(&x, self.values(), SQUARE.left, SQUARE.right);
        let ys = Scale::of(&y, self.values(), SQUARE.bottom, SQUARE.top);
        let mut out = String::new();
        axes(&mut out, &SQUARE, [(&x, &xs), (&y, &ys)]);
        let _ = writeln!(out, "<path class=\"band\" d=\"{}\"/>", band(&xs, &ys));
        let _ = writeln!(
            out,
            "<path class=\"equal\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            xs.from, ys.from, xs.to, ys.to
        );
        for verdict in Verdict::ALL {
            let of_verdict = self.points.iter().filter(|point| point.verdict == verdict);
            for point in of_verdict.filter(|point| xs.takes(point.published) && ys.takes(point.ours)) {
                let title = format!(
                    "<title>{}: published {}, ours {}, {}</title>",
                    escape(&point.what),
                    figure(point.published),
                    figure(point.ours),
                    verdict.words()
                );
                out.push_str(&mark(verdict, xs.place(point.published), ys.place(point.ours), &title));
                out.push('\n');
            }
        }
        let label = format!("{}: ours over published", self.title);
        svg("plot square", SQUARE.width, SQUARE.height, &label, out)
    }

    pub(crate) fn table(&self) -> Table {
        let mut table = Table::of(&self.title, "figure|# published|# ours|# ratio|verdict");
        for point in &self.points {
            let ratio = (point.published != 0.0).then(|| point.ours / point.published);
            table.row([
                Cell::text(&point.what),
                Cell::number(point.published),
                Cell::number(point.ours),
                ratio.map_or_else(Cell::empty, |ratio| Cell::precise(ratio, 2)),
                Cell::text(point.verdict.words()).toned(point.verdict.tone()),
            ]);
        }
        table
    }
}

/// Marker of a verdict with its title.
fn mark(verdict: Verdict, x: f64, y: f64, title: &str) -> String {
    let (class, style) = verdict.look();
    format!("<g class=\"{class}\"><path class=\"mark\" d=\"{}\">{title}</path></g>", marker(style, x, y, 4.6))
}

/// Outline of the figures that are within [`BAND`] of the published one, inside of the frame. Both scales have the same
/// ends.
fn band(xs: &Scale, ys: &Scale) -> String {
    let (low, high) = (if xs.log { xs.low } else { xs.low.max(0.0) }, xs.high);
    let corners = [
        (low, low * (1.0 + BAND)),
        (high / (1.0 + BAND), high),
        (high, high),
        (high, high * (1.0 - BAND)),
        (low / (1.0 - BAND), low),
        (low, low),
    ];
    let places = corners.map(|(x, y)| format!("{:.1} {:.1}", xs.place(x), ys.place(y)));
    format!("M{}z", places.join("L"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatter(figures: &[(f64, f64, Verdict)]) -> Scatter {
        let point = |(published, ours, verdict): &(f64, f64, Verdict)| ScatterPoint {
            what: "time & <more>".into(),
            published: *published,
            ours: *ours,
            verdict: *verdict,
        };
        Scatter { title: "All".into(), points: figures.iter().map(point).collect(), ..Scatter::default() }
    }

    #[test]
    fn the_axes_are_logarithmic_where_the_range_asks_for_it() {
        use Verdict::Holds;
        assert!(scatter(&[(1.0, 1.1, Holds), (40.0, 39.0, Holds)]).is_log());
        assert!(!scatter(&[(1.0, 1.1, Holds), (20.0, 19.0, Holds)]).is_log());
        assert!(!scatter(&[(0.0, 1.1, Holds), (400.0, 390.0, Holds)]).is_log(), "zero has no place");
        assert!(!scatter(&[]).is_log());
        for figures in
            [vec![], vec![(0.0, 0.0, Holds)], vec![(-5.0, 3.0, Holds)], vec![(2.0, f64::NAN, Holds)]]
        {
            let picture = scatter(&figures).picture().into_string();
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        }
    }

    #[test]
    fn each_point_has_the_look_of_its_own_verdict() {
        // The second one is within the band, but its own rule is stricter.
        let figures = [
            (100.0, 101.0, Verdict::Holds),
            (100.0, 105.0, Verdict::Misses),
            (10.0, 30.0, Verdict::NotJudged),
            (10.0, 12.0, Verdict::CannotTell),
        ];
        let picture = scatter(&figures).picture().into_string();
        let (legend, drawing) = picture.split_once("</ul>").expect("a legend and a drawing");
        for (class, count) in [("holds", 1), ("misses", 1), ("hollow", 2)] {
            assert_eq!(drawing.matches(&format!("<g class=\"{class}\">")).count(), count, "{class}");
            assert_eq!(legend.matches(&format!("<g class=\"{class}\">")).count(), count, "{class}");
        }
        assert!(drawing.contains("<title>time &amp; &lt;more&gt;: published 100, ours 105, misses</title>"));
        let csv = scatter(&figures).table().csv();
        assert!(csv.contains("time & <more>,100,105,1.05,misses\n"), "{csv}");
    }

    #[test]
    fn the_band_has_a_point_that_is_ten_percent_off_on_its_edge() {
        let axis = Axis::new("", "").from_zero();
        let values = || [0.0, 100.0].into_iter();
        let (xs, ys) = (Scale::of(&axis, values(), 0.0, 104.0), Scale::of(&axis, values(), 104.0, 0.0));
        // The axes end at 104.
        assert_eq!(band(&xs, &ys), "M0.0 104.0L94.5 0.0L104.0 0.0L104.0 10.4L0.0 104.0L0.0 104.0z");
        let axis = axis.log();
        let values = || [1.0, 100.0].into_iter();
        let (xs, ys) = (Scale::of(&axis, values(), 0.0, 200.0), Scale::of(&axis, values(), 200.0, 0.0));
        assert!(band(&xs, &ys).starts_with("M0.0 195.9L195.9 0.0L200.0 0.0L200.0 4.6L4.6 "));
    }
}
