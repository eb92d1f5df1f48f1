//! Incoming connections: how many peers may open, and which one is replaced when there are too many.
//!
//! ```text
//!   new connection --> too many from its address? --> replaces the oldest of them without a session, or is refused
//!                  --> too many in total?         --> replaces, in this order: the oldest without a session; one of the
//!                                                     address with the most, if that has two more than the new one's; the
//!                                                     one whose session has been idle longest; or is refused
//! ```
//!
//! So peers that connect and send nothing keep no other peer out, and neither do a few addresses, whatever they send: a session
//! that carries bundles is replaced by one of another address only if its own address has more of them. Refused bundles do not
//! count as carried.
//! An address is an IPv4 address, or the first 64 bits of an IPv6 address: one customer has all of these.
//!
//! Units: connections.

use crate::config::StreamSettings;
use crate::tower::identities::CallerRefusal;
use crate::view;
use longwire_proto::service::LinkId;
use longwire_proto::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// An incoming connection.
#[derive(Clone, Debug)]
struct Caller {
    host: String,
    /// Payload bytes that the session had carried at the last check.
    carried: u64,
    /// Transfers refused to the peer up to the last check.
    refused: u64,
    /// Time of the last check at which the session had carried bundles.
    active: Instant,
}

/// All incoming connections.
#[derive(Debug, Default)]
pub(crate) struct CallerTable {
    callers: BTreeMap<LinkId, Caller>,
    /// Connections without a session. Later connections have higher IDs.
    opening: BTreeSet<LinkId>,
    by_host: BTreeMap<String, BTreeSet<LinkId>>,
    counters: view::Callers,
}

/// Decision on a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerAdmission {
    /// Accepts the connection.
    Admit,
    /// Accepts the connection and closes this one.
    InPlaceOf(LinkId),
    /// Refuses the connection.
    Refuse,
}

impl CallerTable {
    /// Decides on a new connection from this address.
    pub(crate) fn admit(&mut self, now: Instant, address: &str, limits: &StreamSettings) -> CallerAdmission {
        self.counters.arrived += 1;
        let admission = self.judge(now, &host_of(address), limits);
        match admission {
            CallerAdmission::Admit => {}
            CallerAdmission::InPlaceOf(_) => self.counters.gave_way += 1,
            CallerAdmission::Refuse => self.counters.turned_away += 1,
        }
        admission
    }

    fn judge(&self, now: Instant, host: &str, limits: &StreamSettings) -> CallerAdmission {
        let of_host = self.by_host.get(host);
        if of_host.is_some_and(|links| links.len() >= limits.callers_per_address_max) {
            let mut links = of_host.into_iter().flatten();
            return match links.find(|link| self.opening.contains(link)) {
                Some(link) => CallerAdmission::InPlaceOf(*link),
                None => CallerAdmission::Refuse,
            };
        }
        if self.callers.len() < limits.callers_max {
            return CallerAdmission::Admit;
        }
        if let Some(link) = self.opening.first() {
            return CallerAdmission::InPlaceOf(*link);
        }
        let own = of_host.map_or(0, BTreeSet::len);
        let most = self.by_host.values().max_by_key(|links| links.len());
        if let Some(links) = most.filter(|links| links.len() > own + 1) {
            let idlest = links.iter().min_by_key(|link| self.callers.get(link).map(|caller| caller.active));
            return idlest.map_or(CallerAdmission::Refuse, |link| CallerAdmission::InPlaceOf(*link));
        }
        let idlest = self.callers.iter().min_by_key(|(_, caller)| caller.active);
        match idlest.filter(|(_, caller)| now.saturating_since(caller.active) >= limits.caller_idle) {
            Some((link, _)) => CallerAdmission::InPlaceOf(*link),
            None => CallerAdmission::Refuse,
        }
    }

    /// Adds an accepted connection.
    pub(crate) fn enter(&mut self, now: Instant, link: LinkId, address: &str) {
        let host = host_of(address);
        self.by_host.entry(host.clone()).or_default().insert(link);
        self.opening.insert(link);
        self.callers.insert(link, Caller { host, carried: 0, refused: 0, active: now });
    }

    /// The session of a connection is established.
    pub(crate) fn up(&mut self, now: Instant, link: LinkId) {
        self.opening.remove(&link);
        if let Some(caller) = self.callers.get_mut(&link) {
            caller.active = now;
        }
    }

    /// The session of a connection has ended: the connection may be replaced.
    pub(crate) fn down(&mut self, link: LinkId) {
        if self.callers.contains_key(&link) {
            self.opening.insert(link);
        }
    }

    /// The connection is closed.
    pub(crate) fn leave(&mut self, link: LinkId) {
        let Some(caller) = self.callers.remove(&link) else { return };
        self.opening.remove(&link);
        if let Some(links) = self.by_host.get_mut(&caller.host) {
            links.remove(&link);
            if links.is_empty() {
                self.by_host.remove(&caller.host);
            }
        }
    }

    /// Checks which sessions carry bundles, from the payload bytes of each session and the transfers refused to it. Fewer than 64
    /// bytes per check do not count, and neither do bytes that came along with a refusal.
    pub(crate) fn look(&mut self, now: Instant, carried: impl Fn(LinkId) -> (u64, u64)) {
        const SOME_BYTES: u64 = 64;
        for (link, caller) in &mut self.callers {
            let (sum, refused) = carried(*link);
            if refused > caller.refused {
                (caller.carried, caller.refused) = (sum, refused);
            } else if sum >= caller.carried + SOME_BYTES {
                caller.carried = sum;
                caller.active = now;
            }
        }
    }

    /// Counts a peer whose session was refused.
    pub(crate) fn refused(&mut self, refusal: CallerRefusal) {
        let counters = &mut self.counters;
        *match refusal {
            CallerRefusal::Own => &mut counters.refused_own_id,
            CallerRefusal::Unknown => &mut counters.refused_unknown,
            CallerRefusal::Unproven => &mut counters.refused_unproven,
            CallerRefusal::Taken(_) => &mut counters.refused_taken,
        } += 1;
    }

    /// Counters for the status.
    pub(crate) fn view(&self) -> view::Callers {
        view::Callers {
            now: self.callers.len() as u64,
            opening: self.opening.len() as u64,
            ..self.counters.clone()
        }
    }
}

/// Address that limits count as one peer, from the text of an address and port.
pub(crate) fn host_of(address: &str) -> String {
    match address.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(ip)) => ip.to_string(),
        Ok(IpAddr::V6(ip)) => {
            let [a, b, c, d, ..] = ip.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LIMITS: StreamSettings = StreamSettings {
        queue_bytes: 1,
        window_bytes: 1,
        callers_max: 4,
        callers_per_address_max: 2,
        caller_idle: Duration::from_secs(60),
        received_bytes_max: 1,
        queued_bytes_max: 1,
        stall: Duration::from_secs(1),
        udp_receive_buffer_bytes: 1,
    };

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn link(number: u32) -> LinkId {
        LinkId(LinkId::FIRST_INCOMING + number)
    }

    #[test]
    fn who_says_nothing_gives_way_and_who_carries_bundles_does_not() {
        let mut callers = CallerTable::default();
        for number in 0..4 {
            let address = format!("10.0.0.{number}:9");
            assert_eq!(callers.admit(at(0), &address, &LIMITS), CallerAdmission::Admit);
            callers.enter(at(0), link(number), &address);
        }
        callers.up(at(1), link(0));
        assert_eq!(callers.admit(at(1), "10.0.1.1:9", &LIMITS), CallerAdmission::InPlaceOf(link(1)));
        (1..4).for_each(|number| callers.up(at(2), link(number)));
        assert_eq!(callers.admit(at(3), "10.0.1.1:9", &LIMITS), CallerAdmission::Refuse);
        // Number 2 has carried nothing for a minute; no other connection has been idle longer.
        callers.look(at(50), |of| if of == link(2) { (10, 0) } else { (1000, 0) });
        assert_eq!(callers.admit(at(61), "10.0.1.1:9", &LIMITS), CallerAdmission::Refuse);
        assert_eq!(callers.admit(at(62), "10.0.1.1:9", &LIMITS), CallerAdmission::InPlaceOf(link(2)));
        // A connection whose session has ended is replaced first.
        callers.down(link(3));
        assert_eq!(callers.admit(at(62), "10.0.1.1:9", &LIMITS), CallerAdmission::InPlaceOf(link(3)));
        callers.leave(link(3));
        assert_eq!(callers.admit(at(62), "10.0.1.1:9", &LIMITS), CallerAdmission::Admit);
        let view = callers.view();
        assert_eq!((view.now, view.opening), (3, 0));
        assert_eq!((view.arrived, view.gave_way, view.turned_away), (10, 3, 2));
    }

    #[test]
    fn few_addresses_at_work_do_not_keep_others_out() {
        let mut callers = CallerTable::default();
        for number in 0..4 {
            let address = format!("10.0.0.{}:{number}", number % 2);
            callers.enter(at(0), link(number), &address);
            callers.up(at(0), link(number));
        }
        callers.look(at(5), |of| (1000 * u64::from(of.0), 0));
        callers.look(at(10), |of| (if of == link(1) { 0 } else { 1 << 60 }, 0));
        // All are active; of the address with two, the one that has been idle longest is replaced.
        assert_eq!(callers.admit(at(10), "10.0.1.1:9", &LIMITS), CallerAdmission::InPlaceOf(link(1)));
        callers.leave(link(1));
        callers.enter(at(10), link(4), "10.0.1.1:9");
        callers.up(at(10), link(4));
        // The new connection would make two of its address, as many as the other address has.
        assert_eq!(callers.admit(at(10), "10.0.1.1:10", &LIMITS), CallerAdmission::Refuse);
        assert!(matches!(callers.admit(at(10), "10.0.2.1:9", &LIMITS), CallerAdmission::InPlaceOf(_)));
    }

    #[test]
    fn what_is_refused_is_not_carried() {
        let mut callers = CallerTable::default();
        for number in 0..4 {
            callers.enter(at(0), link(number), &format!("10.0.0.{number}:9"));
            callers.up(at(0), link(number));
        }
        // Number 2 has sent as much as the others each time, and all of it was refused.
        for second in [25, 50, 75] {
            let carried = |of| (1000 * second, if of == link(2) { second } else { 0 });
            callers.look(at(second), carried);
        }
        assert_eq!(callers.admit(at(75), "10.0.1.1:9", &LIMITS), CallerAdmission::InPlaceOf(link(2)));
    }

    #[test]
    fn an_address_has_a_part_of_the_places() {
        let mut callers = CallerTable::default();
        for (number, port) in [(0, 1), (1, 2)] {
            callers.enter(at(0), link(number), &format!("[2001:db8::{port}]:{port}"));
        }
        // The next address of the same customer.
        assert_eq!(callers.admit(at(0), "[2001:db8::99]:9", &LIMITS), CallerAdmission::InPlaceOf(link(0)));
        callers.up(at(1), link(0));
        assert_eq!(callers.admit(at(1), "[2001:db8::99]:9", &LIMITS), CallerAdmission::InPlaceOf(link(1)));
        callers.up(at(1), link(1));
        assert_eq!(callers.admit(at(1), "[2001:db8::99]:9", &LIMITS), CallerAdmission::Refuse);
        assert_eq!(callers.admit(at(1), "[2001:db8:1::99]:9", &LIMITS), CallerAdmission::Admit);
        // An IPv4-mapped IPv6 address counts as the IPv4 address.
        assert_eq!(host_of("[::ffff:10.0.0.1]:7"), host_of("10.0.0.1:8"));
    }
}
