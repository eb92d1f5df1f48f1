//! [`Neighbours`]: the sessions of a node by link, made from the plans of its links.

use crate::carrier::{About, AnyCarrier, Medium, Plan};
use crate::held_callers::HeldCallers;
use crate::media::{Media, MediaIndication, Session};
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Fan, Origin, earlier};
use longwire_proto::observe::{Counts, Observation, Part};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Bundles, LinkId, Many, PacketsIndication};
use longwire_proto::tcpcl::{AdmissionDecision, CallerIdentity};
use longwire_proto::time::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Maximum number of sessions that callers who are held until their first packet may make, with those that this node has
/// opened. A session whose link is lost counts until the time to resume has passed.
const SESSIONS_MAX: usize = 256;

/// All sessions of one carrier.
pub trait SessionLayer: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Media>> + Send {
    /// Returns true if a session hears the messages of this link.
    fn has(&self, link: LinkId) -> bool;

    /// Creates a session, before the first message of its link: a request, or the indication that a peer has opened it.
    fn begin(&mut self, link: LinkId, plan: &Plan, origin: Origin, rng: Rng);

    /// Removes a session, even if it has not finished.
    fn remove(&mut self, link: LinkId);

    /// Returns the number of sessions.
    fn count(&self) -> usize;

    /// Shows the session of a link, if there is one.
    fn show(&self, link: LinkId, view: &mut Observation);

    /// Returns the link below on which the session is now.
    fn connection_of(&self, link: LinkId) -> LinkId {
        link
    }

    /// Returns the identity of a caller that waits for its admission. By default no session asks for it.
    fn claim(&self, _link: LinkId) -> Option<CallerIdentity<'_>> {
        None
    }

    /// Changes the session of a link, if admission is asked for with it.
    fn change(&mut self, _link: LinkId, _act: &mut dyn FnMut(&mut Session)) {}

    /// Adds the counts of sessions that end to a sum. By default they are not kept.
    fn keep_counts(&mut self, _sum: Arc<Mutex<Counts>>) {}
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

    fn remove(&mut self, link: LinkId) {
        self.remove(link);
    }

    fn count(&self) -> usize {
        self.iter().count()
    }

    fn show(&self, link: LinkId, view: &mut Observation) {
        if let Some(session) = self.get(link) {
            session.observe(view);
        }
    }

    fn claim(&self, link: LinkId) -> Option<CallerIdentity<'_>> {
        self.get(link)?.claim()
    }

    fn change(&mut self, link: LinkId, act: &mut dyn FnMut(&mut Session)) {
        self.change(link, act);
    }

    fn keep_counts(&mut self, sum: Arc<Mutex<Counts>>) {
        self.on_end(move |_, session| {
            add(&mut sum.lock().expect("no thread panics with it"), &Observation::of(&session));
        });
    }
}

/// Adds the counts of all engines.
fn add(sum: &mut Counts, view: &Observation) {
    for (name, count) in view.parts.iter().flat_map(|part| &part.counts) {
        *sum.entry(name).or_default() += count;
    }
}

/// Sessions of a carrier.
struct CarrierSessions {
    carrier: &'static dyn AnyCarrier,
    sessions: Box<dyn SessionLayer>,
    rng: Rng,
    /// Sum of the counts of sessions that have ended.
    past: Arc<Mutex<Counts>>,
}

/// The neighbours of a node: a session for each link that the node opens or a peer has opened.
///
/// A session is created from the plan of its link by the first request for it, or from a plan for callers when a peer opens
/// the link. Where a caller may be one of several carriers, it is held until its first packet. A session draws its random
/// numbers from those of the carrier by its link ID: an ID stands for one link only, and is never used again. Messages for
/// which there is neither a session nor a plan are counted and dropped.
pub struct Neighbours {
    layers: Vec<CarrierSessions>,
    plans: BTreeMap<LinkId, Plan>,
    /// Plans for the links that peers open, in the order in which they are tried.
    callers: Vec<Plan>,
    /// Carriers of links that the provider opens, where they are known.
    expected: BTreeMap<LinkId, &'static str>,
    held: HeldCallers,
    judges: bool,
    rng: Rng,
    /// Number of messages for links without a session.
    pub declined: u64,
    /// Number of callers turned away at the limit of sessions.
    pub turned_away: u64,
}

impl Neighbours {
    /// Creates the neighbours of a node that has links of one carrier, without any plan.
    pub fn new(carrier: &'static dyn AnyCarrier, rng: Rng) -> Neighbours {
        let mut neighbours = Neighbours::of_all_carriers(rng.clone());
        neighbours.enter(carrier, rng);
        neighbours
    }

    /// Creates the neighbours of a node that may have links of all carriers, without any plan.
    pub fn of_all_carriers(rng: Rng) -> Neighbours {
        Neighbours {
            layers: Vec::new(),
            plans: BTreeMap::new(),
            callers: Vec::new(),
            expected: BTreeMap::new(),
            held: HeldCallers::default(),
            judges: false,
            rng,
            declined: 0,
            turned_away: 0,
        }
    }

    /// Makes the sessions of callers wait until they are [judged](Neighbours::judge), if their carrier can.
    pub fn judge_callers(&mut self) {
        self.judges = true;
    }

    /// Sets the plan of a link that this node opens, or of one that a peer is about to open. A present session keeps its
    /// settings.
    pub fn set(&mut self, link: LinkId, plan: Plan) {
        self.plans.insert(link, plan);
    }

    /// Removes the plan of a link. A present session ends by itself.
    pub fn unset(&mut self, link: LinkId) {
        self.plans.remove(&link);
    }

    /// Removes the session of a link, even if it has not finished.
    pub fn forget(&mut self, link: LinkId) {
        self.layers.iter_mut().for_each(|layer| layer.sessions.remove(link));
    }

    /// Sets the plan of a carrier for the links that peers open.
    pub fn answer(&mut self, plan: Plan) {
        let name = plan.carrier().about().name;
        match self.callers.iter_mut().find(|other| other.carrier().about().name == name) {
            Some(other) => *other = plan,
            None => self.callers.push(plan),
        }
    }

    /// Sets the carrier of a link that the provider will open. By default it is the first one whose plan fits.
    pub fn expect(&mut self, link: LinkId, carrier: &'static str) {
        self.expected.insert(link, carrier);
    }

    /// Returns the carrier of a link that has a session or a plan.
    pub fn carrier(&self, link: LinkId) -> Option<&'static About> {
        let carrier = self.layer(link).map(|layer| layer.carrier);
        carrier.or_else(|| self.plans.get(&link).map(Plan::carrier)).map(AnyCarrier::about)
    }

    /// Returns true if a message that begins like this may be one of the carrier of a link; true without a session.
    pub fn recognises(&self, link: LinkId, first: &[u8]) -> bool {
        self.layer(link).is_none_or(|layer| layer.carrier.recognises(first))
    }

    /// Returns what the session of a link shows, as one part if it consists of several engines; `None` if there is no session,
    /// or it shows nothing.
    pub fn shown(&self, link: LinkId) -> Option<Part> {
        let mut view = Observation::default();
        self.layers.iter().for_each(|layer| layer.sessions.show(link, &mut view));
        let mut parts = view.parts.into_iter();
        let first = parts.next()?;
        Some(parts.fold(first, |mut whole, part| {
            part.counts.into_iter().for_each(|(name, count)| *whole.counts.entry(name).or_default() += count);
            whole.state.extend(part.state);
            whole
        }))
    }

    /// Returns the link below on which the session of a link is now.
    pub fn connection_of(&self, link: LinkId) -> LinkId {
        self.layer(link).map_or(link, |layer| layer.sessions.connection_of(link))
    }

    /// Returns the identity of a caller that waits for its admission.
    pub fn claim(&self, link: LinkId) -> Option<CallerIdentity<'_>> {
        self.layer(link)?.sessions.claim(link)
    }

    /// Decides on a caller that waits for its admission.
    pub fn judge(&mut self, now: Instant, link: LinkId, decision: AdmissionDecision) {
        if let Some(at) = self.position(link) {
            self.layers[at].sessions.change(link, &mut |session| session.judge(now, decision));
        }
    }

    /// Returns the sums of the counts of all sessions of a carrier, including those that have ended.
    pub fn counts(&self, carrier: &str) -> Counts {
        let mut sum = Counts::new();
        for layer in self.layers.iter().filter(|layer| layer.carrier.about().name == carrier) {
            sum.clone_from(&layer.past.lock().expect("no thread panics with it"));
            let mut view = Observation::default();
            layer.sessions.observe(&mut view);
            add(&mut sum, &view);
        }
        sum
    }

    fn position(&self, link: LinkId) -> Option<usize> {
        self.layers.iter().position(|layer| layer.sessions.has(link))
    }

    fn layer(&self, link: LinkId) -> Option<&CarrierSessions> {
        self.position(link).map(|at| &self.layers[at])
    }

    /// Adds the sessions of a carrier, none yet, and returns their position.
    fn enter(&mut self, carrier: &'static dyn AnyCarrier, rng: Rng) -> usize {
        let (mut sessions, past) = (carrier.sessions(&rng), Arc::default());
        sessions.keep_counts(Arc::clone(&past));
        self.layers.push(CarrierSessions { carrier, sessions, rng, past });
        self.layers.len() - 1
    }

    /// Creates a session, and returns the position of its layer.
    fn begin(&mut self, link: LinkId, plan: &Plan, origin: Origin) -> usize {
        let about = plan.carrier().about();
        let known = self.layers.iter().position(|layer| layer.carrier.about().name == about.name);
        let at = known.unwrap_or_else(|| self.enter(plan.carrier(), self.rng.fork(about.random_label)));
        let CarrierSessions { sessions, rng, .. } = &mut self.layers[at];
        sessions.begin(link, plan, origin, rng.fork(&link.0.to_string()));
        if self.judges && origin == Origin::Below {
            sessions.change(link, &mut |session| session.await_admission());
        }
        at
    }

    /// Creates the session of a caller, or holds the caller; returns the position of a new layer.
    fn meet(&mut self, now: Instant, link: LinkId, said: &MediaIndication) -> Option<usize> {
        if let Some(plan) = self.plans.get(&link).cloned() {
            return Some(self.begin(link, &plan, Origin::Below));
        }
        let expected = self.expected.get(&link);
        let fits = |plan: &&Plan| {
            let about = plan.carrier().about();
            about.media.iter().any(|medium| said.is_of(*medium))
                && expected.is_none_or(|name| *name == about.name)
        };
        let mut plans = self.callers.iter().filter(fits);
        let (first, others) = (plans.next().cloned(), plans.next().is_some());
        match said {
            MediaIndication::Packets(connected) if others => {
                let silence_max = self.plan_of_the_silent().map(|(_, silence_max)| silence_max);
                self.held.hold(now, link, connected.clone(), silence_max);
                None
            }
            _ => first.map(|plan| self.begin(link, &plan, Origin::Below)),
        }
    }

    /// Hears a held caller, and creates its session with its first packet, unless there are too many.
    fn hear_held(&mut self, now: Instant, link: LinkId, said: &PacketsIndication) -> Option<usize> {
        let first = self.held.hear(link, said)?;
        let mut plans = self.callers.iter().filter(|plan| is_called_over_packets(plan.carrier()));
        let plan = plans.find(|plan| plan.carrier().recognises(first))?.clone();
        self.release_held(now, link, &plan)
    }

    /// Plan for callers that say nothing, and the time after which they are taken for such.
    fn plan_of_the_silent(&self) -> Option<(Plan, Duration)> {
        let plans = self.callers.iter().filter(|plan| is_called_over_packets(plan.carrier()));
        plans
            .filter_map(|plan| Some((plan.clone(), plan.carrier().silence_max(plan)?)))
            .min_by_key(|(_, time)| *time)
    }

    /// Creates the session of a held caller, unless there are too many.
    fn release_held(&mut self, now: Instant, link: LinkId, plan: &Plan) -> Option<usize> {
        let layers = self.layers.iter().filter(|layer| is_called_over_packets(layer.carrier));
        if layers.map(|layer| layer.sessions.count()).sum::<usize>() >= SESSIONS_MAX {
            self.turned_away += 1;
            self.held.turn_away(link);
            return None;
        }
        let at = self.begin(link, plan, Origin::Below);
        for said in self.held.release(link) {
            self.layers[at].sessions.handle_indication(now, (link, said));
        }
        Some(at)
    }
}

fn is_called_over_packets(carrier: &dyn AnyCarrier) -> bool {
    carrier.about().media.contains(&Medium::Ax25)
}

impl Engine for Neighbours {
    type Above = Many<LinkId, Bundles>;
    type Below = Many<LinkId, Media>;

    fn handle_request(&mut self, now: Instant, (link, request): Request<Self::Above>) {
        let present = self.position(link);
        let at = present.or_else(|| {
            let plan = self.plans.get(&link).filter(|_| !link.is_incoming())?.clone();
            Some(self.begin(link, &plan, Origin::Above))
        });
        match at {
            Some(at) => self.layers[at].sessions.handle_request(now, (link, request)),
            None => self.declined += 1,
        }
    }

    fn handle_indication(&mut self, now: Instant, (link, said): Indication<Self::Below>) {
        let was_held = self.held.has(link);
        let at = match (self.position(link), &said) {
            (Some(at), _) => Some(at),
            (None, MediaIndication::Packets(packets)) if was_held => self.hear_held(now, link, packets),
            (None, _) if link.is_incoming() && said.is_opening() => self.meet(now, link, &said),
            (None, _) => None,
        };
        match at {
            Some(at) => self.layers[at].sessions.handle_indication(now, (link, said)),
            None => self.declined += u64::from(!was_held && !self.held.has(link)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for CarrierSessions { sessions, .. } in &mut self.layers {
            if sessions.poll_timeout().is_some_and(|at| at <= now) {
                sessions.handle_timeout(now);
            }
        }
        for link in self.held.silent(now) {
            let Some((plan, _)) = self.plan_of_the_silent() else {
                self.held.close(link);
                continue;
            };
            if let Some(at) = self.release_held(now, link, &plan) {
                // Its silence is an empty packet.
                let silence = MediaIndication::Packets(PacketsIndication::Packet(Default::default()));
                self.layers[at].sessions.handle_indication(now, (link, silence));
            }
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        self.layers.iter_mut().find_map(|layer| layer.sessions.poll_indication(now))
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        let held = self.held.poll_request();
        held.or_else(|| self.layers.iter_mut().find_map(|layer| layer.sessions.poll_request(now)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let sessions = self.layers.iter().filter_map(|layer| layer.sessions.poll_timeout()).min();
        earlier(self.held.poll_timeout(), sessions)
    }

    fn observe(&self, view: &mut Observation) {
        self.layers.iter().for_each(|layer| layer.sessions.observe(view));
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
    use crate::carrier::Carrier;
    use crate::carriers::{Ax25Cl, Ax25Cm, Ltp, Udp};
    use crate::media::{MediaIndication, MediaRequest};
    use longwire_proto::ax25cl;
    use longwire_proto::service::{
        BundlesIndication, BundlesRequest, DatagramsIndication, DatagramsRequest, PacketsIndication,
        PacketsRequest,
    };
    use longwire_proto::tcpcl::packet_stream::seal;

    const NOW: Instant = Instant::ZERO;
    const OWN: LinkId = LinkId(7);
    const CALLER: LinkId = LinkId(LinkId::FIRST_INCOMING);

    fn joined() -> MediaIndication {
        MediaIndication::Datagrams(DatagramsIndication::Joined { bytes_max: 1000, peer: None, group: None })
    }

    fn neighbours() -> Neighbours {
        Neighbours::of_all_carriers(Rng::new(1))
    }

    fn plan() -> Plan {
        Plan::new(&Udp, <Udp as Carrier>::defaults())
    }

    fn ours() -> Plan {
        let config = ax25cl::Config { node_id: "dtn://a/".into(), ..ax25cl::Config::default() };
        Plan::new(&Ax25Cl, config)
    }

    fn connected() -> MediaIndication {
        let peer = "OE1XYZ".to_owned();
        MediaIndication::Packets(PacketsIndication::Connected { bytes_max: 256, bytes_best: 256, peer })
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

    /// Two carriers run over datagrams; a link gets that which it is expected to have, or else the first.
    #[test]
    fn a_link_may_be_of_one_of_two_carriers_over_datagrams() {
        let mut neighbours = neighbours();
        neighbours.answer(plan());
        neighbours.answer(Plan::new(&Ltp, <Ltp as Carrier>::defaults()));
        let other = LinkId(CALLER.0 + 1);
        neighbours.expect(other, "ltp");
        for (link, name) in [(CALLER, "udp"), (other, "ltp")] {
            neighbours.handle_indication(NOW, (link, joined()));
            assert_eq!(neighbours.carrier(link).map(|about| about.name), Some(name));
        }
    }

    /// A session of AX25-CL outlives its link, and is created once.
    #[test]
    fn a_carrier_may_keep_a_session_without_a_link() {
        let mut neighbours = Neighbours::of_all_carriers(Rng::new(1));
        neighbours.answer(ours());
        neighbours.handle_indication(NOW, (CALLER, connected()));
        assert_eq!((neighbours.declined, neighbours.layer(CALLER).is_some()), (0, true));
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

    /// The first packet says which of two carriers a caller uses; without one, the link is closed.
    #[test]
    fn a_caller_of_two_carriers_is_held_until_its_first_packet() {
        let packets = MediaIndication::Packets;
        let name = |neighbours: &Neighbours, link| neighbours.carrier(link).map(|about| about.name);
        let mut neighbours = neighbours();
        neighbours.answer(Plan::new(&Ax25Cm, <Ax25Cm as Carrier>::defaults()));
        neighbours.answer(ours());
        let header = seal(b"dtn!\x03\0\0\x1e\x08dtn://b/");
        let silent = LinkId(CALLER.0 + 1000);
        neighbours.handle_indication(NOW, (silent, connected()));
        for (number, (first, carrier)) in
            [(header.clone(), "ax25cm"), (b"hello"[..].into(), "ax25cl")].into_iter().enumerate()
        {
            let link = LinkId(CALLER.0 + number as u32);
            neighbours.handle_indication(NOW, (link, connected()));
            neighbours.handle_indication(NOW, (link, packets(PacketsIndication::Room(7))));
            assert_eq!(name(&neighbours, link), None);
            neighbours.handle_indication(NOW, (link, packets(PacketsIndication::Packet(first))));
            assert_eq!(name(&neighbours, link), Some(carrier));
        }
        let heard = neighbours
            .poll_indication(NOW)
            .map(|(link, said)| (link, matches!(said, BundlesIndication::Up { .. })));
        assert_eq!(heard, Some((CALLER, true)), "it has heard the header");
        let called = neighbours.shown(CALLER).expect("a session");
        assert_eq!((called.counts["sessions"], neighbours.declined), (1, 0));
        // Each further caller makes a session, up to a limit.
        for number in 2..=SESSIONS_MAX as u32 {
            let link = LinkId(CALLER.0 + number);
            neighbours.handle_indication(NOW, (link, connected()));
            neighbours.handle_indication(NOW, (link, packets(PacketsIndication::Packet(header.clone()))));
            assert_eq!(name(&neighbours, link).is_some(), number < SESSIONS_MAX as u32, "{number}");
        }
        assert_eq!(neighbours.turned_away, 1);
        let refused = (LinkId(CALLER.0 + SESSIONS_MAX as u32), MediaRequest::Packets(PacketsRequest::Abort));
        assert_eq!(neighbours.poll_request(NOW), Some(refused));
        // The silent one.
        let at = NOW + longwire_proto::time::Duration::from_secs(120);
        neighbours.handle_timeout(at);
        let closed = (silent, MediaRequest::Packets(PacketsRequest::Close));
        assert_eq!(neighbours.poll_request(at), Some(closed));
        neighbours.handle_indication(at, (silent, packets(PacketsIndication::Packet(header.clone()))));
        assert_eq!((name(&neighbours, silent), neighbours.declined), (None, 0));
    }

    /// A silent caller gets the text for operators, if there is one.
    #[test]
    fn a_silent_caller_of_two_carriers_gets_the_text_for_operators() {
        let packets = MediaIndication::Packets;
        let mut neighbours = neighbours();
        neighbours.answer(Plan::new(&Ax25Cm, <Ax25Cm as Carrier>::defaults()));
        let settings =
            longwire_proto::ax25cl::Config { welcome: Some("73".into()), ..<Ax25Cl as Carrier>::defaults() };
        let silence_max = settings.welcome_after;
        neighbours.answer(Plan::new(&Ax25Cl, settings));
        neighbours.handle_indication(NOW, (CALLER, connected()));
        neighbours.handle_indication(NOW, (CALLER, packets(PacketsIndication::Room(7))));
        assert_eq!(neighbours.poll_timeout(), Some(NOW + silence_max));
        neighbours.handle_timeout(NOW + silence_max);
        let said: Vec<_> = std::iter::from_fn(|| neighbours.poll_request(NOW + silence_max)).collect();
        let text = PacketsRequest::payload(b"73\r"[..].into());
        let expected = [text, PacketsRequest::Close].map(|request| (CALLER, MediaRequest::Packets(request)));
        assert_eq!(said, expected);
    }

    #[test]
    fn the_counts_of_sessions_outlive_them() {
        let mut neighbours = neighbours();
        neighbours.answer(plan());
        let drain = |neighbours: &mut Neighbours| {
            while neighbours.poll_indication(NOW).is_some() || neighbours.poll_request(NOW).is_some() {}
        };
        for caller in [CALLER, LinkId(CALLER.0 + 1)] {
            neighbours.handle_indication(NOW, (caller, joined()));
            drain(&mut neighbours);
        }
        let left = DatagramsIndication::Left(longwire_proto::service::CloseReason::Finished);
        neighbours.handle_indication(NOW, (CALLER, MediaIndication::Datagrams(left)));
        drain(&mut neighbours);
        assert_eq!((neighbours.shown(CALLER), neighbours.counts("udp")["joined"]), (None, 2));
        assert!(neighbours.counts("tcp").is_empty());
    }
}
