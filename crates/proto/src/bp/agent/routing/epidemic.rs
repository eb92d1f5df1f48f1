//! Epidemic routing: everyone who is met gets a copy.
//!
//! Nobody tells what he has, so the rule has to be one that needs no telling: never back to the node it came from, once
//! to each node (that is remembered with the bundle, over restarts, too), and what comes again is refused by who has it
//! or had it. Where a route is set it is kept to instead: a bundle with a way goes that way, once.

use super::table::Hops;
use super::{NextHops, RoutedBundle, Router};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Epidemic;

impl Router for Epidemic {
    fn ways(&self, bundle: &RoutedBundle, hops: Hops) -> NextHops {
        if bundle.has_route { NextHops::Hops(hops) } else { NextHops::Everyone }
    }

    fn spreads(&self) -> bool {
        true
    }
}
