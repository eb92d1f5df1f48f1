//! Choice of the convergence layer of a link over AX.25: by the configuration, or by the first packet of an incoming link.
//!
//! A peer that uses AX25CM-CL begins with the contact header of TCPCL 3 (`dtn!`); everything else goes to AX25-CL, which
//! recognises its hello. Until the first packet an incoming link is held here; it is closed when that takes too long. Links
//! to groups use unconnected frames.

use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::joint::{Fan, Origin, Stack, earlier};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, Bundles, Datagrams, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port,
};
use longwire_proto::tcpcl::{self, PacketStream};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::uicl::Group;
use longwire_proto::{ax25cl, tcpcl::Session};
use longwire_towers::carriers::{Ax25Cl, Ax25Cm, Uicl};
use longwire_towers::{Carrier as _, Plan};
use std::collections::{BTreeMap, VecDeque};

/// Maximum time between the connection and the first packet of an incoming link.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Maximum sessions over one TNC; further incoming ones are refused. A session whose link is lost counts until the time to
/// resume has passed.
const SESSIONS_MAX: usize = 256;
/// Beginning of a contact header of TCPCL 3 (RFC 7242 4.1).
const MAGIC: &[u8] = b"dtn!";

/// Session of TCPCL 3 over packets.
pub(super) type Packaged = Stack<Session, PacketStream>;
/// Engines by link; their owner inserts them.
type Links<L> = Fan<LinkId, L, fn(LinkId, Origin) -> Option<L>>;

/// Random numbers for each of many engines.
#[derive(Debug)]
struct NumberedRng {
    rng: Rng,
    made: u64,
}

impl NumberedRng {
    fn next(&mut self) -> Rng {
        self.made += 1;
        self.rng.fork(&self.made.to_string())
    }
}

/// Incoming link without a first packet.
#[derive(Debug)]
struct HeldCaller {
    connected: PacketsIndication,
    /// Packet sizes, if reported since.
    takes: Option<PacketsIndication>,
    room: u64,
    /// Time at which the link is closed.
    until: Instant,
    /// True while the link is being closed.
    ending: bool,
}

/// Convergence layers over one TNC.
pub(super) struct RadioConvergence {
    /// Settings of the links that this node opens.
    plans: BTreeMap<LinkId, Plan>,
    /// Settings for callers: of AX25-CL (Longwire) and of TCPCL 3.
    callers: (ax25cl::Config, tcpcl::Config),
    pub(super) ours: ax25cl::Sessions,
    pub(super) cm: Links<Packaged>,
    cm_rng: NumberedRng,
    pub(super) groups: Links<Group>,
    groups_rng: NumberedRng,
    held: BTreeMap<LinkId, HeldCaller>,
    down: VecDeque<(LinkId, PacketsRequest)>,
    /// Incoming links refused at the limit of sessions.
    pub(super) turned_away: u64,
}

impl RadioConvergence {
    /// No links. `callers`: settings for callers, of AX25-CL (Longwire) and of TCPCL 3.
    pub(super) fn new(callers: (ax25cl::Config, tcpcl::Config), rng: Rng) -> Self {
        RadioConvergence {
            plans: BTreeMap::new(),
            callers,
            ours: ax25cl::Sessions::new(Box::new(|_| None), rng.fork("ax25cl")),
            cm: Fan::new(|_, _| None),
            cm_rng: NumberedRng { rng: rng.fork("tcpcl"), made: 0 },
            groups: Fan::new(|_, _| None),
            groups_rng: NumberedRng { rng: rng.fork("uicl"), made: 0 },
            held: BTreeMap::new(),
            down: VecDeque::new(),
            turned_away: 0,
        }
    }

    /// Adds a link that this node opens.
    pub(super) fn add(&mut self, id: LinkId, plan: Plan) {
        self.plans.insert(id, plan);
    }

    /// Removes the settings of a link; its session ends by itself.
    pub(super) fn remove(&mut self, id: LinkId) {
        self.plans.remove(&id);
    }

    /// Takes over the settings for callers.
    pub(super) fn set_callers(&mut self, callers: (ax25cl::Config, tcpcl::Config)) {
        self.callers = callers;
    }

    /// Returns the convergence layer of a link that has a session or that this node opens.
    pub(super) fn layer(&self, id: LinkId) -> Option<&'static str> {
        let has = [
            (Ax25Cl::ABOUT.name, self.ours.session(id).is_some()),
            (Ax25Cm::ABOUT.name, self.cm.get(id).is_some()),
            (Uicl::ABOUT.name, self.groups.get(id).is_some()),
        ];
        let found = has.into_iter().find(|(_, has)| *has).map(|(name, _)| name);
        found.or_else(|| self.plans.get(&id).map(|plan| plan.carrier().about().name))
    }

    /// Prepares the session of a link that this node opens, if it has none.
    fn prepare(&mut self, id: LinkId) {
        let is_new =
            self.ours.session(id).is_none() && self.cm.get(id).is_none() && self.groups.get(id).is_none();
        let Some(plan) = self.plans.get(&id).filter(|_| is_new) else { return };
        if let Some(settings) = plan.settings::<Ax25Cl>() {
            self.ours.configure_next(id, settings.clone());
        } else if let Some(settings) = plan.settings::<Ax25Cm>() {
            let session = Session::active(settings.clone(), self.cm_rng.next());
            self.cm.insert(id, Stack::new(session, PacketStream::new()));
        } else if let Some(settings) = plan.settings::<Uicl>() {
            self.groups.insert(id, Group::new(settings.clone(), self.groups_rng.next()));
        }
    }

    /// Removes the state of a link.
    pub(super) fn forget(&mut self, id: LinkId) {
        self.ours.remove(id);
        self.cm.remove(id);
        self.groups.remove(id);
    }

    /// Assigns an incoming link to the convergence layer that its first packet indicates.
    fn settle(&mut self, now: Instant, id: LinkId, held: HeldCaller, packet: PacketsIndication) {
        if self.ours.count() + self.cm.iter().count() >= SESSIONS_MAX {
            self.turned_away += 1;
            self.held.insert(id, HeldCaller { ending: true, ..held });
            return self.down.push_back((id, PacketsRequest::Abort));
        }
        let is_cm = matches!(&packet, PacketsIndication::Packet(bytes) if bytes.starts_with(MAGIC));
        match is_cm {
            true => {
                let session = Session::passive(self.callers.1.clone(), self.cm_rng.next());
                self.cm.insert(id, Stack::new(session, PacketStream::new()));
            }
            false => self.ours.configure_next(id, self.callers.0.clone()),
        }
        let before = [Some(held.connected), held.takes, Some(PacketsIndication::Room(held.room))];
        for said in before.into_iter().flatten().chain([packet]) {
            match is_cm {
                true => self.cm.handle_indication(now, (id, said)),
                false => self.ours.handle_indication(now, (id, said)),
            }
        }
    }

    fn hear_packets(&mut self, now: Instant, id: LinkId, said: PacketsIndication) {
        if self.ours.owns(id) {
            self.ours.handle_indication(now, (id, said));
        } else if self.cm.get(id).is_some() {
            self.cm.handle_indication(now, (id, said));
        } else if id.is_incoming() {
            self.hear_held(now, id, said);
        }
    }

    fn hear_held(&mut self, now: Instant, id: LinkId, said: PacketsIndication) {
        match said {
            PacketsIndication::Connected { .. } => {
                let until = now + SILENCE_MAX;
                self.held
                    .insert(id, HeldCaller { connected: said, takes: None, room: 0, until, ending: false });
            }
            PacketsIndication::Sizes { .. } => {
                if let Some(held) = self.held.get_mut(&id) {
                    held.takes = Some(said);
                }
            }
            PacketsIndication::Room(room) => {
                if let Some(held) = self.held.get_mut(&id) {
                    held.room = room;
                }
            }
            PacketsIndication::Packet(_) => match self.held.remove(&id) {
                Some(held) if held.ending => drop(self.held.insert(id, held)),
                Some(held) => self.settle(now, id, held, said),
                None => {}
            },
            PacketsIndication::Acknowledged(_) => {}
            PacketsIndication::Closed(_) => drop(self.held.remove(&id)),
        }
    }
}

impl Engine for RadioConvergence {
    type Above = Many<LinkId, Bundles>;
    type Below = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

    fn handle_request(&mut self, now: Instant, (id, request): Request<Self::Above>) {
        self.prepare(id);
        match self.layer(id) {
            Some(name) if name == Ax25Cm::ABOUT.name => self.cm.handle_request(now, (id, request)),
            Some(name) if name == Uicl::ABOUT.name => self.groups.handle_request(now, (id, request)),
            Some(_) => self.ours.handle_request(now, (id, request)),
            // The link has been removed, and no reply is expected.
            None => {}
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Self::Below>) {
        match indication {
            Port::First((id, said)) => self.hear_packets(now, id, said),
            Port::Second(said) => self.groups.handle_indication(now, said),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.ours.poll_timeout().is_some_and(|at| at <= now) {
            self.ours.handle_timeout(now);
        }
        if self.cm.poll_timeout().is_some_and(|at| at <= now) {
            self.cm.handle_timeout(now);
        }
        if self.groups.poll_timeout().is_some_and(|at| at <= now) {
            self.groups.handle_timeout(now);
        }
        for (id, held) in self.held.iter_mut().filter(|(_, held)| held.until <= now && !held.ending) {
            held.ending = true;
            self.down.push_back((*id, PacketsRequest::Close));
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        let said = self.ours.poll_indication(now).or_else(|| self.cm.poll_indication(now));
        said.or_else(|| self.groups.poll_indication(now))
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        let packets = self.down.pop_front().or_else(|| self.ours.poll_request(now));
        let packets = packets.or_else(|| self.cm.poll_request(now)).map(Port::First);
        packets.or_else(|| self.groups.poll_request(now).map(Port::Second))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let held = self.held.values().filter(|held| !held.ending).map(|held| held.until).min();
        let groups = earlier(held, self.groups.poll_timeout());
        earlier(groups, earlier(self.ours.poll_timeout(), self.cm.poll_timeout()))
    }
}

impl core::fmt::Debug for RadioConvergence {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Convergence").field("ours", &self.ours).field("cm", &self.cm).finish_non_exhaustive()
    }
}
