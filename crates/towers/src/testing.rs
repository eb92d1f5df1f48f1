//! Bodies of the fuzz targets over the table, and what the laws need of it.

use crate::carrier::{AnyCarrier, ChannelFacts, LinkFacts, Medium, Place, Plan};
use crate::carriers::CARRIERS;
use crate::media::PartOf;
use longwire_proto::ax25::RadioParameters;
use longwire_proto::engine::{Engine, Indication, Request, forward};
use longwire_proto::fuzz::{self, Codec, Script};
use longwire_proto::joint::Origin;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Datagrams, Packets, Stream};
use longwire_proto::time::{Duration, Instant};
use longwire_settings::error::Error;
use std::marker::PhantomData;
use toml::{Table, Value};

/// Node IDs of two neighbours.
const NODES: [&str; 2] = ["dtn://here/", "dtn://there/"];

/// Returns the plan of a link of one of two neighbours. On a channel, answers take as long as in the laws.
///
/// # Errors
/// Fails on settings that make no sense.
pub fn plan(carrier: &'static dyn AnyCarrier, section: &Table, node: usize) -> Result<Plan, Error> {
    let mut own = Table::new();
    if carrier.about().is_group {
        own.insert("members".to_owned(), Value::from(vec![NODES[1 - node]]));
    }
    let parameters =
        RadioParameters { rate_bps: 1_000_000, turnaround: Duration::from_secs(6), ..Default::default() };
    let channel = Some(ChannelFacts { tnc: "tnc", parameters, digipeaters: 0 });
    let facts = LinkFacts { node_id: NODES[node], own, channel, ..LinkFacts::default() };
    carrier.plan(section, &facts, Place::Experiment)
}

/// Draws settings: the default ones, or those of a preset.
pub fn draw_section(carrier: &dyn AnyCarrier, draw: &mut Rng) -> Table {
    let about = carrier.about();
    let presets: Vec<_> = about.families.iter().flat_map(|family| family.presets).collect();
    let preset = presets.get(draw.below(presets.len() as u64 + 1) as usize);
    let section = preset.map(|preset| (preset.settings)(&[])[about.section].clone());
    section.and_then(|section| section.try_into().ok()).unwrap_or_default()
}

/// Draws settings of which two may be others than those of a preset: numbers are small, so that limits are reached.
fn draw_plan(carrier: &'static dyn AnyCarrier, draw: &mut Rng) -> Plan {
    let section = draw_section(carrier, draw);
    let mut changed = section.clone();
    let values: Vec<(String, Value)> = carrier.defaults().into_iter().collect();
    for _ in 0..2 {
        match &values[draw.below(values.len() as u64) as usize] {
            (key, Value::Integer(_)) => changed.insert(key.clone(), Value::Integer(1 << draw.below(12))),
            (key, Value::Boolean(is_set)) => changed.insert(key.clone(), Value::Boolean(!is_set)),
            _ => None,
        };
    }
    plan(carrier, &changed, 0).or_else(|_| plan(carrier, &section, 0)).expect("presets make sense")
}

/// Returns all codecs, with those of the carriers.
pub fn codecs() -> impl Iterator<Item = &'static Codec> {
    fuzz::CODECS.iter().chain(CARRIERS.iter().flat_map(|carrier| carrier.fuzz().codecs))
}

/// Returns the plays of all carriers: on each of their media, as the side that calls and, if peers may open its links, as
/// the one that is called.
pub fn plays() -> impl Iterator<Item = CarrierPlay> {
    CARRIERS.iter().flat_map(|carrier| {
        let origins: &[Origin] = match carrier.about().is_called {
            true => &[Origin::Above, Origin::Below],
            false => &[Origin::Above],
        };
        let play = |medium, origin| CarrierPlay { carrier: *carrier, medium, origin };
        let media = carrier.about().media.iter();
        media.flat_map(move |medium| origins.iter().map(move |origin| play(*medium, *origin)))
    })
}

/// An engine over [`Media`](crate::Media), or over links of all media, for a provider of one medium. A request to another
/// one is an error of the engine.
///
/// Nothing waits in between: a request that waited while newer room passed it would be missing in that room.
pub struct Over<S, E> {
    engine: E,
    service: PhantomData<S>,
}

/// Puts an engine over one medium.
pub fn over<S: PartOf, E: Engine<Below = S::Whole>>(engine: E) -> Over<S, E> {
    Over { engine, service: PhantomData }
}

impl<S: PartOf, E: Engine<Below = S::Whole>> Engine for Over<S, E> {
    type Above = E::Above;
    type Below = S;

    forward!(engine: handle_request handle_timeout poll_indication poll_timeout finished observe);

    fn handle_indication(&mut self, now: Instant, indication: Indication<S>) {
        self.engine.handle_indication(now, S::widen_indication(indication));
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<S>> {
        let request = self.engine.poll_request(now)?;
        Some(S::narrow_request(request).expect("a request to the link's medium"))
    }
}

/// A session of a carrier between a user and a medium that follow a script.
#[derive(Clone, Copy)]
pub struct CarrierPlay {
    carrier: &'static dyn AnyCarrier,
    medium: Medium,
    origin: Origin,
}

impl CarrierPlay {
    /// Name, for messages.
    pub fn name(&self) -> String {
        format!("{} over {:?} from {:?}", self.carrier.about().name, self.medium, self.origin)
    }

    /// Plays a script, and returns the amount of the session's output.
    pub fn run(&self, script: &mut Script<'_>) -> u64 {
        let plan = draw_plan(self.carrier, &mut script.rng());
        let session = plan.session(self.origin, script.rng());
        let (is_called, speech) = (self.origin == Origin::Below, self.carrier.fuzz().speech);
        match self.medium {
            Medium::Tcp => fuzz::over_stream(over::<Stream, _>(session), is_called, speech, script),
            Medium::Ax25 => fuzz::over_packets(over::<Packets, _>(session), is_called, speech, script),
            Medium::Udp | Medium::Ui => {
                fuzz::over_datagrams(over::<Datagrams, _>(session), is_called, speech, script)
            }
        }
    }
}

/// Passes the bytes to the codec that the first one selects.
pub fn decode(data: &[u8]) {
    if let Some((&choice, rest)) = data.split_first() {
        let codec = codecs().nth(usize::from(choice) % codecs().count()).expect("there are as many");
        (codec.check)(&rest.to_vec().into());
    }
}

/// Plays the bytes as a script with the engine that the first one selects.
pub fn converse(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let (choice, script) = (usize::from(choice), &mut Script::new(rest));
    let choice = choice % (fuzz::PLAYS.len() + plays().count());
    match fuzz::PLAYS.get(choice) {
        Some(play) => (play.run)(script),
        None => plays().nth(choice - fuzz::PLAYS.len()).expect("there are as many").run(script),
    };
}
