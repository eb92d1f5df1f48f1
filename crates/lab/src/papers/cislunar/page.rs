//! Page: comparison with the published figures, the paper's plots, and the effect of the assumptions.

use super::cases::Variant;
use super::claims::mx_to_rx;
use super::{BERS, MAIN, OUTAGE_S, PUBLISHED, Played, Reproduction, SECOND_HOP, over_delay, stated};
use crate::bench::Bench;
use crate::chain;
use crate::claim::{self, Claim, trend};
use crate::finding::Trace;
use crate::format::{figure, with_error};
use crate::label;
use crate::papers::Page;
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::record::number;
use crate::report::{Assumption, Cell, Plot, PlotSeries, Point, Section};
use crate::stats::{self, Summary};

/// Smallest change of the goodput that counts as an effect, as a share.
const MOVE: f64 = 0.05;
const GOODPUT: &str = "goodput_byte_per_s";

pub(super) fn page(all: &Reproduction, bench: &Bench<'_>) -> Page {
    let text = &Text::read(include_str!("text.toml"));
    let (records, claims) = all.records_and_claims(text);
    let figures = Figures(&records);
    let runs = || all.group("grid").iter().map(|played| played.runs.len());
    // Where the paper states a goodput there are more runs.
    let made = runs().min().map_or(0, |runs| all.planned.min(runs as u32));
    let traced = all.group("traced").iter().filter(|_| bench.traces);
    Page {
        answer: answer(figures, &claims),
        runs: (made, made, "point"),
        facts: vec![("runs in the grid".into(), runs().sum::<usize>().to_string())],
        sections: vec![
            all.readings_section(text),
            all.delay_section(figures, text),
            all.beyond_section(figures, text),
            all.ledger_section(figures, text),
            all.trace_section(text.section("trace"), 0),
            all.outage_section(figures, text),
            all.trace_section(text.section("outage-trace"), OUTAGE_S),
            all.outage_start_section(figures, text),
            all.announced_section(text),
            alone_section(figures, text),
        ],
        assumptions: all.assumptions(text),
        rows: all.points().flat_map(Played::rows).collect(),
        traces: traced.filter_map(trace).collect(),
        claims,
        records,
    }
}

fn trace(traced: &Played) -> Option<Trace> {
    let name = format!("ber-{}-outage-{}s", number(traced.param("ber")), traced.param("outage_s"));
    Some(Trace { name, frames: traced.outcomes().next()?.frames.clone() })
}

fn rate(ber: f64) -> String {
    format!("bit-error rate {}", number(ber))
}

fn answer(figures: Figures<'_>, claims: &[Claim]) -> String {
    let means = |case| BERS.map(|ber| figure(figures.mean(case, GOODPUT, &stated(ber, 0)))).join(", ");
    let published: Vec<String> = claim::published(PUBLISHED, MAIN, GOODPUT).into_iter().map(figure).collect();
    format!(
        "{} published figures and statements hold. Goodput at 2000 ms, without errors, at 1e-6 and at 1e-5: {} byte/s \
         with errors on both hops, {} on the second only; published: {}.",
        claim::count(claims),
        means(MAIN),
        means(SECOND_HOP),
        published.join(", "),
    )
}

impl Reproduction {
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

    fn delay_section(&self, figures: Figures<'_>, text: &Text) -> Section {
        let file_bytes = self.group("grid")[0].runs[0].1.file_bytes as f64;
        let stated = claim::published(PUBLISHED, MAIN, GOODPUT);
        let readings = [
            ("delay", MAIN, "transfer_s"),
            ("delay-second-hop", SECOND_HOP, "transfer_s"),
            ("delay-mx-to-rx", MAIN, "last_hop_s"),
        ];
        let plot = |(name, case, metric): (&str, &str, &str)| {
            let mut plot = text.plot(name);
            for (index, (ber, goodput)) in BERS.into_iter().zip(&stated).enumerate() {
                let published = vec![Point::new(2000.0, file_bytes / goodput)];
                let published = PlotSeries::new(format!("{}, published", rate(ber)), published).published();
                let ours = figures.curve(rate(ber), case, metric, &over_delay(ber, 0));
                plot = plot.with(ours.styled(index)).with(published.styled(index));
            }
            let limit = figures.limits("ideal, stored at mx", case, metric, &over_delay(0.0, 0));
            if limit.points.is_empty() { plot } else { plot.with(limit) }
        };
        text.section("delay").with_all(readings.map(plot))
    }

    fn outage_section(&self, figures: Figures<'_>, text: &Text) -> Section {
        let panel = |((name, metric), ber)| {
            let plot = text.plot(name);
            let plot = Plot { title: format!("{}: {}", plot.title, rate(ber)), ..plot };
            [0, 30, 60, 90, 120].into_iter().fold(plot, |plot, outage_s| {
                let name = format!("outage {outage_s} s");
                plot.with(figures.curve(name, MAIN, metric, &over_delay(ber, outage_s)))
            })
        };
        let panels = [("outage-time", "transfer_s"), ("outage-goodput", GOODPUT)];
        text.section("outage")
            .with(self.staircase_words(text))
            .with_all(panels.into_iter().flat_map(|metric| BERS.map(|ber| (metric, ber))).map(panel))
    }

    /// Explains why outages of different lengths can have the same cost.
    fn staircase_words(&self, text: &Text) -> String {
        let calls = self.traced_outage().map_or_else(Vec::new, |traced| traced.calls_s);
        let is_tied = |pair: &&[f64]| !calls.iter().any(|at| (pair[0]..pair[1]).contains(at));
        let tied: Vec<String> = [30.0, 60.0, 90.0, 120.0]
            .windows(2)
            .filter(is_tied)
            .map(|pair| format!("{} s and {} s", pair[0], pair[1]))
            .collect();
        let tied = match &tied[..] {
            [] => String::new(),
            pairs => format!(", such as those of {},", pairs.join(", of ")),
        };
        let calls: Vec<String> = calls.iter().map(|seconds| format!("{seconds:.0}")).collect();
        text.words("staircase", &[("calls", calls.join(", ")), ("tied", tied)])
    }

    fn ledger_section(&self, figures: Figures<'_>, text: &Text) -> Section {
        let chart = |(hop, name): (usize, &str)| {
            let mut chart = chain::ledger_chart(&format!("Link from {name}"), "");
            chart.bars.extend(BERS.into_iter().flat_map(|ber| {
                let limit_s = figures.mean(MAIN, "limit_s", &stated(ber, 0));
                let played = self.along("grid", &stated(ber, 0)).into_iter();
                played.map(move |played| chain::ledger_bar(&rate(ber), &played.all(), hop, 0, Some(limit_s)))
            }));
            chart
        };
        text.section("ledger").with_all([(0, "tx to mx"), (1, "mx to rx")].map(chart))
    }

    fn trace_section(&self, section: Section, outage_s: i64) -> Section {
        let traced = BERS.into_iter().flat_map(|ber| self.along("traced", &stated(ber, outage_s)));
        let plots = traced.filter_map(|played| {
            let seen = mx_to_rx(&played.outcomes().next()?.frames)?;
            let plots = [Some(seen.time_sequence()), (outage_s == 0).then(|| seen.goodput())];
            let titled = move |plot: Plot| Plot {
                title: format!("{} ({})", plot.title, rate(played.param("ber"))),
                ..plot
            };
            Some(plots.into_iter().flatten().map(titled))
        });
        section.with_all(plots.flatten())
    }

    fn outage_start_section(&self, figures: Figures<'_>, text: &Text) -> Section {
        let plot = BERS.into_iter().fold(text.plot("start"), |plot, ber| {
            let at = format!("{} outage_after_s=*", stated(ber, OUTAGE_S));
            plot.with(figures.curve(rate(ber), MAIN, GOODPUT, &at))
        });
        text.section("start").with(self.outage_start_words(text)).with(plot)
    }

    fn announced_section(&self, text: &Text) -> Section {
        let row = |played: &Played| {
            let word = |name| played.case.params.get(name).map(ToString::to_string).unwrap_or_default();
            let [ber, announced] = ["ber", "announced"].map(|name| Cell::text(word(name)));
            let ratio = played.record("transfer_s").and_then(|record| record.ratio);
            let ratio = ratio.map_or_else(Cell::empty, |ratio| Cell::precise(ratio, 2));
            vec![ber, announced, played.cell("transfer_s"), played.cell(GOODPUT), ratio]
        };
        text.section("announced").with(text.table("announced", self.group("announced").iter().map(row)))
    }

    /// Relative difference between the best and the worst start of the outage, for each error rate.
    fn outage_start_range(&self) -> [f64; 3] {
        BERS.map(|ber| {
            let runs = self.group("start").iter().filter(|played| played.param("ber") == ber);
            let means = || runs.clone().map(|played| played.mean(GOODPUT));
            let (low, high) = (means().fold(f64::MAX, f64::min), means().fold(0.0, f64::max));
            (high - low) / high
        })
    }

    fn outage_start_words(&self, text: &Text) -> String {
        let [none, some, many] = self.outage_start_range().map(|range| format!("{:.0} %", range * 100.0));
        text.words("outage-start", &[("none", none), ("some", some), ("many", many)])
    }

    // -- Assumptions --------------------------------------------------------------------------------------------

    /// Describes the goodput with an alternative and its change, from pairs of runs with the same noise, as a share of
    /// the mean of the assumed choice, for each error rate tried; true if the change is clear.
    fn effect(&self, played: &[Played]) -> (String, bool) {
        let change = |played: &Played| {
            let assumed = self.along("grid", &stated(played.param("ber"), 0))[0];
            let (ours, theirs) = played.pairs(assumed, GOODPUT);
            let mean = stats::mean(&theirs);
            let percent =
                |values: &[f64]| values.iter().map(|value| 100.0 * value / mean).collect::<Vec<_>>();
            Summary::of_differences(&percent(&ours), &percent(&theirs))
        };
        let words = played.iter().map(|played| {
            let (goodput, ber) = (figure(played.mean(GOODPUT)), number(played.param("ber")));
            format!("{goodput} byte/s ({} %) at {ber}", with_error(&change(played)))
        });
        let is_clear = |change: Summary| {
            change.mean.abs() > 100.0 * MOVE && (change.ci95.is_none() || change.is_significant())
        };
        (words.collect::<Vec<_>>().join(", "), played.iter().map(change).any(is_clear))
    }

    fn assumptions(&self, text: &Text) -> Vec<Assumption> {
        let of_variant = |variant: &Variant| {
            let (effect, moves_result) = self.effect(self.group(&variant.name));
            Assumption {
                text: variant.assumed.clone(),
                basis: variant.basis.clone(),
                effect: Some(format!("{}: goodput {effect}", variant.instead)),
                moves_result,
            }
        };
        let range = self.outage_start_words(text);
        // The first one is about the start of the outage.
        let mut all = text.assumptions([vec![text.words("outage-start-effect", &[("range", range)])]]);
        all[0].moves_result = self.outage_start_range().iter().any(|range| *range > MOVE);
        all.into_iter().chain(self.variants.iter().map(of_variant)).collect()
    }
}

fn alone_section(figures: Figures<'_>, text: &Text) -> Section {
    let at = "delay_ms=* ber=0 outage_s=0 window_bytes=53000";
    let ours = figures.curve("here", "tcp/linux-6", "transfer_s", at);
    let kernel = figures.published("Linux kernel", "tcp/linux-6", "transfer_s", at);
    text.section("alone").with(text.plot("alone").with(ours).with(kernel))
}
