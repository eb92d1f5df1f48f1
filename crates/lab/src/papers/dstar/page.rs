//! Page: Tables I to IV and Figure 3, the claims, and what the assumptions decide.

use super::trials::{
    DATAGRAMS, IPERF_CASE, NORM, NORM_RATES, Played, RATE_KBPS, RATES_KBPS, REDIRECTED, Results, TCPCL,
    TCPCL_THROUGH, VARIATIONS, WGET, at,
};
use super::world::{Configuration, channel};
use super::{PUBLISHED, TABLES};
use crate::claim::{self, Claim};
use crate::papers::Page;
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::record::Record;
use crate::report::{Cell, Plot, PlotSeries, Point, Table};
use serde::Deserialize;

const THROUGHPUT: &str = "throughput_kbps";

/// Published row of Tables I to IV, kbit/s.
#[derive(Deserialize)]
struct Printed {
    configuration: String,
    case: String,
    min_kbps: f64,
    max_kbps: f64,
    mean_kbps: f64,
}

fn printed() -> Vec<Printed> {
    claim::rows(TABLES)
}

fn mean_printed(configuration: Configuration, case: &str) -> Option<f64> {
    let is_one = |row: &Printed| row.configuration == configuration.name() && row.case == case;
    printed().into_iter().find(is_one).map(|row| row.mean_kbps)
}

/// Throughput of a case in a configuration.
fn throughput(figures: Figures<'_>, case: &str, configuration: Configuration) -> Option<f64> {
    figures.at(case, THROUGHPUT, &at(configuration).to_string()).map(|record| record.mean)
}

/// Falls from one configuration to the next, and the ratio of NORM to the others. Without a run of NORM, the published mean is
/// compared with ours of the others.
fn derived(figures: Figures<'_>) -> Vec<Record> {
    let falls = [
        (Configuration::PointToPoint, Configuration::SingleHop),
        (Configuration::SingleHop, Configuration::DoubleHop),
        (Configuration::PointToPoint, Configuration::HiddenNode),
    ];
    let cases = [IPERF_CASE, WGET, TCPCL, TCPCL_THROUGH, NORM];
    let mut records = Vec::new();
    for (from, to) in falls {
        for case in cases {
            // One session from end to end is the same as any other on one link.
            let alone = if case == TCPCL_THROUGH { TCPCL } else { case };
            let before = throughput(figures, case, from).or_else(|| throughput(figures, alone, from));
            let (Some(before), Some(after)) = (before, throughput(figures, case, to)) else { continue };
            let fall = 100.0 * (1.0 - after / before);
            records.push(Record::of(case, at(to), "fall_percent", "%", &[fall]));
            let norm = throughput(figures, NORM, to).or_else(|| mean_printed(to, NORM));
            if let Some(norm) = norm.filter(|_| case != NORM) {
                records.push(Record::of(case, at(to), "norm_ratio", "", &[norm / after]));
            }
        }
    }
    records
}

pub(super) fn records_and_claims(results: &Results, text: &Text) -> (Vec<Record>, Vec<Claim>) {
    let mut records: Vec<Record> = results.played.iter().flat_map(Played::records).collect();
    records.extend(derived(Figures(&records)));
    let mut claims = claim::attach(PUBLISHED, &mut records);
    let figures = Figures(&records);
    let rates: Vec<(f64, f64)> = RATES_KBPS
        .into_iter()
        .filter_map(|rate| {
            let place = at(Configuration::PointToPoint).with("rate_kbps", rate).to_string();
            Some((rate, figures.at(NORM_RATES, THROUGHPUT, &place)?.mean))
        })
        .collect();
    // Beyond the rate at which the channel is full, only the queue grows.
    let most = rates.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
    let best = rates.iter().copied().find(|(_, throughput)| *throughput >= 0.999 * most);
    let paper = rates.iter().find(|(rate, _)| *rate == RATE_KBPS).map(|(_, throughput)| *throughput);
    let found = best.zip(paper).map_or_else(String::new, |((rate, _), paper)| {
        format!(
            "from {rate} kbit/s on, NORM has its highest throughput, {most:.1} kbit/s, and {:.1} % less at {RATE_KBPS} kbit/s",
            100.0 * (1.0 - paper / most)
        )
    });
    let is_near =
        |((rate, _), paper): ((f64, f64), f64)| (78.0..=90.0).contains(&rate) && paper >= 0.98 * most;
    claims.push(text.statement("best-rate", best.zip(paper).map(is_near), found));
    (records, claims)
}

pub(super) fn page(results: &Results) -> Page {
    let text = &Text::read(include_str!("text.toml"));
    let (records, claims) = records_and_claims(results, text);
    let figures = Figures(&records);
    let mean = |case: &str, configuration| throughput(figures, case, configuration).unwrap_or(f64::NAN);
    let ratio = |case: &str, configuration: Configuration| {
        mean(case, configuration) / mean_printed(configuration, case).unwrap_or(f64::NAN)
    };
    let one = Configuration::PointToPoint;
    let channel = channel();
    let cost_ms = channel.stations[0].tx_delay.as_secs_f64() * 1e3;
    Page {
        answer: format!(
            "With two constants, TCP-CL and wget have {:.2} and {:.2} of the published throughput on one link. Iperf has \
             {:.1} kbit/s on two links (published: 27.3) and {:.1} on three (12.3).",
            ratio(TCPCL, one),
            ratio(WGET, one),
            mean(IPERF_CASE, Configuration::SingleHop),
            mean(IPERF_CASE, Configuration::DoubleHop),
        ),
        runs: (results.runs, results.runs, "case"),
        facts: vec![
            ("file".into(), "6 MiB; iperf 600 s".into()),
            ("cost of a transmission".into(), format!("{cost_ms} ms")),
            ("rate".into(), format!("{} kbit/s", channel.rate_bps as f64 / 1e3)),
        ],
        sections: vec![
            text.section("tables").shown(tables(figures, text)).with(figure(figures, text)),
            text.section("bundles").shown(others(figures, text)),
            text.section("rate").shown(rate_table(figures, text)),
            text.section("hidden").shown(hidden_table(figures, text)),
            text.section("decides").shown(variation_table(figures, text)),
            text.section("redirects").shown(redirect_table(figures, text)),
        ],
        rows: results.played.iter().flat_map(Played::rows).collect(),
        assumptions: text.assumptions([]),
        claims,
        records,
        ..Page::default()
    }
}

fn words(configuration: &str, text: &Text) -> String {
    text.words(configuration, &[])
}

fn summary(record: Option<&Record>) -> [Cell; 3] {
    record.map_or([(); 3].map(|()| Cell::empty()), |record| {
        [record.min, record.max, record.mean].map(|value| Cell::precise(value, 2))
    })
}

/// Tables I to IV beside ours.
fn tables(figures: Figures<'_>, text: &Text) -> Table {
    let row = |printed: Printed| {
        let Printed { configuration, case, min_kbps, max_kbps, mean_kbps } = printed;
        let ours = figures.at(&case, THROUGHPUT, &format!("configuration={configuration}"));
        let ratio = ours.map_or_else(Cell::empty, |record| Cell::precise(record.mean / mean_kbps, 2));
        let head = [Cell::text(words(&configuration, text)), Cell::text(case)];
        let published = [min_kbps, max_kbps, mean_kbps].map(|value| Cell::precise(value, 2));
        head.into_iter().chain(published).chain(summary(ours)).chain([ratio]).collect()
    };
    text.table("tables", printed().into_iter().map(row))
}

/// Figure 3: throughput over the number of links.
fn figure(figures: Figures<'_>, text: &Text) -> Plot {
    let chain = [Configuration::PointToPoint, Configuration::SingleHop, Configuration::DoubleHop];
    let cases = [IPERF_CASE, WGET, TCPCL, TCPCL_THROUGH, NORM];
    let mut plot = text.plot("links");
    for (style, case) in cases.into_iter().enumerate() {
        let ours = |configuration: Configuration| {
            let record = figures.at(case, THROUGHPUT, &at(configuration).to_string())?;
            Some(Point::of(configuration.links() as f64, record))
        };
        let theirs = |configuration: Configuration| {
            Some(Point::new(configuration.links() as f64, mean_printed(configuration, case)?))
        };
        let points: Vec<Point> = chain.into_iter().filter_map(ours).collect();
        if !points.is_empty() {
            plot = plot.with(PlotSeries::new(case, points).styled(style));
        }
        let points: Vec<Point> = chain.into_iter().filter_map(theirs).collect();
        if !points.is_empty() {
            plot = plot.with(PlotSeries::new(format!("{case}, published"), points).published().styled(style));
        }
    }
    plot
}

/// What else can carry the file, with the share of frames lost to other signals.
fn others(figures: Figures<'_>, text: &Text) -> Table {
    let tables = printed();
    let cases = figures
        .0
        .iter()
        .filter(|record| record.metric == THROUGHPUT && record.params.get("variation").is_none());
    let cases = cases.filter(|record| record.params.get("rate_kbps").is_none() && record.case != REDIRECTED);
    let row = |record: &Record| {
        let place = record.params.to_string();
        let overlapped = figures.at(&record.case, "overlapped_percent", &place);
        let configuration = place.trim_start_matches("configuration=").to_owned();
        let is_printed =
            tables.iter().any(|row| row.case == record.case && row.configuration == configuration);
        (!is_printed).then(|| {
            let overlapped = overlapped.map_or_else(Cell::empty, |record| Cell::precise(record.mean, 1));
            let throughput = Cell::summary(&record.summary());
            vec![Cell::text(words(&configuration, text)), Cell::text(&record.case), throughput, overlapped]
        })
    };
    text.table("others", cases.filter_map(row))
}

fn rate_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |rate: f64| {
        let place = at(Configuration::PointToPoint).with("rate_kbps", rate).to_string();
        let cell = |case: &str| figures.cell(case, THROUGHPUT, &place, "");
        vec![Cell::number(rate), cell(NORM_RATES), cell(DATAGRAMS)]
    };
    text.table("rates", RATES_KBPS.into_iter().map(row))
}

fn hidden_table(figures: Figures<'_>, text: &Text) -> Table {
    let rated = |configuration: Configuration| at(configuration).with("rate_kbps", RATE_KBPS).to_string();
    let rows = [WGET, DATAGRAMS, NORM].into_iter().filter_map(|case| {
        let place = |configuration: Configuration| match case {
            DATAGRAMS => rated(configuration),
            _ => at(configuration).to_string(),
        };
        let before = figures.at(case, THROUGHPUT, &place(Configuration::PointToPoint))?;
        let hidden = place(Configuration::HiddenNode);
        let after = figures.at(case, THROUGHPUT, &hidden)?;
        let cell = |metric| figures.cell(case, metric, &hidden, "none");
        let fall = Cell::percent(1.0 - after.mean / before.mean);
        let throughputs = [before, after].map(|record| Cell::summary(&record.summary()));
        let transfers = [cell("interfering_transfers"), cell("interfering_s")];
        Some([Cell::text(case)].into_iter().chain(throughputs).chain([fall]).chain(transfers).collect())
    });
    text.table("hidden", rows)
}

fn variation_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |(name, _): &(&'static str, _)| {
        let cell = |case: &str, configuration: Configuration| {
            let place = at(configuration).with("variation", *name).to_string();
            figures.cell(case, THROUGHPUT, &place, "")
        };
        vec![
            Cell::text(text.words(name, &[])),
            cell(IPERF_CASE, Configuration::SingleHop),
            cell(IPERF_CASE, Configuration::DoubleHop),
            cell(DATAGRAMS, Configuration::HiddenNode),
        ]
    };
    text.table("variations", VARIATIONS.iter().map(row))
}

fn redirect_table(figures: Figures<'_>, text: &Text) -> Table {
    let place = at(Configuration::SingleHop).to_string();
    let row = |case: &str| vec![Cell::text(case), figures.cell(case, THROUGHPUT, &place, "none")];
    text.table("redirects", [IPERF_CASE, REDIRECTED].map(row))
}
