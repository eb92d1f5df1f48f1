//! All neighbours of a node: those over TCP and UDP, and those over TNCs.

use crate::links::Sessions;
use crate::radio::{LineId, Radios};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::earlier;
use longwire_proto::service::{Both, Bundles, Datagrams, LinkId, Many, Port, Stream};
use longwire_proto::time::Instant;

/// The sessions of a node, each where its link goes.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// Over TCP and UDP.
    pub(crate) internet: Sessions,
    /// Over TNCs.
    pub(crate) radios: Radios,
}

impl Engine for Neighbours {
    type Above = Many<LinkId, Bundles>;
    type Below = Both<Many<LinkId, Both<Stream, Datagrams>>, Many<LineId, Stream>>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        match self.radios.owns(id) {
            true => self.radios.handle_request(now, (id, request)),
            false => self.internet.handle_request(now, (id, request)),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            Port::First(said) => self.internet.handle_indication(now, said),
            Port::Second(said) => self.radios.handle_indication(now, said),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.internet.poll_timeout().is_some_and(|at| at <= now) {
            self.internet.handle_timeout(now);
        }
        if self.radios.poll_timeout().is_some_and(|at| at <= now) {
            self.radios.handle_timeout(now);
        }
    }

    fn poll_indication(&mut self) -> Option<Indication<Self::Above>> {
        self.internet.poll_indication().or_else(|| self.radios.poll_indication())
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        let internet = self.internet.poll_request(now).map(Port::First);
        internet.or_else(|| self.radios.poll_request(now).map(Port::Second))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.internet.poll_timeout(), self.radios.poll_timeout())
    }
}
