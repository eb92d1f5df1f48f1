//! Breaks a working engine, to verify that the laws detect it.

use crate::engine::{Engine, Indication, forward};
use crate::time::Instant;
use std::collections::VecDeque;

/// Engine whose indications pass through `alter`, which returns none, one or several for each.
pub(crate) struct Flawed<E: Engine, F> {
    engine: E,
    alter: F,
    up: VecDeque<Indication<E::Above>>,
}

impl<E: Engine, F: FnMut(Indication<E::Above>) -> Vec<Indication<E::Above>>> Flawed<E, F> {
    pub(crate) fn new(engine: E, alter: F) -> Self {
        Flawed { engine, alter, up: VecDeque::new() }
    }
}

impl<E: Engine, F: FnMut(Indication<E::Above>) -> Vec<Indication<E::Above>>> Engine for Flawed<E, F> {
    type Above = E::Above;
    type Below = E::Below;

    forward!(engine: handle_request handle_indication handle_timeout poll_request poll_timeout);

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        while self.up.is_empty() {
            let indication = self.engine.poll_indication(now)?;
            self.up.extend((self.alter)(indication));
        }
        self.up.pop_front()
    }
}
