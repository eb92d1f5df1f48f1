//! Log of TLS handshakes and failures for operators.

use crate::tls::TlsFailure;
use crate::view;
use longwire_proto::service::LinkId;
use longwire_proto::time::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Number of failures kept with their text.
const RECENT_MAX: usize = 16;

/// Counts of handshakes and failures.
#[derive(Debug, Default)]
pub(crate) struct TlsLog {
    secured: u64,
    /// Failures by kind; the number of kinds is fixed.
    troubles: BTreeMap<&'static str, u64>,
    recent: VecDeque<(Instant, String, String)>,
    /// Last failure of each configured link.
    last: BTreeMap<LinkId, String>,
}

impl TlsLog {
    /// Counts a completed handshake.
    pub(crate) fn secured(&mut self) {
        self.secured += 1;
    }

    /// Clears the failure of a link that is up or was removed.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.last.remove(&link);
    }

    /// Records a failure on a link, with the address of the peer.
    pub(crate) fn trouble(&mut self, now: Instant, link: LinkId, address: &str, trouble: &TlsFailure) {
        *self.troubles.entry(trouble.kind()).or_default() += 1;
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.push_front((now, address.to_owned(), trouble.to_string()));
        if !link.is_incoming() {
            self.last.insert(link, trouble.to_string());
        }
    }

    /// Returns the last failure of a link since it was up.
    pub(crate) fn of(&self, link: LinkId) -> Option<&str> {
        self.last.get(&link).map(String::as_str)
    }

    /// Returns all counts and recent failures.
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
