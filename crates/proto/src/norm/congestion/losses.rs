//! Lost messages of a sender, as the gaps in their numbers show (RFC 4654 5.1).

use crate::time::Instant;

/// Number of later messages that must arrive before one counts as lost.
const LATER_MESSAGES: u64 = 3;
/// Longest jump of the numbers; a longer one is an old message.
const JUMP_MAX: u64 = 1 << 15;

/// Messages in succession that have not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) first: u64,
    /// The last one, inclusive.
    pub(super) last: u64,
    /// Arrival of the message before the gap, and of the one after it.
    pub(super) before: Instant,
    pub(super) after: Instant,
}

impl Gap {
    pub(super) fn messages(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// Gaps in the numbers of messages.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Highest number so far, from zero for the first message, and its arrival.
    highest: Option<(u64, Instant)>,
    /// Lower bits of the number zero.
    base: u16,
    /// Gaps that later messages may still fill, in ascending order. At most three can be open, and each of them be divided by
    /// messages that come late.
    open: Vec<Gap>,
}

/// Maximum number of open gaps.
const OPEN_MAX: usize = 8;

impl Losses {
    /// Number of messages that were sent after the first one that arrived.
    pub(super) fn highest(&self) -> u64 {
        self.highest.map_or(0, |(highest, _)| highest)
    }

    /// Notes a message, and calls `lost` with each gap that no message will fill any more.
    pub(super) fn arrive(&mut self, now: Instant, sequence: u16, mut lost: impl FnMut(Gap)) {
        let Some((highest, at)) = self.highest else {
            (self.base, self.highest) = (sequence, Some((0, now)));
            return;
        };
        let expected = self.base.wrapping_add(highest as u16).wrapping_add(1);
        let ahead = u64::from(sequence.wrapping_sub(expected));
        if ahead >= JUMP_MAX {
            self.fill(highest.checked_sub((1 << 16) - 1 - ahead));
            return;
        }
        let number = highest + 1 + ahead;
        if ahead > 0 {
            if self.open.len() >= OPEN_MAX {
                lost(self.open.remove(0));
            }
            self.open.push(Gap { first: highest + 1, last: number - 1, before: at, after: now });
        }
        self.highest = Some((number, now));
        while self.open.first().is_some_and(|gap| number >= gap.last + LATER_MESSAGES) {
            lost(self.open.remove(0));
        }
    }

    /// Takes a message that comes late out of its gap.
    fn fill(&mut self, number: Option<u64>) {
        let inside = |gap: &Gap| number.is_some_and(|number| (gap.first..=gap.last).contains(&number));
        let Some((at, number)) = self.open.iter().position(inside).zip(number) else { return };
        let gap = self.open.remove(at);
        if number < gap.last {
            self.open.insert(at, Gap { first: number + 1, ..gap });
        }
        if number > gap.first {
            self.open.insert(at, Gap { last: number - 1, ..gap });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps that are found when messages with these numbers arrive, one per millisecond.
    fn gaps(sequences: &[u16]) -> Vec<(u64, u64)> {
        let (mut losses, mut found) = (Losses::default(), Vec::new());
        for (millis, sequence) in (0..).zip(sequences) {
            losses.arrive(Instant::from_millis(millis), *sequence, |gap| found.push((gap.first, gap.last)));
        }
        found
    }

    #[test]
    fn a_message_is_lost_when_three_later_ones_have_arrived() {
        assert_eq!(gaps(&[10, 11, 13, 14]), []);
        assert_eq!(gaps(&[10, 11, 13, 14, 15]), [(2, 2)]);
        assert_eq!(gaps(&[10, 20, 21, 22]), [(1, 9)]);
        assert_eq!(gaps(&[65_534, 65_535, 2, 3, 4]), [(2, 3)], "numbers wrap");
        assert_eq!(gaps(&[1, 3, 5, 7, 9, 11, 13]), [(1, 1), (3, 3), (5, 5), (7, 7), (9, 9)]);
    }

    #[test]
    fn messages_in_another_order_are_not_lost() {
        assert_eq!(gaps(&[10, 12, 13, 11, 14, 15, 16]), []);
        assert_eq!(gaps(&[10, 14, 12, 15, 16, 17]), [(1, 1), (3, 3)]);
        assert_eq!(gaps(&[10, 11, 11, 10, 9, 12]), [], "repetitions, and one from before the first");
    }
}
