//! Time line of a comparison over links with outages: the bytes at the destination, and when the links are there.

use super::ranking::{Candidate, Place};
use crate::format::figure;
use crate::limit;
use crate::link::LinkPath;
use crate::record::distinct;
use crate::report::{Axis, Band, Plot, PlotSeries, Point, Shape};
use crate::run::Outcome;

/// Maximum number of protocols, the best ones.
const PROTOCOLS_MAX: usize = 6;
/// Number of times of the fastest protocol after which the picture ends.
const TIMES_MAX: f64 = 3.0;
/// Number of parts of the files whose ideal times are drawn.
const PARTS: u64 = 300;

/// Draws the best settings of each protocol, in the order of the ranking; `None` if no run was completed.
pub(super) fn plot(places: &[Place], path: &LinkPath) -> Option<Plot> {
    let candidates = || places.iter().map(|place| &place.candidate);
    let protocols = distinct(candidates().map(|candidate| candidate.preset.protocol.name));
    let of_protocol = |name: &&str| candidates().find(|candidate| candidate.preset.protocol.name == *name);
    let best: Vec<&Candidate> = protocols.iter().filter_map(of_protocol).take(PROTOCOLS_MAX).collect();
    let first = median(best.first()?);
    let last_s = best.iter().filter_map(|candidate| median(candidate).transfer_s).fold(0.0, f64::max);
    let fastest_s = best.iter().filter_map(|candidate| median(candidate).transfer_s).reduce(f64::min)?;
    let end_s = last_s.min(TIMES_MAX * fastest_s);
    let title = "Bytes at the destination over time";
    let axes = (Axis::new("time", "s").from_zero(), Axis::new("delivered", "byte").from_zero());
    let plot = Plot::new(title, axes.0, axes.1).captioned(
        "Bytes that have arrived in order, in the median run of each protocol with its best settings. Above are the links, \
         one after the other; shades mark times at which one of them is down. The broken line is the ideal time of each \
         part of the files, if every packet were forwarded as it arrives.",
    );
    let plot = best.iter().fold(plot, |plot, candidate| plot.with(series(candidate, end_s)));
    let ideal = PlotSeries::new("ideal", ideal(best[0], first, end_s)).shaped(Shape::Bound);
    let names = path.nodes.windows(2).map(|ends| format!("{} to {}", ends[0], ends[1]));
    let bands = names.zip(&first.hops).map(|(name, hop)| Band { name, outages: hop.outages.clone() });
    Some(Plot { bands: bands.collect(), ..plot.with(ideal) })
}

/// Run with the median time of those completed; without one the first run.
fn median(candidate: &Candidate) -> &Outcome {
    let mut arrived = candidate.arrived();
    arrived.sort_by(|a, b| a.transfer_s.partial_cmp(&b.transfer_s).expect("times are numbers"));
    match arrived.get(arrived.len() / 2) {
        Some(outcome) => outcome,
        None => &candidate.played.runs[0].1,
    }
}

fn series(candidate: &Candidate, end_s: f64) -> PlotSeries {
    let outcome = median(candidate);
    let all = outcome.arrivals.points().map(|(at, bytes)| (at.as_secs_f64(), bytes as f64));
    let done = outcome.transfer_s.filter(|_| outcome.delivered).map(|at_s| (at_s, outcome.file_bytes as f64));
    let end = match outcome.transfer_s {
        Some(seconds) if seconds > end_s => format!("{} s, beyond the right edge", figure(seconds)),
        Some(seconds) => format!("{} s", figure(seconds)),
        None => "not delivered".to_owned(),
    };
    let name = format!("{}: {end}", candidate.name());
    PlotSeries::new(name, until(all.chain(done), end_s)).shaped(Shape::Trace)
}

/// Steps from zero through these points as far as the edge: nothing has arrived before its time.
fn until(all: impl Iterator<Item = (f64, f64)>, end_s: f64) -> Vec<Point> {
    let mut points = vec![Point::new(0.0, 0.0)];
    for (x, y) in all {
        let before = points[points.len() - 1];
        if x > before.x {
            points.push(Point::new(x.min(end_s), before.y));
        }
        if x > end_s {
            break;
        }
        points.push(Point::new(x, y));
    }
    points
}

/// Ideal times of parts of the files, with the outages of a run.
fn ideal(candidate: &Candidate, outcome: &Outcome, end_s: f64) -> Vec<Point> {
    let links = candidate.played.case.trial.setup.links.iter();
    let hops: Vec<_> = links.zip(&outcome.hops).map(|(link, hop)| link.hop(hop.outages.clone())).collect();
    let part = |part: u64| {
        let bytes = (outcome.file_bytes * part / PARTS).max(1);
        (limit::limit(&hops, bytes).streaming.mean_s, bytes as f64)
    };
    until((0..=PARTS).map(part), end_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_steps_and_ends_at_the_edge() {
        let line = |end_s| until([(10.0, 0.0), (20.0, 100.0), (30.0, 200.0)].into_iter(), end_s);
        let point = |x, y| Point::new(x, y);
        let steps = [(0.0, 0.0), (10.0, 0.0), (10.0, 0.0), (20.0, 0.0), (20.0, 100.0), (25.0, 100.0)];
        assert_eq!(line(25.0), steps.map(|(x, y)| point(x, y)), "nothing has arrived before its time");
        assert_eq!(line(30.0).last(), Some(&point(30.0, 200.0)));
        assert_eq!(line(5.0), [point(0.0, 0.0), point(5.0, 0.0)]);
    }
}
