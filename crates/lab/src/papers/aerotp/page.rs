//! Page: Figures 4 to 11, the claims, closed forms, and what lies beyond the paper.

use super::beyond;
use super::claims::{FRAME_BYTES, Found, ber, expected_share, payload_bytes};
use super::trials::{
    ACKNOWLEDGEMENTS, ADAPTIVE, AGGREGATED, FEC, LANS, MODES, Played, RATES, READING_RATES, READINGS,
    RELIABLE, REVERSE, Results, STRONG, TCP, TCP_LINUX, UDP, WEAK_FEC, WEAK_MACK, at,
};
use crate::claim::Claim;
use crate::format::known;
use crate::papers::Page;
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::record::{Params, Record};
use crate::report::{Cell, Plot, PlotSeries, Point, Shape, Table};
use longwire_proto::aerotp::{Config, model};

/// Metrics of the figures, and the names of their plots for the aggregation and for the modes.
const FIGURES: [(&str, &str, &str); 4] = [
    ("goodput_mbps", "figure-4", "figure-8"),
    ("delay_ms", "figure-5", "figure-9"),
    ("delivered_mb", "figure-6", "figure-10"),
    ("overhead_mb", "figure-7", "figure-11"),
];

pub(super) fn records_and_claims(results: &Results, text: &Text) -> (Vec<Record>, Vec<Claim>) {
    let records = results.played.iter().flat_map(Played::records).collect();
    (records, Found::new(results, text).claims())
}

pub(super) fn page(results: &Results) -> Page {
    let text = &Text::read(include_str!("text.toml"));
    let (records, claims) = records_and_claims(results, text);
    let figures = Figures(&records);
    let found = &Found::new(results, text);
    let goodput = |case: &str| figures.mean(case, "goodput_mbps", &at(1e-4).to_string());
    let order = match found.order() {
        Some(true) => "order-holds",
        Some(false) => "order-misses",
        None => "order-unknown",
    };
    let macks = Config::macks_max(1472);
    Page {
        answer: text.words(
            "answer",
            &[
                ("order", text.words(order, &[])),
                ("reliable", known(goodput(RELIABLE), 1)),
                ("mack", known(goodput(WEAK_MACK), 1)),
                ("tcp", known(goodput(TCP), 2)),
                ("adaptive", known(goodput(ADAPTIVE), 1)),
            ],
        ),
        runs: (results.runs, results.runs, "case"),
        facts: vec![
            ("data".into(), "1 MB at 4.416 Mbit/s".into()),
            ("air link".into(), "5 Mbit/s, 10 ms one way".into()),
            ("acknowledgements in a packet of 1500 bytes".into(), format!("{macks}; published: 365")),
        ],
        sections: vec![
            text.section("modes").shown(mode_table(figures, text)).with_all(mode_plots(figures, text, found)),
            text.section("aggregation")
                .shown(aggregation_table(figures, text))
                .with_all(aggregation_plots(figures, text))
                .with(reverse_table(figures, text)),
            text.section("strong").shown(strong_table(figures, text)),
            text.section("beyond")
                .shown(beyond_table(figures, text, found))
                .with(contact_table(figures, text)),
            text.section("readings").shown(reading_table(figures, text)),
        ],
        rows: results.played.iter().flat_map(Played::rows).collect(),
        assumptions: text.assumptions([]),
        claims,
        records,
        ..Page::default()
    }
}

/// Delivered share and goodput of all modes at all rates.
fn mode_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |mode: &str| {
        let cell = |metric: &str, rate: f64| figures.cell(mode, metric, &at(rate).to_string(), "");
        let goodput = [0.0, 1e-5, 5e-5, 1e-4].map(|rate| cell("goodput_mbps", rate));
        let rest = [
            cell("delivered_mb", 1e-4),
            cell("delay_ms", 1e-4),
            cell("intact_delay_ms", 1e-4),
            cell("overhead_mb", 1e-4),
        ];
        [Cell::text(mode)].into_iter().chain(goodput).chain(rest).collect()
    };
    text.table("modes", MODES.map(row))
}

fn mode_plots(figures: Figures<'_>, text: &Text, found: &Found<'_>) -> Vec<Plot> {
    let plot = |(metric, _, name): (&str, &str, &str)| {
        // As many as there are styles: TCP of Linux is in the table.
        let modes = MODES.iter().filter(|mode| **mode != TCP_LINUX);
        let plot = modes.enumerate().fold(text.plot(name), |plot, (style, mode)| {
            plot.with(figures.curve(*mode, mode, metric, "ber=*").styled(style))
        });
        if metric == "delivered_mb" { closed_forms(plot, text, found) } else { plot }
    };
    FIGURES.into_iter().map(plot).collect()
}

/// Adds the closed forms of what arrives without answers.
fn closed_forms(plot: Plot, text: &Text, found: &Found<'_>) -> Plot {
    let payload = |case: &str| found.find(case, &at(0.0)).map(payload_bytes);
    let curve = |name: &str, share: &dyn Fn(f64) -> f64| {
        let points = (0..=40).map(|step| f64::from(step) * 2.5e-6).map(|rate| Point::new(rate, share(rate)));
        PlotSeries::new(text.words(name, &[]), points.collect()).shaped(Shape::Bound)
    };
    let plot =
        plot.with(curve("closed-udp", &|rate| 1.0 - model::segment_error_probability(rate, FRAME_BYTES)));
    let plot = match payload(WEAK_FEC) {
        Some(bytes) => plot.with(curve("closed-weak", &|rate| expected_share(rate, bytes, true))),
        None => plot,
    };
    match payload(FEC) {
        Some(bytes) => plot.with(curve("closed-strong", &|rate| expected_share(rate, bytes, false))),
        None => plot,
    }
}

fn aggregation_plots(figures: Figures<'_>, text: &Text) -> Vec<Plot> {
    let plot = |(metric, name, _): (&str, &str, &str)| {
        ACKNOWLEDGEMENTS.iter().enumerate().fold(text.plot(name), |plot, (style, count)| {
            let curve = figures.curve(
                count.to_string(),
                AGGREGATED,
                metric,
                &format!("acknowledgements={count} ber=*"),
            );
            plot.with(curve.styled(style))
        })
    };
    FIGURES.into_iter().map(plot).collect()
}

fn aggregation_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |count: u32| {
        let cell = |metric: &str, rate: f64| {
            let place = Params::new().with("acknowledgements", count).with("ber", rate).to_string();
            figures.cell(AGGREGATED, metric, &place, "")
        };
        let overheads = [0.0, 1e-6, 1e-5, 1e-4].map(|rate| cell("overhead_mb", rate));
        let goodputs = [1e-5, 1e-4].map(|rate| cell("goodput_mbps", rate));
        [Cell::number(count.into())].into_iter().chain(overheads).chain(goodputs).collect()
    };
    text.table("aggregation", ACKNOWLEDGEMENTS.map(row))
}

fn reverse_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |count: u32| {
        let cell = |part: u64, metric: &str| {
            let place = Params::new().with("acknowledgements", count).with("reverse", 1.0 / part as f64);
            figures.cell(AGGREGATED, metric, &place.to_string(), "")
        };
        let goodputs = REVERSE.map(|part| cell(part, "goodput_mbps"));
        let overheads = REVERSE.map(|part| cell(part, "overhead_mb"));
        [Cell::number(count.into())].into_iter().chain(goodputs).chain(overheads).collect()
    };
    text.table("reverse", ACKNOWLEDGEMENTS.map(row))
}

fn strong_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |mode: &str| {
        let cell = |metric: &str, rate: f64| figures.cell(mode, metric, &at(rate).to_string(), "");
        let cells = [0.0, 1e-5, 1e-4]
            .into_iter()
            .flat_map(|rate| [cell("goodput_mbps", rate), cell("delivered_share", rate)]);
        [Cell::text(mode)].into_iter().chain(cells).collect()
    };
    text.table("strong", STRONG.iter().chain(&[UDP]).map(|mode| row(mode)))
}

/// The adaptive mode beside the best fixed one.
fn beyond_table(figures: Figures<'_>, text: &Text, found: &Found<'_>) -> Table {
    let short = RATES.map(|rate| (format!("1 MB at {}", ber(rate)), at(rate).with("at_once_mb", 1u32)));
    let long = [
        ("20 MB at 1e-4".to_owned(), at(1e-4).with("at_once_mb", 20u32)),
        ("20 MB, changing".to_owned(), Params::new().with("changing_mb", 20u32)),
    ];
    let row = |(name, params): (String, Params)| {
        let place = params.to_string();
        let (best, [behind, most]) = found.behind(&params)?;
        let cell = |case: &str| figures.cell(case, "goodput_mbps", &place, "");
        Some(vec![
            Cell::text(name),
            cell(ADAPTIVE),
            Cell::text(&best),
            cell(&best),
            Cell::percent(behind),
            Cell::percent(most),
        ])
    };
    text.table("beyond", short.into_iter().chain(long).filter_map(row))
}

fn contact_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |(name, _, rate): (String, _, f64)| {
        let place = at(rate).with("contact_s", 10u32).to_string();
        let cell = |metric: &str| figures.cell(&name, metric, &place, "");
        vec![
            Cell::text(&name),
            Cell::text(ber(rate)),
            cell("contact_share"),
            cell("repeated_after_kb"),
            cell("repeated_answered_kb"),
            cell("delivered_share"),
        ]
    };
    text.table("contacts", beyond::in_contacts().into_iter().map(row))
}

/// Other readings of the delay and the rate, and LANs at both ends.
fn reading_table(figures: Figures<'_>, text: &Text) -> Table {
    let of = |reading: &'static str| {
        MODES.into_iter().map(move |mode| {
            let cells = READING_RATES.into_iter().flat_map(|rate| {
                let place = at(rate).with("reading", reading).to_string();
                ["goodput_mbps", "delay_ms"].map(|metric| figures.cell(mode, metric, &place, ""))
            });
            [Cell::text(text.words(reading, &[])), Cell::text(mode)]
                .into_iter()
                .chain(cells)
                .collect::<Vec<_>>()
        })
    };
    let readings = READINGS.into_iter().flat_map(|(reading, _, _)| of(reading));
    let lans = LANS.into_iter().map(|(mode, name)| {
        let goodput = figures.cell(name, "goodput_mbps", &at(1e-5).to_string(), "");
        let empty = || Cell::empty();
        vec![
            Cell::text(text.words("lans", &[])),
            Cell::text(mode),
            empty(),
            empty(),
            goodput,
            empty(),
            empty(),
            empty(),
        ]
    });
    text.table("readings", readings.chain(lans))
}
