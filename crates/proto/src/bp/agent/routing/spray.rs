//! Binary spray and wait: a number of copies, halved at each meeting; the last one waits for the destination.
//!
//! The source may make the configured number of copies. A node with more than one copy gives half of them to
//! each node that it meets and that has had none; a node with one copy waits for the destination itself. A
//! block carries the number ([`BlockType::Copies`]). A bundle without that block comes from a node that does
//! not count copies, and is the only copy. If a route is configured for the destination, the bundle is sent
//! along that route instead.
//!
//! [`BlockType::Copies`]: crate::bp::BlockType::Copies

use super::table::Hops;
use super::{NextHops, RoutedBundle, Router};

/// Maximum number of copies accepted from a header: ION halves a number of seven bits.
const COPIES_MAX: u64 = 127;

/// Router that replicates a bundle by binary spray and wait.
#[derive(Debug)]
pub(super) struct SprayAndWait {
    copies: u64,
}

impl SprayAndWait {
    pub(super) fn new(copies: u32) -> Self {
        SprayAndWait { copies: u64::from(copies).clamp(1, COPIES_MAX) }
    }
}

impl Router for SprayAndWait {
    fn ways(&self, bundle: &RoutedBundle, hops: Hops) -> NextHops {
        let waits = bundle.copies.is_some_and(|copies| copies <= 1);
        if bundle.has_route || waits { NextHops::Hops(hops) } else { NextHops::Everyone }
    }

    fn spreads(&self) -> bool {
        true
    }

    fn copies(&self, own: bool, said: Option<u64>) -> Option<u64> {
        let copies = if own { said.unwrap_or(self.copies) } else { said.unwrap_or(1) };
        Some(copies.clamp(1, COPIES_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_begins_with_its_copies_and_others_with_what_they_are_told() {
        let spray = SprayAndWait::new(8);
        assert_eq!(spray.copies(true, None), Some(8));
        assert_eq!(spray.copies(false, None), Some(1), "who does not count gives one");
        assert_eq!(spray.copies(false, Some(4)), Some(4));
        assert_eq!(spray.copies(false, Some(0)), Some(1), "it is here, so there is one");
        assert_eq!(spray.copies(false, Some(u64::MAX)), Some(127));
    }
}
