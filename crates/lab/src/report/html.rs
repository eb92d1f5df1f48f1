//! The page: one file, no script, nothing fetched.

use super::plot::Plot;
use super::table::{Cell, Column, Table, Tone};
use super::{Assumption, PageBlock, Report, Section};
use crate::record::Experiment;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// Textures that tell the second and third use of a colour from the first.
const TEXTURES: &str = "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>\
<pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<path class=\"texture\" d=\"M0 0V7\" stroke-width=\"3\"/></pattern>\
<pattern id=\"dots\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\">\
<circle class=\"texture\" cx=\"3.5\" cy=\"3.5\" r=\"1.4\"/></pattern></defs></svg>\n";

pub(super) fn page(report: &Report, experiment: &Experiment) -> String {
    let mut out = String::with_capacity(1 << 16);
    let title = escape(&report.title);
    let _ = writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta \
         name=\"generator\" content=\"longwire {}\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n{TEXTURES}<main>",
        env!("CARGO_PKG_VERSION")
    );
    header(&mut out, report);
    for (number, section) in report.sections.iter().enumerate() {
        self::section(&mut out, section, number);
    }
    assumptions(&mut out, &report.assumptions);
    data(&mut out, experiment);
    let _ = writeln!(
        out,
        "<footer>Made by longwire {}. This file is complete in itself: it needs no network. The command and the seed \
         above make it again, byte for byte.</footer>\n</main>\n</body>\n</html>",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn header(out: &mut String, report: &Report) {
    let _ = writeln!(
        out,
        "<header>\n<p class=\"brand\">Longwire</p>\n<h1>{}</h1>\n<p class=\"lead\">{}</p>",
        escape(&report.title),
        prose(&report.lead)
    );
    if !report.command.is_empty() {
        let _ = writeln!(out, "<pre><code>{}</code></pre>", escape(&report.command));
    }
    if !report.facts.is_empty() {
        out.push_str("<dl class=\"facts\">");
        for (name, value) in &report.facts {
            let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
        out.push_str("</dl>\n");
    }
    if report.sections.len() > 3 {
        out.push_str("<nav aria-label=\"Contents\"><ol>");
        for (number, section) in report.sections.iter().enumerate() {
            let _ = write!(out, "<li><a href=\"#part-{}\">{}</a></li>", number + 1, escape(&section.heading));
        }
        if !report.assumptions.is_empty() {
            out.push_str("<li><a href=\"#assumptions\">What was assumed</a></li>");
        }
        out.push_str("<li><a href=\"#data\">The data</a></li></ol></nav>\n");
    }
    out.push_str("</header>\n");
}

fn section(out: &mut String, section: &Section, number: usize) {
    let _ = writeln!(out, "<section>\n<h2 id=\"part-{}\">{}</h2>", number + 1, escape(&section.heading));
    for block in &section.blocks {
        match block {
            PageBlock::Text(text) => {
                let _ = writeln!(out, "<p>{}</p>", prose(text));
            }
            PageBlock::Code { caption, text } => {
                let _ = writeln!(
                    out,
                    "<div class=\"table\"><h3>{}</h3><pre><code>{}</code></pre></div>",
                    prose(caption),
                    escape(text)
                );
            }
            PageBlock::Plot(plot) => self::plot(out, plot),
            PageBlock::Table(table) => full_table(out, table),
            PageBlock::Ledger(chart) => {
                figure(out, &chart.title, [&chart.legend(), &chart.svg()], &chart.caption, &chart.table())
            }
            PageBlock::Rank(chart) => {
                figure(out, &chart.title, ["", &chart.svg()], &chart.caption, &chart.table())
            }
        }
    }
    out.push_str("</section>\n");
}

fn plot(out: &mut String, plot: &Plot) {
    let _ = writeln!(out, "<figure>\n<h3>{}</h3>", escape(&plot.title));
    if plot.series.len() > 1 || plot.series.iter().any(|series| series.published) {
        out.push_str(&plot.legend());
    }
    out.push_str(&plot.svg());
    caption(out, &plot.caption);
    folded(out, &plot.table(), &[(&plot.title, &plot.csv())]);
    out.push_str("</figure>\n");
}

/// A picture whose table is all its data.
fn figure(out: &mut String, title: &str, picture: [&str; 2], words: &str, table: &Table) {
    let _ = writeln!(out, "<figure>\n<h3>{}</h3>", escape(title));
    picture.iter().for_each(|part| out.push_str(part));
    caption(out, words);
    folded(out, table, &[(title, &table.csv())]);
    out.push_str("</figure>\n");
}

fn caption(out: &mut String, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "<figcaption>{}</figcaption>", prose(text));
    }
}

fn folded(out: &mut String, table: &Table, files: &[(&str, &str)]) {
    out.push_str("<div class=\"foot\"><details><summary>Table</summary>\n");
    self::table(out, table);
    out.push_str("</details>\n");
    let files: Vec<(String, &str, &str)> =
        files.iter().map(|(name, text)| (format!("{}.csv", slug(name)), "text/csv", *text)).collect();
    downloads(out, &files);
    out.push_str("</div>\n");
}

fn full_table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "<div class=\"table\">\n<h3>{}</h3>", prose(&table.caption));
    self::table(out, table);
    downloads(out, &[(format!("{}.csv", slug(&table.caption)), "text/csv", &table.csv())]);
    out.push_str("</div>\n");
}

fn table(out: &mut String, table: &Table) {
    let dense = if table.columns.len() > 7 { " class=\"dense\"" } else { "" };
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table{dense}>\n<thead><tr>",
        escape(&table.caption)
    );
    for column in &table.columns {
        let class = if column.right { " class=\"right\"" } else { "" };
        let unit = if column.unit.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escape(&column.unit))
        };
        let _ = write!(out, "<th scope=\"col\"{class}>{}{unit}</th>", escape(&column.name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (cell, column) in row.iter().zip(&table.columns) {
            let _ = write!(out, "<td{}>{}</td>", classes(cell, column), unbroken(&prose(&cell.text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Keeps `1e-6` on one line.
fn unbroken(text: &str) -> String {
    const WORD_JOINER: &str = "&#8288;";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("e-") {
        let (before, behind) = rest.split_at(at + 2);
        out.push_str(before);
        let number = before.as_bytes().get(at.wrapping_sub(1)).is_some_and(u8::is_ascii_digit);
        if number && behind.starts_with(|c: char| c.is_ascii_digit()) {
            out.push_str(WORD_JOINER);
        }
        rest = behind;
    }
    out + rest
}

fn classes(cell: &Cell, column: &Column) -> String {
    let tone = match cell.tone {
        Tone::Plain => "",
        Tone::Strong => "strong",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Faint => "faint",
    };
    let names = [if column.right { "right" } else { "" }, tone].into_iter().filter(|name| !name.is_empty());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

fn assumptions(out: &mut String, assumptions: &[Assumption]) {
    if assumptions.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2 id=\"assumptions\">What was assumed</h2>\n");
    let columns = ["assumption", "basis", "does it move the result?"].map(Column::text);
    let mut table = Table::new("What was assumed", columns);
    let (moving, still): (Vec<_>, Vec<_>) =
        assumptions.iter().partition(|assumption| assumption.moves_result);
    for assumption in moving.into_iter().chain(still) {
        let effect = match (&assumption.effect, assumption.moves_result) {
            (Some(effect), true) => Cell::text(format!("yes: {effect}")).toned(Tone::Strong),
            (None, true) => Cell::text("yes").toned(Tone::Strong),
            (Some(effect), false) => Cell::text(format!("no: {effect}")),
            (None, false) => Cell::text("not varied").toned(Tone::Faint),
        };
        table.row([Cell::text(&assumption.text), Cell::text(&assumption.basis), effect]);
    }
    self::table(out, &table);
    out.push_str("</section>\n");
}

fn data(out: &mut String, experiment: &Experiment) {
    let mut json = Vec::new();
    let mut records = Vec::new();
    let mut runs = Vec::new();
    let written = [
        experiment.write_compact_json(&mut json),
        experiment.write_records_csv(&mut records),
        experiment.write_runs_csv(&mut runs),
    ];
    assert!(written.iter().all(Result::is_ok), "a Vec takes every byte");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("made of strings");
    let (json, records, runs) = (text(json), text(records), text(runs));
    let _ = writeln!(
        out,
        "<section>\n<h2 id=\"data\">The data</h2>\n<p>{} figures from {} runs, with means, 95 % intervals (Student's \
         t), least and greatest values.</p>",
        experiment.records.len(),
        experiment.runs.len()
    );
    let name = slug(&experiment.experiment);
    downloads(
        out,
        &[
            (format!("{name}.json"), "application/json", &json),
            ("records.csv".to_owned(), "text/csv", &records),
            ("runs.csv".to_owned(), "text/csv", &runs),
        ],
    );
    out.push_str("</section>\n");
}

/// Links that hold their files themselves.
fn downloads(out: &mut String, files: &[(String, &str, &str)]) {
    out.push_str("<p class=\"download\">");
    for (name, kind, text) in files {
        let _ = write!(
            out,
            "<a download=\"{}\" href=\"data:{kind};charset=utf-8,{}\">{}</a>",
            escape(name),
            percent(text),
            escape(name)
        );
    }
    out.push_str("</p>\n");
}

/// As a part of a data URI, in a quoted attribute (RFC 3986 2.1).
fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 5 / 4);
    for &byte in text.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~,:;=/?@!$()*+".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// As a part of a file's name: whole words, not too many.
fn slug(text: &str) -> String {
    const LENGTH_MAX: usize = 72;
    let mut out = String::new();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        if !out.is_empty() && out.len() + 1 + word.len() > LENGTH_MAX {
            break;
        }
        if !out.is_empty() {
            out.push('-');
        }
        out.push_str(&word.to_ascii_lowercase());
    }
    if out.is_empty() { "data".to_owned() } else { out }
}

/// Text as it stands.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

/// Text in which pairs of backticks set code.
fn prose(text: &str) -> String {
    let escaped = escape(text);
    let mut parts = escaped.split('`');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(inside) = parts.next() {
        match parts.next() {
            Some(after) => {
                let _ = write!(out, "<code>{inside}</code>{after}");
            }
            None => {
                let _ = write!(out, "`{inside}");
            }
        }
    }
    out
}
