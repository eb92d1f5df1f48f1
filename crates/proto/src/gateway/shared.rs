//! One endpoint with two users.

use super::config::Config;
use super::engine::Gateway;
use crate::engine::{Engine, Indication, Request};
use crate::joint::earlier;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{Both, Connections, ConnectionsIndication, ConnectionsRequest, Port, Programs};
use crate::time::Instant;
use std::collections::BTreeSet;

/// First number of the gateway's own flows.
const FIRST_CONNECTION: u64 = 1 << 63;

/// A [`Gateway`] and another user of the same endpoint, such as a convergence layer. The other user opens and closes the endpoint.
///
/// Flows to the port of the other user are its own, all others the gateway's. Own flows are told apart by their numbers: those of the
/// gateway begin at 2^63.
#[derive(Debug)]
pub struct Shared<U, L> {
    /// The other user.
    pub user: U,
    /// The gateway.
    pub gateway: Gateway,
    /// The endpoint.
    pub lower: L,
    user_port: u16,
    /// Flows from the peer that are the gateway's.
    flows: BTreeSet<u64>,
}

impl<U, L> Shared<U, L>
where
    U: Engine<Below = Connections>,
    L: Engine<Above = Connections>,
{
    /// Puts both users above an endpoint. `user_port`: port of the other user.
    pub fn new(user: U, user_port: u16, config: Config, lower: L, rng: Rng) -> Self {
        let gateway = Gateway::new(config, FIRST_CONNECTION, rng);
        Shared { user, gateway, lower, user_port, flows: BTreeSet::new() }
    }

    /// Passes an indication to the users that it concerns.
    fn rise(&mut self, now: Instant, indication: ConnectionsIndication) {
        let is_gateways = match &indication {
            ConnectionsIndication::Up { .. } | ConnectionsIndication::Down { .. } => {
                if matches!(indication, ConnectionsIndication::Down { .. }) {
                    self.flows.clear();
                }
                self.gateway.handle_indication(now, indication.clone());
                false
            }
            ConnectionsIndication::Room { connection, .. }
            | ConnectionsIndication::Acknowledged { connection, .. }
            | ConnectionsIndication::Sent { connection }
            | ConnectionsIndication::Failed { connection, .. } => *connection >= FIRST_CONNECTION,
            ConnectionsIndication::Begin { incoming, properties } => {
                let is_gateways = properties.destination_port != self.user_port;
                if is_gateways {
                    self.flows.insert(*incoming);
                }
                is_gateways
            }
            ConnectionsIndication::Data { incoming, last: true, .. }
            | ConnectionsIndication::Lost { incoming } => self.flows.remove(incoming),
            ConnectionsIndication::Data { incoming, .. } | ConnectionsIndication::Gap { incoming, .. } => {
                self.flows.contains(incoming)
            }
        };
        match is_gateways {
            true => self.gateway.handle_indication(now, indication),
            false => self.user.handle_indication(now, indication),
        }
    }

    /// Takes the next request of a user.
    fn next_request(&mut self, now: Instant) -> Option<ConnectionsRequest> {
        if let Some(request) = self.user.poll_request(now) {
            return Some(request);
        }
        let request = self.gateway.poll_request(now)?;
        if let ConnectionsRequest::Refuse { incoming, .. } = &request {
            self.flows.remove(incoming);
        }
        Some(request)
    }
}

impl<U, L> Engine for Shared<U, L>
where
    U: Engine<Below = Connections>,
    L: Engine<Above = Connections>,
{
    type Above = Both<U::Above, Programs>;
    type Below = L::Below;

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        match request {
            Port::First(request) => self.user.handle_request(now, request),
            Port::Second(request) => self.gateway.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        self.lower.handle_indication(now, indication);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.lower.poll_timeout().is_some_and(|at| at <= now) {
            self.lower.handle_timeout(now);
        }
        if self.user.poll_timeout().is_some_and(|at| at <= now) {
            self.user.handle_timeout(now);
        }
        if self.gateway.poll_timeout().is_some_and(|at| at <= now) {
            self.gateway.handle_timeout(now);
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        loop {
            while let Some(indication) = self.lower.poll_indication(now) {
                self.rise(now, indication);
            }
            if let Some(indication) = self.user.poll_indication(now) {
                return Some(Port::First(indication));
            }
            if let Some(indication) = self.gateway.poll_indication(now) {
                return Some(Port::Second(indication));
            }
            let request = self.next_request(now)?;
            self.lower.handle_request(now, request);
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        self.lower.poll_request(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let users = earlier(self.user.poll_timeout(), self.gateway.poll_timeout());
        earlier(self.lower.poll_timeout(), users)
    }

    fn finished(&self) -> bool {
        self.user.finished() && self.gateway.finished() && self.lower.finished()
    }

    fn observe(&self, view: &mut Observation) {
        self.user.observe(view);
        self.gateway.observe(view);
        self.lower.observe(view);
    }
}
