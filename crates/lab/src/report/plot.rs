//! Plots as inline SVG.
//!
//! Series differ by colour, marker and dash, so that they can be distinguished in print and with colour blindness.
//! Colours are classes (`s0` to `s6`) whose values come from the style of the page, for light, dark and print. A series
//! is one path whatever its number of points; markers show their values on hover.

use super::bands::{self, Band};
use super::html::{escape, svg};
use super::panels::{Drawn, Panels};
use super::scale::Scale;
use super::table::{Cell, Column, Table};
use crate::format::figure;
use crate::label;
use crate::record::{Params, Record, number};
use crate::stats::Summary;
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Plot of several series.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// Caption below the plot.
    pub caption: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series, in drawing order.
    pub series: Vec<PlotSeries>,
    /// Links above the plot, with their outages on the horizontal axis.
    pub bands: Vec<Band>,
    /// Table below the plot; `None` for a table of the points.
    pub table: Option<Table>,
}

/// Axis of a plot.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Quantity.
    pub label: String,
    /// Unit; empty without a unit.
    pub unit: String,
    /// True for a logarithmic axis; points that are not positive are omitted.
    pub log: bool,
    /// True for an axis that starts at zero.
    pub from_zero: bool,
}

impl Axis {
    /// Creates a linear axis around its points.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Axis {
        Axis { label: label.into(), unit: unit.into(), log: false, from_zero: false }
    }

    /// Makes the axis logarithmic.
    pub fn log(mut self) -> Axis {
        self.log = true;
        self
    }

    /// Makes the axis start at zero.
    pub fn from_zero(mut self) -> Axis {
        self.from_zero = true;
        self
    }

    pub(super) fn head(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{} ({})", self.label, self.unit) }
    }
}

/// Series of points.
#[derive(Clone, Debug, Default)]
pub struct PlotSeries {
    /// Name in the legend, without the parameters in `at`.
    pub name: String,
    /// Parameters of all points, where series differ in them.
    pub at: Params,
    /// Points, from left to right.
    pub points: Vec<Point>,
    /// Shape of the points.
    pub shape: Shape,
    /// True for published figures: hollow markers on top of the others.
    pub published: bool,
    /// Number of the colour, marker and dash; `None` for the next one.
    pub style: Option<usize>,
}

/// Shape in which points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Markers on a line.
    #[default]
    Line,
    /// Markers only.
    Points,
    /// Line only: a trace.
    Trace,
    /// Line that keeps a value until the next point.
    Steps,
    /// The same, thin and faint: a moving outer bound.
    FaintSteps,
    /// Narrow bar from zero to each point.
    Bars,
    /// Letter at each point.
    Letter(char),
    /// Vertical line from each point to its `until`.
    Spans,
    /// Broken faint line: a limit.
    Bound,
}

/// Point of a plot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Horizontal value.
    pub x: f64,
    /// Vertical value.
    pub y: f64,
    /// Half the height of the error bar.
    pub error: Option<f64>,
    /// Half the width of the horizontal error bar.
    pub across: Option<f64>,
    /// Other end of a span.
    pub until: Option<f64>,
}

impl Point {
    /// Creates a point without an error bar.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, ..Point::default() }
    }

    /// Creates a point from a record's mean and interval.
    pub fn of(x: f64, record: &Record) -> Point {
        Point { x, y: record.mean, error: record.ci95, ..Point::default() }
    }

    /// Creates a point from the means and intervals of two quantities.
    pub fn of_both(x: &Summary, y: &Summary) -> Point {
        Point { x: x.mean, y: y.mean, error: y.ci95, across: x.ci95, until: None }
    }

    /// Creates a vertical line.
    pub fn span(x: f64, from: f64, until: f64) -> Point {
        Point { x, y: from, until: Some(until), ..Point::default() }
    }

    fn width(&self) -> [f64; 2] {
        [self.x - self.across.unwrap_or(0.0), self.x + self.across.unwrap_or(0.0)]
    }

    fn reach(&self) -> [f64; 2] {
        match self.until {
            Some(until) => [self.y.min(until), self.y.max(until)],
            None => [self.y - self.error.unwrap_or(0.0), self.y + self.error.unwrap_or(0.0)],
        }
    }
}

impl PlotSeries {
    /// Creates a series of markers on a line, in the next style.
    pub fn new(name: impl Into<String>, points: Vec<Point>) -> PlotSeries {
        PlotSeries { name: name.into(), points, ..PlotSeries::default() }
    }

    /// Sets the parameters of all points.
    pub fn at(mut self, params: Params) -> PlotSeries {
        self.at = params;
        self
    }

    /// Name with these parameters.
    pub(super) fn name_at(&self, params: &Params) -> String {
        let parts = [self.name.clone(), label::point(params)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn full_name(&self) -> String {
        self.name_at(&self.at)
    }

    /// Sets the shape.
    pub fn shaped(mut self, shape: Shape) -> PlotSeries {
        self.shape = shape;
        self
    }

    /// Marks the series as published: markers only.
    pub fn published(mut self) -> PlotSeries {
        self.published = true;
        self.shape = Shape::Points;
        self
    }

    /// Returns true for a published series whose name does not contain the word.
    fn needs_saying(&self) -> bool {
        self.published && !self.name.contains("published")
    }

    /// Sets the number of the style, so that related series look alike.
    pub fn styled(mut self, style: usize) -> PlotSeries {
        self.style = Some(style);
        self
    }
}

/// Place of the axes in a drawing.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    /// Approximate number of values on the horizontal and the vertical axis.
    pub(super) ticks: [usize; 2],
}

const WHOLE: Frame =
    Frame { width: 760.0, height: 400.0, left: 74.0, right: 744.0, top: 34.0, bottom: 346.0, ticks: [10, 7] };
const PANEL: Frame =
    Frame { width: 372.0, height: 262.0, left: 66.0, right: 362.0, top: 34.0, bottom: 208.0, ticks: [5, 5] };
/// Number of different styles.
pub(super) const STYLES: usize = 7;
const DASHES: [&str; STYLES] = ["", "7 3", "2 3", "10 3 2 3", "14 4", "5 2 1 2 1 2", "1 2"];
/// Number of points above which a series has no names of markers and a thinned trace.
const MANY: usize = 400;
/// Maximum rows of a table for display.
const ROWS_MAX: usize = 60;

impl Plot {
    /// Creates an empty plot.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Plot {
        Plot { title: title.into(), x, y, ..Plot::default() }
    }

    /// Creates a plot of bars side by side at 1, 2, 3 and so on, with a table of their values.
    pub fn bars(title: &str, x: Axis, y: Axis, groups: impl IntoIterator<Item = (String, Vec<f64>)>) -> Plot {
        /// Distance between bars.
        const APART: f64 = 0.13;
        let groups: Vec<(String, Vec<f64>)> = groups.into_iter().collect();
        let columns = groups.iter().map(|(name, _)| Column::number(name, &y.unit));
        let columns = [Column::number(&x.label, &x.unit)].into_iter().chain(columns);
        let mut table = Table::new(title, columns);
        for at in 0..groups.iter().map(|(_, values)| values.len()).max().unwrap_or(0) {
            let value = |(_, values): &(_, Vec<f64>)| {
                values.get(at).map_or_else(Cell::empty, |value| Cell::precise(*value, 1))
            };
            table.row([Cell::number(at as f64 + 1.0)].into_iter().chain(groups.iter().map(value)));
        }
        let mut plot = Plot { table: Some(table), ..Plot::new(title, x, y) };
        let middle = groups.len().saturating_sub(1) as f64 / 2.0;
        for (index, (name, values)) in groups.into_iter().enumerate() {
            let aside = APART * (index as f64 - middle);
            let point = |(at, value): (u32, f64)| Point::new(f64::from(at) + aside, value);
            let points = (1..).zip(values).filter(|(_, value)| *value > 0.0).map(point).collect();
            plot = plot.with(PlotSeries::new(name, points).shaped(Shape::Bars));
        }
        plot.captioned("Bars are in the order of the legend.")
    }

    /// Adds a series on top of the others.
    pub fn with(mut self, series: PlotSeries) -> Plot {
        self.series.push(series);
        self
    }

    /// Adds a caption.
    pub fn captioned(mut self, caption: impl Into<String>) -> Plot {
        self.caption = caption.into();
        self
    }

    /// Number of the style of each series, before the styles are repeated.
    pub(super) fn numbers(&self) -> Vec<usize> {
        let mut next = 0;
        let number = |series: &PlotSeries| {
            series.style.unwrap_or_else(|| {
                next += usize::from(series.shape != Shape::Bound);
                next.saturating_sub(1)
            })
        };
        self.series.iter().map(number).collect()
    }

    /// Draws the plot, with a legend if a name is needed; in panels if there are too many series for one picture.
    pub(super) fn picture(&self) -> Markup {
        match super::panels::of(self) {
            Panels { panels, legend: None } if panels.len() == 1 => {
                let drawn = &panels[0].drawn;
                let named = drawn.len() > 1 || drawn.iter().any(|drawn| drawn.series.published);
                html! {
                    @if named {
                        (legend(drawn))
                    }
                    @if !self.bands.is_empty() {
                        (bands::legend())
                    }
                    (self.svg(&bands::below(WHOLE, &self.bands), &self.title, drawn))
                }
            }
            Panels { panels, legend: common } => html! {
                @if let Some(common) = &common {
                    (legend(common))
                }
                div.panels {
                    @for panel in &panels {
                        div {
                            @if !panel.title.is_empty() {
                                h4 { (panel.title) }
                            }
                            @if common.is_none() {
                                (legend(&panel.drawn))
                            }
                            (self.svg(&PANEL, &panel.name(&self.title), &panel.drawn))
                        }
                    }
                }
            },
        }
    }

    /// Draws some of the series on the scale of all.
    fn svg(&self, frame: &Frame, title: &str, drawn: &[Drawn<'_>]) -> Markup {
        let width = self.series.iter().flat_map(|s| s.points.iter().flat_map(Point::width));
        let xs = Scale::of(&self.x, width, frame.left, frame.right);
        let reach = self.series.iter().flat_map(|s| s.points.iter().flat_map(Point::reach));
        let ys = Scale::of(&self.y, reach, frame.bottom, frame.top);
        let mut out = String::new();
        bands::draw(&mut out, &self.bands, &xs, &ys);
        axes(&mut out, frame, [(&self.x, &xs), (&self.y, &ys)]);
        let order = |published: bool| drawn.iter().filter(move |one| one.series.published == published);
        for one in order(false).chain(order(true)) {
            draw(&mut out, one, &xs, &ys);
        }
        let label = format!("{title}: {} over {}", self.y.head(), self.x.head());
        svg("plot", frame.width, frame.height, &label, out)
    }

    /// Table for display: that of the author, or a row for each x, or a row for each series if there are too many.
    pub(crate) fn table(&self) -> Table {
        if let Some(table) = &self.table {
            return table.clone();
        }
        let mut all: Vec<f64> = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.x)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        if all.len() > ROWS_MAX { self.table_of_series() } else { self.table_of_points(&all) }
    }

    fn table_of_points(&self, all: &[f64]) -> Table {
        let name = |s: &PlotSeries| {
            format!("{}{}", s.full_name(), if s.needs_saying() { ", published" } else { "" })
        };
        let heads = self.series.iter().map(|s| Column::number(name(s), &self.y.unit));
        let first = Column::number(&self.x.label, &self.x.unit);
        let mut table = Table::new(&self.title, [first].into_iter().chain(heads));
        for &x in all {
            let cells = self.series.iter().map(|series| {
                let mut here = series.points.iter().filter(|p| p.x == x);
                let cell = here.next().map_or_else(Cell::empty, |p| {
                    let summary = Summary { n: 0, mean: p.y, ci95: p.error, min: p.y, max: p.y };
                    Cell::summary(&summary)
                });
                if here.next().is_some() { Cell::text("several") } else { cell }
            });
            table.row([Cell::number(x)].into_iter().chain(cells));
        }
        table
    }

    fn table_of_series(&self) -> Table {
        let unit = |name: &str| Column::number(name, &self.y.unit);
        let heads = [Column::text("name"), Column::number("points", "")];
        let x = ["first", "last"].map(|end| Column::number(format!("{end} {}", self.x.label), &self.x.unit));
        let mut table =
            Table::new(&self.title, heads.into_iter().chain(x).chain(["least", "greatest"].map(unit)));
        for series in &self.series {
            let Some((first, last)) = series.points.first().zip(series.points.last()) else { continue };
            let low = series.points.iter().map(|p| p.reach()[0]).fold(f64::INFINITY, f64::min);
            let high = series.points.iter().map(|p| p.reach()[1]).fold(f64::NEG_INFINITY, f64::max);
            let count = Cell::precise(series.points.len() as f64, 0);
            let ends = [first.x, last.x, low, high].map(Cell::number);
            table.row([Cell::text(series.full_name()), count].into_iter().chain(ends));
        }
        table
    }

    pub(super) fn csv(&self) -> String {
        let columns = ["name", "published"].map(Column::text).into_iter();
        let across = self.series.iter().flat_map(|series| &series.points).any(|point| point.across.is_some());
        let numbers = [self.x.head(), self.y.head(), "ci95".into(), "until".into()];
        let numbers = numbers.into_iter().chain(across.then(|| format!("ci95 of {}", self.x.head())));
        let mut table = Table::new(&self.title, columns.chain(numbers.map(|name| Column::number(name, ""))));
        for series in &self.series {
            for point in &series.points {
                let optional = |value: Option<f64>| value.map_or_else(Cell::empty, |v| Cell::text(number(v)));
                let cells = [
                    Cell::text(series.full_name()),
                    Cell::text(if series.published { "yes" } else { "no" }),
                    Cell::text(number(point.x)),
                    Cell::text(number(point.y)),
                    optional(point.error),
                    optional(point.until),
                ];
                table.row(cells.into_iter().chain(across.then(|| optional(point.across))));
            }
        }
        table.csv()
    }
}

/// Draws a frame with the values and names of both axes.
pub(super) fn axes(out: &mut String, frame: &Frame, [(x, xs), (y, ys)]: [(&Axis, &Scale); 2]) {
    let Frame { left, right, top, bottom, .. } = frame;
    for (tick, label) in ys.ticks(frame.ticks[1]) {
        let (place, x, y) = (ys.place(tick), left - 8.0, ys.place(tick) + 4.0);
        let _ = write!(out, r#"<path class="grid" d="M{left} {place:.1}H{right}"/>"#);
        let _ = writeln!(out, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="end">{label}</text>"#);
    }
    for (tick, label) in xs.ticks(frame.ticks[0]) {
        let (x, y) = (xs.place(tick), bottom + 20.0);
        let _ = write!(out, r#"<path class="axis" d="M{x:.1} {bottom}v5"/>"#);
        let _ =
            writeln!(out, r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="middle">{label}</text>"#);
    }
    let _ = write!(out, r#"<path class="axis" d="M{left} {top}V{bottom}H{right}"/>"#);
    let (start, above, below) = (left - 62.0, top - 16.0, bottom + 44.0);
    let (x, y) = (escape(&x.head()), escape(&y.head()));
    let _ = write!(out, r#"<text class="label" x="{start:.1}" y="{above:.1}">{y}</text>"#);
    let _ = writeln!(out, r#"<text class="label" x="{right}" y="{below:.1}" text-anchor="end">{x}</text>"#);
}

/// Legend: a swatch and a name for each series.
fn legend(drawn: &[Drawn<'_>]) -> Markup {
    html! {
        ul.legend {
            @for one in drawn {
                li {
                    svg viewBox="0 0 34 14" aria-hidden="true" { (PreEscaped(swatch(one.series, one.style))) }
                    (one.name)
                    @if one.series.needs_saying() {
                        " " i { "(published)" }
                    }
                }
            }
        }
    }
}

fn draw(out: &mut String, drawn: &Drawn<'_>, xs: &Scale, ys: &Scale) {
    let Drawn { series, style, .. } = *drawn;
    let visible = |p: &&Point| xs.takes(p.x) && ys.takes(p.y);
    let points: Vec<Point> = series.points.iter().filter(visible).copied().collect();
    let name = escape(&drawn.name);
    let _ = writeln!(out, "<g class=\"s{style}{}\">", if series.published { " published" } else { "" });
    let mut path = |class: &str, more: String, d: String| {
        let _ = writeln!(out, "<path class=\"{class}\"{more} d=\"{d}\"><title>{name}</title></path>");
    };
    let dashed = |dash: &str| format!(" stroke-dasharray=\"{dash}\"");
    match series.shape {
        Shape::Line | Shape::Trace => path("line", dashed(DASHES[style]), line(&points, xs, ys)),
        Shape::Bound => path("bound", dashed(""), line(&points, xs, ys)),
        Shape::Steps => path("step", String::new(), steps(&points, xs, ys)),
        Shape::FaintSteps => path("faint-step", String::new(), steps(&points, xs, ys)),
        Shape::Spans => {
            let span = |p: &Point| {
                let until = p.until.filter(|&y| ys.takes(y)).unwrap_or(p.y);
                // A span without height is still visible.
                let (from, to) = (ys.place(p.y), ys.place(until).min(ys.place(p.y) - 1.0));
                format!("M{:.1} {from:.1}V{to:.1}", xs.place(p.x))
            };
            path("span", String::new(), points.iter().map(span).collect());
        }
        Shape::Bars => {
            let bar = |p: &Point| format!("M{:.1} {}V{:.1}", xs.place(p.x), ys.from, ys.place(p.y));
            let width = format!(" stroke-width=\"{:.1}\"", bar_width(&points, xs));
            path("bar", width, points.iter().map(bar).collect());
        }
        Shape::Letter(letter) => {
            for p in &points {
                let (x, y) = (xs.place(p.x), ys.place(p.y) - 3.0);
                let _ = write!(out, "<text class=\"letter\" x=\"{x:.1}\" y=\"{y:.1}\">{letter}</text>");
            }
        }
        Shape::Points => {}
    }
    if matches!(series.shape, Shape::Line | Shape::Points) {
        error_bars(out, &points, xs, ys);
        markers(out, drawn, &points, xs, ys);
    }
    out.push_str("</g>\n");
}

/// Width of bars that do not touch and are not wider than necessary.
fn bar_width(points: &[Point], xs: &Scale) -> f64 {
    let steps = points.windows(2).map(|pair| xs.place(pair[1].x) - xs.place(pair[0].x));
    (steps.fold(f64::INFINITY, f64::min) * 0.7).clamp(1.0, 12.0)
}

fn error_bars(out: &mut String, points: &[Point], xs: &Scale, ys: &Scale) {
    let mut path = String::new();
    for p in points {
        let Some(error) = p.error.filter(|&error| error > 0.0) else { continue };
        let low = if ys.takes(p.y - error) { ys.place(p.y - error) } else { ys.from };
        let (x, high) = (xs.place(p.x), ys.place(p.y + error));
        let _ =
            write!(path, "M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8", x - 4.0, x - 4.0);
    }
    for p in points {
        let [from, to] = p.width().map(|x| xs.place(if xs.takes(x) { x } else { p.x }));
        if to > from {
            let (y, up) = (ys.place(p.y), ys.place(p.y) - 4.0);
            let _ = write!(path, "M{from:.1} {y:.1}H{to:.1}M{from:.1} {up:.1}v8M{to:.1} {up:.1}v8");
        }
    }
    if !path.is_empty() {
        let _ = writeln!(out, "<path class=\"error\" d=\"{path}\"/>");
    }
}

fn markers(out: &mut String, drawn: &Drawn<'_>, points: &[Point], xs: &Scale, ys: &Scale) {
    let size = if drawn.series.published {
        6.5
    } else if points.len() > MANY {
        2.0
    } else {
        4.2
    };
    let shape = |p: &Point| marker(drawn.style, xs.place(p.x), ys.place(p.y), size);
    if points.len() > MANY {
        let path: String = points.iter().map(shape).collect();
        let _ = writeln!(out, "<path class=\"mark\" d=\"{path}\"/>");
        return;
    }
    for p in points {
        let error = p.error.map(|error| format!(" ± {}", figure(error))).unwrap_or_default();
        let title = format!("{}: {}{error} at {}", escape(&drawn.name), figure(p.y), figure(p.x));
        let _ = writeln!(out, r#"<path class="mark" d="{}"><title>{title}</title></path>"#, shape(p));
    }
}

fn swatch(series: &PlotSeries, style: usize) -> String {
    let mut out = format!("<g class=\"s{style}{}\">", if series.published { " published" } else { "" });
    let _ = match series.shape {
        Shape::Line | Shape::Trace => {
            write!(out, "<path class=\"line\" stroke-dasharray=\"{}\" d=\"M1 7H33\"/>", DASHES[style])
        }
        Shape::Steps => write!(out, "<path class=\"step\" d=\"M1 12H12V7H23V2H33\"/>"),
        Shape::FaintSteps => write!(out, "<path class=\"faint-step\" d=\"M1 12H12V7H23V2H33\"/>"),
        Shape::Bars => write!(out, "<path class=\"bar\" stroke-width=\"3\" d=\"M11 14V4M17 14V0M23 14V7\"/>"),
        Shape::Letter(letter) => write!(out, "<text class=\"letter\" x=\"17\" y=\"11\">{letter}</text>"),
        Shape::Bound => write!(out, "<path class=\"bound\" d=\"M1 7H33\"/>"),
        Shape::Spans => write!(out, "<path class=\"span\" d=\"M9 12V3M17 10V1M25 8V0\"/>"),
        Shape::Points => Ok(()),
    };
    if matches!(series.shape, Shape::Line | Shape::Points) {
        let size = if series.published { 5.5 } else { 4.2 };
        let _ = write!(out, "<path class=\"mark\" d=\"{}\"/>", marker(style, 17.0, 7.0, size));
    }
    out + "</g>"
}

pub(super) fn marker(style: usize, x: f64, y: f64, r: f64) -> String {
    let d = 2.0 * r;
    match style {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", x - r),
        1 => {
            let r = r * 0.9;
            format!("M{:.1} {:.1}h{2:.1}v{2:.1}h-{2:.1}z", x - r, y - r, 2.0 * r)
        }
        2 | 4 => {
            let up = if style == 2 { r } else { -r };
            format!(
                "M{x:.1} {:.1}L{:.1} {2:.1}H{3:.1}z",
                y - up * 1.2,
                x + r * 1.15,
                y + up * 0.85,
                x - r * 1.15
            )
        }
        3 => {
            let r = r * 1.25;
            format!("M{x:.1} {:.1}l{r:.1} {r:.1}l-{r:.1} {r:.1}l-{r:.1} -{r:.1}z", y - r)
        }
        5 => {
            let (a, b) = (r * 0.4, r * 1.1);
            format!(
                "M{:.1} {:.1}h{3:.1}v{4:.1}h{4:.1}v{3:.1}h-{4:.1}v{4:.1}h-{3:.1}v-{4:.1}h-{4:.1}v-{3:.1}h{4:.1}z{2}",
                x - a,
                y - b,
                "",
                2.0 * a,
                b - a
            )
        }
        _ => format!(
            "M{:.1} {:.1}l{2:.1} {3:.1}l-{4:.1} {5:.1}h-{6:.1}l-{4:.1} -{5:.1}z",
            x,
            y - r * 1.1,
            r * 1.1,
            r * 0.85,
            r * 0.42,
            r * 1.25,
            r * 1.36
        ),
    }
}

fn line(points: &[Point], xs: &Scale, ys: &Scale) -> String {
    let places: Vec<(f64, f64)> = points.iter().map(|p| (xs.place(p.x), ys.place(p.y))).collect();
    let mut out = String::new();
    for (index, (x, y)) in thinned(&places).into_iter().enumerate() {
        let _ = write!(out, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
    }
    out
}

fn steps(points: &[Point], xs: &Scale, ys: &Scale) -> String {
    let mut out = String::new();
    for (index, p) in points.iter().enumerate() {
        let (x, y) = (xs.place(p.x), ys.place(p.y));
        let _ = if index == 0 { write!(out, "M{x:.1} {y:.1}") } else { write!(out, "H{x:.1}V{y:.1}") };
    }
    out
}

/// Keeps the first, lowest, highest and last position of each column of pixels, which does not change the picture.
fn thinned(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if places.len() <= 4 * WHOLE.width as usize {
        return places.to_vec();
    }
    let mut out = Vec::new();
    for column in places.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let lowest = (0..column.len()).min_by(|&a, &b| column[a].1.total_cmp(&column[b].1)).unwrap_or(0);
        let highest = (0..column.len()).max_by(|&a, &b| column[a].1.total_cmp(&column[b].1)).unwrap_or(0);
        let mut kept = [0, lowest, highest, column.len() - 1];
        kept.sort_unstable();
        out.extend(
            kept.iter().enumerate().filter(|&(i, k)| i == 0 || kept[i - 1] != *k).map(|(_, &k)| column[k]),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_trace_keeps_its_peaks() {
        let peak = |i: u32| if i == 54_321 { 400.0 } else { f64::from(i % 7) };
        let places: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i) / 200.0, peak(i))).collect();
        let thin = thinned(&places);
        assert!(thin.len() <= 4 * 500 && thin.is_sorted_by(|a, b| a.0 <= b.0));
        assert!(
            thin.contains(&places[54_321]) && thin.contains(&places[0]) && thin.contains(&places[99_999])
        );
    }

    #[test]
    fn series_without_a_style_get_different_ones_and_limits_take_none() {
        let series = |shape| PlotSeries::new("", Vec::new()).shaped(shape);
        let plot = Plot::new("", Axis::default(), Axis::default())
            .with(series(Shape::Line))
            .with(series(Shape::Bound))
            .with(series(Shape::Line))
            .with(series(Shape::Line).styled(5))
            .with(series(Shape::Line));
        let styles = plot.numbers();
        assert_eq!([styles[0], styles[2], styles[3], styles[4]], [0, 1, 5, 2]);
    }
}
