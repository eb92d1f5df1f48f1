//! Times at which a link carries nothing: single outages, and all times between the passes of a spacecraft.

use longwire_proto::settings;
use serde::{Deserialize, Serialize};

/// Maximum outages of a link in a run.
const OUTAGES_MAX: usize = 10_000;

/// Outage of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// Start, in seconds since `from`. Default 0.
    pub after_s: f64,
    /// Maximum random delay of the start, seconds: uniform, drawn in every run from the run's seed only, so that the
    /// same run of every point has the same delay. Default 0.
    pub spread_s: f64,
    /// Reference of `after-s`. Default `run`.
    pub from: OutageFrom,
    /// Duration, seconds; 0 for no outage. Default 0.
    pub length_s: f64,
    /// True: both ends know the schedule and detect the loss of the carrier. False (the default): neither end is
    /// informed.
    pub announced: bool,
}

/// Reference of the start of an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageFrom {
    /// Start of the run.
    #[default]
    Run,
    /// First payload byte sent over that hop towards the destination.
    Data,
}

settings! {
    /// Pass of a spacecraft, once or repeated; both ends know the schedule.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Pass {
        /// Start of the first pass, seconds since the start of the run. Default 0.
        pub first_s: f64,
        /// Interval between the starts of passes, seconds; 0 for a single pass. Default 0.
        pub every_s: f64,
        /// Duration of each pass, seconds. Default 600.
        pub lasts_s: f64 = 600.0,
    }
}

impl Pass {
    /// Passes that begin before this time, seconds: start and end.
    fn before(self, end_s: f64) -> impl Iterator<Item = (f64, f64)> {
        let count = if self.every_s > 0.0 { usize::MAX } else { 1 };
        let starts = (0..count).map(move |number| self.first_s + number as f64 * self.every_s);
        starts
            .take_while(move |start_s| *start_s < end_s)
            .map(move |start_s| (start_s, start_s + self.lasts_s))
    }
}

/// Outages between these passes until `end_s`, and a last one after it, if no pass lasts until then.
///
/// # Errors
/// Fails if the passes overlap, or there are too many.
pub(super) fn between(passes: &[Pass], end_s: f64) -> Result<Vec<Outage>, String> {
    if passes.is_empty() {
        return Ok(Vec::new());
    }
    // Each kind of pass has one more at most than the sum may have.
    let bounded = passes.iter().flat_map(|pass| pass.before(end_s).take(OUTAGES_MAX + 1));
    let mut spans: Vec<(f64, f64)> = bounded.collect();
    if spans.len() > OUTAGES_MAX {
        return Err(format!("there are more than {OUTAGES_MAX} passes within the time limit of a run"));
    }
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    if spans.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        return Err("passes overlap; merge them".into());
    }
    let ends = std::iter::once(0.0).chain(spans.iter().map(|span| span.1));
    let starts = spans.iter().map(|span| span.0).chain([f64::INFINITY]);
    let outage = |(after_s, until_s): (f64, f64)| Outage {
        after_s,
        length_s: until_s.min(after_s.max(end_s)) - after_s,
        announced: true,
        ..Outage::default()
    };
    Ok(ends.zip(starts).map(outage).filter(|outage| outage.length_s > 0.0).collect())
}

pub(super) fn check_passes(passes: &[Pass]) -> Result<(), &'static str> {
    let is_time = |seconds: f64| (0.0..=1e9).contains(&seconds);
    let sensible = |pass: &Pass| {
        is_time(pass.first_s) && is_time(pass.every_s) && pass.lasts_s > 0.0 && is_time(pass.lasts_s)
    };
    if !passes.iter().all(sensible) {
        return Err("needs `first-s` and `every-s` from 0 to 1e9, and `lasts-s` above 0");
    }
    if passes.iter().any(|pass| pass.every_s > 0.0 && pass.every_s < pass.lasts_s) {
        return Err("must end before the next one begins: `lasts-s` exceeds `every-s`");
    }
    Ok(())
}

/// Checks the times of outages, and that no two overlap.
///
/// # Errors
/// Fails with a description of the first mistake.
pub fn check_outages(outages: &[Outage]) -> Result<(), String> {
    for outage in outages {
        if outage.announced && outage.from == OutageFrom::Data {
            return Err("an outage relative to data cannot be announced; use `from = \"run\"`".into());
        }
        let sensible = |seconds: f64| (0.0..=1e9).contains(&seconds);
        if ![outage.after_s, outage.spread_s, outage.length_s].into_iter().all(sensible) {
            return Err("an outage's `after-s`, `spread-s` and `length-s` must be from 0 to 1e9".into());
        }
    }
    let lasting = |outage: &&Outage| outage.length_s > 0.0;
    for (at, a) in outages.iter().enumerate().filter(|(_, outage)| lasting(outage)) {
        let meets = |b: &Outage| {
            a.from == b.from
                && a.after_s < b.after_s + b.spread_s + b.length_s
                && b.after_s < a.after_s + a.spread_s + a.length_s
        };
        if outages[at + 1..].iter().filter(lasting).any(meets) {
            return Err("outages overlap; merge them".into());
        }
    }
    Ok(())
}
