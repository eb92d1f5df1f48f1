use super::*;
use crate::claim::Verdict;
use crate::progress::Progress;
use crate::record::Params;
use crate::report::{Cell, PlotSeries};
use std::collections::BTreeSet;

#[test]
fn a_folder_and_an_entry_are_a_paper_with_a_page_claims_and_the_same_bytes_on_any_number_of_threads() {
    let paper = find("dummy").expect("it is in the table");
    let progress = Progress::new();
    let play = |threads| {
        let finding = reproduce(paper, &Bench { threads, seed: 7, ..Bench::new(&progress) });
        let mut json = Vec::new();
        finding.experiment.write_json(&mut json).expect("a Vec takes everything");
        (
            finding.report.html(&finding.experiment),
            json,
            crate::output::terminal(&finding.summary, 400, false),
        )
    };
    let (one, three) = (play(1), play(3));
    assert!(one == three);
    let (page, json, terminal) = one;
    assert!(page.contains("longwire paper dummy --seed 7 --runs 400") && page.contains("On dice"));
    assert!(
        page.contains("outside 20 %: the authors' die is not fair")
            && page.contains("not judged: the formula")
    );
    assert!(
        terminal.contains("1 of 2 of those judged hold") && terminal.contains("die is not fair"),
        "{terminal}"
    );
    let document: serde_json::Value = serde_json::from_slice(&json).expect("a document");
    assert_eq!(document["records"][0]["reference"], 3.5);
    assert_eq!(document["records"][0]["n"], 400);
}

#[test]
fn an_early_stop_is_said_on_the_page_and_in_its_command() {
    let paper = find("dummy").expect("it is in the table");
    let finding = reproduce(paper, &Bench::new(&Progress::up_to(10)));
    let report = &finding.report;
    assert!(report.lead.ends_with("Stopped early: 10 of 800 runs completed."), "{}", report.lead);
    assert!(report.command.ends_with(" --runs 5"), "{}", report.command);
}

#[test]
fn papers_have_names_of_their_own() {
    let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    assert_eq!(names, ["cislunar", "dtn-ax25", "ax25-throughput", "dstar", "aerotp", "dummy"]);
    assert!(find("dumy").is_none());
}

/// Texts of a page outside of style, code and data.
fn texts(page: &str) -> Vec<&str> {
    let body = page.split_once("<main>").expect("a page has a body").1;
    let parts = body.split('<').filter(|part| !part.starts_with("code>"));
    parts.filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect()
}

/// Words that are keys of records, as there or with hyphens.
fn keys<'a>(texts: &[&'a str], records: &[Record]) -> Vec<&'a str> {
    let params = records.iter().flat_map(|record| record.params.iter().map(|(name, _)| name));
    let names = params.chain(records.iter().map(|record| record.metric.as_str()));
    let hyphened: BTreeSet<String> =
        names.filter(|name| name.contains('_')).map(|name| name.replace('_', "-")).collect();
    let apart = |letter: char| !letter.is_alphanumeric() && !"-_".contains(letter);
    let words = texts.iter().flat_map(|text| text.split(apart));
    words.filter(|word| word.contains('_') || hyphened.contains(*word)).collect()
}

/// A page answers in a sentence or two, its labels are words, and whatever does not hold says why.
#[test]
fn pages_answer_briefly_without_keys_and_no_verdict_is_without_a_reason() {
    let progress = Progress::new();
    let bench = Bench { runs: Some(2), thin: true, threads: 2, ..Bench::new(&progress) };
    for paper in PAPERS {
        let page = (paper.play)(&bench);
        let words = page.answer.split_whitespace().count();
        assert!(words <= 40, "{}: {words} words: {}", paper.name, page.answer);
        for claim in &page.claims {
            let holds = claim.verdict() == Verdict::Holds;
            assert!(holds || !claim.why.is_empty(), "{}: {} ({})", paper.name, claim.what, claim.place);
        }
        let finding = page.finding(paper, &bench);
        let html = finding.report.html(&finding.experiment);
        assert_eq!(keys(&texts(&html), &finding.experiment.records), [""; 0], "{}", paper.name);
    }
}

#[test]
fn a_key_is_noticed_in_either_form() {
    let record = Record::of("tcp", Params::new().with("delay_ms", 5u32), "last_hop_s", "s", &[1.0]);
    let page =
        "<style>a_b{}</style><main><th scope=\"col\">delay_ms</th>(last-hop-s) one-way<code>x_y</code>";
    assert_eq!(keys(&texts(page), &[record]), ["delay_ms", "last-hop-s"]);
}

#[test]
fn tables_plots_and_sentences_are_made_from_text() {
    let text = text::Text::read(
        r#"
        [section.one]
        heading = "One"
        [table.times]
        caption = "Times"
        columns = ["layer (own)", "time (s)", "k"]
        text = ["layer (own)"]
        [plot.times]
        title = "Times"
        x = "window k"
        y = "time (s)"
        log = true
        [words]
        steps = "{many} steps, {few} at a time"
        "#,
    );
    let table = text.table("times", [vec![Cell::text("a"), Cell::number(1.0), Cell::number(2.0)]]);
    let columns: Vec<(String, bool)> =
        table.columns.iter().map(|column| (column.head(), column.right)).collect();
    assert_eq!(columns, [("layer (own)".into(), false), ("time (s)".into(), true), ("k".into(), true)]);
    assert_eq!((table.columns[1].unit.as_str(), table.rows.len()), ("s", 1));
    let plot = text.plot("times");
    assert_eq!((plot.x.unit.as_str(), plot.y.unit.as_str(), plot.y.log), ("", "s", true));
    let words = text.words("steps", &[("few", "2".into()), ("many", "10".into())]);
    assert_eq!(words, "10 steps, 2 at a time");
}

#[test]
fn figures_are_found_along_a_curve_with_what_they_are_compared_with() {
    let record = |delay_ms: u32, ber: f64, time_s: f64| {
        let params = Params::new().with("delay_ms", delay_ms).with("ber", ber);
        Record::of("tcp", params, "transfer_s", "s", &[time_s]).with_limit(1.0)
    };
    let published = record(7, 0.0, 9.0).with_reference(8.0, "Table I");
    let records = [record(5, 0.0, 3.0), record(5, 1e-6, 4.0), published];
    let figures = figures::Figures(&records);
    let points =
        |series: PlotSeries| series.points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>();
    let at = "delay_ms=* ber=0";
    assert_eq!(points(figures.curve("ours", "tcp", "transfer_s", at)), [(5.0, 3.0), (7.0, 9.0)]);
    assert_eq!(points(figures.published("theirs", "tcp", "transfer_s", at)), [(7.0, 8.0)]);
    assert_eq!(points(figures.limits("ideal", "tcp", "transfer_s", at)), [(5.0, 1.0), (7.0, 1.0)]);
    assert_eq!(figures.mean("tcp", "transfer_s", "delay_ms=5 ber=1e-6"), 4.0);
    assert!(figures.mean("udp", "transfer_s", "delay_ms=5 ber=1e-6").is_nan());
    assert_eq!(figures.cell("tcp", "transfer_s", "delay_ms=6 ber=0", "never").text, "never");
}

#[test]
fn effects_have_their_figures_and_those_not_tested_are_left_out() {
    let assumption =
        |effect: &str| format!("[[assumption]]\ntext = 't'\nbasis = 'b'\nmoves-result = true\n{effect}\n");
    let parts = ["effect = '{} instead of {}'", "effect = 'none'", "effect = '{}'", ""].map(assumption);
    let text = text::Text::read(&format!("{}[section]\n", parts.concat()));
    let effects = text.assumptions([vec!["5".to_owned(), "6".into()], Vec::new()]);
    let effects: Vec<Option<&str>> = effects.iter().map(|one| one.effect.as_deref()).collect();
    assert_eq!(effects, [Some("5 instead of 6"), Some("none"), None, None]);
}
