//! Bundles that were refused because they break a rule: the rule, the place in the bundle, and the peer; and datagrams that are
//! no packets of the protocol of their link.
//!
//! A peer that sends one such bundle or datagram usually sends more, so they are counted by peer and rule. The first one is
//! reported in the log and as an event; `status` shows the count.
//!
//! Limits: [`ENTRIES_MAX`] peers and rules, of which the address with the most loses its oldest for a new one, and
//! [`DATAGRAMS_MAX`] hosts with datagrams; one line in [`BETWEEN_LINES`] about each.

use super::callers::host_of;
use super::event_recording::refuse_word;
use super::link_states::plain;
use super::{EngineParts as _, Task};
use crate::view::{self, Event};
use longwire_proto::service::{Breach, LinkId, PeerId, RefuseReason};
use longwire_proto::time::{Duration, Instant};
use longwire_towers::{CARRIERS, Medium};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum peers and rules in the log.
const ENTRIES_MAX: usize = 64;
/// Maximum hosts in the log whose datagrams are those of another protocol.
const DATAGRAMS_MAX: usize = 16;
/// Minimum time between two lines in the log about bundles, and between two about datagrams, so that a peer with ever new node
/// IDs cannot fill a disk.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// A peer, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefusedPeer {
    pub(crate) link: String,
    /// Node ID that it claims.
    pub(crate) peer: Option<String>,
    pub(crate) address: Option<String>,
}

impl RefusedPeer {
    /// Key of which an attacker has few: its address without the port, or the link to which any station may connect.
    fn host(&self) -> String {
        self.address.as_deref().map_or_else(|| self.link.clone(), host_of)
    }
}

impl fmt::Display for RefusedPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.peer.as_deref().unwrap_or("a peer without a node ID");
        write!(f, "{peer} (link `{}`", self.link)?;
        match &self.address {
            Some(address) => write!(f, ", {address})"),
            None => f.write_str(")"),
        }
    }
}

/// Thing that was refused, and the broken rule.
#[derive(Clone, Debug)]
enum Refusal {
    Bundle {
        reason: RefuseReason,
        /// Latest breach of this rule.
        breach: Breach,
        accept: Vec<&'static str>,
    },
    Datagram {
        /// Protocol of the link.
        expected: &'static str,
        /// Protocol of which the latest datagram probably is.
        found: Option<&'static str>,
    },
}

impl Refusal {
    /// Returns true if the same rule is broken.
    fn is_alike(&self, other: &Refusal) -> bool {
        match (self, other) {
            (Refusal::Bundle { breach, .. }, Refusal::Bundle { breach: other, .. }) => {
                breach.error == other.error
            }
            (Refusal::Datagram { .. }, Refusal::Datagram { .. }) => true,
            _ => false,
        }
    }

    fn is_datagram(&self) -> bool {
        matches!(self, Refusal::Datagram { .. })
    }

    /// Reason, as an identifier.
    fn word(&self) -> &'static str {
        match self {
            Refusal::Bundle { reason, .. } => refuse_word(*reason),
            Refusal::Datagram { .. } => view::Refused::OTHER_PROTOCOL,
        }
    }

    fn breach(&self) -> Option<&Breach> {
        if let Refusal::Bundle { breach, .. } = self { Some(breach) } else { None }
    }

    fn accept(&self) -> &[&'static str] {
        if let Refusal::Bundle { accept, .. } = self { accept } else { &[] }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Bundle { breach, .. } => breach.fmt(f),
            Refusal::Datagram { expected, found: Some(found) } => {
                write!(f, "no packet of `{expected}`, but probably one of `{found}`")
            }
            Refusal::Datagram { expected, found: None } => write!(f, "no packet of `{expected}`"),
        }
    }
}

#[derive(Debug)]
struct RefusalEntry {
    from: RefusedPeer,
    /// Host of the sender.
    host: String,
    /// Latest refusal by this rule.
    refusal: Refusal,
    count: u64,
    last: Instant,
    is_told: bool,
}

/// Refused bundles and datagrams by peer and rule.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    entries: Vec<RefusalEntry>,
    /// Time of the last line about a bundle, and about a datagram.
    lines_at: [Option<Instant>; 2],
}

impl RefusalLog {
    /// Counts a refused bundle or datagram. Returns the line to report; `None` if this peer and rule were reported before, or
    /// another line was reported too recently.
    fn add(&mut self, now: Instant, from: RefusedPeer, refusal: Refusal) -> Option<String> {
        let host = from.host();
        let same = |entry: &RefusalEntry| {
            entry.host == host && entry.from.peer == from.peer && entry.refusal.is_alike(&refusal)
        };
        let is_datagram = refusal.is_datagram();
        let index = self.entries.iter().position(same).unwrap_or_else(|| {
            self.make_place(is_datagram);
            let (from, host, refusal) = (RefusedPeer::default(), host.clone(), refusal.clone());
            self.entries.push(RefusalEntry { from, host, refusal, count: 0, last: now, is_told: false });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        entry.count += 1;
        entry.last = now;
        (entry.from, entry.refusal) = (from, refusal);
        let line_at = &mut self.lines_at[usize::from(is_datagram)];
        if entry.is_told || line_at.is_some_and(|at| now.saturating_since(at) < BETWEEN_LINES) {
            return None;
        }
        entry.is_told = true;
        *line_at = Some(now);
        Some(match entry.refusal {
            Refusal::Bundle { .. } => format!("a bundle from {} is refused: {}", entry.from, entry.refusal),
            Refusal::Datagram { .. } => format!("a datagram from {} is {}", entry.from, entry.refusal),
        })
    }

    /// Makes space for an entry: removes the oldest one of the address with the most. Addresses of datagrams can be forged, so
    /// datagrams displace only each other.
    fn make_place(&mut self, is_datagram: bool) {
        let of_kind = || {
            let entries = self.entries.iter().enumerate();
            entries.filter(|(_, entry)| entry.refusal.is_datagram() == is_datagram)
        };
        let entries_max = if is_datagram { DATAGRAMS_MAX } else { ENTRIES_MAX };
        if of_kind().count() < entries_max {
            return;
        }
        let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, entry) in of_kind() {
            *of_host.entry(&entry.host).or_default() += 1;
        }
        let most = of_host.values().copied().max();
        let candidates = of_kind().filter(|(_, entry)| of_host.get(&*entry.host).copied() == most);
        if let Some((oldest, _)) = candidates.min_by_key(|(_, entry)| entry.last) {
            self.entries.remove(oldest);
        }
    }

    /// All entries, the latest first.
    pub(crate) fn view(&self, now: Instant) -> Vec<view::Refused> {
        let mut all: Vec<&RefusalEntry> = self.entries.iter().collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.last));
        let view = |entry: &RefusalEntry| view::Refused {
            link: entry.from.link.clone(),
            peer: entry.from.peer.clone(),
            address: entry.from.address.clone(),
            reason: entry.refusal.word().to_owned(),
            what: entry.refusal.to_string(),
            clause: entry.refusal.breach().and_then(Breach::clause).map(str::to_owned),
            block: entry.refusal.breach().and_then(|breach| breach.block).map(|block| block.to_string()),
            accept: names(entry.refusal.accept()),
            count: entry.count,
            last_s: now.saturating_since(entry.last).as_secs_f64(),
        };
        all.into_iter().map(view).collect()
    }
}

fn names(accept: &[&'static str]) -> Vec<String> {
    accept.iter().map(|name| (*name).to_owned()).collect()
}

/// Advice for the operator; `None` if no setting helps.
fn hint(accept: &[&'static str]) -> Option<String> {
    let list: Vec<String> = accept.iter().map(|name| format!("\"{name}\"")).collect();
    (!list.is_empty())
        .then(|| format!("to accept such bundles from this peer, set `accept = [{}]`", list.join(", ")))
}

impl Task {
    /// Records that a transfer was refused to a peer.
    pub(super) fn record_refused(
        &mut self,
        now: Instant,
        link: LinkId,
        reason: RefuseReason,
        breach: Option<Breach>,
        accept: &[&'static str],
    ) {
        let from = self.sender_over(link);
        let line = breach.and_then(|breach| {
            self.refusals.add(now, from.clone(), Refusal::Bundle { reason, breach, accept: accept.to_vec() })
        });
        if let Some(line) = &line {
            tracing::warn!(target: "peers", hint = hint(accept), "{line}");
        }
        if line.is_some() || self.recording.bundles {
            self.note(
                now,
                Event::TransferRefused {
                    link: from.link,
                    reason: refuse_word(reason).to_owned(),
                    peer: from.peer,
                    address: from.address,
                    what: breach.map(|breach| breach.to_string()),
                    clause: breach.and_then(|breach| breach.clause()).map(str::to_owned),
                    block: breach.and_then(|breach| breach.block).map(|block| block.to_string()),
                    accept: names(accept),
                },
            );
        }
    }

    /// Records a datagram that is no packet of the protocol of its link.
    pub(super) fn record_unrecognised(&mut self, now: Instant, link: LinkId, peer: PeerId, bytes: &[u8]) {
        let Some(expected) = self.engines.neighbours().carrier(link).map(|about| about.name) else { return };
        let mut over_udp = CARRIERS.iter().filter(|carrier| carrier.about().media.contains(&Medium::Udp));
        let found = over_udp.find(|carrier| carrier.recognises(bytes)).map(|carrier| carrier.about().name);
        let sender = self.connections.sockets.sender(link, peer).map(|address| address.to_string());
        let from = self.sender_over(link);
        let from = RefusedPeer { address: sender.or(from.address), ..from };
        let refusal = Refusal::Datagram { expected, found };
        let Some(line) = self.refusals.add(now, from.clone(), refusal.clone()) else { return };
        tracing::warn!(target: "peers", hint = view::Refused::PROTOCOL_HINT, "{line}");
        self.note(
            now,
            Event::TransferRefused {
                link: from.link,
                reason: refusal.word().to_owned(),
                peer: from.peer,
                address: from.address,
                what: Some(refusal.to_string()),
                clause: None,
                block: None,
                accept: Vec::new(),
            },
        );
    }

    /// The peer at the other end of a link.
    fn sender_over(&self, link: LinkId) -> RefusedPeer {
        let identities = &self.engines.neighbours().identities;
        let seen = self.link_states.seen.get(&link).and_then(|seen| seen.peer.clone());
        let peer = identities.name(link).map_or(seen, |name| name.map(plain));
        RefusedPeer {
            link: self.link_name(link),
            peer: peer.or_else(|| identities.claims(link).map(plain)),
            address: self.address(link).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::codec::DecodeError;
    use longwire_proto::service::BlockPlace;

    fn from(peer: &str, address: &str) -> RefusedPeer {
        RefusedPeer { link: "caller 1".into(), peer: Some(peer.into()), address: Some(address.into()) }
    }

    fn breach(what: &'static str, number: u64) -> Breach {
        let block = BlockPlace { index: 1, block_type: Some(7), number: Some(number) };
        Breach::new(DecodeError::invalid(what, "RFC 9171 4.4.2"), block)
    }

    #[test]
    fn a_peer_and_a_rule_are_told_once_and_counted() {
        let mut refusals = RefusalLog::default();
        let now = Instant::ZERO + Duration::from_secs(60);
        let mut add = |now, what, number| {
            let from = from("dtn://mallory/", &format!("192.0.2.1:{number}"));
            let (reason, breach) = (RefuseReason::Retransmit, breach(what, number));
            refusals.add(now, from, Refusal::Bundle { reason, breach, accept: vec!["no-time-no-age"] })
        };
        assert_eq!(
            add(now, "an age", 2).as_deref(),
            Some(
                "a bundle from dtn://mallory/ (link `caller 1`, 192.0.2.1:2) is refused: an age is not valid (RFC 9171 4.4.2), in \
                 block 1 (type 7, number 2)"
            )
        );
        assert_eq!(add(now + BETWEEN_LINES, "an age", 3), None, "it was told");
        let half = Duration::from_nanos(BETWEEN_LINES.as_nanos() as u64 / 2);
        assert_eq!(add(now + half, "a hop", 2), None, "too early");
        assert!(add(now + BETWEEN_LINES, "a hop", 2).is_some(), "still to be told");
        let view = refusals.view(now + BETWEEN_LINES);
        assert_eq!(view.iter().map(|refused| refused.count).collect::<Vec<_>>(), [2, 2]);
        let age = view.iter().find(|refused| refused.what.starts_with("an age")).expect("it is kept");
        assert_eq!(age.clause.as_deref(), Some("RFC 9171 4.4.2"));
        assert_eq!(age.block.as_deref(), Some("block 1 (type 7, number 3)"), "the last one");
        assert_eq!(age.address.as_deref(), Some("192.0.2.1:3"));
        assert_eq!(age.accept, ["no-time-no-age"]);
    }

    #[test]
    fn datagrams_of_another_protocol_are_told_once_for_each_address_and_counted() {
        let mut refusals = RefusalLog::default();
        let now = Instant::ZERO + Duration::from_secs(60);
        let mut add = |now, address: &str, found| {
            let from =
                RefusedPeer { link: "ltp [::]:1113".into(), peer: None, address: Some(address.into()) };
            refusals.add(now, from, Refusal::Datagram { expected: "ltp", found })
        };
        assert_eq!(
            add(now, "192.0.2.1:5000", Some("ltp-fec")).as_deref(),
            Some(
                "a datagram from a peer without a node ID (link `ltp [::]:1113`, 192.0.2.1:5000) is no packet of `ltp`, but \
                 probably one of `ltp-fec`"
            )
        );
        let later = now + BETWEEN_LINES;
        assert_eq!(add(later, "192.0.2.1:5001", Some("ltp-fec")), None, "it was told");
        let other = add(later, "192.0.2.2:5000", None).expect("of another address");
        assert!(other.ends_with(" is no packet of `ltp`"), "{other}");
        let view = refusals.view(later);
        assert_eq!(view.iter().map(|refused| refused.count).collect::<Vec<_>>(), [2, 1]);
        let first = &view[0];
        assert_eq!((&first.reason[..], &first.clause), (view::Refused::OTHER_PROTOCOL, &None));
        assert_eq!(first.what, "no packet of `ltp`, but probably one of `ltp-fec`");
    }

    #[test]
    fn forged_addresses_of_datagrams_displace_no_bundle_and_silence_no_line() {
        let mut refusals = RefusalLog::default();
        let at = |number: u64| Instant::ZERO + Duration::from_secs(number);
        let bundle = |number| Refusal::Bundle {
            reason: RefuseReason::Retransmit,
            breach: breach("an age", number),
            accept: Vec::new(),
        };
        for number in 0..40 {
            refusals.add(at(0), from(&format!("dtn://friend-{number}/"), "192.0.2.1:4556"), bundle(2));
        }
        for number in 1..=1000 {
            let address = Some(format!("198.51.{}.{}:1", number / 256, number % 256));
            let from = RefusedPeer { link: "ltp [::]:1113".into(), peer: None, address };
            refusals.add(at(number), from, Refusal::Datagram { expected: "ltp", found: None });
        }
        let view = refusals.view(at(1000));
        assert_eq!(view.len(), 40 + DATAGRAMS_MAX);
        assert_eq!(view[0].address.as_deref(), Some("198.51.3.232:1"));
        let line = refusals.add(at(1000), from("dtn://mallory/", "192.0.2.9:4556"), bundle(2));
        assert!(
            line.is_some_and(|line| line.contains("dtn://mallory/")),
            "at the instant of a datagram's line"
        );
    }

    #[test]
    fn ever_new_names_of_one_address_displace_nobody_else() {
        let mut refusals = RefusalLog::default();
        let mut add = |now, peer: &str, address: &str| {
            let now = Instant::ZERO + Duration::from_secs(now);
            let (reason, breach) = (RefuseReason::Retransmit, breach("an age", 2));
            refusals.add(now, from(peer, address), Refusal::Bundle { reason, breach, accept: Vec::new() })
        };
        let mut lines = 0;
        add(0, "dtn://friend/", "192.0.2.1:4556");
        for number in 1..=1000 {
            lines += usize::from(add(number, &format!("dtn://mallory{number}/"), "192.0.2.66:1").is_some());
        }
        let view = refusals.view(Instant::ZERO);
        assert_eq!(view.len(), ENTRIES_MAX);
        assert_eq!(view[0].peer.as_deref(), Some("dtn://mallory1000/"));
        assert!(view.iter().any(|refused| refused.peer.as_deref() == Some("dtn://friend/")), "{view:?}");
        assert_eq!(lines, 100, "one in ten seconds");
    }
}
