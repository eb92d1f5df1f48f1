//! State of each link, as the task has seen it.

use super::callers::CallerTable;
use super::tls_log::TlsLog;
use super::{EngineParts as _, Task};
use crate::tower::neighbours::RefusedCaller;
use crate::view::Event;
use longwire_proto::service::{
    Contact, DownReason, LinkId, ManagementIndication, ManagementRequest, NextHop,
};
use longwire_proto::time::Instant;
use std::collections::BTreeMap;

/// State of a link, for the status.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkObservation {
    pub(super) up: bool,
    pub(super) peer: Option<String>,
    /// Node ID of the neighbour now or when the link was last up.
    pub(super) led_to: Option<String>,
    pub(super) down: Option<DownReason>,
    /// Time at which the link came up or went down; for a link that was never up, the first failed attempt.
    pub(super) since: Instant,
    /// True if the link was up before or is now.
    pub(super) was_up: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LinkStates {
    pub(super) seen: BTreeMap<LinkId, LinkObservation>,
    /// Contact windows passed to the agent.
    pub(super) planned: BTreeMap<LinkId, Vec<Contact>>,
    pub(super) callers: CallerTable,
    pub(super) tls: TlsLog,
}

impl Task {
    /// Ends the connections that are encrypted on amateur radio bands.
    pub(super) fn end_encrypted_amateurs(&mut self, now: Instant) {
        for link in std::mem::take(&mut self.engines.neighbours_mut().cut) {
            if self.uses_tls(link) {
                self.end(now, link);
            }
        }
    }

    pub(super) fn see_refused(&mut self, now: Instant) {
        for RefusedCaller { link, claim, refusal } in
            std::mem::take(&mut self.engines.neighbours_mut().refused)
        {
            self.link_states.callers.refused(refusal);
            let address = self.address(link).unwrap_or_default().to_owned();
            let (reason, why) = (refusal.word().to_owned(), refusal.words().to_owned());
            let peer = claim.as_deref().map(plain);
            self.note(now, Event::CallerRefused { address, peer, reason, why });
        }
    }

    /// Records an indication of the agent to its operator.
    pub(super) fn see(&mut self, now: Instant, indication: &ManagementIndication) {
        let closed = match indication {
            ManagementIndication::Link { link, peer, down: Some(reason) } => {
                let down = Some(self.reason_of(*link, *reason));
                Some(ManagementIndication::Link { link: *link, peer: peer.clone(), down })
            }
            _ => None,
        };
        let indication = closed.as_ref().unwrap_or(indication);
        self.record_management(now, indication);
        let ManagementIndication::Link { link, peer, down } = indication else { return };
        match down {
            None => self.link_states.callers.up(now, *link),
            Some(_) => self.link_states.callers.down(*link),
        }
        let known = self.engines.neighbours().links.get(*link).is_some();
        if !known && (down.is_some() || !link.is_incoming()) {
            // A closed incoming connection, or a link that is not in the configuration now.
            self.link_states.seen.remove(link);
            return;
        }
        if down.is_none() {
            self.link_states.tls.forget(*link);
        }
        let peer = peer.as_deref().map(plain);
        if let Some(peer) = peer.as_deref().filter(|_| down.is_none()) {
            self.spare_links_beside(*link, peer);
        }
        let before = self.link_states.seen.remove(link);
        let up = down.is_none();
        // A link that fails to connect repeatedly has been down all the time.
        let since = before.as_ref().filter(|before| !before.up && !up).map_or(now, |before| before.since);
        let was_up = up || before.as_ref().is_some_and(|before| before.was_up);
        let led_to = peer.clone().or(before.and_then(|before| before.led_to));
        self.link_states.seen.insert(*link, LinkObservation { up, peer, led_to, down: *down, since, was_up });
    }

    /// Passes the next contact windows to the agent, where they have changed.
    pub(super) fn plan(&mut self, now: Instant) {
        let Some((began_dtn_ms, dtn_ms)) = self.clock.began_and_now() else { return };
        let windows: Vec<(LinkId, Vec<Contact>)> = {
            let links = &self.engines.neighbours().links;
            let config = &self.configuration.config;
            let of = |link| config.windows(link, began_dtn_ms, dtn_ms).unwrap_or_default();
            links.iter().map(|(id, known)| (id, of(&known.link))).collect()
        };
        for (link, contacts) in windows {
            let told = self.link_states.planned.get(&link).map_or(&[][..], |told| &told[..]);
            if told != contacts {
                self.link_states.planned.insert(link, contacts.clone());
                self.ask(now, ManagementRequest::SetContacts { link, contacts });
            }
        }
    }

    /// Converts a route for the agent.
    pub(super) fn route(&self, route: &crate::config::RouteSettings) -> Option<ManagementRequest> {
        Some(ManagementRequest::SetRoute {
            pattern: route.to.clone(),
            via: self.hop(&route.via)?,
            cost: route.cost,
        })
    }

    /// Finds a link by its name, or else a node by its node ID.
    pub(super) fn hop(&self, via: &str) -> Option<NextHop> {
        let links = &self.engines.neighbours().links;
        match links.named(via) {
            Some(link) => Some(NextHop::Link(link)),
            None => via.contains(':').then(|| NextHop::Node(via.to_owned())),
        }
    }
}

/// Makes the node ID that a peer claims safe to display: limited length, no control characters.
pub(crate) fn plain(name: &str) -> String {
    const CHARACTERS_MAX: usize = 128;
    name.chars().take(CHARACTERS_MAX).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
}
