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
    /// Where a terminal is too narrow, columns with a number are left out, the lowest first; those without stay.
    pub left_out: Option<u8>,
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), ..Column::default() }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>, unit: impl Into<String>) -> Column {
        Column { name: name.into(), unit: unit.into(), right: true, left_out: None }
    }

    /// A column that is left out of a terminal that is too narrow: the lowest `order` first.
    pub fn left_out(self, order: u8) -> Column {
        Column { left_out: Some(order), ..self }
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

    /// For the terminal: columns aligned, two spaces apart. Where the line would be longer than `width`, the columns that may be
    /// left out go first, the least important one before the others, and then words are broken into lines, but no word is ever
    /// cut: names stay whole. `colour` adds weight and colour to what the words already say.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        let (shown, left_out) = self.shown(width);
        let mut widths: Vec<usize> = shown.iter().map(|column| self.width(*column)).collect();
        self.narrow(&shown, &mut widths, width);
        let mut out = String::new();
        let heads: Vec<Cell> = self.columns.iter().map(|column| Cell::text(column.head())).collect();
        let rules: Vec<Cell> = widths.iter().map(|width| Cell::text("-".repeat(*width))).collect();
        let of = |cells: &[Cell]| shown.iter().map(|column| cells[*column].clone()).collect::<Vec<Cell>>();
        self.row_lines(&mut out, &shown, &of(&heads), &widths, colour.then_some("1"), colour);
        self.row_lines(&mut out, &shown, &rules, &widths, colour.then_some("2"), colour);
        for row in &self.rows {
            self.row_lines(&mut out, &shown, &of(row), &widths, None, colour);
        }
        if !left_out.is_empty() {
            let names: Vec<&str> =
                left_out.iter().map(|column| self.columns[*column].name.as_str()).collect();
            let _ = writeln!(out, "(too narrow for: {})", names.join(", "));
        }
        out
    }

    /// How wide a column is with all of its words on one line.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| columns_of(&row[column].text));
        cells.fold(columns_of(&self.columns[column].head()), usize::max)
    }

    /// How narrow a column can be: numbers stay as they are, words are broken between words.
    fn least_width(&self, column: usize) -> usize {
        if self.columns[column].right {
            return self.width(column);
        }
        let head = self.columns[column].head();
        let texts = self.rows.iter().map(|row| row[column].text.as_str()).chain([head.as_str()]);
        texts.flat_map(str::split_whitespace).map(columns_of).max().unwrap_or(0)
    }

    /// The columns that are shown on so wide a terminal, and those that are left out, each in order.
    fn shown(&self, width: usize) -> (Vec<usize>, Vec<usize>) {
        /// Words in narrower columns are hard to read: other columns go before that.
        const WORDS_LEAST: usize = 24;
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out = Vec::new();
        let needs = |column: &usize| self.width(*column).min(self.least_width(*column).max(WORDS_LEAST));
        while line_width(shown.iter().map(needs)) > width {
            let may_go = (0..shown.len()).filter(|at| self.columns[shown[*at]].left_out.is_some());
            let Some(least) = may_go.min_by_key(|at| self.columns[shown[*at]].left_out) else { break };
            left_out.push(shown.remove(least));
        }
        left_out.sort_unstable();
        (shown, left_out)
    }

    /// Takes columns of words, the widest first, down until the line fits.
    fn narrow(&self, shown: &[usize], widths: &mut [usize], width: usize) {
        let least: Vec<usize> = shown.iter().map(|column| self.least_width(*column)).collect();
        while line_width(widths.iter().copied()) > width {
            let can = (0..widths.len()).filter(|&at| widths[at] > least[at]);
            let Some(widest) = can.max_by_key(|&at| (widths[at], usize::MAX - at)) else { return };
            widths[widest] -= 1;
        }
    }

    /// A row, on as many lines as its words need.
    fn row_lines(
        &self,
        out: &mut String,
        shown: &[usize],
        cells: &[Cell],
        widths: &[usize],
        all: Option<&str>,
        colour: bool,
    ) {
        let broken: Vec<Vec<String>> =
            cells.iter().zip(widths).map(|(cell, width)| broken(&cell.text, *width)).collect();
        for at in 0..broken.iter().map(Vec::len).max().unwrap_or(0) {
            let mut gap = 0;
            for (number, &width) in widths.iter().enumerate() {
                let text = broken[number].get(at).map_or("", String::as_str);
                let space = width.saturating_sub(columns_of(text));
                let right = self.columns[shown[number]].right;
                let (before, after) = if right { (space, 0) } else { (0, space) };
                if text.is_empty() {
                    gap += space + 2;
                    continue;
                }
                let style = all.or(match cells[number].tone {
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
}

/// How wide a line of such columns is, two spaces apart.
fn line_width(widths: impl Iterator<Item = usize>) -> usize {
    let (count, sum) = widths.fold((0, 0), |(count, sum), width| (count + 1, sum + width));
    sum + 2 * usize::saturating_sub(count, 1)
}

/// A text in lines of so many columns, broken between words; a longer word has a line of its own.
fn broken(text: &str, width: usize) -> Vec<String> {
    if columns_of(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns_of(line) + 1 + columns_of(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// How many columns a terminal needs: the characters used here are one column wide each.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}
