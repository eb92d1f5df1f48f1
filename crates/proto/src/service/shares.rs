//! Purpose of the bytes that a layer passes down.

use serde::{Deserialize, Serialize};

/// Purpose of the bytes of a frame or datagram. It accompanies them and is never part of them: the simulator and the
/// daemon compute from it what the time on the channel was used for.
///
/// The rest of the length is header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// User data, sent for the first time.
    pub payload: u32,
    /// Bytes sent again, with the headers if the whole frame is a retransmission.
    pub repeated: u32,
    /// Bytes that only acknowledge.
    pub acknowledgement: u32,
    /// Bytes that open, close, probe or keep alive.
    pub control: u32,
    /// Redundant bytes for the repair of others.
    pub repair: u32,
}

impl Shares {
    /// No bytes of any kind: all of the length is header.
    const NONE: Shares = Shares { payload: 0, repeated: 0, acknowledgement: 0, control: 0, repair: 0 };

    /// This number of bytes of user data, sent for the first time.
    pub const fn payload(bytes: usize) -> Shares {
        Shares { payload: bytes as u32, ..Shares::NONE }
    }

    /// This number of bytes sent again.
    pub const fn repeated(bytes: usize) -> Shares {
        Shares { repeated: bytes as u32, ..Shares::NONE }
    }

    /// This number of bytes that only acknowledge.
    pub const fn acknowledgement(bytes: usize) -> Shares {
        Shares { acknowledgement: bytes as u32, ..Shares::NONE }
    }

    /// This number of bytes that open, close, probe or keep alive.
    pub const fn control(bytes: usize) -> Shares {
        Shares { control: bytes as u32, ..Shares::NONE }
    }

    /// This number of redundant bytes for the repair of others.
    pub const fn repair(bytes: usize) -> Shares {
        Shares { repair: bytes as u32, ..Shares::NONE }
    }

    /// Returns the number of bytes that are not header.
    pub fn spoken_for(&self) -> u64 {
        let Shares { payload, repeated, acknowledgement, control, repair } = *self;
        [payload, repeated, acknowledgement, control, repair].into_iter().map(u64::from).sum()
    }

    /// Returns the shares of two units in one.
    #[must_use]
    pub fn and(self, other: Shares) -> Shares {
        Shares {
            payload: self.payload + other.payload,
            repeated: self.repeated + other.repeated,
            acknowledgement: self.acknowledgement + other.acknowledgement,
            control: self.control + other.control,
            repair: self.repair + other.repair,
        }
    }

    /// Returns the shares of a part of `part` bytes, headers of the part included, of a unit of `whole` bytes: each in
    /// proportion, so that the parts of a unit with one purpose have no other.
    #[must_use]
    pub fn of_part(self, whole: usize, part: usize) -> Shares {
        let scale = |bytes: u32| (u64::from(bytes) * part as u64 / whole.max(1) as u64) as u32;
        Shares {
            payload: scale(self.payload),
            repeated: scale(self.repeated),
            acknowledgement: scale(self.acknowledgement),
            control: scale(self.control),
            repair: scale(self.repair),
        }
    }

    /// Returns the shares of a unit of `outer` bytes that contains these `inner` bytes and headers.
    ///
    /// A unit that only acknowledges, or only repeats, controls or repairs, does so with its headers: they would not be
    /// sent without it. Headers of user data are headers.
    #[must_use]
    pub fn in_frame(self, inner: usize, outer: usize) -> Shares {
        let inner = u32::try_from(inner).unwrap_or(u32::MAX);
        let outer = u32::try_from(outer).unwrap_or(u32::MAX);
        let whole = |bytes: u32| if bytes > 0 && bytes == inner { outer } else { bytes };
        Shares {
            payload: self.payload,
            repeated: whole(self.repeated),
            acknowledgement: whole(self.acknowledgement),
            control: whole(self.control),
            repair: whole(self.repair),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_one_purpose_has_it_with_its_headers_unless_it_is_user_data() {
        let makers = [Shares::repeated, Shares::acknowledgement, Shares::control, Shares::repair];
        for make in makers {
            assert_eq!(make(40).in_frame(40, 60), make(60));
            assert_eq!(make(30).in_frame(40, 60), make(30), "the rest is header");
            assert_eq!(make(0).in_frame(0, 20), make(0));
        }
        assert_eq!(Shares::payload(40).in_frame(40, 60), Shares::payload(40));
        let mixed = Shares { payload: 30, acknowledgement: 10, ..Shares::NONE };
        assert_eq!(mixed.in_frame(40, 60), mixed);
        assert_eq!((mixed.spoken_for(), Shares::default()), (40, Shares::NONE));
        let all = Shares { payload: 1, repeated: 2, acknowledgement: 4, control: 8, repair: 16 };
        assert_eq!(all.spoken_for(), 31);
    }
    #[test]
    fn the_parts_of_a_unit_share_its_purposes_in_proportion() {
        let mixed = Shares { payload: 60, repeated: 20, acknowledgement: 10, control: 5, repair: 5 };
        assert_eq!(mixed.of_part(200, 200), mixed);
        let half = Shares { payload: 30, repeated: 10, acknowledgement: 5, control: 2, repair: 2 };
        assert_eq!(mixed.of_part(200, 100), half);
        assert_eq!(
            Shares::control(200).of_part(200, 103),
            Shares::control(103),
            "with the header of the part"
        );
        assert_eq!(Shares::payload(0).of_part(0, 0), Shares::NONE);
    }
}
