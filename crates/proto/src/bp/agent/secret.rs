//! Secret of a store, and the keyed numbers that represent names in its records.

use siphasher::sip::SipHasher24;

/// Random number, drawn when a store is created and kept in its boot record. Without it, an attacker can
/// choose neither two names with the same number nor a name with the number of a given one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Secret(pub(super) u64);

/// Kinds of names, whose numbers are independent.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberKind {
    /// Neighbour whose quota a bundle is charged to.
    Neighbour = 1,
    /// Node that has a copy of a bundle.
    Holder = 2,
    /// Source of bundles about which reports are requested.
    Source = 3,
}

impl Secret {
    /// Number of a name, the same after a restart.
    pub(super) fn number(self, of: NumberKind, name: &str) -> u64 {
        SipHasher24::new_with_keys(self.0, of as u64).hash(name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_what_they_are_on_the_disks() {
        assert_eq!(Secret(7).number(NumberKind::Holder, "dtn://bob/"), NUMBER);
        let others = [
            Secret(8).number(NumberKind::Holder, "dtn://bob/"),
            Secret(7).number(NumberKind::Source, "dtn://bob/"),
            Secret(7).number(NumberKind::Holder, "dtn://bob2/"),
        ];
        assert!(others.iter().all(|number| *number != NUMBER));
    }

    /// Two names that FNV-1a cannot distinguish, whatever its initial value: with a known function such names
    /// are found in seconds.
    #[test]
    fn names_that_were_chosen_have_numbers_of_their_own() {
        let chosen = ["dtn://bob/", "dtn://Kt6~RkCnB.JcN~gkut6RWZtxI/"];
        for secret in (0..64).map(Secret) {
            let [one, other] = chosen.map(|name| secret.number(NumberKind::Holder, name));
            assert_ne!(one, other);
        }
    }

    const NUMBER: u64 = 14_677_880_068_879_170_965;
}
