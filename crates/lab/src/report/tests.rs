use super::*;
use crate::claim::{self, Claim};
use crate::format::{figure, with_error};
use crate::record::{Params, Record, Row};

/// Page with every kind of block, number, name and point.
pub(crate) fn sample() -> (Report, Experiment) {
    let delays = [1280.0, 1500.0, 2000.0, 2500.0, 3000.0, 3500.0, 4000.0, 4500.0, 5000.0];
    let mut experiment = Experiment { experiment: "cislunar".into(), seed: 1, ..Experiment::default() };
    let mut plot = Plot::new(
        "Goodput over delay",
        Axis::new("one-way delay", "ms"),
        Axis::new("goodput", "byte/s").from_zero(),
    )
    .captioned("Means of four runs with 95 % intervals; hollow markers are the paper's. `ber` is per bit.");
    for (style, (ber, top, published)) in
        [(0.0, 9000.0, 5400.0), (1e-6, 5200.0, 2550.0), (1e-5, 1900.0, 776.0)].into_iter().enumerate()
    {
        let mut points = Vec::new();
        for &delay in &delays {
            let params = Params::new().with("delay_ms", delay).with("ber", ber);
            let middle = top * libm::exp(-delay / 4000.0);
            let samples: Vec<f64> = (0..4).map(|i| middle * (1.0 + ber * 4e3 * f64::from(i - 2))).collect();
            for (number, value) in (0u32..).zip(&samples) {
                let values = vec![("goodput_byte_per_s".to_owned(), *value)];
                let (case, seed) = ("tcpcl3".to_owned(), u64::from(number));
                experiment.runs.push(Row { case, params: params.clone(), run: number, seed, values });
            }
            let mut record = Record::of("tcpcl3", params, "goodput_byte_per_s", "byte/s", &samples);
            if delay == 2000.0 {
                record = record.with_reference(published, "section III.A");
            }
            points.push(Point::of(delay, &record));
            experiment.records.push(record);
        }
        plot = plot.with(PlotSeries::new(format!("BER {}", crate::record::number(ber)), points));
        let point = vec![Point::new(2000.0, published)];
        let name = format!("BER {}", crate::record::number(ber));
        plot = plot.with(PlotSeries::new(name, point).published().styled(style));
    }
    let limit = delays.map(|delay| Point::new(delay, 6800.0)).to_vec();
    plot = plot.with(PlotSeries::new("limit of store and forward", limit).shaped(Shape::Bound));
    let mut ranking = Table::new(
        "Protocols and settings",
        [
            Column::number("rank", ""),
            Column::text("protocol"),
            Column::number("time", "s"),
            Column::number("goodput", "byte/s"),
            Column::number("of the limit", ""),
        ],
    );
    for (rank, (name, time)) in [
        ("tcpcl4, 64 KiB segments", 105.31),
        ("tcpcl3 <as deployed>", 185.25),
        ("tcp & nothing else", 1289.0),
    ]
    .into_iter()
    .enumerate()
    {
        let tone = if rank == 0 { Tone::Strong } else { Tone::Plain };
        ranking.row([
            Cell::precise(rank as f64 + 1.0, 0).toned(tone),
            Cell::text(name).toned(tone),
            Cell::summary(&crate::stats::Summary::of(&[time, time * 1.02, time * 0.97])).toned(tone),
            Cell::number(1e6 / time).toned(tone),
            Cell::percent(76.0 / time).toned(tone),
        ]);
    }
    let rank = RankChart {
        title: "Transfer time".into(),
        quantity: "time".into(),
        unit: "s".into(),
        rows: [
            ("tcpcl4/streaming, wide window", 105.31, 2.0),
            ("tcpcl3 <as deployed>", 185.25, 12.0),
            ("tcp", 240.0, 0.0),
        ]
        .map(|(name, time, spread)| RankRow {
            name: name.into(),
            summary: crate::stats::Summary::of(&[time - spread, time, time + spread]),
        })
        .to_vec(),
        limit: Some(73.4),
        ..RankChart::default()
    };
    let ledger = LedgerChart {
        title: "Use of time".into(),
        caption: "Moon to orbiter, all runs' mean.".into(),
        unit: "s".into(),
        shares: [
            ("payload", "the file's bytes, sent for the first time"),
            ("headers", "IP, TCP and bundle headers of those"),
            ("repeated", "retransmissions"),
            ("acknowledgement", "frames that do nothing else"),
            ("control", "opening, closing, keep-alives"),
            ("repair", "redundancy"),
            ("framing", "what the link adds"),
        ]
        .map(|(name, meaning)| LedgerShare::new(name, meaning, false))
        .into_iter()
        .chain([
            LedgerShare::new("outage", "the link was away", true),
            LedgerShare::new("idle", "nothing to send, or no window", true),
        ])
        .collect(),
        bars: vec![
            Bar {
                name: "tcpcl4, 64 KiB".into(),
                values: vec![69.4, 3.1, 0.0, 0.2, 0.3, 1.4, 1.1, 0.0, 30.0],
                limit: Some(73.0),
            },
            Bar {
                name: "tcpcl3".into(),
                values: vec![69.4, 5.1, 22.0, 1.2, 0.3, 0.0, 1.2, 30.0, 56.0],
                limit: Some(73.0),
            },
            Bar { name: "nothing".into(), values: vec![], limit: None },
        ],
    };
    let trace: Vec<Point> = (0..9000)
        .map(|i| (f64::from(i), libm::sin(f64::from(i) / 300.0)))
        .map(|(x, y)| Point::new(x / 50.0, 4000.0 + 3000.0 * y))
        .collect();
    let spans =
        (0..700).map(|i| Point::span(f64::from(i) / 4.0, f64::from(i) * 1448.0, f64::from(i + 1) * 1448.0));
    let claim = |record: &Record| {
        Some(Claim {
            what: format!("goodput at {}", crate::label::point(&record.params)),
            place: "section III.A".into(),
            published: claim::Published::Point(record.reference?),
            ours: claim::Ours::Figures(vec![record.clone()]),
            rule: claim::Rule::Share(0.15),
            kind: record.kind,
            why: "a longer link".into(),
        })
    };
    let claims: Vec<Claim> = experiment.records.iter().filter_map(claim).collect();
    let report = Report {
        answer: Vec::new(),
        title: "Cislunar: which protocol, how long, how sure".into(),
        lead: "`tcpcl4` with 64 KiB segments moves 1,000,000 bytes in 105 s, 1.4 times the ideal time."
            .into(),
        command: "longwire compare FILE --link cislunar --seed 1".into(),
        facts: [("file", "1,000,000 bytes"), ("runs", "4 a point"), ("seed", "1"), ("limit", "73.4 s")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        sections: vec![
            Section::new("Ranking").with("From the fastest.").with(ranking).with(rank).with(ledger),
            Section::new("Comparison with the paper")
                .with(claim::table("Ours and published", &claims))
                .with(plot),
            Section::new("Traces")
                .with(
                    Plot::new(
                        "Time and sequence",
                        Axis::new("time", "s"),
                        Axis::new("sequence number", "byte"),
                    )
                    .with(PlotSeries::new("data", spans.collect()).shaped(Shape::Spans)),
                )
                .with(
                    Plot::new("Goodput", Axis::new("time", "s"), Axis::new("goodput", "byte/s").from_zero())
                        .with(PlotSeries::new("each second", trace).shaped(Shape::Trace)),
                ),
            Section::new("Markers").with((0..7).fold(
                Plot::new("Every style", Axis::new("frame", "byte").log(), Axis::new("error rate", "").log()),
                |plot, style| {
                    let points =
                        [100.0, 300.0, 1500.0].map(|x| Point::new(x, x * x * 1e-8 * f64::from(style + 1)));
                    plot.with(PlotSeries::new(format!("style {style}"), points.to_vec())).with(
                        PlotSeries::new("theirs", vec![Point::new(600.0, 4e-3 * f64::from(style + 1))])
                            .published()
                            .styled(style as usize),
                    )
                },
            )),
            Section::new("Published and ours").with(Scatter {
                title: "Published and ours".into(),
                caption: "Each point by its own rule.".into(),
                points: [
                    ("time at BER 0", 185.0, 190.0, Verdict::Holds),
                    ("goodput at BER 1e-6", 2550.0, 3600.0, Verdict::Misses),
                    ("timeouts", 4.0, 9.0, Verdict::NotJudged),
                    ("jitter", 30.0, 20.0, Verdict::CannotTell),
                ]
                .map(|(what, published, ours, verdict)| ScatterPoint {
                    what: what.into(),
                    published,
                    ours,
                    verdict,
                })
                .to_vec(),
            }),
            Section::new("Panels").with((0..12u32).fold(
                Plot::new("Many", Axis::new("delay", "s"), Axis::new("time", "s").from_zero()),
                |plot, number| {
                    let params =
                        Params::new().with("ber", f64::from(number % 4)).with("rate_bps", number / 4);
                    let points = [1.0, 2.0, 3.0].map(|x| Point::new(x, x * f64::from(number)));
                    plot.with(PlotSeries::new("tcp", points.to_vec()).at(params))
                },
            )),
            Section::new("Configuration").with(PageBlock::Code {
                caption: "`node.toml` for the winner".into(),
                text: "[link.moon]\nprotocol = \"tcpcl4\"\n".into(),
            }),
        ],
        assumptions: vec![
            Assumption {
                text: "The outage begins 30 s after the transfer.".into(),
                basis: "not stated".into(),
                effect: Some("an outage after the last byte costs nothing".into()),
                moves_result: true,
            },
            Assumption {
                text: "Headers are those of IPv4.".into(),
                basis: "section II".into(),
                ..Assumption::default()
            },
        ],
    };
    (report, experiment)
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let (report, experiment) = sample();
    let page = report.html(&experiment);
    for forbidden in ["http:", "https:", "//", "<script", "<link", "@import", "url(h", "src=\""] {
        let outside = page.replace("'unsafe-inline'", "");
        assert!(!outside.contains(forbidden), "the page contains {forbidden}");
    }
    for part in page.split("href=\"").skip(1) {
        assert!(part.starts_with("data:") || part.starts_with('#'), "{}", &part[..40]);
    }
    for part in page.split("url(").skip(1) {
        assert!(part.starts_with('#'), "{}", &part[..20]);
    }
}

#[test]
fn the_page_is_balanced_and_escapes_what_it_is_given() {
    let (report, experiment) = sample();
    let page = report.html(&experiment);
    for element in [
        "main", "section", "figure", "table", "thead", "tbody", "tr", "td", "th", "svg", "g", "details", "p",
        "ul", "li", "div", "h4",
    ] {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
    assert!(page.contains("bit-error rate 1e-&#8288;6"), "numbers are not broken");
    assert!(page.contains("tcpcl3 &lt;as deployed&gt;") && !page.contains("<as deployed>"));
    assert!(!page.contains("NaN") && !page.contains("inf\""), "a plot has a place without a number");
    assert_eq!(page, report.html(&experiment), "the same report is the same page");
}

#[test]
fn pairs_of_backticks_are_code_and_a_single_one_is_not() {
    let report = Report { lead: "`a < b` and `c` or `d".into(), ..Report::default() };
    let page = report.html(&Experiment::default());
    assert!(page.contains("<p class=\"lead\"><code>a &lt; b</code> and <code>c</code> or `d</p>"), "{page}");
}

/// On a phone only elements with their own scroll frame scroll sideways: everything that may be wider than the page is
/// in one, and file names, which are one long word, may break anywhere.
#[test]
fn a_page_keeps_a_phones_width() {
    let (report, experiment) = sample();
    let page = report.html(&experiment);
    let style = page.split_once("<style>").and_then(|(_, rest)| rest.split_once("</style>")).unwrap().0;
    let rule = |selector: &str| {
        let rules = style.split('}').filter_map(|rule| rule.split_once('{'));
        rules.filter(|(names, _)| names.trim() == selector).map(|(_, body)| body).collect::<String>()
    };
    assert!(page.contains("content=\"width=device-width, initial-scale=1\""));
    assert!(rule("body").contains("overflow-wrap: break-word"), "{}", rule("body"));
    assert!(rule(".download a").contains("overflow-wrap: anywhere"), "{}", rule(".download a"));
    for frame in [".scroll", "pre"] {
        assert!(rule(frame).contains("overflow-x: auto"), "{frame}: {}", rule(frame));
    }
    assert!(rule("svg.plot").contains("width: 100%"));
    // Only numbers keep lines unbroken.
    for (selector, body) in style.split('}').filter_map(|rule| rule.split_once('{')) {
        let cells = selector.trim().ends_with(".right");
        assert!(cells || !body.contains("nowrap"), "{selector}");
        let fixed = body.split(';').any(|part| part.trim().starts_with("min-width:") && part.contains("rem"));
        assert!(!fixed, "{selector} has a width that a phone may not have");
    }
    for (at, _) in page.match_indices("<table") {
        let before = &page[..at];
        let frame = before.rfind("<div class=\"scroll\"").expect("a table has a frame");
        assert!(!before[frame..].contains("</div>"), "a table stands outside of its frame");
    }
}

#[test]
fn a_table_fits_the_terminal_and_needs_no_colour() {
    let (report, _) = sample();
    let PageBlock::Table(table) = &report.sections[0].blocks[1] else { panic!("the ranking is a table") };
    let wide = table.terminal(100, false);
    let expected = "\
rank  protocol                    time (s)  goodput (byte/s)  of the limit
----  -----------------------  -----------  ----------------  ------------
   1  tcpcl4, 64 KiB segments  105.0 ± 6.6             9,496        72.2 %
   2  tcpcl3 <as deployed>        185 ± 12             5,398        41.0 %
   3  tcp & nothing else        1,285 ± 81             775.8         5.9 %
";
    assert_eq!(wide, expected);
    assert!(wide.lines().all(|line| line == line.trim_end()), "no blanks at line ends");
    let narrow = table.terminal(66, false);
    assert!(narrow.lines().all(|line| line.chars().count() <= 66), "{narrow}");
    // No word is cut: names stay complete, and the remainder gets its own line.
    for line in ["   1  tcpcl4, 64 KiB", "      segments", "   2  tcpcl3 <as"] {
        assert!(
            narrow.lines().any(|said| said.trim_end() == line || said.starts_with(line)),
            "{line}\n{narrow}"
        );
    }
    // A line that is too long in any case keeps its text legible.
    let cut = table.terminal(40, false);
    assert!(cut.contains("   1  tcpcl4, 64 KiB segments  "), "{cut}");
    // The least important column is hidden first, and is named.
    let mut table = table.clone();
    table.columns[3].left_out = Some(1);
    table.columns[4].left_out = Some(2);
    let heads = |width: usize| table.terminal(width, false).lines().next().unwrap_or_default().to_owned();
    assert!(heads(80).contains("goodput (byte/s)"));
    assert!(!heads(70).contains("goodput") && heads(70).contains("of the limit"));
    assert!(heads(50).ends_with("time (s)"), "{}", heads(50));
    let narrow = table.terminal(50, false);
    assert!(narrow.ends_with("(hidden at this width: goodput, of the limit)\n"), "{narrow}");
    assert!(narrow.contains("tcpcl4, 64 KiB segments"), "{narrow}");
    let coloured = table.terminal(100, true);
    assert!(coloured.contains("\x1b[1m") && !wide.contains('\x1b'));
}

#[test]
fn numbers_have_the_digits_they_are_worth() {
    let table = [
        (0.0, "0"),
        (5412.3, "5,412"),
        (1_000_000.0, "1,000,000"),
        (185.26, "185.3"),
        (73.4, "73.4"),
        (0.042_17, "0.04217"),
        (1e-6, "1e-6"),
        (-1234.0, "-1,234"),
        (9_999.96, "10,000"),
    ];
    for (value, expected) in table {
        assert_eq!(figure(value), expected);
    }
    let summary = |mean, ci95| crate::stats::Summary { n: 4, mean, ci95, min: mean, max: mean };
    assert_eq!(with_error(&summary(185.254, Some(1.234))), "185.3 ± 1.2");
    assert_eq!(with_error(&summary(5412.3, Some(128.0))), "5,412 ± 128");
    assert_eq!(with_error(&summary(5.0, Some(0.0))), "5 ± 0");
    assert_eq!(with_error(&summary(5.0, None)), "5");
}

#[test]
fn a_table_of_a_file_has_its_rows_and_further_cells() {
    let csv = "name,clock,fast\n68302,9.5,true\nZ80,,false\n";
    let more = |row: usize| vec![Cell::number(row as f64)];
    let table = Table::of_csv("Processors", "name|# clock (MHz)|is fast|# row", csv, more);
    assert_eq!(table.csv(), "name,clock (MHz),is fast,row\n68302,9.5,yes,0\nZ80,,no,1\n");
    assert_eq!(table.columns[1], Column::number("clock", "MHz"));
    assert_eq!(table.rows[0][0].value, None, "a name of digits is a name");
}

#[test]
fn bars_are_side_by_side_with_a_table_of_their_values() {
    let groups = [("a".to_owned(), vec![10.0, 0.0]), ("b".to_owned(), vec![20.0, 30.0])];
    let plot = Plot::bars("Shares", Axis::new("window", "frames"), Axis::new("share", "%"), groups);
    let places: Vec<Vec<f64>> =
        plot.series.iter().map(|series| series.points.iter().map(|point| point.x).collect()).collect();
    assert_eq!(places, [vec![1.0 - 0.065], vec![1.0 + 0.065, 2.0 + 0.065]], "no bar of no height");
    let table = plot.table.expect("a table");
    assert_eq!(table.csv(), "window (frames),a (%),b (%)\n1,10,20\n2,0,30\n");
}
