//! Page: comparison with the published figures, the paper's plots, and the effect of the assumptions.

use super::cases::{VARIED_BERS, Variant};
use super::claims::mx_to_rx;
use super::{
    ANNOUNCED, ANY_MOMENT_S, BERS, DELAY_MS, GRID, MAIN, OUTAGE_S, Played, Reproduction, SECOND, STARTS,
    Traced, VARIED,
};
use crate::bench::Bench;
use crate::chain;
use crate::claim::{self, Claim, trend};
use crate::finding::Trace;
use crate::format::{figure, with_error};
use crate::label;
use crate::papers::Page;
use crate::papers::text::Text;
use crate::record::{Record, number};
use crate::report::{Assumption, Axis, Cell, Column, Plot, PlotSeries, Point, Section, Shape, Table};
use crate::stats::{self, Summary};

/// Smallest change of the goodput that counts as an effect, as a share.
const MOVE: f64 = 0.05;

/// Creates the page.
pub(super) fn page(all: &Reproduction, bench: &Bench<'_>, records: Vec<Record>, claims: Vec<Claim>) -> Page {
    let made = all.groups[GRID].iter().map(|played| played.runs.len() as u32).min().unwrap_or(0);
    // Where the paper states a goodput there are more runs.
    let made = made.min(all.planned);
    let in_grid: usize = all.groups[GRID].iter().map(|played| played.runs.len()).sum();
    let text = Text::read(include_str!("text.toml"));
    let traces = if bench.traces { all.traced.iter().map(trace).collect() } else { Vec::new() };
    Page {
        answer: all.answer(&records, &claims),
        runs: (made, made, "point"),
        facts: vec![("runs in the grid".into(), in_grid.to_string())],
        sections: vec![
            all.readings_section(&text),
            all.delay_section(&records, &text),
            all.ledger_section(&text),
            all.trace_section(text.section("trace"), 0),
            all.outage_section(&text),
            all.trace_section(text.section("outage-trace"), OUTAGE_S),
            all.outage_start_section(&text),
            all.announced_section(&text),
            all.alone_section(&records, &text),
        ],
        assumptions: all.assumptions(&text),
        rows: all.points().flat_map(Played::rows).collect(),
        claims,
        records,
        traces,
    }
}

fn trace(traced: &Traced) -> Trace {
    let name = format!("ber-{}-outage-{}s", number(traced.ber), traced.outage_s);
    Trace { name, frames: traced.outcome.frames.clone() }
}

/// Returns the figure of the paper that is compared with this one of ours, where the paper states figures.
fn published(records: &[Record], metric: &str, ber: f64) -> f64 {
    let ber = number(ber);
    let is_it = |record: &&Record| {
        let at = record.params.get("ber").map(ToString::to_string);
        record.case == MAIN && record.metric == metric && at.as_deref() == Some(&ber)
    };
    records.iter().filter(is_it).find_map(|record| record.reference).unwrap_or(f64::NAN)
}

/// Returns a metric over the delay.
fn curve(grid: &[Played], ber: f64, outage_s: f64, metric: &str) -> Vec<Point> {
    let curve =
        grid.iter().filter(|played| played.param("ber") == ber && played.param("outage_s") == outage_s);
    curve.filter_map(|played| Some(Point::of(played.param("delay_ms"), &played.record(metric)?))).collect()
}

fn delay_axis() -> Axis {
    Axis::new("one-way delay", "ms")
}

fn rate(ber: f64) -> String {
    format!("bit-error rate {}", number(ber))
}

impl Reproduction {
    fn answer(&self, records: &[Record], claims: &[Claim]) -> String {
        let means = |grid: &[Played], ber: f64| {
            let stated = Self::without_outage(grid, ber).into_iter();
            let stated = stated.filter(|played| played.param("delay_ms") == DELAY_MS as f64);
            let record = stated.filter_map(|played| played.record("goodput_byte_per_s")).next();
            record.map_or_else(|| "none".into(), |record| with_error(&record.summary()))
        };
        let three = |of: &dyn Fn(f64) -> String| BERS.map(of).join(", ");
        format!(
            "{} published figures and statements hold. Goodput at 2000 ms and bit-error rates of 0, 1e-6 and 1e-5, in \
             byte/s: {} with errors on both hops, {} with errors on the second hop only (published: {}).",
            claim::count(claims),
            three(&|ber| means(&self.groups[GRID], ber)),
            three(&|ber| means(&self.groups[SECOND], ber)),
            three(&|ber| figure(published(records, "goodput_byte_per_s", ber))),
        )
    }

    fn readings_section(&self, text: &Text) -> Section {
        let beyond_limit = self.points().filter_map(|played: &Played| {
            let words = chain::beyond_limit(&played.all())?;
            let case = &played.case;
            Some(format!("{} at {}: {words}.", case.name, label::point(&case.params)))
        });
        let section = text.section("readings").with(trend::CRITERION);
        beyond_limit.fold(section, Section::shown)
    }

    // -- Figures ------------------------------------------------------------------------------------------------

    fn delay_section(&self, records: &[Record], text: &Text) -> Section {
        let readings = [
            (
                &self.groups[GRID],
                "Figure 2, whole path",
                "transfer_s",
                "From the start to the last byte at rx.",
            ),
            (
                &self.groups[SECOND],
                "Figure 2, whole path with errors on the second hop only",
                "transfer_s",
                "From the start to the last byte at rx, with bit errors between mx and rx only.",
            ),
            (
                &self.groups[GRID],
                "Figure 2, mx to rx",
                "last_hop_s",
                "From the first byte that mx sends to the last byte at rx.",
            ),
        ];
        let plot = |(grid, title, metric, caption): (&Vec<Played>, &str, &str, &str)| {
            let mut plot = Plot::new(title, delay_axis(), Axis::new("transfer time", "s").from_zero());
            for (index, ber) in BERS.into_iter().enumerate() {
                let file = self.stated(ber).runs[0].1.file_bytes as f64;
                let seconds = file / published(records, "goodput_byte_per_s", ber);
                let stated = vec![Point::new(DELAY_MS as f64, seconds)];
                let ours = PlotSeries::new(rate(ber), curve(grid, ber, 0.0, metric));
                let published = PlotSeries::new(format!("{}, published", rate(ber)), stated).published();
                plot = plot.with(ours.styled(index)).with(published.styled(index));
            }
            if metric == "transfer_s" {
                let limit = curve(grid, 0.0, 0.0, "limit_s").into_iter();
                let limit = limit.map(|point| Point::new(point.x, point.y)).collect();
                plot = plot.with(PlotSeries::new("ideal, stored at mx", limit).shaped(Shape::Bound));
            }
            plot.captioned(caption)
        };
        text.section("delay").with_all(readings.map(plot))
    }

    fn outage_section(&self, text: &Text) -> Section {
        let panels = [
            ("Figure 5", "transfer_s", "transfer time", "s"),
            ("Figure 7", "goodput_byte_per_s", "goodput", "byte/s"),
        ];
        let panel = |((title, metric, label, unit), ber): ((&str, &str, &str, &str), f64)| {
            let (title, y) = (format!("{title}: {}", rate(ber)), Axis::new(label, unit).from_zero());
            [0.0, 30.0, 60.0, 90.0, 120.0].into_iter().fold(
                Plot::new(title, delay_axis(), y),
                |plot, outage| {
                    let name = format!("outage {outage} s");
                    plot.with(PlotSeries::new(name, curve(&self.groups[GRID], ber, outage, metric)))
                },
            )
        };
        text.section("outage")
            .with(self.staircase_words())
            .with_all(panels.into_iter().flat_map(|panel| BERS.map(|ber| (panel, ber))).map(panel))
    }

    /// Explains why outages of different lengths can have the same cost.
    fn staircase_words(&self) -> String {
        let calls = self.calls_s();
        let is_tied = |pair: &&[f64]| !calls.iter().any(|at| (pair[0]..pair[1]).contains(at));
        let outages_s = [30.0, 60.0, 90.0, 120.0];
        let tied = outages_s.windows(2).filter(is_tied);
        let tied: Vec<String> = tied.map(|pair| format!("{} s and {} s", pair[0], pair[1])).collect();
        let tied = match &tied[..] {
            [] => String::new(),
            pairs => format!(", such as those of {},", pairs.join(", of ")),
        };
        let calls: Vec<String> = calls.iter().map(|seconds| format!("{seconds:.0}")).collect();
        format!(
            "Transfer time rises in steps with the length of the outage, because for mx the outage ends at its next \
             attempt, not when the link is back. In an outage of {OUTAGE_S} s without errors at {DELAY_MS} ms, mx \
             closed the silent session and tried to connect {} s after the start of the outage, according to the \
             timers of DTN2 and the back-off of the kernel for SYNs. These times count from the start of the outage, \
             so two outages that end between the same two attempts{tied} cost the same, whenever they begin.",
            calls.join(", ")
        )
    }

    fn ledger_section(&self, text: &Text) -> Section {
        let chart = |(hop, name): (usize, &str)| {
            let mut chart = chain::ledger_chart(&format!("Link from {name}"), "");
            chart.bars.extend(BERS.map(|ber| {
                let played = self.stated(ber);
                chain::ledger_bar(&rate(ber), &played.all(), hop, 0, Some(played.mean("limit_s")))
            }));
            chart
        };
        text.section("ledger").with_all([(0, "tx to mx"), (1, "mx to rx")].map(chart))
    }

    fn trace_section(&self, section: Section, outage_s: i64) -> Section {
        let plots = self.traced.iter().filter(|traced| traced.outage_s == outage_s).flat_map(|traced| {
            let conversation = mx_to_rx(&traced.outcome.frames);
            let plots =
                conversation.map(|seen| (seen.time_sequence(), (outage_s == 0).then(|| seen.goodput())));
            let plots = plots.into_iter().flat_map(|(sequence, goodput)| [Some(sequence), goodput]).flatten();
            plots.map(|plot| Plot { title: format!("{} ({})", plot.title, rate(traced.ber)), ..plot })
        });
        section.with_all(plots)
    }

    fn outage_start_section(&self, text: &Text) -> Section {
        let plot = Plot::new(
            "Goodput and the beginning of an outage of 120 s",
            Axis::new("seconds of data before the outage", "s"),
            Axis::new("goodput", "byte/s").from_zero(),
        );
        let plot = BERS.into_iter().fold(plot, |plot, ber| {
            let runs = self.groups[STARTS].iter().filter(|played| played.param("ber") == ber);
            let points = runs.filter_map(|played| {
                Some(Point::of(played.param("outage_after_s"), &played.record("goodput_byte_per_s")?))
            });
            plot.with(PlotSeries::new(rate(ber), points.collect()))
        });
        text.section("start").with(self.outage_start_words()).with(plot)
    }

    fn announced_section(&self, text: &Text) -> Section {
        let columns = [
            Column::number("bit-error rate", ""),
            Column::text("announced"),
            Column::number("transfer time", "s"),
            Column::number("goodput", "byte/s"),
            Column::number("x ideal", ""),
        ];
        let title = "An outage of 120 s on a schedule, at 2000 ms, errors on the second hop only";
        let mut table = Table::new(title, columns);
        for played in &self.groups[ANNOUNCED] {
            let ratio = played.record("transfer_s").and_then(|record| record.ratio);
            table.row([
                Cell::text(number(played.param("ber"))),
                Cell::text(played.case.params.get("announced").map(ToString::to_string).unwrap_or_default()),
                played.cell("transfer_s"),
                played.cell("goodput_byte_per_s"),
                ratio.map_or_else(Cell::empty, |ratio| Cell::precise(ratio, 2)),
            ]);
        }
        text.section("announced").with(table)
    }

    /// Relative difference between the best and the worst start of the outage, for each error rate.
    fn outage_start_range(&self) -> [f64; 3] {
        BERS.map(|ber| {
            let runs = self.groups[STARTS].iter().filter(|played| played.param("ber") == ber);
            let means = || runs.clone().map(|played| played.mean("goodput_byte_per_s"));
            let (low, high) = (means().fold(f64::MAX, f64::min), means().fold(0.0, f64::max));
            (high - low) / high
        })
    }

    fn outage_start_words(&self) -> String {
        let [none, some, many] = self.outage_start_range().map(|range| format!("{:.0} %", range * 100.0));
        format!(
            "The paper does not say when its outage begins. Between the best and the worst start tried, the goodput \
             differs by {none} without errors, {some} at 1e-6 and {many} at 1e-5."
        )
    }

    fn alone_section(&self, records: &[Record], text: &Text) -> Section {
        let times =
            || records.iter().filter(|record| record.metric == "transfer_s" && record.reference.is_some());
        let delay = |record: &Record| record.params.get("delay_ms").and_then(|ms| ms.as_f64()).unwrap_or(0.0);
        let ours = times().map(|record| Point::of(delay(record), record)).collect();
        let kernel =
            times().map(|record| Point::new(delay(record), record.reference.unwrap_or(0.0))).collect();
        let plot = Plot::new(
            "A megabyte over TCP alone, one error-free hop",
            delay_axis(),
            Axis::new("transfer time", "s").from_zero(),
        );
        text.section("alone").with(
            plot.with(PlotSeries::new("here", ours))
                .with(PlotSeries::new("Linux kernel", kernel).published()),
        )
    }

    // -- Assumptions --------------------------------------------------------------------------------------------

    /// Describes the goodput with an alternative and its change, from pairs of runs with the same noise, as a share of
    /// the mean of the assumed choice, for each error rate tried; true if the change is clear.
    fn effect(&self, played: &[Played]) -> (String, bool) {
        let change = |played: &Played| {
            let (ours, theirs) = played.pairs(self.stated(played.param("ber")), "goodput_byte_per_s");
            let mean = stats::mean(&theirs);
            let percent =
                |values: &[f64]| values.iter().map(|value| 100.0 * value / mean).collect::<Vec<f64>>();
            Summary::of_differences(&percent(&ours), &percent(&theirs))
        };
        let words = played.iter().map(|played| {
            let (goodput, ber) = (played.mean("goodput_byte_per_s"), number(played.param("ber")));
            format!("{} byte/s ({} %) at {ber}", figure(goodput), with_error(&change(played)))
        });
        let is_clear = |change: Summary| {
            change.mean.abs() > 100.0 * MOVE && (change.ci95.is_none() || change.is_significant())
        };
        (words.collect::<Vec<_>>().join(", "), played.iter().map(change).any(is_clear))
    }

    fn assumptions(&self, text: &Text) -> Vec<Assumption> {
        let of_variant = |(variant, played): (&Variant, &[Played])| {
            let (effect, moves_result) = self.effect(played);
            Assumption {
                text: variant.assumed.clone(),
                basis: variant.basis.clone(),
                effect: Some(format!("{}: goodput {effect}", variant.instead)),
                moves_result,
            }
        };
        let varied = self.variants.iter().zip(self.groups[VARIED].chunks(VARIED_BERS.len()));
        let mut all = text.assumption.clone();
        // The first one is about the start of the outage.
        all[0].effect = Some(format!(
            "{} With a random start from {} to {} s in every run, none of the statements about growth with the outage \
             changes: both are among the claims above.",
            self.outage_start_words(),
            figure(ANY_MOMENT_S.0),
            figure(ANY_MOMENT_S.1)
        ));
        all[0].moves_result = self.outage_start_range().iter().any(|range| *range > MOVE);
        all.into_iter().chain(varied.map(of_variant)).collect()
    }
}
