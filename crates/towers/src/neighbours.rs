//! [`Neighbours`]: the sessions of a node by link, made from the plans of its links.

use crate::carrier::{AnyCarrier, Plan};
use crate::media::{Media, Session};
use longwire_proto::engine::{Engine, Indication, Request, forward};
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Bundles, LinkId, Many};
use longwire_proto::time::Instant;
use std::collections::BTreeMap;

/// All sessions of one carrier.
pub trait SessionLayer: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Media>> + Send {
    /// Returns true if a session hears the messages of this link.
    fn has(&self, link: LinkId) -> bool;

    /// Creates a session, before the first message of its link: a request, or the indication that a peer has opened it.
    fn begin(&mut self, link: LinkId, plan: &Plan, origin: Origin, rng: Rng);
}

/// Sessions that are independent of each other, one for each link.
pub type IndependentSessions = Fan<LinkId, Session, fn(LinkId, Origin) -> Option<Session>>;

/// Returns an empty set of independent sessions.
pub fn independent_sessions() -> IndependentSessions {
    Fan::new(|_, _| None)
}

impl SessionLayer for IndependentSessions {
    fn has(&self, link: LinkId) -> bool {
        self.get(link).is_some()
    }

    fn begin(&mut self, link: LinkId, plan: &Plan, origin: Origin, rng: Rng) {
        self.insert(link, plan.session(origin, rng));
    }
}

/// The neighbours of a node: a session for each link that the node opens or a peer has opened.
///
/// A session is created from the plan of its link by the first request for it, or from the plan for callers when a peer
/// opens the link. It draws its random numbers from those of the carrier by its link ID: an ID stands for one link only,
/// and is never used again. Messages for which there is neither a session nor a plan are counted and dropped.
pub struct Neighbours {
    sessions: Box<dyn SessionLayer>,
    plans: BTreeMap<LinkId, Plan>,
    callers: Option<Plan>,
    rng: Rng,
    /// Number of messages for links without a session.
    pub declined: u64,
}

impl Neighbours {
    /// Creates the neighbours of a node that has links of one carrier, without any plan.
    pub fn new(carrier: &dyn AnyCarrier, rng: Rng) -> Neighbours {
        let sessions = carrier.sessions(&rng);
        Neighbours { sessions, plans: BTreeMap::new(), callers: None, rng, declined: 0 }
    }

    /// Sets the plan of a link that this node opens. A present session keeps its settings.
    pub fn set(&mut self, link: LinkId, plan: Plan) {
        self.plans.insert(link, plan);
    }

    /// Sets the plan for the links that peers open.
    pub fn answer(&mut self, plan: Plan) {
        self.callers = Some(plan);
    }

    /// Creates a session, if there is a plan for it.
    fn begin(&mut self, link: LinkId, origin: Origin) -> bool {
        let plan = match origin {
            Origin::Above => self.plans.get(&link),
            Origin::Below => self.callers.as_ref(),
        };
        if let Some(plan) = plan {
            self.sessions.begin(link, plan, origin, self.rng.fork(&link.0.to_string()));
        }
        plan.is_some()
    }
}

impl Engine for Neighbours {
    type Above = Many<LinkId, Bundles>;
    type Below = Many<LinkId, Media>;

    forward!(sessions: handle_timeout poll_indication poll_request poll_timeout observe);

    fn handle_request(&mut self, now: Instant, (link, request): Request<Self::Above>) {
        if self.sessions.has(link) || !link.is_incoming() && self.begin(link, Origin::Above) {
            self.sessions.handle_request(now, (link, request));
        } else {
            self.declined += 1;
        }
    }

    fn handle_indication(&mut self, now: Instant, (link, indication): Indication<Self::Below>) {
        let calls = link.is_incoming() && indication.is_opening();
        if self.sessions.has(link) || calls && self.begin(link, Origin::Below) {
            self.sessions.handle_indication(now, (link, indication));
        } else {
            self.declined += 1;
        }
    }
}

impl std::fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Neighbours").field("plans", &self.plans).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carriers::{Ax25Cl, Udp};
    use crate::media::{MediaIndication, MediaRequest};
    use longwire_proto::service::{
        BundlesIndication, BundlesRequest, DatagramsIndication, DatagramsRequest, PacketsIndication,
        PacketsRequest,
    };
    use longwire_proto::{ax25cl, udpcl};

    const NOW: Instant = Instant::ZERO;
    const OWN: LinkId = LinkId(7);
    const CALLER: LinkId = LinkId(LinkId::FIRST_INCOMING);

    fn joined() -> MediaIndication {
        MediaIndication::Datagrams(DatagramsIndication::Joined { bytes_max: 1000, peer: None, group: None })
    }

    fn neighbours() -> Neighbours {
        Neighbours::new(&Udp, Rng::new(1))
    }

    fn plan() -> Plan {
        Plan::new(&Udp, udpcl::Config::default())
    }

    #[test]
    fn a_session_begins_with_a_request_for_a_link_that_has_a_plan() {
        let mut neighbours = neighbours();
        neighbours.handle_request(NOW, (OWN, BundlesRequest::Connect));
        assert_eq!((neighbours.poll_request(NOW), neighbours.declined), (None, 1), "there is no plan");
        neighbours.set(OWN, plan());
        neighbours.handle_indication(NOW, (OWN, joined()));
        assert_eq!(
            (neighbours.poll_indication(NOW), neighbours.declined),
            (None, 2),
            "nobody has asked for it"
        );
        neighbours.handle_request(NOW, (OWN, BundlesRequest::Connect));
        let join = MediaRequest::Datagrams(DatagramsRequest::Join { damaged: false });
        assert_eq!(neighbours.poll_request(NOW), Some((OWN, join)));
        neighbours.handle_indication(NOW, (OWN, joined()));
        let up = neighbours.poll_indication(NOW);
        assert!(matches!(up, Some((OWN, BundlesIndication::Up { .. }))), "{up:?}");
        assert_eq!(neighbours.declined, 2);
    }

    #[test]
    fn a_caller_is_met_when_it_opens_a_link_and_only_with_a_plan_for_callers() {
        let mut neighbours = neighbours();
        neighbours.set(OWN, plan());
        neighbours.handle_indication(NOW, (CALLER, joined()));
        assert_eq!((neighbours.poll_indication(NOW), neighbours.declined), (None, 1), "callers are not met");
        neighbours.answer(plan());
        let late = MediaIndication::Datagrams(DatagramsIndication::Room(3));
        neighbours.handle_indication(NOW, (CALLER, late));
        neighbours.handle_request(NOW, (CALLER, BundlesRequest::Connect));
        assert_eq!((neighbours.poll_indication(NOW), neighbours.declined), (None, 3), "the caller is gone");
        neighbours.handle_indication(NOW, (CALLER, joined()));
        let up = neighbours.poll_indication(NOW);
        assert!(matches!(up, Some((CALLER, BundlesIndication::Up { .. }))), "{up:?}");
    }

    /// A session of AX25-CL outlives its link, and is created once.
    #[test]
    fn a_carrier_may_keep_a_session_without_a_link() {
        let mut neighbours = Neighbours::new(&Ax25Cl, Rng::new(1));
        let config = ax25cl::Config { node_id: "dtn://a/".into(), ..ax25cl::Config::default() };
        neighbours.answer(Plan::new(&Ax25Cl, config));
        let peer = "OE1XYZ".to_owned();
        let connected = PacketsIndication::Connected { bytes_max: 256, bytes_best: 256, peer };
        neighbours.handle_indication(NOW, (CALLER, MediaIndication::Packets(connected)));
        assert_eq!((neighbours.declined, neighbours.sessions.has(CALLER)), (0, true));
        neighbours.handle_request(NOW, (CALLER, BundlesRequest::Close));
        let closes = std::iter::from_fn(|| {
            while neighbours.poll_indication(NOW).is_some() {}
            neighbours.poll_request(NOW)
        });
        let closed = closes.filter(|(link, request)| {
            *link == CALLER
                && matches!(request, MediaRequest::Packets(PacketsRequest::Close | PacketsRequest::Abort))
        });
        assert_eq!(closed.count(), 1);
    }
}
