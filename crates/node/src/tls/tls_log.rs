//! What TLS did, for operators.

use super::TlsFailure;
use crate::view;
use longwire_proto::service::LinkId;
use longwire_proto::time::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Troubles that are kept with their words.
const RECENT_MAX: usize = 16;

/// Handshakes and what went wrong with them.
#[derive(Debug, Default)]
pub(crate) struct TlsLog {
    secured: u64,
    /// By kind, of which there is a fixed number.
    troubles: BTreeMap<&'static str, u64>,
    recent: VecDeque<(Instant, String, String)>,
    /// The last trouble of each link of the configuration.
    last: BTreeMap<LinkId, String>,
}

impl TlsLog {
    /// A handshake is done.
    pub(crate) fn secured(&mut self) {
        self.secured += 1;
    }

    /// A link is up.
    pub(crate) fn up(&mut self, link: LinkId) {
        self.last.remove(&link);
    }

    /// The link is no more.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.last.remove(&link);
    }

    /// Something went wrong on this link, with the peer there.
    pub(crate) fn trouble(&mut self, now: Instant, link: LinkId, address: &str, trouble: &TlsFailure) {
        *self.troubles.entry(trouble.kind()).or_default() += 1;
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.push_front((now, address.to_owned(), trouble.to_string()));
        if !link.is_incoming() {
            self.last.insert(link, trouble.to_string());
        }
    }

    /// The last trouble of a link, until it is up.
    pub(crate) fn of(&self, link: LinkId) -> Option<&str> {
        self.last.get(&link).map(String::as_str)
    }

    /// All of it.
    pub(crate) fn view(&self, now: Instant) -> view::Tls {
        let recent = self.recent.iter().map(|(at, peer, what)| view::TlsTrouble {
            ago_s: now.saturating_since(*at).as_secs_f64(),
            peer: peer.clone(),
            what: what.clone(),
        });
        let troubles = self.troubles.iter().map(|(kind, count)| ((*kind).to_owned(), *count));
        view::Tls { secured: self.secured, troubles: troubles.collect(), recent: recent.collect() }
    }
}
