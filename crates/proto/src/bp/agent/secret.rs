//! The secret of a store, and the numbers that stand for names on its disk.

use siphasher::sip::SipHasher24;

/// Drawn when a store is made, and in its boot record since. Whoever does not know it can choose no two names that have the same
/// number, and none that has that of a given one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Secret(pub(super) u64);

/// The things that have numbers of their own.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberKind {
    /// A neighbour whose share a bundle takes a place of.
    Neighbour = 1,
    /// A node that has a copy of a bundle.
    Holder = 2,
    /// A node about whose bundles reports are asked for.
    Source = 3,
}

impl Secret {
    /// The number of a name: the same after a restart.
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

    /// Two names that FNV-1a does not tell apart, whatever it begins with: whoever knows how numbers are made has found them in
    /// seconds.
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
