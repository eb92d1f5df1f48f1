//! Map of a grid of two parameters: at each point the letter of the best of several protocols.

use super::html::{escape, svg};
use super::plot::Axis;
use super::table::{Cell, Column, Table, Tone};
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Mark behind the letter of a winner that is not significantly ahead of the next protocol.
const TIE: char = '=';

/// Map with a cell for each point of a grid.
#[derive(Clone, Debug, Default)]
pub struct WinnerMap {
    /// Title.
    pub title: String,
    /// Caption.
    pub caption: String,
    /// Protocols, each with its letter.
    pub names: Vec<(char, String)>,
    /// Horizontal parameter, and its values from left to right.
    pub x: (Axis, Vec<String>),
    /// Vertical parameter, and its values from top to bottom.
    pub y: (Axis, Vec<String>),
    /// Rows of cells; `None` where no protocol delivered.
    pub cells: Vec<Vec<Option<MapCell>>>,
}

/// Best protocol at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct MapCell {
    /// Number of the protocol in [`WinnerMap::names`].
    pub winner: usize,
    /// True if the winner is not significantly ahead of the next protocol.
    pub tied: bool,
    /// Its mean time as a multiple of the ideal time; `None` without an ideal time.
    pub ratio: Option<f64>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 92.0;
const TOP: f64 = 34.0;
const ROW: f64 = 48.0;
const CELL_MAX: f64 = 110.0;

impl WinnerMap {
    fn word(&self, cell: &MapCell) -> String {
        let letter = self.names[cell.winner].0;
        if cell.tied { format!("{letter}{TIE}") } else { letter.to_string() }
    }

    /// Names with their letters, in a sentence.
    pub(crate) fn key(&self) -> String {
        let names = self.names.iter().map(|(letter, name)| format!("{letter} is `{name}`"));
        let tied = self.cells.iter().flatten().flatten().any(|cell| cell.tied);
        let tie = tied.then(|| format!("{TIE} stands where it is not significantly ahead"));
        format!("{}.", names.chain(tie).collect::<Vec<_>>().join(", "))
    }

    /// Draws the map with its legend. Letters tell the protocols apart without colours.
    pub(super) fn picture(&self) -> Markup {
        let columns = self.x.1.len().max(1) as f64;
        let width = ((WIDTH - LEFT) / columns).min(CELL_MAX);
        let height = TOP + ROW * self.y.1.len() as f64 + 54.0;
        let mut out = String::new();
        for (row, cells) in self.cells.iter().enumerate() {
            let top = TOP + ROW * row as f64;
            let _ = writeln!(
                out,
                r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                LEFT - 10.0,
                top + ROW / 2.0 + 4.0,
                escape(&self.y.1[row])
            );
            for (column, cell) in cells.iter().enumerate() {
                self.draw(&mut out, cell.as_ref(), (LEFT + width * column as f64, top), width);
            }
        }
        let bottom = TOP + ROW * self.cells.len() as f64;
        for (column, value) in self.x.1.iter().enumerate() {
            let (x, y) = (LEFT + width * (column as f64 + 0.5), bottom + 20.0);
            let value = escape(value);
            let _ = writeln!(
                out,
                r#"<text class="tick" x="{x:.1}" y="{y:.1}" text-anchor="middle">{value}</text>"#
            );
        }
        let (right, below) = (LEFT + width * columns, bottom + 44.0);
        let (x, y) = (escape(&self.x.0.head()), escape(&self.y.0.head()));
        let _ = write!(out, r#"<text class="label" x="12" y="18">{y}</text>"#);
        let _ = writeln!(
            out,
            r#"<text class="label" x="{right:.1}" y="{below:.1}" text-anchor="end">{x}</text>"#
        );
        html! {
            ul.legend {
                @for (style, (letter, name)) in self.names.iter().enumerate() {
                    li { (swatch(style, *letter)) (name) }
                }
            }
            (svg("plot", WIDTH, height, &self.title, out))
        }
    }

    fn draw(&self, out: &mut String, cell: Option<&MapCell>, (left, top): (f64, f64), width: f64) {
        let middle = left + width / 2.0;
        let Some(cell) = cell else {
            let base = top + ROW / 2.0 + 4.0;
            let _ = write!(
                out,
                r#"<rect class="empty-cell" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{ROW}"/>"#
            );
            let _ = writeln!(
                out,
                r#"<text class="tick" x="{middle:.1}" y="{base:.1}" text-anchor="middle">none</text>"#
            );
            return;
        };
        let (first, second) = (top + ROW / 2.0 - 1.0, top + ROW / 2.0 + 16.0);
        let ratio = cell.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let _ = write!(
            out,
            r#"<g class="s{}"><rect class="cell" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{ROW}"/>"#,
            cell.winner % super::plot::STYLES
        );
        let _ = write!(
            out,
            r#"<text class="winner" x="{middle:.1}" y="{first:.1}" text-anchor="middle">{}</text>"#,
            self.word(cell)
        );
        let _ = writeln!(
            out,
            r#"<text class="tick" x="{middle:.1}" y="{second:.1}" text-anchor="middle">{ratio}</text></g>"#
        );
    }

    fn rows(&self, cell: impl Fn(&MapCell) -> String) -> Table {
        let first = Column::number(&self.y.0.label, &self.y.0.unit);
        let columns = self.x.1.iter().map(|value| Column::number(value, ""));
        let mut table = Table::new(&self.title, [first].into_iter().chain(columns));
        for (value, cells) in self.y.1.iter().zip(&self.cells) {
            let cells = cells.iter().map(|one| match one {
                Some(one) => Cell::text(cell(one)),
                None => Cell::text("none").toned(Tone::Faint),
            });
            table.row([Cell::text(value)].into_iter().chain(cells));
        }
        table
    }

    /// Winners with their times, as multiples of the ideal time.
    pub(crate) fn table(&self) -> Table {
        self.rows(|cell| {
            let ratio = cell.ratio.map(|ratio| format!(" {ratio:.2}")).unwrap_or_default();
            format!("{}{ratio}", self.word(cell))
        })
    }

    /// Winners alone, in columns as narrow as their letters and heads, with the name of the horizontal parameter above.
    pub(crate) fn terminal(&self, width: usize, colour: bool) -> String {
        let letters = self.rows(|cell| self.word(cell)).terminal(width, colour);
        format!("{}; columns: {}\n{letters}", self.title, self.x.0.head())
    }
}

/// Swatch of a protocol.
fn swatch(style: usize, letter: char) -> Markup {
    let drawing = format!(
        "<g class=\"s{}\"><rect class=\"cell\" x=\"6\" y=\"-3\" width=\"22\" height=\"20\"/>\
         <text class=\"winner key\" x=\"17\" y=\"12\" text-anchor=\"middle\">{letter}</text></g>",
        style % super::plot::STYLES
    );
    html! { svg viewBox="0 0 34 14" aria-hidden="true" { (PreEscaped(drawing)) } }
}

/// Chooses a different letter for each name: an initial of one of its words, or else any letter of it.
pub(crate) fn letters<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(char, String)> {
    let mut chosen: Vec<(char, String)> = Vec::new();
    for name in names {
        let initials =
            name.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| word.chars().next());
        let candidates = initials.chain(name.chars()).filter(char::is_ascii_alphanumeric);
        let candidates = candidates.map(|c| c.to_ascii_uppercase()).chain('A'..='Z').chain('a'..='z');
        let is_free = |letter: &char| chosen.iter().all(|(other, _)| other != letter);
        let letter = { candidates }.find(is_free).unwrap_or('?');
        chosen.push((letter, name.to_owned()));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> WinnerMap {
        let cell = |winner, tied| Some(MapCell { winner, tied, ratio: Some(1.0 + winner as f64) });
        WinnerMap {
            title: "Fastest protocol".into(),
            names: letters(["tcpcl4/tuned", "ltp/tuned"]),
            x: (Axis::new("one-way delay", "ms"), vec!["50".into(), "5000".into()]),
            y: (Axis::new("bit-error rate", ""), vec!["0".into(), "1e-5".into()]),
            cells: vec![vec![cell(0, true), cell(1, false)], vec![cell(1, false), None]],
            ..WinnerMap::default()
        }
    }

    #[test]
    fn each_name_has_a_letter_of_its_own() {
        let of = |names: &[&str]| letters(names.iter().copied()).iter().map(|(c, _)| *c).collect::<String>();
        assert_eq!(of(&["tcpcl4/tuned", "ltp/tuned", "ltp-fec/tuned"]), "TLF");
        assert_eq!(of(&["udp", "udp", "udp", "udp"]), "UDPA");
        let many: Vec<String> = (0..40).map(|_| "x".to_owned()).collect();
        let all = letters(many.iter().map(String::as_str));
        assert_eq!(all.iter().map(|(c, _)| *c).collect::<std::collections::BTreeSet<_>>().len(), 40);
    }

    #[test]
    fn a_terminal_shows_letters_and_the_page_also_ratios() {
        let expected = "\
Fastest protocol; columns: one-way delay (ms)
bit-error rate  50  5000
--------------  --  ----
             0  T=     L
          1e-5   L  none
";
        assert_eq!(map().terminal(80, false), expected);
        assert_eq!(
            map().key(),
            "T is `tcpcl4/tuned`, L is `ltp/tuned`, = stands where it is not significantly ahead."
        );
        let picture = map().picture().into_string();
        for (part, count) in
            [("class=\"cell\"", 3 + 2), ("class=\"empty-cell\"", 1), (">T=<", 1), (">2.00<", 2)]
        {
            assert_eq!(picture.matches(part).count(), count, "{part}");
        }
        assert!(map().table().csv().contains("0,T= 1.00,L 2.00\n"), "{}", map().table().csv());
    }
}
