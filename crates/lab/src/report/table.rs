//! Tables for the terminal, for the page and as CSV.

use crate::format::{figure, fixed, with_error};
use crate::record::number;
use crate::stats::Summary;
use std::fmt::Write;

/// Table with a caption.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Caption.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// Column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Unit of its numbers; empty without a unit.
    pub unit: String,
    /// True for numbers, which are right-aligned.
    pub right: bool,
    /// Order of removal on a terminal that is too narrow, lowest first; `None` for a column that stays.
    pub left_out: Option<u8>,
}

impl Column {
    /// Creates a column of text.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), ..Column::default() }
    }

    /// Creates a column of numbers.
    pub fn number(name: impl Into<String>, unit: impl Into<String>) -> Column {
        Column { name: name.into(), unit: unit.into(), right: true, left_out: None }
    }

    /// Allows the column to be hidden on a terminal that is too narrow, lowest `order` first.
    pub fn left_out(self, order: u8) -> Column {
        Column { left_out: Some(order), ..self }
    }

    /// Heading with its unit, such as `time (s)`.
    pub fn head(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }
}

/// Cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Text for display.
    pub text: String,
    /// Number behind the text, for CSV.
    pub value: Option<f64>,
    /// Emphasis. The text alone carries the meaning.
    pub tone: Tone,
}

/// Emphasis of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Not emphasised.
    #[default]
    Plain,
    /// The most important cell.
    Strong,
    /// Desired result.
    Good,
    /// Undesired result.
    Bad,
    /// Secondary information.
    Faint,
}

impl Cell {
    /// Creates an empty cell.
    pub fn empty() -> Cell {
        Cell::default()
    }

    /// Creates a cell with a text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), value: None, tone: Tone::Plain }
    }

    /// Creates a cell with a number, rounded for display.
    pub fn number(value: f64) -> Cell {
        Cell { text: figure(value), value: Some(value), tone: Tone::Plain }
    }

    /// Creates a cell with a number with this number of decimals.
    pub fn precise(value: f64, decimals: usize) -> Cell {
        Cell { text: fixed(value, decimals), value: Some(value), tone: Tone::Plain }
    }

    /// Creates a cell with a mean and its interval.
    pub fn summary(summary: &Summary) -> Cell {
        Cell { text: with_error(summary), value: Some(summary.mean), tone: Tone::Plain }
    }

    /// Creates a cell with a share of one, as a percentage.
    pub fn percent(share: f64) -> Cell {
        Cell { text: format!("{:.1} %", share * 100.0), value: Some(share), tone: Tone::Plain }
    }

    /// Sets the emphasis.
    pub fn toned(mut self, tone: Tone) -> Cell {
        self.tone = tone;
        self
    }
}

impl Table {
    /// Creates a table without rows.
    pub fn new(caption: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Table {
        Table { caption: caption.into(), columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Creates a table without rows from the headings of its columns, divided by `|`. One that begins with `#` is of
    /// numbers, and may have a unit in parentheses at its end: `rate|# time (s)`.
    pub fn of(caption: impl Into<String>, heads: &str) -> Table {
        let column = |head: &str| match head.strip_prefix("# ") {
            None => Column::text(head),
            Some(head) => {
                let (name, unit) = with_unit(head);
                Column::number(name, unit)
            }
        };
        Table::new(caption, heads.split('|').map(column))
    }

    /// Creates a table of the rows of a CSV file without its first one, each with `more` cells for its number. Cells of
    /// `true` and `false` are shown as words.
    ///
    /// # Panics
    /// Panics if the text is not such a file: it is a part of this program.
    pub fn of_csv(
        caption: impl Into<String>,
        heads: &str,
        csv: &str,
        more: impl Fn(usize) -> Vec<Cell>,
    ) -> Table {
        let mut table = Table::of(caption, heads);
        for (at, row) in csv::Reader::from_reader(csv.as_bytes()).into_records().enumerate() {
            let row = row.expect("a row of text");
            let cells = row.iter().zip(&table.columns).map(|(text, column)| match text {
                "true" => Cell::text("yes"),
                "false" => Cell::text("no"),
                text if column.right && !text.is_empty() => Cell::number(text.parse().expect("a number")),
                text => Cell::text(text),
            });
            let cells: Vec<Cell> = cells.chain(more(at)).collect();
            table.row(cells);
        }
        table
    }

    /// Appends a row.
    ///
    /// # Panics
    /// Panics if the row does not have a cell for every column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        let Table { caption, columns, .. } = self;
        assert_eq!(cells.len(), columns.len(), "a row of `{caption}` has a cell for every column");
        self.rows.push(cells);
    }

    /// Formats as CSV, with the numbers themselves rather than their short forms.
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

    /// Formats for the terminal: columns aligned, two spaces apart. If a line would be longer than `width`, columns
    /// that may be hidden are removed first, the least important one first; then text is wrapped between words. No word
    /// is ever cut, so names stay complete. `colour` adds weight and colour to what the text already states.
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
            let _ = writeln!(out, "(hidden at this width: {})", names.join(", "));
        }
        out
    }

    /// Width of a column with each text on one line.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| columns_of(&row[column].text));
        cells.fold(columns_of(&self.columns[column].head()), usize::max)
    }

    /// Minimum width of a column: numbers stay unbroken, text is wrapped between words.
    fn least_width(&self, column: usize) -> usize {
        if self.columns[column].right {
            return self.width(column);
        }
        let head = self.columns[column].head();
        let texts = self.rows.iter().map(|row| row[column].text.as_str()).chain([head.as_str()]);
        texts.flat_map(str::split_whitespace).map(columns_of).max().unwrap_or(0)
    }

    /// Minimum width of a column whose text is easy to read.
    fn legible_width(&self, column: usize) -> usize {
        const WORDS_LEAST: usize = 24;
        self.width(column).min(self.least_width(column).max(WORDS_LEAST))
    }

    /// Columns shown at this width and columns hidden, each in order. Columns are hidden before text becomes illegible.
    fn shown(&self, width: usize) -> (Vec<usize>, Vec<usize>) {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out = Vec::new();
        while line_width(shown.iter().map(|column| self.legible_width(*column))) > width {
            let may_go = (0..shown.len()).filter(|at| self.columns[shown[*at]].left_out.is_some());
            let Some(least) = may_go.min_by_key(|at| self.columns[shown[*at]].left_out) else { break };
            left_out.push(shown.remove(least));
        }
        left_out.sort_unstable();
        (shown, left_out)
    }

    /// Narrows columns of text, the widest first, until the line fits. A line that is too long in any case keeps its text
    /// legible.
    fn narrow(&self, shown: &[usize], widths: &mut [usize], width: usize) {
        let mut least: Vec<usize> = shown.iter().map(|column| self.least_width(*column)).collect();
        if line_width(least.iter().copied()) > width {
            least = shown.iter().map(|column| self.legible_width(*column)).collect();
        }
        while line_width(widths.iter().copied()) > width {
            let can = (0..widths.len()).filter(|&at| widths[at] > least[at]);
            let Some(widest) = can.max_by_key(|&at| (widths[at], usize::MAX - at)) else { return };
            widths[widest] -= 1;
        }
    }

    /// Writes a row, on as many lines as its texts need.
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

/// Divides a heading such as `time (s)`; the unit may be absent.
pub(crate) fn with_unit(head: &str) -> (&str, &str) {
    let parts = head.strip_suffix(')').and_then(|head| head.rsplit_once(" ("));
    parts.unwrap_or((head, ""))
}

/// Width of a line of columns with these widths, two spaces apart.
fn line_width(widths: impl Iterator<Item = usize>) -> usize {
    let (count, sum) = widths.fold((0, 0), |(count, sum), width| (count + 1, sum + width));
    sum + 2 * usize::saturating_sub(count, 1)
}

/// Lines of a cell of this width.
fn broken(text: &str, width: usize) -> Vec<String> {
    if columns_of(text) <= width { vec![text.to_owned()] } else { wrapped(text, width) }
}

/// Wraps a text at this width between words; a longer word has its own line.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
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

/// Width of a text in terminal columns: all characters used here are one column wide.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}
