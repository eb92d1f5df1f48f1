//! Use of time: one bar for each case, divided into shares, and the same numbers as a table.

use super::html::{escape, svg};
use super::plot::STYLES;
use super::table::{Cell, Column, Table, Tone};
use crate::format::figure;
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Chart of stacked bars.
#[derive(Clone, Debug, Default)]
pub struct LedgerChart {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Unit of all values, such as `s`.
    pub unit: String,
    /// Shares, in the order in which they are stacked.
    pub shares: Vec<LedgerShare>,
    /// Bars, from top to bottom.
    pub bars: Vec<Bar>,
}

/// Use of time that bars consist of.
#[derive(Clone, Debug, Default)]
pub struct LedgerShare {
    /// Name.
    pub name: String,
    /// Meaning, in a few words.
    pub meaning: String,
    /// True for time in which nothing is sent; drawn empty.
    pub idle: bool,
}

impl LedgerShare {
    /// Creates a share of time.
    pub fn new(name: impl Into<String>, meaning: impl Into<String>, idle: bool) -> LedgerShare {
        LedgerShare { name: name.into(), meaning: meaning.into(), idle }
    }
}

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Name of the bar.
    pub name: String,
    /// Value of each share.
    pub values: Vec<f64>,
    /// Ideal value, marked on the bar.
    pub limit: Option<f64>,
}

const WIDTH: f64 = 760.0;
const RIGHT: f64 = 690.0;
const ROW: f64 = 38.0;
const THICK: f64 = 22.0;

/// Start of the bars, with room for the longest of these names before them.
pub(super) fn left_of<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    (longest as f64 * 7.2 + 18.0).clamp(90.0, 330.0)
}

impl LedgerChart {
    fn left(&self) -> f64 {
        left_of(self.bars.iter().map(|bar| bar.name.as_str()))
    }

    fn total(bar: &Bar) -> f64 {
        bar.values.iter().sum()
    }

    /// Shares that occur in any bar.
    fn present(&self) -> Vec<usize> {
        let any =
            |share: &usize| self.bars.iter().any(|bar| bar.values.get(*share).is_some_and(|v| *v > 0.0));
        (0..self.shares.len()).filter(any).collect()
    }

    /// Colours in turn; repetitions are hatched, then dotted.
    fn fill(&self, share: usize) -> (usize, Option<&'static str>) {
        let before = self.shares[..share].iter().filter(|s| !s.idle).count();
        if self.shares[share].idle {
            // The last one is plain: outages are hatched, idle time without a cause is not.
            let idle_behind = self.shares[share..].iter().filter(|s| s.idle).count() - 1;
            return (0, [None, Some("hatch"), Some("dots")][idle_behind.min(2)]);
        }
        // The last style is the text colour, which would hide the hatching.
        let colours = STYLES - 1;
        (before % colours, [None, Some("hatch"), Some("dots")][(before / colours).min(2)])
    }

    /// Draws the chart with its legend.
    pub(super) fn picture(&self) -> Markup {
        html! { (self.legend()) (self.svg()) }
    }

    fn svg(&self) -> Markup {
        let most =
            self.bars.iter().flat_map(|b| [Self::total(b), b.limit.unwrap_or(0.0)]).fold(0.0, f64::max);
        let height = ROW * self.bars.len() as f64 + 16.0;
        let mut out = String::new();
        for (row, bar) in self.bars.iter().enumerate() {
            self.bar(&mut out, bar, 8.0 + ROW * row as f64, if most > 0.0 { most } else { 1.0 });
        }
        svg("plot ledger", WIDTH, height, &self.title, out)
    }

    fn bar(&self, out: &mut String, bar: &Bar, top: f64, most: f64) {
        let left = self.left();
        let scale = (RIGHT - left) / most;
        let middle = top + THICK / 2.0 + 4.5;
        let (edge, name, unit) = (left - 10.0, escape(&bar.name), escape(&self.unit));
        let _ =
            writeln!(out, r#"<text class="name" x="{edge}" y="{middle:.1}" text-anchor="end">{name}</text>"#);
        let total = Self::total(bar);
        let mut at = left;
        for (share, &value) in bar.values.iter().enumerate() {
            let width = value * scale;
            if width > 0.0 {
                self.part(out, share, value, total, (at, top, width));
            }
            at += width;
        }
        let (end, sum) = (at + 8.0, figure(total));
        let _ = writeln!(out, r#"<text class="total" x="{end:.1}" y="{middle:.1}">{sum} {unit}</text>"#);
        if let Some(limit) = bar.limit {
            let (x, y, height, time) = (left + limit * scale, top - 4.0, THICK + 8.0, figure(limit));
            let title = format!("<title>{name}: ideal time {time} {unit}</title>");
            let _ = writeln!(out, r#"<path class="limit" d="M{x:.1} {y:.1}v{height:.1}">{title}</path>"#);
        }
    }

    fn part(&self, out: &mut String, share: usize, value: f64, total: f64, place: (f64, f64, f64)) {
        let (x, y, width) = place;
        let (style, pattern) = self.fill(share);
        let idle = self.shares[share].idle;
        let class = if idle { "idle".to_owned() } else { format!("s{style}") };
        let shape = format!(r#"x="{x:.2}" y="{y:.1}" width="{width:.2}" height="{THICK}""#);
        let (name, time, unit) = (escape(&self.shares[share].name), figure(value), escape(&self.unit));
        let percent = value / total * 100.0;
        let title = format!("<title>{name}: {time} {unit} ({percent:.1} %)</title>");
        let _ = write!(out, r#"<g class="{class}">{title}<rect class="part" {shape}/>"#);
        if let Some(pattern) = pattern {
            let _ = write!(out, r#"<rect fill="url(#{pattern})" {shape}/>"#);
        }
        if width > 42.0 {
            let (x, y, tone) = (x + width / 2.0, y + THICK / 2.0 + 4.0, if idle { " on-paper" } else { "" });
            let place = format!(r#"x="{x:.1}" y="{y:.1}" text-anchor="middle""#);
            let _ = write!(out, r#"<text class="share{tone}" {place}>{percent:.0} %</text>"#);
        }
        out.push_str("</g>\n");
    }

    /// Legend: a swatch, a name and a meaning for each share that occurs.
    fn legend(&self) -> Markup {
        let picture = |drawing: String| {
            html! { svg viewBox="0 0 24 14" aria-hidden="true" { (PreEscaped(drawing)) } }
        };
        html! {
            ul.legend {
                @for share in self.present() {
                    li title=(self.shares[share].meaning) {
                        (picture(self.swatch(share)))
                        (self.shares[share].name)
                    }
                }
                @if self.bars.iter().any(|bar| bar.limit.is_some()) {
                    li {
                        (picture("<path class=\"limit\" d=\"M12 0V14\"/>".to_owned()))
                        "ideal time"
                    }
                }
            }
        }
    }

    fn swatch(&self, share: usize) -> String {
        let (style, pattern) = self.fill(share);
        let class = if self.shares[share].idle { "idle".to_owned() } else { format!("s{style}") };
        let shape = "x=\"1\" y=\"1\" width=\"22\" height=\"12\"";
        let over = pattern.map(|p| format!("<rect fill=\"url(#{p})\" {shape}/>")).unwrap_or_default();
        format!("<g class=\"{class}\"><rect class=\"part\" {shape}/>{over}</g>")
    }

    /// Table of the same numbers: a row per share, a column per bar.
    pub(crate) fn table(&self) -> Table {
        let columns = self.bars.iter().map(|bar| Column::number(&bar.name, &self.unit));
        let first = [Column::text("share")].into_iter();
        let mut table = Table::new(&self.title, first.chain(columns).chain([Column::text("meaning")]));
        for share in self.present() {
            let value = |bar: &Bar| Cell::number(bar.values.get(share).copied().unwrap_or(0.0));
            let first = [Cell::text(&self.shares[share].name)].into_iter();
            let meaning = Cell::text(&self.shares[share].meaning).toned(Tone::Faint);
            table.row(first.chain(self.bars.iter().map(value)).chain([meaning]));
        }
        let total = |bar: &Bar| Cell::number(Self::total(bar)).toned(Tone::Strong);
        let first = [Cell::text("elapsed").toned(Tone::Strong)].into_iter();
        let meaning = Cell::text("total").toned(Tone::Faint);
        table.row(first.chain(self.bars.iter().map(total)).chain([meaning]));
        table
    }
}
