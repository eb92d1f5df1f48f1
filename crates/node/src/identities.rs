//! Node ids of sessions: who may call, and who has a node id when several claim it.
//!
//! ```text
//!   a caller has said who it is --> this node's own id?          --> refused
//!                               --> not whom `peers` lets in?    --> refused
//!                               --> another caller has its id?   --> refused; proven where the other is not: in its place
//!                               --> a link of the configuration leads to that node? --> let in without the id, unless proven
//! ```
//!
//! Bundles go to a node id, so over plain TCP, where anybody may claim any, at most one caller has it at a time: the one that TLS
//! has proved, or else the one that stands. A session without the id can hand bundles in and gets none. It takes the id over when
//! the link of the configuration goes down, which makes no difference to the bundles that are under way; two nodes that call each
//! other so have both of their sessions, and each sends over its own.
//!
//! A caller that is refused for another one may be the same node behind a connection that broke without a word; so the one that
//! stands is sent a sign of life, and if nobody is there, it ends.

use crate::config::{Config, Peers};
use longwire_proto::bp::agent::parse_node;
use longwire_proto::bp::eid::Eid;
use longwire_proto::service::LinkId;
use longwire_proto::tcpcl::{Claim, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Why a caller may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It says that it is this node.
    Own,
    /// The configuration does not name its node id.
    Unknown,
    /// Its node id is not proven.
    Unproven,
    /// This session has its node id.
    Taken(LinkId),
}

impl Refusal {
    /// What the session says to the caller.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Refusal::Own | Refusal::Unknown | Refusal::Unproven => Verdict::Unsuitable,
            Refusal::Taken(_) => Verdict::Busy,
        }
    }

    /// In one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Refusal::Own => "own_id",
            Refusal::Unknown => "unknown",
            Refusal::Unproven => "unproven",
            Refusal::Taken(_) => "taken",
        }
    }

    /// For a person, with what would help.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Refusal::Own => "it calls itself what this node is called",
            Refusal::Unknown => {
                "the configuration names no such node: `[[peer]] node` with its id lets it in, `peers = \"any\"` everybody"
            }
            Refusal::Unproven => "no certificate proves its node id, and `peers = \"proven\"` asks for that",
            Refusal::Taken(_) => "another session has its node id",
        }
    }
}

/// A session that is up and has a node id, or would like to.
#[derive(Clone, Debug)]
struct Session {
    node: Eid,
    said: String,
    proven: bool,
    /// Whether bundles go to it by that node id.
    named: bool,
}

/// What else changes when a session comes up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// This session loses its node id, or gets it.
    Named(LinkId, Option<String>),
    /// This session ends.
    Ends(LinkId),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Identities {
    own: Option<Eid>,
    peers: Option<Peers>,
    /// Node ids that the configuration names; with a trailing `*` for any rest.
    known: Vec<String>,
    /// Callers that are not on this machine.
    far: BTreeSet<LinkId>,
    sessions: BTreeMap<LinkId, Session>,
}

impl Identities {
    pub(crate) fn new(config: &Config) -> Self {
        Identities {
            own: config.node_id().ok(),
            peers: config.peers,
            known: config.known_nodes(),
            far: BTreeSet::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// The configuration was read again. Sessions that are up stay up.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.peers = config.peers;
        self.known = config.known_nodes();
    }

    /// A caller is not on this machine.
    pub(crate) fn set_far(&mut self, link: LinkId) {
        self.far.insert(link);
    }

    /// A connection is over.
    pub(crate) fn forget(&mut self, link: LinkId) {
        self.far.remove(&link);
    }

    /// Whether a caller may come in.
    pub(crate) fn judge(&self, link: LinkId, claim: Claim<'_>) -> Result<(), Refusal> {
        let node = claim.node_id.and_then(parse_node);
        if node.is_some() && node == self.own {
            return Err(Refusal::Own);
        }
        let peers = self.peers.unwrap_or(match self.far.contains(&link) {
            true => Peers::Known,
            false => Peers::Any,
        });
        match peers {
            Peers::Any => {}
            Peers::Known if claim.proven || node.as_ref().is_some_and(|node| self.is_known(node)) => {}
            Peers::Known => return Err(Refusal::Unknown),
            Peers::Proven if claim.proven => {}
            Peers::Proven => return Err(Refusal::Unproven),
        }
        let holder = node.as_ref().and_then(|node| self.caller_named(node));
        match holder {
            Some((other, session)) if session.proven || !claim.proven => Err(Refusal::Taken(other)),
            _ => Ok(()),
        }
    }

    fn is_known(&self, node: &Eid) -> bool {
        let text = node.to_string();
        self.known.iter().any(|known| match known.strip_suffix('*') {
            Some(beginning) => text.starts_with(beginning),
            None => parse_node(known).as_ref() == Some(node),
        })
    }

    /// The caller that has this node id.
    fn caller_named(&self, node: &Eid) -> Option<(LinkId, &Session)> {
        let of_node = |(link, session): &(&LinkId, &Session)| {
            link.is_incoming() && session.named && session.node == *node
        };
        self.sessions.iter().find(of_node).map(|(link, session)| (*link, session))
    }

    fn is_called(&self, node: &Eid) -> bool {
        self.sessions.iter().any(|(link, session)| !link.is_incoming() && session.node == *node)
    }

    /// A session is up whose peer says this. True if it has that node id; and what else changes before.
    pub(crate) fn up(&mut self, link: LinkId, said: &str, proven: bool) -> (bool, Vec<Change>) {
        let Some(node) = parse_node(said) else { return (true, Vec::new()) };
        let before = self.caller_named(&node).map(|(other, session)| (other, session.proven));
        let mut changes = Vec::new();
        let named = !link.is_incoming() || proven || !self.is_called(&node);
        if let Some((other, false)) = before.filter(|_| named) {
            if let Some(session) = self.sessions.get_mut(&other) {
                session.named = false;
            }
            changes.push(Change::Named(other, None));
            if link.is_incoming() {
                changes.push(Change::Ends(other));
            }
        }
        self.sessions.insert(link, Session { node, said: said.to_owned(), proven, named });
        (named, changes)
    }

    /// A session is down. A caller may get the node id that its link had.
    pub(crate) fn down(&mut self, link: LinkId) -> Option<Change> {
        let gone = self.sessions.remove(&link)?;
        if self.is_called(&gone.node) || self.caller_named(&gone.node).is_some() {
            return None;
        }
        let (heir, session) = self.sessions.iter_mut().find(|(_, session)| session.node == gone.node)?;
        session.named = true;
        Some(Change::Named(*heir, Some(session.said.clone())))
    }

    /// The node id that a session has by now, where it has said one: that may have changed since it came up.
    pub(crate) fn name(&self, link: LinkId) -> Option<Option<&str>> {
        let session = self.sessions.get(&link)?;
        Some(session.named.then_some(session.said.as_str()))
    }

    /// The node id that a session claims and does not have.
    pub(crate) fn claims(&self, link: LinkId) -> Option<&str> {
        self.sessions.get(&link).filter(|session| !session.named).map(|session| session.said.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const ALICE: &str = "dtn://alice/";

    fn identities(text: &str) -> Identities {
        let text = format!("node = 'dtn://bob/'\n{text}");
        Identities::new(&Config::parse(&text, "test", Path::new("/")).expect("it makes sense"))
    }

    fn caller(number: u32) -> LinkId {
        LinkId(LinkId::FIRST_INCOMING + number)
    }

    fn claim(node_id: &str, proven: bool) -> Claim<'_> {
        Claim { node_id: Some(node_id).filter(|id| !id.is_empty()), proven }
    }

    #[test]
    fn this_nodes_own_id_is_refused_however_it_is_written() {
        let bob = identities("peers = 'any'");
        for name in ["dtn://bob/", "dtn://bob", "dtn://bob/inbox"] {
            for proven in [false, true] {
                assert_eq!(bob.judge(caller(1), claim(name, proven)), Err(Refusal::Own), "{name}");
            }
        }
        assert_eq!(bob.judge(caller(1), claim("dtn://bobby/", false)), Ok(()));
    }

    #[test]
    fn callers_from_elsewhere_are_to_be_known_unless_somebody_says_otherwise() {
        let names = "[[peer]]\nnode = 'dtn://alice/'\n[[peer]]\nnode = 'ipn:7*'\n[[link]]\nname = 'c'\naddress = 'c:1'\npeer = \
                     'dtn://carol/'\n[[route]]\nto = 'dtn://far/*'\nvia = 'dtn://dora/'\n";
        let judged = |peers: &str, far: bool| {
            let mut bob = identities(&format!("{peers}\n{names}"));
            if far {
                bob.set_far(caller(1));
            }
            let cases = [ALICE, "dtn://carol/", "dtn://dora/", "ipn:77.0", "dtn://mallory/", ""];
            let plain = cases.map(|name| bob.judge(caller(1), claim(name, false)).is_ok());
            (plain, bob.judge(caller(1), claim("dtn://mallory/", true)).is_ok())
        };
        let (all, known, none) = ([true; 6], [true, true, true, true, false, false], [false; 6]);
        assert_eq!(judged("", false), (all, true), "from this machine");
        assert_eq!(judged("", true), (known, true), "from elsewhere");
        assert_eq!(judged("peers = 'any'", true), (all, true));
        assert_eq!(judged("peers = 'known'", false), (known, true));
        assert_eq!(judged("peers = 'proven'", false), (none, true));
    }

    #[test]
    fn one_caller_at_a_time_has_a_node_id() {
        let mut bob = identities("");
        assert_eq!(bob.up(caller(1), ALICE, false), (true, vec![]));
        assert_eq!(bob.judge(caller(2), claim("dtn://alice", false)), Err(Refusal::Taken(caller(1))));
        // A proven one comes in its place, and gives way to nobody.
        assert_eq!(bob.judge(caller(3), claim(ALICE, true)), Ok(()));
        let changes = vec![Change::Named(caller(1), None), Change::Ends(caller(1))];
        assert_eq!(bob.up(caller(3), ALICE, true), (true, changes));
        assert_eq!(bob.down(caller(1)), None);
        for proven in [false, true] {
            assert_eq!(bob.judge(caller(4), claim(ALICE, proven)), Err(Refusal::Taken(caller(3))));
        }
        assert_eq!(bob.down(caller(3)), None);
        assert_eq!(bob.judge(caller(4), claim(ALICE, false)), Ok(()));
    }

    #[test]
    fn a_link_of_the_configuration_has_its_node_id_and_callers_have_it_when_it_is_down() {
        let mut bob = identities("");
        let link = LinkId(1);
        assert_eq!(bob.up(caller(1), ALICE, false), (true, vec![]));
        assert_eq!(bob.up(link, ALICE, false), (true, vec![Change::Named(caller(1), None)]));
        assert_eq!(bob.claims(caller(1)), Some(ALICE));
        // Others are let in, without it; proven ones have it, too.
        assert_eq!(bob.judge(caller(2), claim(ALICE, false)), Ok(()));
        assert_eq!(bob.up(caller(2), ALICE, false), (false, vec![]));
        assert_eq!(bob.up(caller(3), ALICE, true), (true, vec![]));
        assert_eq!(bob.down(caller(3)), None);
        assert_eq!(bob.down(link), Some(Change::Named(caller(1), Some(ALICE.to_owned()))));
        assert_eq!((bob.claims(caller(1)), bob.claims(caller(2))), (None, Some(ALICE)));
        // One after the other.
        assert_eq!(bob.down(caller(1)), Some(Change::Named(caller(2), Some(ALICE.to_owned()))));
        assert_eq!(bob.down(caller(2)), None);
    }
}
