//! A station for users that send no datagrams.

use super::Station;
use crate::engine::{Engine, Indication, Request};
use crate::service::{Frames, LinkId, Many, Packets, Port};
use crate::time::Instant;

/// A [`Station`] of which only the links are used: received UI frames are dropped.
#[derive(Debug)]
pub struct LinksOnly(pub Station);

impl Engine for LinksOnly {
    type Above = Many<LinkId, Packets>;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        self.0.handle_request(now, Port::First(request));
    }
    fn handle_indication(&mut self, now: Instant, indication: Indication<Frames>) {
        self.0.handle_indication(now, indication);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        loop {
            if let Port::First(said) = self.0.poll_indication(now)? {
                return Some(said);
            }
        }
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<Frames>> {
        self.0.poll_request(now)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}
