//! Numbers of sessions that are in use with the configured peer.

use super::endpoint::Side;
use crate::ranges::Ranges;

/// Numbers in use, by the side of this endpoint in their sessions.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    sender: Ranges,
    receiver: Ranges,
}

impl Numbers {
    /// Notes whether a number is in use.
    pub(super) fn set(&mut self, side: Side, number: u32, is_used: bool) {
        let used = match side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        };
        let (number, next) = (u64::from(number), u64::from(number) + 1);
        if is_used { used.insert(number, next) } else { used.remove(number, next) }
    }

    /// Returns the first number from this one on that is not in use; 0 follows the last number.
    pub(super) fn first_free(&self, side: Side, from: u32) -> u32 {
        let used = match side {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        };
        // There are fewer sessions than numbers.
        let after_wrap = || used.contiguous_end(0) as u32;
        u32::try_from(used.contiguous_end(from.into())).unwrap_or_else(|_| after_wrap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_after_those_in_use_is_free_and_zero_follows_the_last() {
        let mut numbers = Numbers::default();
        let free = |numbers: &Numbers, from| numbers.first_free(Side::Receiver, from);
        for number in [0, 7, 8, 10, u32::MAX] {
            numbers.set(Side::Receiver, number, true);
        }
        assert_eq!([0, 6, 7, 9, 10, u32::MAX].map(|from| free(&numbers, from)), [1, 6, 9, 9, 11, 1]);
        assert_eq!(numbers.first_free(Side::Sender, 7), 7);
        numbers.set(Side::Receiver, 7, false);
        numbers.set(Side::Receiver, u32::MAX, false);
        assert_eq!([7, 8, u32::MAX].map(|from| free(&numbers, from)), [7, 9, u32::MAX]);
    }
}
