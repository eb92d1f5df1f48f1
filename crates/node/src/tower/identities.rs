//! Node IDs of sessions: which peers may connect, and which session has a node ID that several claim.
//!
//! ```text
//!   a peer has sent its node ID --> this node's own ID?               --> refused
//!                               --> not accepted by `peers`?          --> refused
//!                               --> another caller has the node ID?   --> refused; if only the new one is proven: replaces it
//!                               --> a configured link leads to that node? --> accepted without the node ID, unless proven
//! ```
//!
//! Bundles are sent to a node ID. Over plain TCP any peer can claim any node ID, so at most one caller has it at a time: the one
//! proven by TLS, or else the one whose session is established. A session without the node ID can send bundles to this node and
//! gets none. It gets the node ID when the configured link goes down, which makes no difference to bundles being sent. Two nodes
//! that connect to each other keep both sessions that way, and each sends over its own.
//!
//! A link over UDP has the node ID of the configuration, and reports no arrivals. So it is not used while there is a session over
//! TCP with that node: a configured link, a proven session, or a caller at the same address. A caller from another address may
//! be any node, and does not replace the link.
//!
//! A caller that is refused for another one may be the same node behind a connection that broke unnoticed; so the established
//! session sends a keep-alive, and ends if the peer does not answer. Where keep-alives are off, the kernel probes the peer's
//! kernel ([`crate::pumps::connect::prepare_caller`]).

use crate::config::{Config, PeerPolicy, is_loopback};
use longwire_proto::bp::agent::parse_node;
use longwire_proto::bp::eid::Eid;
use longwire_proto::service::LinkId;
use longwire_proto::tcpcl::{AdmissionDecision, CallerIdentity};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Reason for refusing a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerRefusal {
    /// It claims the node ID of this node.
    Own,
    /// Its node ID is not in the configuration.
    Unknown,
    /// Its node ID is not proven.
    Unproven,
    /// This session already has its node ID.
    Taken(LinkId),
}

impl CallerRefusal {
    /// Answer of the session to the caller.
    pub(crate) fn verdict(self) -> AdmissionDecision {
        match self {
            CallerRefusal::Own | CallerRefusal::Unknown | CallerRefusal::Unproven => {
                AdmissionDecision::Refuse
            }
            CallerRefusal::Taken(_) => AdmissionDecision::Busy,
        }
    }

    /// Reason, as an identifier.
    pub(crate) fn word(self) -> &'static str {
        match self {
            CallerRefusal::Own => "own_id",
            CallerRefusal::Unknown => "unknown",
            CallerRefusal::Unproven => "unproven",
            CallerRefusal::Taken(_) => "taken",
        }
    }

    /// Reason, as text, with what would help.
    pub(crate) fn words(self) -> &'static str {
        match self {
            CallerRefusal::Own => "it claims the node ID of this node",
            CallerRefusal::Unknown => {
                "its node ID is not in the configuration; add it with `[[peer]] node`, or accept every peer with `peers = \"any\"`"
            }
            CallerRefusal::Unproven => {
                "no certificate proves its node ID, and `peers = \"proven\"` requires one"
            }
            CallerRefusal::Taken(_) => "another session already has its node ID",
        }
    }
}

/// An established session that has or claims a node ID.
#[derive(Clone, Debug)]
struct NamedSession {
    node: Eid,
    said: String,
    proven: bool,
    /// True over TCP, where the peer acknowledges what has arrived.
    acknowledges: bool,
    /// True while the session has the node ID, which is where bundles are sent.
    named: bool,
    /// True once the session was told to end.
    ends: bool,
}

/// Change to other sessions when a session comes up or goes down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdentityChange {
    /// The session gets this node ID; `None` if it loses its node ID.
    Named(LinkId, Option<String>),
    /// The session must end.
    Ends(LinkId),
}

/// Node IDs that are configured, and those that sessions have and claim.
#[derive(Debug)]
pub(crate) struct Identities {
    own: Option<Eid>,
    peers: Option<PeerPolicy>,
    /// Node IDs in the configuration: sessions that claim one are accepted.
    known: Vec<String>,
    /// Neighbours that have announced themselves: sessions that claim one are accepted.
    discovered: BTreeSet<Eid>,
    /// Node IDs of `[[peer]]` entries: sessions that claim one are trusted from any address.
    trusted: Vec<String>,
    /// Address of the other end of each connection that has one.
    addresses: BTreeMap<LinkId, IpAddr>,
    sessions: BTreeMap<LinkId, NamedSession>,
    /// True if addresses or sessions have changed since the last call of [`new_beside_links`](Self::new_beside_links).
    changed: bool,
}

impl Identities {
    pub(crate) fn new(config: &Config) -> Self {
        Identities {
            own: config.node_id().ok(),
            peers: config.peers,
            known: config.known_nodes(),
            discovered: BTreeSet::new(),
            trusted: config.peer_nodes().collect(),
            addresses: BTreeMap::new(),
            sessions: BTreeMap::new(),
            changed: false,
        }
    }

    /// Takes over a reloaded configuration. Established sessions stay up.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.peers = config.peers;
        self.known = config.known_nodes();
        self.trusted = config.peer_nodes().collect();
        self.changed = true;
    }

    /// Sets the neighbours that have announced themselves. Established sessions stay up.
    pub(crate) fn discover(&mut self, neighbours: BTreeSet<Eid>) {
        self.discovered = neighbours;
    }

    /// Sets the address of the other end of a connection.
    pub(crate) fn set_address(&mut self, link: LinkId, address: IpAddr) {
        self.addresses.insert(link, address.to_canonical());
        self.changed = true;
    }

    /// Removes the address of a connection that has ended.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.addresses.remove(&link);
        self.changed = true;
    }

    /// Returns the callers whose address is known, with it.
    pub(crate) fn caller_addresses(&self) -> impl Iterator<Item = (LinkId, IpAddr)> {
        let callers = self.addresses.iter().filter(|(link, _)| link.is_incoming());
        callers.map(|(link, address)| (*link, *address))
    }

    /// Decides whether to accept a caller.
    pub(crate) fn judge(&self, link: LinkId, claim: CallerIdentity<'_>) -> Result<(), CallerRefusal> {
        let node = claim.node_id.and_then(parse_node);
        if node.is_some() && node == self.own {
            return Err(CallerRefusal::Own);
        }
        let peers = self.peers.unwrap_or(match self.addresses.get(&link) {
            Some(address) if !is_loopback(*address) => PeerPolicy::Known,
            // A connection from this machine, or a pipe within this process.
            Some(_) | None => PeerPolicy::Any,
        });
        match peers {
            PeerPolicy::Any => {}
            PeerPolicy::Known if claim.proven || node.as_ref().is_some_and(|node| self.is_known(node)) => {}
            PeerPolicy::Known => return Err(CallerRefusal::Unknown),
            PeerPolicy::Proven if claim.proven => {}
            PeerPolicy::Proven => return Err(CallerRefusal::Unproven),
        }
        let holder = node.as_ref().and_then(|node| self.caller_named(node));
        match holder {
            Some((other, session)) if session.proven || !claim.proven => Err(CallerRefusal::Taken(other)),
            _ => Ok(()),
        }
    }

    /// True if the configuration contains this node, or it is a neighbour.
    fn is_known(&self, node: &Eid) -> bool {
        is_among(&self.known, node) || self.discovered.contains(node)
    }

    /// True if the configuration contains this node in a `[[peer]]`.
    pub(crate) fn is_trusted(&self, node: &Eid) -> bool {
        is_among(&self.trusted, node)
    }

    /// Caller that has this node ID.
    fn caller_named(&self, node: &Eid) -> Option<(LinkId, &NamedSession)> {
        let of_node = |(link, session): &(&LinkId, &NamedSession)| {
            link.is_incoming() && session.named && session.node == *node
        };
        self.sessions.iter().find(of_node).map(|(link, session)| (*link, session))
    }

    /// Adds an established session whose peer claims the node ID `said`. Returns true if it has that node ID, and the changes to
    /// make before.
    ///
    /// Callers are judged one after the other and may come up together, so the rules for two that claim one node ID apply here,
    /// too.
    pub(crate) fn up(
        &mut self,
        link: LinkId,
        said: &str,
        proven: bool,
        acknowledges: bool,
    ) -> (bool, Vec<IdentityChange>) {
        let Some(node) = parse_node(said) else { return (true, Vec::new()) };
        let holder = self.caller_named(&node).map(|(other, session)| (other, session.proven));
        let leaves = match holder.filter(|_| link.is_incoming()) {
            Some((_, other_is_proven)) if other_is_proven || !proven => Some(link),
            Some((other, _)) => Some(other),
            None => None,
        };
        let session = NamedSession {
            node: node.clone(),
            said: said.to_owned(),
            proven,
            acknowledges,
            named: false,
            ends: false,
        };
        self.sessions.insert(link, session);
        self.changed = true;
        if let Some(session) = leaves.and_then(|leaves| self.sessions.get_mut(&leaves)) {
            session.ends = true;
        }
        let mut changes = self.settle(&node);
        changes.retain(|change| !matches!(change, IdentityChange::Named(of, _) if *of == link));
        changes.extend(leaves.map(IdentityChange::Ends));
        (self.sessions.get(&link).is_some_and(|session| session.named), changes)
    }

    /// Removes a session. Returns the changes: other sessions may get its node ID.
    pub(crate) fn down(&mut self, link: LinkId) -> Vec<IdentityChange> {
        let Some(gone) = self.sessions.remove(&link) else { return Vec::new() };
        self.changed = true;
        self.settle(&gone.node)
    }

    /// Assigns this node ID to sessions and returns the changes: first the sessions that lose it.
    fn settle(&mut self, node: &Eid) -> Vec<IdentityChange> {
        let all = || self.sessions.iter().filter(move |(_, session)| session.node == *node && !session.ends);
        let is_called = all().any(|(link, session)| !link.is_incoming() && session.acknowledges);
        // A session that has the node ID keeps it.
        let best = |may: &dyn Fn(LinkId, &NamedSession) -> bool| {
            let callers = all().filter(|(link, session)| link.is_incoming() && may(**link, session));
            callers.min_by_key(|(link, session)| (!session.named, **link)).map(|(link, _)| *link)
        };
        let unproven = || best(&|link, _| !is_called && self.may_stand_for_datagrams(link, node));
        let caller = best(&|_, session| session.proven).or_else(unproven);
        let mut changes = Vec::new();
        for (link, session) in self.sessions.iter_mut().filter(|(_, session)| session.node == *node) {
            let named = match (link.is_incoming(), session.acknowledges) {
                (true, _) => caller == Some(*link),
                (false, true) => true,
                (false, false) => !is_called && caller.is_none(),
            };
            if core::mem::replace(&mut session.named, named) != named {
                changes.push(IdentityChange::Named(*link, named.then(|| session.said.clone())));
            }
        }
        changes.sort_by_key(|change| matches!(change, IdentityChange::Named(_, Some(_))));
        changes
    }

    /// True if there is no link over UDP to this node, or this caller is at the address of one.
    fn may_stand_for_datagrams(&self, caller: LinkId, node: &Eid) -> bool {
        let datagrams = |(link, session): &(&LinkId, &NamedSession)| {
            !link.is_incoming() && !session.acknowledges && session.node == *node
        };
        let mut links = self.sessions.iter().filter(datagrams).peekable();
        links.peek().is_none() || links.any(|(link, _)| self.is_at_the_same_address(caller, *link))
    }

    fn is_at_the_same_address(&self, one: LinkId, other: LinkId) -> bool {
        let address = self.addresses.get(&one);
        address.is_some() && address == self.addresses.get(&other)
    }

    /// True if one of these links leads to the node of this caller, as [`links_beside`](Self::links_beside) defines.
    pub(crate) fn is_beside_its_link(&self, caller: LinkId, counts: impl Fn(LinkId) -> bool) -> bool {
        self.links_beside(caller).any(counts)
    }

    /// Established configured links that lead to the node that a caller claims to be: the caller connects from the link's
    /// address, a `[[peer]]` contains its node ID, or a certificate proves it. Where a certificate proves that another session is
    /// with that node, a caller without a certificate does not count.
    fn links_beside(&self, caller: LinkId) -> impl Iterator<Item = LinkId> {
        let said = self.sessions.get(&caller).filter(|_| caller.is_incoming());
        let said = said.filter(|said| said.proven || !self.has_proof(&said.node));
        let from_anywhere = said.is_some_and(|said| said.proven || self.is_trusted(&said.node));
        let links = self.sessions.iter().filter(move |(link, session)| {
            !link.is_incoming()
                && said.is_some_and(|said| said.node == session.node)
                && (from_anywhere || self.is_at_the_same_address(caller, **link))
        });
        links.map(|(link, _)| *link)
    }

    /// True if TLS has proved that a session is with this node.
    fn has_proof(&self, node: &Eid) -> bool {
        self.sessions.values().any(|session| session.proven && session.node == *node)
    }

    /// Callers with the configured links that lead to the same node; `None` if nothing has changed since the last call.
    pub(crate) fn new_beside_links(&mut self) -> Option<BTreeSet<(LinkId, LinkId)>> {
        if !core::mem::take(&mut self.changed) {
            return None;
        }
        let callers = self.sessions.keys().copied();
        Some(callers.flat_map(|caller| self.links_beside(caller).map(move |link| (caller, link))).collect())
    }

    /// True if TLS has proved the node ID of this session.
    pub(crate) fn is_proven(&self, link: LinkId) -> bool {
        self.sessions.get(&link).is_some_and(|session| session.proven)
    }

    /// Node ID that a session has now; it may have changed since the session came up. The outer `None` is for a session that has
    /// claimed none.
    pub(crate) fn name(&self, link: LinkId) -> Option<Option<&str>> {
        let session = self.sessions.get(&link)?;
        Some(session.named.then_some(session.said.as_str()))
    }

    /// Node ID that a session claims and does not have.
    pub(crate) fn claims(&self, link: LinkId) -> Option<&str> {
        self.sessions.get(&link).filter(|session| !session.named).map(|session| session.said.as_str())
    }
}

fn is_among(nodes: &[String], node: &Eid) -> bool {
    nodes.iter().any(|other| parse_node(other).as_ref() == Some(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const ALICE: &str = "dtn://alice/";
    const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));
    const FARTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 8));

    fn configured(text: &str) -> Config {
        let text = format!("node = 'dtn://bob/'\n{text}");
        Config::parse(&text, "test", Path::new("/")).expect("it makes sense")
    }

    fn identities(text: &str) -> Identities {
        Identities::new(&configured(text))
    }

    fn caller(number: u32) -> LinkId {
        LinkId(LinkId::FIRST_INCOMING + number)
    }

    fn claim(node_id: &str, proven: bool) -> CallerIdentity<'_> {
        CallerIdentity { node_id: Some(node_id).filter(|id| !id.is_empty()), proven }
    }

    #[test]
    fn this_nodes_own_id_is_refused_however_it_is_written() {
        let bob = identities("peers = 'any'");
        for name in ["dtn://bob/", "dtn://bob", "dtn://bob/inbox"] {
            for proven in [false, true] {
                assert_eq!(bob.judge(caller(1), claim(name, proven)), Err(CallerRefusal::Own), "{name}");
            }
        }
        assert_eq!(bob.judge(caller(1), claim("dtn://bobby/", false)), Ok(()));
    }

    #[test]
    fn callers_from_elsewhere_are_to_be_known_unless_somebody_says_otherwise() {
        let names = "[[peer]]\nnode = 'dtn://alice/'\n[[peer]]\nnode = '*'\n[[peer]]\nnode = 'ipn:7*'\n[[peer]]\nnode = \
                     'dtn://mallory/*'\n[[link]]\nname = 'c'\naddress = 'c:1'\npeer = 'dtn://carol/'\n[[route]]\nto = 'dtn://far/*'\nvia = 'dtn://dora/'\n";
        let judged = |peers: &str, far: bool| {
            let mut bob = identities(&format!("{peers}\n{names}"));
            if far {
                bob.set_address(caller(1), FAR);
            }
            let cases = [ALICE, "dtn://carol/", "dtn://dora/", "ipn:77.0", "dtn://mallory/", ""];
            let plain = cases.map(|name| bob.judge(caller(1), claim(name, false)).is_ok());
            (plain, bob.judge(caller(1), claim("dtn://mallory/", true)).is_ok())
        };
        // A pattern sets how nodes are treated and adds no node ID to those known.
        let (all, known, none) = ([true; 6], [true, true, true, false, false, false], [false; 6]);
        assert_eq!(judged("", false), (all, true), "from this machine");
        assert_eq!(judged("", true), (known, true), "from elsewhere");
        assert_eq!(judged("peers = 'any'", true), (all, true));
        assert_eq!(judged("peers = 'known'", false), (known, true));
        assert_eq!(judged("peers = 'proven'", false), (none, true));
    }

    #[test]
    fn one_caller_at_a_time_has_a_node_id() {
        let mut bob = identities("");
        assert_eq!(bob.up(caller(1), ALICE, false, true), (true, vec![]));
        assert_eq!(bob.judge(caller(2), claim("dtn://alice", false)), Err(CallerRefusal::Taken(caller(1))));
        // A proven session replaces it, and is not replaced itself.
        assert_eq!(bob.judge(caller(3), claim(ALICE, true)), Ok(()));
        let changes = vec![IdentityChange::Named(caller(1), None), IdentityChange::Ends(caller(1))];
        assert_eq!(bob.up(caller(3), ALICE, true, true), (true, changes));
        assert_eq!(bob.down(caller(1)), []);
        for proven in [false, true] {
            assert_eq!(bob.judge(caller(4), claim(ALICE, proven)), Err(CallerRefusal::Taken(caller(3))));
        }
        assert_eq!(bob.down(caller(3)), []);
        assert_eq!(bob.judge(caller(4), claim(ALICE, false)), Ok(()));
    }

    #[test]
    fn a_link_of_the_configuration_has_its_node_id_and_callers_have_it_when_it_is_down() {
        let mut bob = identities("");
        let link = LinkId(1);
        assert_eq!(bob.up(caller(1), ALICE, false, true), (true, vec![]));
        assert_eq!(bob.up(link, ALICE, false, true), (true, vec![IdentityChange::Named(caller(1), None)]));
        assert_eq!(bob.claims(caller(1)), Some(ALICE));
        // Others are accepted without the node ID; proven ones get it, too.
        assert_eq!(bob.judge(caller(2), claim(ALICE, false)), Ok(()));
        assert_eq!(bob.up(caller(2), ALICE, false, true), (false, vec![]));
        assert_eq!(bob.up(caller(3), ALICE, true, true), (true, vec![]));
        assert_eq!(bob.down(caller(3)), []);
        assert_eq!(bob.down(link), [IdentityChange::Named(caller(1), Some(ALICE.to_owned()))]);
        assert_eq!((bob.claims(caller(1)), bob.claims(caller(2))), (None, Some(ALICE)));
        // The node ID goes to one after the other.
        assert_eq!(bob.down(caller(1)), [IdentityChange::Named(caller(2), Some(ALICE.to_owned()))]);
        assert_eq!(bob.down(caller(2)), []);
    }

    /// Both were judged before either came up.
    #[test]
    fn of_two_callers_that_come_up_together_one_has_the_node_id_and_the_other_ends() {
        for (first, second, stays) in [(false, false, 1), (true, false, 1), (true, true, 1), (false, true, 2)]
        {
            let mut bob = identities("");
            for number in [1, 2] {
                assert_eq!(bob.judge(caller(number), claim(ALICE, number == 2 && second)), Ok(()));
            }
            assert_eq!(bob.up(caller(1), ALICE, first, true), (true, vec![]));
            let (named, changes) = bob.up(caller(2), ALICE, second, true);
            let (expected, ends) = match stays {
                1 => (vec![IdentityChange::Ends(caller(2))], caller(2)),
                _ => {
                    (vec![IdentityChange::Named(caller(1), None), IdentityChange::Ends(caller(1))], caller(1))
                }
            };
            assert_eq!((named, changes), (stays == 2, expected), "{first} {second}");
            assert_eq!(bob.down(ends), [], "{first} {second}");
            let names = [1, 2].map(|number| bob.name(caller(number)).flatten());
            assert_eq!(names[stays - 1], Some(ALICE), "{first} {second}");
            // A session that was told to end does not get the node ID.
            let (_, changes) = bob.up(ends, ALICE, false, true);
            assert_eq!(changes, [IdentityChange::Ends(ends)]);
            assert_eq!(bob.down(caller(stays as u32)), []);
        }
    }

    #[test]
    fn a_link_over_udp_leaves_its_node_id_to_sessions_that_acknowledge() {
        let datagrams = LinkId(1);
        let named = |link, is| IdentityChange::Named(link, Some(ALICE.to_owned()).filter(|_| is));
        let mut bob = identities("");
        bob.set_address(datagrams, FAR);
        bob.set_address(caller(1), FAR);
        bob.set_address(caller(2), FARTHER);
        assert_eq!(bob.up(datagrams, ALICE, false, false), (true, vec![]));
        // At the address of the link: the session is used instead.
        assert_eq!(bob.up(caller(1), ALICE, false, true), (true, vec![named(datagrams, false)]));
        assert_eq!(bob.down(caller(1)), [named(datagrams, true)]);
        // From another address the caller may be any node, unless a certificate proves it.
        assert_eq!(bob.up(caller(2), ALICE, false, true), (false, vec![]));
        assert_eq!(bob.down(caller(2)), []);
        assert_eq!(bob.up(caller(2), ALICE, true, true), (true, vec![named(datagrams, false)]));
        assert_eq!(bob.down(caller(2)), [named(datagrams, true)]);
        // A configured link over TCP is used instead, too.
        assert_eq!(bob.up(LinkId(2), ALICE, false, true), (true, vec![named(datagrams, false)]));
        assert_eq!(bob.up(caller(1), ALICE, false, true), (false, vec![]));
        assert_eq!(bob.down(LinkId(2)), [named(caller(1), true)]);
        // A link that comes up later does not replace a session at its address.
        assert_eq!(bob.down(datagrams), []);
        assert_eq!(bob.up(datagrams, ALICE, false, false), (false, vec![]));
        assert_eq!(bob.name(caller(1)), Some(Some(ALICE)));
    }

    /// A caller from another address claims the node ID of a link over UDP without getting it, and the link ends.
    #[test]
    fn whoever_has_a_node_id_keeps_it_though_another_one_came_first() {
        let mut bob = identities("");
        for (link, address) in [(LinkId(1), FAR), (caller(1), FARTHER), (caller(2), FAR)] {
            bob.set_address(link, address);
        }
        bob.up(LinkId(1), ALICE, false, false);
        assert_eq!(bob.up(caller(1), ALICE, false, true), (false, vec![]));
        assert_eq!(
            bob.up(caller(2), ALICE, false, true),
            (true, vec![IdentityChange::Named(LinkId(1), None)])
        );
        assert_eq!(bob.down(LinkId(1)), []);
        assert_eq!((bob.claims(caller(1)), bob.name(caller(2))), (Some(ALICE), Some(Some(ALICE))));
    }

    #[test]
    fn who_is_beside_a_link_is_said_anew_whenever_it_may_have_changed() {
        let mut bob = identities("");
        assert_eq!(bob.new_beside_links(), None);
        bob.set_address(LinkId(1), FAR);
        bob.set_address(caller(1), FAR);
        bob.up(LinkId(1), ALICE, false, true);
        bob.up(caller(1), ALICE, false, true);
        let (somebody, nobody) = (Some(BTreeSet::from([(caller(1), LinkId(1))])), Some(BTreeSet::new()));
        assert_eq!((bob.new_beside_links(), bob.new_beside_links()), (somebody.clone(), None));
        bob.down(LinkId(1));
        assert_eq!((bob.new_beside_links(), bob.new_beside_links()), (nobody.clone(), None));
        bob.up(LinkId(1), ALICE, false, true);
        assert_eq!((bob.new_beside_links(), bob.new_beside_links()), (somebody.clone(), None));
        bob.set_address(caller(1), FARTHER);
        assert_eq!((bob.new_beside_links(), bob.new_beside_links()), (nobody.clone(), None));
        bob.set_address(caller(1), FAR);
        assert_eq!((bob.new_beside_links(), bob.new_beside_links()), (somebody, None));
        bob.forget(LinkId(1));
        assert_eq!((bob.new_beside_links(), bob.new_beside_links()), (nobody, None));
    }

    #[test]
    fn a_caller_is_beside_its_link_at_one_address_only() {
        let mut bob = identities("");
        for (link, address) in [(LinkId(1), FAR), (caller(1), FAR), (caller(2), FARTHER), (caller(3), FAR)] {
            bob.set_address(link, address);
        }
        bob.up(LinkId(1), ALICE, false, true);
        bob.up(caller(1), ALICE, false, true);
        bob.up(caller(2), ALICE, false, true);
        bob.up(caller(3), "dtn://mallory/", false, true);
        assert_eq!(
            [1, 2, 3].map(|number| bob.is_beside_its_link(caller(number), |_| true)),
            [true, false, false]
        );
        // A connection without an address is not beside a link.
        bob.forget(LinkId(1));
        bob.forget(caller(1));
        assert!(!bob.is_beside_its_link(caller(1), |_| true));
        bob.set_address(LinkId(1), "::ffff:192.0.2.7".parse().expect("an address"));
        bob.set_address(caller(1), FAR);
        assert!(bob.is_beside_its_link(caller(1), |_| true), "IPv4 in the clothes of IPv6");
        bob.down(LinkId(1));
        assert!(!bob.is_beside_its_link(caller(1), |_| true));
    }

    #[test]
    fn a_caller_is_beside_the_link_to_a_node_as_soon_as_the_configuration_names_it() {
        let mut bob = identities("");
        bob.up(LinkId(1), ALICE, false, true);
        bob.up(caller(1), ALICE, false, true);
        assert_eq!(bob.new_beside_links(), Some(BTreeSet::new()));
        bob.configure(&configured("[[peer]]\nnode = 'dtn://alice/'"));
        assert_eq!(bob.new_beside_links(), Some([(caller(1), LinkId(1))].into()));
    }

    #[test]
    fn a_caller_from_elsewhere_is_beside_the_link_to_a_node_of_a_peer_line_or_a_certificate() {
        let peer = "[[peer]]\nnode = 'dtn://alice/'";
        let link = "[[link]]\nname = 'a'\naddress = 'a:1'\npeer = 'dtn://alice/'";
        let route = "[[route]]\nto = 'dtn://far/*'\nvia = 'dtn://alice/'";
        let pattern = "[[peer]]\nnode = 'dtn://alice*'";
        for (text, proven, beside) in [
            ("", false, false),
            ("", true, true),
            (peer, false, true),
            (link, false, false),
            (link, true, true),
            (route, false, false),
            (pattern, false, false),
        ] {
            let mut bob = identities(text);
            bob.set_address(LinkId(1), FAR);
            bob.set_address(LinkId(2), FAR);
            bob.set_address(caller(1), FARTHER);
            bob.up(LinkId(1), ALICE, false, true);
            bob.up(LinkId(2), "dtn://carol/", false, true);
            bob.up(caller(1), ALICE, proven, true);
            let pairs: BTreeSet<_> = beside.then_some((caller(1), LinkId(1))).into_iter().collect();
            assert_eq!(bob.new_beside_links(), Some(pairs), "{text:?}, proven: {proven}");
            assert_eq!(bob.new_beside_links(), None, "nothing has changed");
            bob.forget(caller(1));
            assert!(bob.new_beside_links().is_some(), "its address is not known any more");
        }
    }

    #[test]
    fn who_only_says_a_node_id_is_nobody_beside_a_session_whose_certificate_proves_it() {
        for address in [FAR, FARTHER] {
            let mut bob = identities("[[peer]]\nnode = 'dtn://alice/'");
            bob.set_address(LinkId(1), FAR);
            for number in [1, 2] {
                bob.set_address(caller(number), address);
            }
            // A proven link.
            bob.up(LinkId(1), ALICE, true, true);
            bob.up(caller(1), ALICE, false, true);
            assert!(!bob.is_beside_its_link(caller(1), |_| true), "{address}");
            bob.up(caller(2), ALICE, true, true);
            assert!(bob.is_beside_its_link(caller(2), |_| true), "{address}");
            bob.down(LinkId(1));
            // A proven caller.
            bob.up(LinkId(1), ALICE, false, true);
            assert!(
                !bob.is_beside_its_link(caller(1), |_| true) && bob.is_beside_its_link(caller(2), |_| true),
                "{address}"
            );
            // No session is proven.
            bob.down(caller(2));
            assert!(bob.is_beside_its_link(caller(1), |_| true), "{address}");
            // A session with another node is proven.
            bob.up(caller(2), "dtn://carol/", true, true);
            assert!(bob.is_beside_its_link(caller(1), |_| true), "{address}");
        }
    }
}
