//! Ranking of several protocols by one figure: a bar for each with its 95 % confidence interval, and the ideal value.

use super::html::{escape, svg};
use super::ledger::left_of;
use super::table::{Cell, Column, Table};
use crate::format::{figure, with_error};
use crate::stats::Summary;
use maud::Markup;
use std::fmt::Write;

/// Chart with a bar for each protocol, in the order given.
#[derive(Clone, Debug, Default)]
pub struct RankChart {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Quantity, such as `transfer time`.
    pub quantity: String,
    /// Unit.
    pub unit: String,
    /// Protocols.
    pub rows: Vec<RankRow>,
    /// Ideal value: a line through all bars.
    pub limit: Option<f64>,
}

/// Row of a protocol.
#[derive(Clone, Debug)]
pub struct RankRow {
    /// Name of the protocol and settings.
    pub name: String,
    /// Figure of the protocol.
    pub summary: Summary,
}

const WIDTH: f64 = 760.0;
const RIGHT: f64 = 640.0;
const ROW: f64 = 32.0;
/// Gap between a bar and its figure.
const GAP: f64 = 9.0;
/// Approximate width of a character of the figure.
const LETTER: f64 = 8.4;
const THICK: f64 = 18.0;
const TOP: f64 = 26.0;

impl RankChart {
    pub(super) fn svg(&self) -> Markup {
        let ends = self.rows.iter().map(|row| row.summary.interval().1);
        let most = ends.chain(self.limit).fold(0.0, f64::max);
        let left = left_of(self.rows.iter().map(|row| row.name.as_str()));
        // The figure stands after the bar or its interval, whichever is longer.
        let longest = self.rows.iter().map(|row| self.label(row).chars().count()).max().unwrap_or(0);
        let right = RIGHT.min(WIDTH - GAP - LETTER * longest as f64);
        let scale = if most > 0.0 { (right - left) / most } else { 0.0 };
        let height = TOP + ROW * self.rows.len() as f64 + 6.0;
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            self.row(&mut out, row, index, left, scale);
        }
        if let Some(limit) = self.limit {
            let (x, from, to) = (left + limit * scale, TOP - 8.0, height - 4.0);
            let words = format!("ideal time: {} {}", figure(limit), escape(&self.unit));
            let _ = write!(out, r#"<path class="limit" d="M{x:.1} {from:.1}V{to:.1}"/>"#);
            let _ =
                writeln!(out, r#"<text class="tick" x="{x:.1}" y="12" text-anchor="middle">{words}</text>"#);
        }
        svg("plot", WIDTH, height, &self.title, out)
    }

    fn label(&self, row: &RankRow) -> String {
        format!("{} {}", with_error(&row.summary), self.unit)
    }

    fn row(&self, out: &mut String, row: &RankRow, index: usize, left: f64, scale: f64) {
        let top = TOP + ROW * index as f64;
        let middle = top + THICK / 2.0;
        let (low, high) = row.summary.interval();
        // Only the first bar is emphasised.
        let class = if index == 0 { "s0" } else { "rest" };
        let (edge, base, name) = (left - 10.0, middle + 4.5, escape(&row.name));
        let (width, label) = (row.summary.mean * scale, escape(&self.label(row)));
        let _ = write!(
            out,
            r#"<g class="{class}"><text class="name" x="{edge:.1}" y="{base:.1}" text-anchor="end">{name}</text>"#
        );
        let _ = writeln!(
            out,
            r#"<rect class="part" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{THICK}"/>"#
        );
        if high > low {
            let (from, to) = (left + low.max(0.0) * scale, left + high * scale);
            let (up, down) = (middle - 4.0, middle + 4.0);
            let ends = format!("M{from:.1} {up:.1}V{down:.1}M{to:.1} {up:.1}V{down:.1}");
            let _ = writeln!(out, r#"<path class="whisker" d="M{from:.1} {middle:.1}H{to:.1}{ends}"/>"#);
        }
        let end = left + high.max(row.summary.mean) * scale + GAP;
        let _ = writeln!(out, r#"<text class="total" x="{end:.1}" y="{base:.1}">{label}</text></g>"#);
    }

    pub(crate) fn table(&self) -> Table {
        let number = |name: &str| Column::number(name, &self.unit);
        let columns = [
            Column::text("protocol/settings"),
            Column::number("runs", ""),
            number(&self.quantity),
            number("minimum"),
            number("maximum"),
        ];
        let mut table = Table::new(&self.title, columns);
        for row in &self.rows {
            table.row([
                Cell::text(&row.name),
                Cell::precise(row.summary.n as f64, 0),
                Cell::summary(&row.summary),
                Cell::number(row.summary.min),
                Cell::number(row.summary.max),
            ]);
        }
        table
    }
}
