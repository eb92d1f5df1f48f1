//! Tables: for the terminal, for the page, as CSV.

use super::format::{figure, fixed, with_error};
use crate::record::number;
use crate::stats::Summary;
use std::fmt::Write;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// The unit of its numbers; empty: none.
    pub unit: String,
    /// Numbers stand to the right.
    pub right: bool,
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), unit: String::new(), right: false }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>, unit: impl Into<String>) -> Column {
        Column { name: name.into(), unit: unit.into(), right: true }
    }

    /// `time (s)`.
    pub fn head(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// What people read.
    pub text: String,
    /// The number behind it, for CSV.
    pub value: Option<f64>,
    /// How it is said. The text alone carries the meaning.
    pub tone: Tone,
}

/// How a cell is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As any other.
    #[default]
    Plain,
    /// The one to look at.
    Strong,
    /// As hoped.
    Good,
    /// Not as hoped.
    Bad,
    /// An aside.
    Faint,
}

impl Cell {
    /// Nothing.
    pub fn empty() -> Cell {
        Cell::default()
    }

    /// Words.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: None, tone: Tone::Plain }
    }

    /// A number, with as many digits as people want.
    pub fn number(value: f64) -> Cell {
        Cell { text: figure(value), value: Some(value), tone: Tone::Plain }
    }

    /// A number with so many digits behind the point.
    pub fn precise(value: f64, decimals: usize) -> Cell {
        Cell { text: fixed(value, decimals), value: Some(value), tone: Tone::Plain }
    }

    /// A mean with its interval.
    pub fn summary(summary: &Summary) -> Cell {
        Cell { text: with_error(summary), value: Some(summary.mean), tone: Tone::Plain }
    }

    /// A share of one, as per cent.
    pub fn percent(share: f64) -> Cell {
        Cell { text: format!("{:.1} %", share * 100.0), value: Some(share), tone: Tone::Plain }
    }

    /// Said so.
    pub fn toned(mut self, tone: Tone) -> Cell {
        self.tone = tone;
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new(caption: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Table {
        Table { caption: caption.into(), columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// One row more.
    ///
    /// # Panics
    /// If it has not a cell for every column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(
            cells.len(),
            self.columns.len(),
            "a row of `{}` has a cell for every column",
            self.caption
        );
        self.rows.push(cells);
    }

    /// As CSV: the numbers themselves rather than their short forms.
    pub fn csv(&self) -> String {
        let mut out = csv::Writer::from_writer(Vec::new());
        let line = |out: &mut csv::Writer<Vec<u8>>, cells: Vec<String>| {
            out.write_record(cells).expect("a Vec takes every row of equal length");
        };
        line(&mut out, self.columns.iter().map(Column::head).collect());
        for row in &self.rows {
            let cell = |cell: &Cell| cell.value.map_or_else(|| cell.text.clone(), number);
            line(&mut out, row.iter().map(cell).collect());
        }
        String::from_utf8(out.into_inner().expect("a Vec never fails")).expect("made of strings")
    }

    /// For the terminal: columns aligned, two spaces apart, no line longer than `width` columns as long as
    /// columns of words can give way; `colour` adds weight and colour to what the words already say.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| columns_of(&column.head())).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns_of(&cell.text));
            }
        }
        self.narrow(&mut widths, width);
        let mut out = String::new();
        let heads: Vec<Cell> = self.columns.iter().map(|column| Cell::text(column.head())).collect();
        self.line(&mut out, &heads, &widths, colour, Some("1"));
        let rules: Vec<Cell> = widths.iter().map(|width| Cell::text("-".repeat(*width))).collect();
        self.line(&mut out, &rules, &widths, colour, Some("2"));
        for row in &self.rows {
            self.line(&mut out, row, &widths, colour, None);
        }
        out
    }

    /// Takes columns of words, the widest first, down until the line fits.
    fn narrow(&self, widths: &mut [usize], width: usize) {
        const LEAST: usize = 8;
        let mut total = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        while total > width {
            let words =
                (0..widths.len()).filter(|&column| !self.columns[column].right && widths[column] > LEAST);
            let Some(widest) = words.max_by_key(|&column| (widths[column], usize::MAX - column)) else {
                return;
            };
            widths[widest] -= 1;
            total -= 1;
        }
    }

    fn line(&self, out: &mut String, cells: &[Cell], widths: &[usize], colour: bool, all: Option<&str>) {
        let mut gap = 0;
        for ((cell, column), &width) in cells.iter().zip(&self.columns).zip(widths) {
            let text = shortened(&cell.text, width);
            let space = width - columns_of(&text);
            let (before, after) = if column.right { (space, 0) } else { (0, space) };
            if text.is_empty() {
                gap += space + 2;
                continue;
            }
            let style = all.or(match cell.tone {
                Tone::Plain => None,
                Tone::Strong => Some("1"),
                Tone::Good => Some("32"),
                Tone::Bad => Some("31"),
                Tone::Faint => Some("2"),
            });
            let _ = write!(out, "{:1$}", "", gap + before);
            let _ = match style.filter(|_| colour) {
                Some(style) => write!(out, "\x1b[{style}m{text}\x1b[0m"),
                None => write!(out, "{text}"),
            };
            gap = after + 2;
        }
        out.push('\n');
    }
}

/// How many columns a terminal needs: the characters used here are one column wide each.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}

fn shortened(text: &str, width: usize) -> String {
    if columns_of(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
