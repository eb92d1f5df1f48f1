//! Epidemic routing: every node that is met gets a copy.
//!
//! Nodes do not exchange lists of their bundles, so the rules need none: a bundle is never sent back to the
//! node that it came from, it is sent once to each node (which is recorded with the bundle, also over
//! restarts), and a node that has or had it refuses it. If a route is configured for the destination, the
//! bundle is sent once along that route instead.

use super::table::Hops;
use super::{NextHops, RoutedBundle, Router};

/// Router that copies a bundle to every node that is met.
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
