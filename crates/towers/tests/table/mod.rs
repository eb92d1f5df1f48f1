//! The laws over a carrier of the table, and sessions that break them.

use longwire_proto::engine::{Engine, Indication, forward};
use longwire_proto::joint::{Fan, Origin};
use longwire_proto::laws::{
    BundleUserBehaviour, Layer, Start, SweepCounts, World, hold_over_datagrams, hold_over_packets,
    hold_over_stream,
};
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, Datagrams, DatagramsIndication, LinkId, Many, Packets,
    Stream, TransferId,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::{Checked, CheckedService};
use longwire_towers::media::PartOf;
use longwire_towers::trial::{draw_section, over, plan};
use longwire_towers::{Admission, AnyCarrier, Media, MediaIndication, Medium, Neighbours, Plan, Session};
use std::collections::BTreeMap;

/// Puts something between a session and its user and medium, or nothing.
pub(crate) type Dress = fn(Session) -> Session;

/// All links of a node over a medium.
type Node<S> = Box<dyn Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, S>>>;

/// Runs a carrier under the laws. With a `dress`, only its sessions, each by itself.
pub(crate) fn hold(
    carrier: &'static dyn AnyCarrier,
    medium: Medium,
    seeds: u64,
    dress: Option<Dress>,
) -> SweepCounts {
    let name = format!("{} over {medium:?}", carrier.about().name);
    match medium {
        Medium::Tcp => hold_over_stream(&name, seeds, |world| Layer {
            both_call: 0.5,
            ..layer::<Stream>(carrier, dress, world)
        }),
        Medium::Ax25 => hold_over_packets(&name, seeds, |world| layer::<Packets>(carrier, dress, world)),
        // Not every carrier segments.
        Medium::Udp | Medium::Ui => hold_over_datagrams(&name, seeds, 65_507..=65_507, |world| {
            layer::<Datagrams>(carrier, dress, world)
        }),
    }
}

fn layer<S>(
    carrier: &'static dyn AnyCarrier,
    dress: Option<Dress>,
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
    let as_a_whole = dress.is_none() && world.draw.chance(0.5);
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
                    let session = match dress {
                        Some(dress) => dress(session),
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

/// Puts a flaw around a session.
pub(crate) struct Flawed {
    session: Session,
    /// Accepts what has risen, in place of the user.
    confirms_early: bool,
    /// Loses every third datagram without a word.
    loses_datagrams: bool,
    risen: BTreeMap<TransferId, u64>,
    received: u64,
}

impl Flawed {
    fn new(session: Session) -> Self {
        Flawed { session, confirms_early: false, loses_datagrams: false, risen: BTreeMap::new(), received: 0 }
    }

    /// Confirms bundles before their user accepts them.
    pub(crate) fn that_confirms_early(session: Session) -> Session {
        Box::new(Flawed { confirms_early: true, ..Flawed::new(session) })
    }

    /// Loses datagrams and does not release them.
    pub(crate) fn that_loses_datagrams(session: Session) -> Session {
        Box::new(Flawed { loses_datagrams: true, ..Flawed::new(session) })
    }
}

impl Admission for Flawed {}

impl Engine for Flawed {
    type Above = Bundles;
    type Below = Media;

    forward!(session: handle_timeout poll_request poll_timeout finished);

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        if !(self.confirms_early && matches!(request, BundlesRequest::Accept { .. })) {
            self.session.handle_request(now, request);
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: MediaIndication) {
        if let MediaIndication::Datagrams(DatagramsIndication::Datagram { .. }) = &indication {
            self.received += 1;
            if self.loses_datagrams && self.received.is_multiple_of(3) {
                return;
            }
        }
        self.session.handle_indication(now, indication);
    }

    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Bundles>> {
        let indication = self.session.poll_indication(now)?;
        if let (true, BundlesIndication::Piece { transfer, data, .. }) = (self.confirms_early, &indication) {
            let risen = self.risen.entry(*transfer).or_default();
            *risen += data.len() as u64;
            self.session.handle_request(now, BundlesRequest::Accept { transfer: *transfer, up_to: *risen });
        }
        Some(indication)
    }
}

/// Asserts that a flaw breaks a law whose message has one of these words.
pub(crate) fn breaks(carrier: &'static dyn AnyCarrier, medium: Medium, flaw: Dress, laws: &[&str]) {
    let run = std::panic::AssertUnwindSafe(|| hold(carrier, medium, 100, Some(flaw)));
    let panic = std::panic::catch_unwind(run).expect_err("the flaw was not found");
    let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    let name = carrier.about().name;
    assert!(laws.iter().any(|law| message.contains(law)), "{name} over {medium:?}: {message}");
}
