//! The laws over a carrier of the table, and sessions that break them.

use longwire_proto::engine::{Engine, Indication, forward};
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::laws::{
    BundleUserBehaviour, Layer, Start, SweepCounts, World, hold_over_datagrams, hold_over_packets,
    hold_over_stream,
};
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, Datagrams, DatagramsIndication, LinkId, Many, Packets,
    PacketsIndication, Stream, StreamIndication, TransferFailure, TransferId,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::{Checked, CheckedService};
use longwire_towers::media::PartOf;
use longwire_towers::testing::{draw_section, over, plan};
use longwire_towers::{Admission, AnyCarrier, Media, MediaIndication, Medium, Neighbours, Plan, Session};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Puts a flaw around a session.
type Flaw = fn(Session) -> Session;

/// All links of a node over a medium.
type Node<S> = Box<dyn Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, S>>>;

/// Number of seeds of a sweep.
const SEEDS: u64 = 100;

/// Runs a carrier under the laws, in some worlds as all sessions of a node, in the others session by session.
pub(crate) fn hold(carrier: &'static dyn AnyCarrier, medium: Medium) {
    let counts = hold_with(carrier, medium, None);
    let SweepCounts { runs, sent, faults, timeouts } = counts;
    // A few seeds, such as one that is tried again, may have none of something.
    let is_long = runs >= SEEDS;
    let name = carrier.about().name;
    assert!(!is_long || (sent > 0 && faults > 0 && timeouts > 0), "{name} over {medium:?}: {counts}");
}

/// Runs a carrier under the laws. With a flaw, only its sessions, each by itself.
fn hold_with(carrier: &'static dyn AnyCarrier, medium: Medium, flaw: Option<Flaw>) -> SweepCounts {
    let name = format!("{} over {medium:?}", carrier.about().name);
    match medium {
        Medium::Tcp => hold_over_stream(&name, SEEDS, |world| Layer {
            both_call: 0.5,
            ..layer::<Stream>(carrier, flaw, world)
        }),
        Medium::Ax25 => hold_over_packets(&name, SEEDS, |world| layer::<Packets>(carrier, flaw, world)),
        // Not every carrier segments.
        Medium::Udp | Medium::Ui => hold_over_datagrams(&name, SEEDS, 65_507..=65_507, |world| {
            layer::<Datagrams>(carrier, flaw, world)
        }),
    }
}

fn layer<S>(
    carrier: &'static dyn AnyCarrier,
    flaw: Option<Flaw>,
    world: &mut World,
) -> Layer<'static, Node<S>>
where
    S: PartOf<Whole = Media> + CheckedService + 'static,
{
    let about = carrier.about();
    let users = BundleUserBehaviour {
        acknowledged: about.acknowledges,
        ..BundleUserBehaviour::draw(&mut world.draw)
    };
    let section = draw_section(carrier, &mut world.draw);
    let keeps_alive =
        carrier.document(&section).expect("settings").get("keepalive").is_some_and(|every| !every.is_null());
    let plans = [0, 1].map(|node| plan(carrier, &section, node).expect("presets make sense"));
    let as_a_whole = flaw.is_none() && world.draw.chance(0.5);
    let layer = Layer::new(users, move |start| -> Node<S> {
        let plan = plans[start.node].clone();
        match as_a_whole {
            true => Box::new(over::<Many<LinkId, S>, _>(neighbours(carrier, &plan, start))),
            false => {
                let rng = start.rng;
                Box::new(Fan::new(move |link: LinkId, origin| {
                    if origin == Origin::Above && link.is_incoming() {
                        return None;
                    }
                    let session = plan.session(origin, rng.fork(&format!("{link:?}")));
                    let session = match flaw {
                        Some(flaw) => flaw(session),
                        None => session,
                    };
                    Some(Checked::new("session", over::<S, _>(session)))
                }))
            }
        }
    });
    Layer {
        // A receiver that crashes forgets what it has confirmed, unless transfers resume.
        crashes: about.resumes || !about.acknowledges,
        patience: Duration::from_secs(100_000),
        keepalives: if keeps_alive { 3_000 } else { 0 },
        ..layer
    }
}

fn neighbours(carrier: &'static dyn AnyCarrier, plan: &Plan, start: Start) -> Neighbours {
    let mut neighbours = Neighbours::new(carrier, start.rng);
    [LinkId(1), LinkId(2)].into_iter().for_each(|link| neighbours.set(link, plan.clone()));
    neighbours.answer(plan.clone());
    neighbours
}

/// Asserts that the laws find each flaw in a carrier.
pub(crate) fn finds_flaws(carrier: &'static dyn AnyCarrier, medium: Medium) {
    for (name, flaw, laws) in FLAWS {
        if name == CONFIRMS_EARLY && !carrier.about().acknowledges {
            continue;
        }
        let name = format!("{} over {medium:?} {name}", carrier.about().name);
        let run = AssertUnwindSafe(|| hold_with(carrier, medium, Some(flaw)));
        let panic = match catch_unwind(run) {
            Err(panic) => panic,
            // A few seeds may not show it.
            Ok(counts) if counts.runs < SEEDS => continue,
            Ok(counts) => panic!("{name}, and no law finds it: {counts}"),
        };
        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(laws.iter().any(|law| message.contains(law)), "{name}, but what is found is: {message}");
    }
}

const CONFIRMS_EARLY: &str = "confirms bundles before its user accepts them";

/// Flaws: description, session, and words of the laws that find it.
const FLAWS: [(&str, Flaw, &[&str]); 5] = [
    (CONFIRMS_EARLY, |session| Flawed::new(session, FlawKind::ConfirmsEarly), &["safe"]),
    (
        "alters the bytes of bundles",
        |session| Flawed::new(session, FlawKind::AltersBytes),
        &["are not what was sent"],
    ),
    (
        "does not tell when a bundle is sent",
        |session| Flawed::new(session, FlawKind::NeverEnds),
        &["without a terminal indication", "is not sent"],
    ),
    (
        "says of all bundles that they are too long",
        |session| Flawed::new(session, FlawKind::CallsTooLong),
        &["failed as too long"],
    ),
    (
        "takes the room of its medium for twice as much",
        |session| Flawed::new(session, FlawKind::Overspends),
        &["it spends"],
    ),
];

/// Kind of a flaw.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlawKind {
    /// The session accepts pieces in place of its user.
    ConfirmsEarly,
    /// The session alters the first byte of each piece.
    AltersBytes,
    /// The session swallows `Sent`.
    NeverEnds,
    /// The session fails each transfer as too long.
    CallsTooLong,
    /// The session doubles the room of its medium.
    Overspends,
}

/// A session with a flaw.
struct Flawed {
    session: Session,
    kind: FlawKind,
    /// Bytes of each incoming transfer that were indicated.
    indicated: BTreeMap<TransferId, u64>,
    /// Transfers whose failure waits to be indicated.
    failed: VecDeque<TransferId>,
}

impl Flawed {
    #[expect(clippy::new_ret_no_self, reason = "all sessions have one type")]
    fn new(session: Session, kind: FlawKind) -> Session {
        Box::new(Flawed { session, kind, indicated: BTreeMap::new(), failed: VecDeque::new() })
    }

    fn accept(&mut self, now: Instant, transfer: TransferId, bytes: u64) {
        let up_to = self.indicated.entry(transfer).or_default();
        *up_to += bytes;
        self.session.handle_request(now, BundlesRequest::Accept { transfer, up_to: *up_to });
    }
}

impl Admission for Flawed {}

impl Engine for Flawed {
    type Above = Bundles;
    type Below = Media;

    forward!(session: handle_timeout poll_request poll_timeout finished);

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        match (self.kind, request) {
            (FlawKind::ConfirmsEarly, BundlesRequest::Accept { .. }) => {}
            (FlawKind::CallsTooLong, BundlesRequest::Open { transfer, .. }) => {
                self.failed.push_back(transfer)
            }
            (_, request) => self.session.handle_request(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, mut indication: MediaIndication) {
        if let (FlawKind::Overspends, Some(room)) = (self.kind, room_of(&mut indication)) {
            *room *= 2;
        }
        self.session.handle_indication(now, indication);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Bundles>> {
        if let Some(transfer) = self.failed.pop_front() {
            let reason = TransferFailure::TooLong;
            return Some(BundlesIndication::Failed { transfer, reason, acked: 0 });
        }
        loop {
            let mut indication = self.session.poll_indication(now)?;
            match (self.kind, &mut indication) {
                (FlawKind::ConfirmsEarly, BundlesIndication::Piece { transfer, data, .. }) => {
                    self.accept(now, *transfer, data.len() as u64);
                }
                (FlawKind::AltersBytes, BundlesIndication::Piece { data, .. }) => {
                    *data = data.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 0)).collect();
                }
                (FlawKind::NeverEnds, BundlesIndication::Sent { .. }) => continue,
                _ => {}
            }
            return Some(indication);
        }
    }
}

fn room_of(indication: &mut MediaIndication) -> Option<&mut u64> {
    match indication {
        MediaIndication::Stream(StreamIndication::Room(room))
        | MediaIndication::Datagrams(DatagramsIndication::Room(room))
        | MediaIndication::Packets(PacketsIndication::Room(room)) => Some(room),
        _ => None,
    }
}
