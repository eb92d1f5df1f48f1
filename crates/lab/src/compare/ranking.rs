//! Ranking: the place of every protocol as values, made once. Sentences, tables and the JSON document show them.

use super::Preset;
use super::advice::Advice;
use crate::bench::{Played, Trial};
use crate::chain::{self, Chain};
use crate::link::LinkPath;
use crate::record::{Difference, Ranked, round};
use crate::run::{NotDelivered, Outcome};
use crate::stats::{Summary, mean};
use std::cmp::Ordering;

/// Protocol with settings, and its runs.
pub(super) struct Candidate {
    pub(super) preset: Preset,
    /// Configuration that its settings need.
    pub(super) advice: Advice,
    pub(super) played: Played<Chain>,
}

impl Candidate {
    pub(super) fn new(preset: Preset, played: Played<Chain>) -> Candidate {
        let advice = Advice::of(played.case.trial.setup.settings(), preset.protocol);
        Candidate { preset, advice, played }
    }

    pub(super) fn name(&self) -> &str {
        &self.played.case.name
    }

    pub(super) fn arrived(&self) -> Vec<&Outcome> {
        self.played.outcomes().filter(|outcome| outcome.delivered).collect()
    }

    /// Transfer times of the completed runs.
    pub(super) fn times(&self) -> Vec<f64> {
        Chain::metric("transfer_s").samples(&self.arrived())
    }

    /// Summary of these times; `None` without a completed run.
    pub(super) fn time(&self) -> Option<Summary> {
        let times = self.times();
        (!times.is_empty()).then(|| Summary::of(&times))
    }

    pub(super) fn why_missed(&self) -> String {
        chain::why_missed(&self.played.all())
    }

    /// Returns true if even without errors no run could end within its time limit.
    pub(super) fn is_hopeless(&self) -> bool {
        self.played.all().iter().all(|outcome| match outcome.missed {
            Some(NotDelivered::Time(most_s)) => outcome.limit.streaming.error_free_s >= most_s,
            _ => false,
        })
    }

    /// Returns true for a node that keeps accepted data after a break.
    pub(super) fn keeps(&self) -> bool {
        self.preset.protocol.carrier.is_some() && self.preset.protocol.acknowledges()
    }

    /// Mean transfer time of the completed runs; infinite without any.
    pub(super) fn mean_s(&self) -> f64 {
        match &self.times()[..] {
            [] => f64::INFINITY,
            times => mean(times),
        }
    }

    /// Ideal time for the completed runs, of which there must be at least one.
    pub(super) fn limit_s(&self) -> f64 {
        chain::streaming_s(&self.arrived())
    }

    /// Describes the ideal time: a single run is compared with the time without errors.
    pub(super) fn limit_in_words(&self) -> &'static str {
        match self.arrived().len() {
            1 => "the ideal time without errors",
            _ => "the ideal time",
        }
    }

    fn missing(&self) -> usize {
        self.played.runs.len() - self.times().len()
    }

    /// Orders by complete delivery first, then by mean time.
    fn order(&self, other: &Candidate) -> Ordering {
        self.missing().cmp(&other.missing()).then(self.mean_s().total_cmp(&other.mean_s()))
    }

    /// Orders protocols that tie: those that keep accepted data first, then those that need no configuration, then by
    /// mean time.
    fn order_in_tie(&self, other: &Candidate) -> Ordering {
        let needs = |candidate: &Candidate| (!candidate.keeps(), !candidate.advice.is_empty());
        needs(self).cmp(&needs(other)).then(self.order(other))
    }

    /// Returns the differences of the transfer times, run by run; `None` without a run that both completed.
    fn behind(&self, other: &Candidate) -> Option<Summary> {
        let arrived_s = |outcome: &Outcome| outcome.transfer_s.filter(|_| outcome.delivered);
        let (ours, theirs) = self.played.pairs_of(&other.played, arrived_s);
        (!ours.is_empty()).then(|| Summary::of_differences(&ours, &theirs))
    }

    /// Returns true if the runs show no significant difference.
    fn ties_with(&self, other: &Candidate) -> bool {
        let is_level = |paired: Summary| {
            let is_zero = paired.min == 0.0 && paired.max == 0.0;
            is_zero || (paired.ci95.is_some() && !paired.is_significant())
        };
        self.missing() == other.missing() && self.behind(other).is_some_and(is_level)
    }

    /// Returns true if as many runs were completed with the same mean time, to the digits that are published.
    fn is_level_with(&self, other: &Candidate) -> bool {
        self.missing() == other.missing() && round(self.mean_s()) == round(other.mean_s())
    }

    /// Returns the values of its place: `rank` is the rank and the tie group.
    fn ranked(&self, rank: Option<(usize, usize)>, winner: Option<&Candidate>, path: &LinkPath) -> Ranked {
        let Preset { protocol, variant } = self.preset;
        let time = self.time();
        let limit_s = time.map(|_| self.limit_s());
        let ratio = time.zip(limit_s).filter(|(_, limit_s)| *limit_s > 0.0);
        let behind = winner.and_then(|winner| self.behind(winner));
        Ranked {
            rank: rank.map(|(rank, _)| rank),
            winner: winner.is_some_and(|winner| std::ptr::eq(winner, self)),
            tie_group: rank.map(|(_, group)| group),
            protocol: protocol.name.to_owned(),
            settings: variant.name.to_owned(),
            acknowledged: protocol.acknowledges(),
            keeps_accepted: self.keeps(),
            runs: self.played.runs.len(),
            delivered: self.arrived().len(),
            transfer_s: time.map(|time| time.mean),
            ci95: time.and_then(|time| time.ci95),
            limit_s,
            ratio: ratio.map(|(time, limit_s)| time.mean / limit_s),
            behind_winner: behind.map(|behind| Difference {
                mean_s: behind.mean,
                ci95_s: behind.ci95,
                pairs: behind.n,
                significant: behind.is_significant(),
            }),
            configuration: self.advice.configuration(protocol, path),
        }
    }
}

/// Candidate and the values of its place.
pub(super) struct Place {
    pub(super) candidate: Candidate,
    pub(super) values: Ranked,
}

/// Reason for which the first of those that tie is listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Another one does not keep accepted data.
    KeepsAccepted,
    /// Another one, equal in that, needs configuration.
    NeedsNoConfiguration,
    /// Nothing else distinguishes it.
    ShortestMean,
}

impl Reason {
    /// Description, after the name of the protocol.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Reason::KeepsAccepted => "keeps accepted data when a link or node fails",
            Reason::NeedsNoConfiguration => "needs no configuration",
            Reason::ShortestMean => "has the shortest mean time, and the others offer no other advantage",
        }
    }
}

pub(super) struct Ranking {
    /// Those with guaranteed delivery by rank, those that tie with the fastest in order of preference; then the others.
    places: Vec<Place>,
    /// Number of those that tie as the fastest.
    leading: usize,
    /// Reasons for the order of those that tie; none if there is only one.
    pub(super) reasons: Vec<Reason>,
}

impl Ranking {
    pub(super) fn of(candidates: Vec<Candidate>, path: &LinkPath) -> Ranking {
        let (mut sure, mut unsure): (Vec<Candidate>, Vec<Candidate>) =
            candidates.into_iter().partition(|candidate| candidate.preset.protocol.acknowledges());
        sure.sort_by(Candidate::order);
        unsure.sort_by(Candidate::order);
        let (sure, leading) = ties_first(sure);
        let reasons = reasons(&sure[..leading]);
        let winner = sure.first().filter(|first| first.time().is_some());
        let ranks = ranks(&sure, leading).into_iter().map(Some);
        let ranks = ranks.chain(unsure.iter().map(|_| None));
        let values: Vec<Ranked> = sure
            .iter()
            .chain(&unsure)
            .zip(ranks)
            .map(|(candidate, rank)| candidate.ranked(rank, winner, path))
            .collect();
        let all = sure.into_iter().chain(unsure).zip(values);
        let places = all.map(|(candidate, values)| Place { candidate, values }).collect();
        Ranking { places, leading, reasons }
    }

    pub(super) fn all(&self) -> &[Place] {
        &self.places
    }

    /// Places with a rank, which only protocols with guaranteed delivery have.
    pub(super) fn with_rank(&self) -> &[Place] {
        let end = self.places.partition_point(|place| place.values.rank.is_some());
        &self.places[..end]
    }

    pub(super) fn without_rank(&self) -> &[Place] {
        &self.places[self.with_rank().len()..]
    }

    /// Places of those that tie as the fastest.
    pub(super) fn tied(&self) -> &[Place] {
        &self.places[..self.leading]
    }

    /// First place: the winner, unless nothing arrived.
    pub(super) fn first(&self) -> &Place {
        &self.places[0]
    }

    /// Place of the best protocol for nodes that keep accepted data.
    pub(super) fn best_for_nodes(&self) -> Option<&Place> {
        self.places.iter().find(|place| place.values.is_for_nodes())
    }
}

/// Moves those that tie with the first to the front, in order of preference; returns their number, too.
fn ties_first(mut sorted: Vec<Candidate>) -> (Vec<Candidate>, usize) {
    if sorted.is_empty() {
        return (sorted, 0);
    }
    let rest = sorted.split_off(1);
    // A protocol with a wide interval may tie although it ranks behind one that does not.
    let (tied, behind): (Vec<Candidate>, Vec<Candidate>) =
        rest.into_iter().partition(|other| sorted[0].ties_with(other));
    sorted.extend(tied);
    sorted.sort_by(Candidate::order_in_tie);
    let leading = sorted.len();
    sorted.extend(behind);
    (sorted, leading)
}

/// Returns rank and tie group of each: the first `leading` tie, and behind them equal means do.
fn ranks(sure: &[Candidate], leading: usize) -> Vec<(usize, usize)> {
    let shares = |at: usize| match at {
        0 => false,
        at if at < leading => true,
        // The first one behind is significantly slower than the fastest, whatever the mean of the last that ties is.
        at if at == leading && sure[0].time().is_some() => false,
        at => sure[at].is_level_with(&sure[at - 1]),
    };
    let mut all: Vec<(usize, usize)> = Vec::new();
    for at in 0..sure.len() {
        let place = match all.last() {
            Some(last) if shares(at) => *last,
            last => (at + 1, last.map_or(1, |(_, group)| group + 1)),
        };
        all.push(place);
    }
    all
}

fn reasons(tied: &[Candidate]) -> Vec<Reason> {
    let [best, others @ ..] = tied else { return Vec::new() };
    if others.is_empty() {
        return Vec::new();
    }
    let keeps = best.keeps() && others.iter().any(|other| !other.keeps());
    let mut rivals = others.iter().filter(|other| other.keeps() == best.keeps());
    let plain = best.advice.is_empty() && rivals.any(|other| !other.advice.is_empty());
    let found = [(keeps, Reason::KeepsAccepted), (plain, Reason::NeedsNoConfiguration)];
    let found: Vec<Reason> =
        found.into_iter().filter(|(holds, _)| *holds).map(|(_, reason)| reason).collect();
    if found.is_empty() { vec![Reason::ShortestMean] } else { found }
}
