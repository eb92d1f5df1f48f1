//! Acknowledgements of receivers at the sender (RFC 5740 5.5.3).

use super::config::Config;
use super::wire::NodeId;
use crate::time::{Duration, Instant};
use std::collections::BTreeMap;

/// Point in what a sender sends: an object, and a source symbol of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) object: u64,
    pub(super) block: u32,
    pub(super) symbol: u16,
}

/// Receivers that have to acknowledge, and the questions to them.
#[derive(Debug)]
pub(super) struct Acknowledgements {
    /// Receivers that the user has named.
    is_configured: bool,
    /// Receivers, with the last point that each has acknowledged, and with it all before.
    receivers: BTreeMap<NodeId, Option<Point>>,
    /// Number of questions since the last symbol or acknowledgement.
    rounds: u32,
    /// Time of the first of these questions.
    asking_since: Option<Instant>,
    /// Point of the last question.
    asked: Point,
}

impl Acknowledgements {
    pub(super) fn new(config: &Config) -> Self {
        let named = config.acknowledging.iter().map(|node| (NodeId(*node), None));
        Acknowledgements {
            is_configured: !config.acknowledging.is_empty(),
            receivers: named.collect(),
            rounds: 0,
            asking_since: None,
            asked: Point::default(),
        }
    }

    /// Notes that a symbol leaves: questions begin anew.
    pub(super) fn restart_rounds(&mut self) {
        (self.rounds, self.asking_since) = (0, None);
    }

    /// Number of questions since the last symbol or acknowledgement.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Returns true if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.receivers.is_empty()
    }

    /// Notes an answer from the address of the only receiver, which is known by it if no receivers are named.
    pub(super) fn heard(&mut self, from: NodeId) {
        if !self.is_configured && !self.receivers.contains_key(&from) {
            // The node at the address has another identifier now.
            self.receivers = [(from, None)].into();
        }
    }

    /// Forgets the only receiver if it is known by its answers: another one may be at its address now.
    pub(super) fn forget_learnt(&mut self) {
        if !self.is_configured {
            self.receivers.clear();
        }
    }

    /// Notes that a receiver has everything up to a point.
    pub(super) fn acknowledge(&mut self, from: NodeId, point: Point) {
        if let Some(through) = self.receivers.get_mut(&from).filter(|through| **through < Some(point)) {
            *through = Some(point);
            self.restart_rounds();
        }
    }

    /// Returns the last point that all receivers have acknowledged; `None` without receivers.
    pub(super) fn acknowledged(&self) -> Option<Point> {
        self.receivers.values().min().copied()?
    }

    /// Notes that a question leaves, and returns the receivers that have to answer it, at most `nodes_max`.
    pub(super) fn ask(&mut self, now: Instant, point: Point, nodes_max: usize) -> Vec<NodeId> {
        self.rounds = self.rounds.saturating_add(1);
        self.asking_since.get_or_insert(now);
        self.asked = point;
        self.lacking().take(nodes_max).collect()
    }

    /// Receivers that have not acknowledged the point of the last question.
    fn lacking(&self) -> impl Iterator<Item = NodeId> {
        self.receivers.iter().filter(|(_, through)| **through < Some(self.asked)).map(|(node, _)| *node)
    }

    /// Returns the time from a question to the next: twice the round-trip time. After as many as are usual, they are less
    /// frequent, because a receiver may take long to store what it has.
    pub(super) fn wait(&self, round_trip: Duration, config: &Config) -> Duration {
        let usual = round_trip * 2;
        if self.rounds <= config.robust_factor {
            usual
        } else {
            usual.max(config.silence_limit / config.robust_factor)
        }
    }

    /// Returns true if receivers have neither acknowledged nor requested anything for too long. Answers to probes do not count: a
    /// receiver that has lost its state in the middle gives them, too.
    pub(super) fn is_silent(&self, now: Instant, config: &Config) -> bool {
        let is_late = self.asking_since.is_some_and(|since| now >= since + config.silence_limit);
        is_late && self.rounds >= config.robust_factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn point(object: u64) -> Point {
        Point { object, ..Point::default() }
    }

    fn config(acknowledging: &[u32]) -> Config {
        Config { acknowledging: acknowledging.to_vec(), robust_factor: 3, ..Config::default() }
    }

    #[test]
    fn an_object_is_acknowledged_when_all_receivers_have_done_so() {
        let mut all = Acknowledgements::new(&config(&[7, 9]));
        assert_eq!(all.ask(at(0), point(5), 9), [NodeId(7), NodeId(9)]);
        all.acknowledge(NodeId(9), point(5));
        assert_eq!((all.acknowledged(), all.rounds()), (None, 0));
        assert_eq!(all.ask(at(1), point(5), 9), [NodeId(7)]);
        all.acknowledge(NodeId(8), point(5));
        assert_eq!((all.acknowledged(), all.rounds()), (None, 1), "a node that is none of them");
        all.acknowledge(NodeId(7), point(4));
        assert_eq!(all.acknowledged(), Some(point(4)));
        all.acknowledge(NodeId(7), point(5));
        all.acknowledge(NodeId(7), point(3));
        assert_eq!(all.acknowledged(), Some(point(5)));
        assert_eq!(all.ask(at(2), point(6), 1), [NodeId(7)], "as many as a message has room for");
    }

    #[test]
    fn the_only_receiver_is_learnt_from_its_answer() {
        let mut only = Acknowledgements::new(&config(&[]));
        assert!(only.is_empty() && only.acknowledged().is_none());
        only.heard(NodeId(7));
        only.acknowledge(NodeId(7), point(2));
        assert_eq!(only.acknowledged(), Some(point(2)));
        only.heard(NodeId(8));
        assert_eq!((only.ask(at(0), point(5), 9), only.acknowledged()), (vec![NodeId(8)], None));
        only.forget_learnt();
        assert!(only.is_empty());
        let mut named = Acknowledgements::new(&config(&[7]));
        named.heard(NodeId(8));
        named.forget_learnt();
        assert_eq!(named.ask(at(0), point(5), 9), [NodeId(7)]);
    }

    #[test]
    fn receivers_are_silent_after_enough_questions_and_enough_time() {
        let settings = config(&[7, 9]);
        let limit = settings.silence_limit.as_secs();
        let mut all = Acknowledgements::new(&settings);
        all.ask(at(0), point(5), 9);
        all.ask(at(1), point(5), 9);
        assert!(!all.is_silent(at(limit), &settings), "two questions of three");
        all.ask(at(2), point(5), 9);
        assert!(!all.is_silent(at(limit - 1), &settings) && all.is_silent(at(limit), &settings));
        all.acknowledge(NodeId(9), point(5));
        assert!(!all.is_silent(at(9 * limit), &settings), "the questions begin anew");
        for second in 0..4 {
            assert_eq!(all.wait(Duration::from_secs(1), &settings).as_secs(), 2);
            all.ask(at(limit + second), point(5), 9);
        }
        assert_eq!(all.wait(Duration::from_secs(1), &settings).as_secs(), limit / 3);
        assert!(all.is_silent(at(2 * limit), &settings));
        all.restart_rounds();
        assert!(!all.is_silent(at(9 * limit), &settings));
    }
}
