//! LTP on the grid of the paper, which has none: beside its protocol, the ideal times and its goodputs.

use super::{BERS, MAIN, PUBLISHED, Played, Reproduction, over_delay, stated};
use crate::claim;
use crate::format::figure;
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::record::{Record, Value, number};
use crate::report::{Cell, PageBlock, Plot, PlotSeries, Point, Section, Shape, Tone};

const UNCODED: &str = "ltp/tuned";
const CODED: &str = "ltp-fec/tuned";
/// Protocols with the groups of their points: those of the paper's grid, and those with announced outages.
const PROTOCOLS: [(&str, &str, Option<&str>); 3] = [
    (MAIN, "grid", None),
    (UNCODED, "ltp", Some("ltp announced")),
    (CODED, "ltp-fec", Some("ltp-fec announced")),
];
/// The erasure code with pieces that mx forwards while it receives others, compared with the ideal time of streaming.
const CUT_THROUGH: &str = "ltp-fec/tuned, cut-through";
const CUT_THROUGH_GROUPS: [&str; 2] = ["cut-through", "cut-through announced"];
const TIME: &str = "transfer_s";
const GOODPUT: &str = "goodput_byte_per_s";

/// Outages of a point, in words.
fn outages(played: &Played) -> &'static str {
    match (played.param("outage_s") > 0.0, played.case.params.get("announced")) {
        (false, _) => "none",
        (true, None) => "not announced",
        (true, Some(_)) => "announced",
    }
}

/// Time of a point as a multiple of the ideal time with the bundle stored at mx.
fn over_stored(played: &Played) -> Option<f64> {
    played.record(TIME)?.ratio
}

/// Time of a point as a multiple of the ideal time with every packet forwarded as it arrives.
fn over_streamed(played: &Played) -> Option<f64> {
    Some(played.record(TIME)?.mean / played.mean("limit_streaming_s"))
}

impl Reproduction {
    pub(super) fn beyond_section(&self, figures: Figures<'_>, text: &Text) -> Section {
        let plots = BERS.into_iter().map(|ber| self.delay_plot(figures, text, ber));
        let over_outages = BERS.into_iter().map(|ber| self.outage_plot(figures, text, ber));
        let whole = text.table("ltp-grid", self.whole_grid());
        let cut_through = text.table("cut-through-grid", self.cut_through_grid());
        text.section("ltp")
            .shown(beyond_words(figures, text))
            .shown(text.table("ltp-stated", stated_rows(figures)))
            .with_all(plots)
            .shown(text.table("ltp-worst", self.worst_rows()))
            .with_all(over_outages)
            .with(PageBlock::Folded(whole))
            .with(PageBlock::Folded(cut_through))
    }

    fn delay_plot(&self, figures: Figures<'_>, text: &Text, ber: f64) -> Plot {
        let at = over_delay(ber, 0);
        let plot = text.plot("ltp-delay");
        let plot = Plot { title: format!("{}: bit-error rate {}", plot.title, number(ber)), ..plot };
        let plot = PROTOCOLS.into_iter().enumerate().fold(plot, |plot, (style, (case, ..))| {
            plot.with(figures.curve(case, case, TIME, &at).styled(style))
        });
        let published = published(ber).map(|goodput| {
            let file_bytes = self.group("grid")[0].runs[0].1.file_bytes as f64;
            Point::new(2000.0, file_bytes / goodput)
        });
        let published = PlotSeries::new("published", published.into_iter().collect()).published().styled(0);
        plot.with(published)
            .with(figures.curve("cut-through", CUT_THROUGH, TIME, &at).styled(PROTOCOLS.len()))
            .with(figures.limits("ideal, stored at mx", CODED, TIME, &at))
            .with(streaming(figures, &at))
    }

    fn outage_plot(&self, figures: Figures<'_>, text: &Text, ber: f64) -> Plot {
        let at = stated(ber, 0).replace("outage_s=0", "outage_s=*");
        let plot = text.plot("ltp-outage");
        let plot = Plot { title: format!("{}: bit-error rate {}", plot.title, number(ber)), ..plot };
        let plot = PROTOCOLS.into_iter().enumerate().fold(plot, |plot, (style, (case, ..))| {
            plot.with(figures.curve(case, case, TIME, &at).styled(style))
        });
        let announced = PROTOCOLS.into_iter().filter_map(|(case, _, announced)| Some((case, announced?)));
        let plot = announced.enumerate().fold(plot, |plot, (style, (case, group))| {
            let here = self.group(group).iter();
            let here = here.filter(|played| (played.param("ber"), played.param("delay_ms")) == (ber, 2000.0));
            let point = |played: &Played| Some(Point::of(played.param("outage_s"), &played.record(TIME)?));
            let name = format!("{case}, announced");
            plot.with(
                PlotSeries::new(name, here.filter_map(point).collect()).styled(PROTOCOLS.len() + 1 + style),
            )
        });
        let plot = plot.with(figures.curve("cut-through", CUT_THROUGH, TIME, &at).styled(PROTOCOLS.len()));
        plot.with(figures.limits("ideal, stored at mx", CODED, TIME, &at)).with(streaming(figures, &at))
    }

    /// Rows of the greatest factors over the ideal times, of each protocol and of the best one at each point.
    fn worst_rows(&self) -> Vec<Vec<Cell>> {
        let kinds = ["none", "announced", "not announced"];
        kinds.into_iter().flat_map(|kind| BERS.map(|ber| self.worst_row(kind, ber))).collect()
    }

    fn worst_row(&self, kind: &str, ber: f64) -> Vec<Cell> {
        let here = |group: &&str| -> Vec<&Played> {
            let all = self.group(group).iter();
            all.filter(|played| played.param("ber") == ber && outages(played) == kind).collect()
        };
        let of_protocol = |(_, grid, announced): (&str, &'static str, Option<&'static str>)| -> Vec<&Played> {
            [Some(grid), announced].iter().flatten().flat_map(here).collect()
        };
        let points = PROTOCOLS.map(of_protocol);
        let worst = |points: &Vec<&Played>| points.iter().filter_map(|at| over_stored(at)).reduce(f64::max);
        let mut cells = vec![Cell::text(kind), Cell::text(number(ber))];
        let factor = |value: Option<f64>| value.map_or_else(Cell::empty, |value| Cell::precise(value, 3));
        cells.extend(points.iter().map(|points| factor(worst(points))));
        // All points of a protocol stand in the same order, unless it has none.
        let best = |at: usize| {
            let candidates = points.iter().filter_map(|points| over_stored(points.get(at)?));
            candidates.reduce(f64::min)
        };
        let most = points.iter().map(Vec::len).max().unwrap_or(0);
        cells.push(factor((0..most).filter_map(best).reduce(f64::max)).toned(Tone::Strong));
        let streamed = CUT_THROUGH_GROUPS.iter().flat_map(here).filter_map(over_streamed);
        cells.push(factor(streamed.reduce(f64::max)).toned(Tone::Strong));
        cells
    }

    /// Rows of all points.
    fn whole_grid(&self) -> Vec<Vec<Cell>> {
        let [_, (_, grid, announced), _] = PROTOCOLS;
        let points = [Some(grid), announced].into_iter().flatten().flat_map(|group| self.group(group));
        points.map(|point| self.grid_row(point)).collect()
    }

    fn grid_row(&self, point: &Played) -> Vec<Cell> {
        let mut cells = point_cells(point);
        for (_, grid, announced) in PROTOCOLS {
            let groups = [Some(grid), announced].into_iter().flatten().flat_map(|group| self.group(group));
            let mut same = groups.filter(|played| played.case.params == point.case.params);
            let figures = same.next().and_then(|played| Some((played.cell(TIME), over_stored(played)?)));
            match figures {
                Some((time, factor)) => cells.extend([time, Cell::precise(factor, 3)]),
                None => cells.extend([Cell::empty(), Cell::empty()]),
            }
        }
        let ideal = |name: &str| Cell::number(point.mean(name));
        cells.extend([ideal("limit_s"), ideal("limit_streaming_s")]);
        cells
    }

    /// Rows of all points with cut-through.
    fn cut_through_grid(&self) -> Vec<Vec<Cell>> {
        let points = CUT_THROUGH_GROUPS.iter().flat_map(|group| self.group(group));
        let row = |point: &Played| {
            let factor = over_streamed(point).map_or_else(Cell::empty, |factor| Cell::precise(factor, 3));
            let mut cells = point_cells(point);
            cells.extend([point.cell(TIME), factor, Cell::number(point.mean("limit_streaming_s"))]);
            cells
        };
        points.map(row).collect()
    }
}

/// First cells of a point's row: bit-error rate, delay, and outage.
fn point_cells(point: &Played) -> Vec<Cell> {
    let word = |name| point.case.params.get(name).map(Value::to_string).unwrap_or_default();
    let mut cells: Vec<Cell> = ["ber", "delay_ms", "outage_s"].map(|name| Cell::text(word(name))).into();
    cells.push(Cell::text(outages(point)));
    cells
}

/// Published goodput at this bit-error rate, byte/s.
fn published(ber: f64) -> Option<f64> {
    let all = claim::published(PUBLISHED, MAIN, GOODPUT);
    BERS.into_iter().zip(all).find(|(at, _)| *at == ber).map(|(_, goodput)| goodput)
}

/// Ideal times with every packet forwarded as it arrives, and outages that begin as early.
fn streaming(figures: Figures<'_>, at: &str) -> PlotSeries {
    figures
        .curve("ideal, streaming through mx", CUT_THROUGH, "limit_streaming_s", at)
        .shaped(Shape::Trace)
        .styled(6)
}

/// Goodput at the delay at which the paper states one, as a multiple of it.
fn over_published(record: &Record, ber: f64) -> Option<f64> {
    Some(record.mean / published(ber)?)
}

fn stated_rows(figures: Figures<'_>) -> Vec<Vec<Cell>> {
    let row = |(ber, case): (f64, &str)| {
        let at = stated(ber, 0);
        let (time, goodput) = (figures.at(case, TIME, &at), figures.at(case, GOODPUT, &at));
        let streamed = time.map(|time| time.mean / figures.mean(case, "limit_streaming_s", &at));
        let cell = |value: Option<f64>| value.map_or_else(Cell::empty, |value| Cell::precise(value, 2));
        vec![
            Cell::text(number(ber)),
            Cell::text(case),
            figures.cell(case, TIME, &at, ""),
            figures.cell(case, GOODPUT, &at, ""),
            cell(time.and_then(|time| time.ratio)),
            cell(streamed),
            cell(goodput.and_then(|goodput| over_published(goodput, ber))),
        ]
    };
    let cases = [MAIN, UNCODED, CODED, CUT_THROUGH];
    BERS.into_iter().flat_map(|ber| cases.map(|case| (ber, case))).map(row).collect()
}

fn beyond_words(figures: Figures<'_>, text: &Text) -> String {
    let of = |of: &dyn Fn(f64) -> Option<f64>| BERS.map(|ber| figure(of(ber).unwrap_or(f64::NAN))).join(", ");
    let at = |case: &str, metric: &str, ber: f64| figures.at(case, metric, &stated(ber, 0)).cloned();
    let ideal = of(&|ber| at(CODED, TIME, ber)?.ratio);
    let over = |case: &str| of(&|ber| over_published(&at(case, GOODPUT, ber)?, ber));
    let streaming = |ber| figures.mean(CUT_THROUGH, "limit_streaming_s", &stated(ber, 0));
    let streamed = of(&|ber| Some(at(CUT_THROUGH, TIME, ber)?.mean / streaming(ber)));
    let values = [
        ("ideal", ideal),
        ("published", over(CODED)),
        ("streamed", streamed),
        ("streamed-published", over(CUT_THROUGH)),
    ];
    text.words("ltp", &values)
}
