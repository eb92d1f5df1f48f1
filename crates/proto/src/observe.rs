//! Counters and state that engines show of themselves.
//!
//! An [`Observation`] is a list of parts, one for each engine that counts, in the order from top to bottom.
//! [`Engine::observe`](crate::engine::Engine::observe) fills it; joints show the engines in them, and a
//! [`Fan`](crate::joint::Fan) adds the ID of each.
//! It is optional: an engine shows nothing by default. One that counts derives serde's `Serialize` for its struct of
//! counters, so its crate needs serde.
//!
//! ```
//! use longwire_proto::observe::Observation;
//! use longwire_proto::rng::Rng;
//! use longwire_proto::udpcl;
//!
//! let link = udpcl::Link::new(udpcl::Config::default(), Rng::new(1));
//! let shown = Observation::of(&link);
//! assert_eq!(shown.parts[0].engine, "udpcl");
//! assert_eq!(shown.sum("udpcl")["joined"], 0);
//! ```

use crate::codec::variants;
use crate::time::Duration;
use core::fmt::{Debug, Error};
use serde::ser::{Impossible, Serialize, SerializeStruct, Serializer};
use std::collections::BTreeMap;

/// Counts by name.
pub type Counts = BTreeMap<&'static str, u64>;

/// A value of the state of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A condition that holds or does not.
    Flag(bool),
    /// A number.
    Number(u64),
    /// A duration.
    Time(Duration),
    /// A word or a name.
    Text(String),
}

variants!(Value: Flag(bool), Number(u64), Time(Duration), Text(String));

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Number(number as u64)
    }
}

/// Counters and state of one engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Name of the engine: that of its module.
    pub engine: &'static str,
    /// ID of the engine among others of its kind, with those of the fans around it, the outermost first; empty for an
    /// engine that is in no fan.
    pub id: Vec<String>,
    /// Counts since the engine was created.
    pub counts: Counts,
    /// Present state.
    pub state: BTreeMap<&'static str, Value>,
}

impl Part {
    /// Adds all fields of a struct of counters.
    pub fn count(&mut self, counters: &impl Serialize) -> &mut Self {
        for (name, count) in counts(counters) {
            *self.counts.entry(name).or_default() += count;
        }
        self
    }

    /// Adds a value of the state.
    pub fn tell(&mut self, name: &'static str, value: impl Into<Value>) -> &mut Self {
        self.state.insert(name, value.into());
        self
    }

    /// Returns a number of the state; `None` if there is none of this name.
    pub fn number(&self, name: &str) -> Option<u64> {
        if let Value::Number(number) = self.state.get(name)? { Some(*number) } else { None }
    }

    /// Returns a text of the state; `None` if there is none of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        if let Value::Text(text) = self.state.get(name)? { Some(text) } else { None }
    }

    /// Returns true if the state has a flag of this name and it is set.
    pub fn flag(&self, name: &str) -> bool {
        self.state.get(name) == Some(&Value::Flag(true))
    }
}

/// Counters and states of an engine and of those in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The engines that show something, from top to bottom.
    pub parts: Vec<Part>,
}

impl Observation {
    /// Adds a part for an engine, and returns it to be filled.
    pub fn part(&mut self, engine: &'static str) -> &mut Part {
        let part = Part { engine, id: Vec::new(), counts: Counts::new(), state: BTreeMap::new() };
        self.parts.push(part);
        self.parts.last_mut().expect("it was just added")
    }

    /// Sums of the counts of all engines of this name.
    pub fn sum(&self, engine: &str) -> Counts {
        let mut sum = Counts::new();
        for part in self.parts.iter().filter(|part| part.engine == engine) {
            for (name, count) in &part.counts {
                *sum.entry(name).or_default() += count;
            }
        }
        sum
    }
}

/// Returns the fields of a struct of counters by name. The struct derives serde's `Serialize`.
///
/// # Panics
/// Panics if it is no struct, or has a field that is no `u64`.
pub fn counts(counters: &impl Serialize) -> Counts {
    let mut counts = Counts::new();
    counters.serialize(Reader(&mut counts)).expect("counters are a struct of numbers");
    counts
}

/// Reads a struct of `u64`, or one of its fields.
struct Reader<'a>(&'a mut Counts);

impl SerializeStruct for Reader<'_> {
    type Ok = u64;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        let count = value.serialize(Reader(&mut Counts::new()))?;
        self.0.insert(name, count);
        Ok(())
    }

    fn end(self) -> Result<u64, Error> {
        Ok(0)
    }
}

/// Methods of a serializer for values that are not counters.
macro_rules! refused {
    ($($method:ident($($of:ty),*) -> $as:ty;)*) => {
        $(fn $method(self, $(_: $of),*) -> Result<$as, Error> { Err(Error) })*
    };
}

type Refused = Impossible<u64, Error>;

impl Serializer for Reader<'_> {
    type Ok = u64;
    type Error = Error;
    type SerializeSeq = Refused;
    type SerializeTuple = Refused;
    type SerializeTupleStruct = Refused;
    type SerializeTupleVariant = Refused;
    type SerializeMap = Refused;
    type SerializeStruct = Self;
    type SerializeStructVariant = Refused;

    fn serialize_u64(self, value: u64) -> Result<u64, Error> {
        Ok(value)
    }

    fn serialize_struct(self, _name: &'static str, _fields: usize) -> Result<Self, Error> {
        Ok(self)
    }

    refused! {
        serialize_bool(bool) -> u64;
        serialize_i8(i8) -> u64;
        serialize_i16(i16) -> u64;
        serialize_i32(i32) -> u64;
        serialize_i64(i64) -> u64;
        serialize_u8(u8) -> u64;
        serialize_u16(u16) -> u64;
        serialize_u32(u32) -> u64;
        serialize_f32(f32) -> u64;
        serialize_f64(f64) -> u64;
        serialize_char(char) -> u64;
        serialize_str(&str) -> u64;
        serialize_bytes(&[u8]) -> u64;
        serialize_none() -> u64;
        serialize_unit() -> u64;
        serialize_unit_struct(&'static str) -> u64;
        serialize_unit_variant(&'static str, u32, &'static str) -> u64;
        serialize_seq(Option<usize>) -> Refused;
        serialize_tuple(usize) -> Refused;
        serialize_tuple_struct(&'static str, usize) -> Refused;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Refused;
        serialize_map(Option<usize>) -> Refused;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Refused;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _value: &T) -> Result<u64, Error> {
        Err(Error)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _value: &T,
    ) -> Result<u64, Error> {
        Err(Error)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<u64, Error> {
        Err(Error)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::joint::{Beside, Fan, PassThrough, Stack};
    use crate::rng::Rng;
    use crate::service::{BundlesRequest, Frames, LinkId, Storage};
    use crate::time::Instant;
    use crate::wrap::{Checked, Impair, ImpairConfig};
    use crate::{aeronp, aerorp, agwpe, ax25, ax25cl, bp, controller, kiss, tcp, tcpcl};

    /// Checks that an engine shows every counter that its structs have, under names that metrics can have.
    pub(crate) fn expect(engine: &impl Engine, name: &str, structs: &[Counts]) {
        let shown = Observation::of(engine);
        let part = shown.parts.iter().find(|part| part.engine == name);
        let fields: usize = structs.iter().map(Counts::len).sum();
        let counts = &part.unwrap_or_else(|| panic!("{name} is not among {:?}", shown.parts)).counts;
        assert_eq!(counts.len(), fields, "two counters of {name} have one name: {counts:?}");
        assert!(structs.iter().flatten().all(|(field, _)| counts.contains_key(field)), "{name}");
        let snake = |name: &&str| {
            name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        assert!(counts.keys().all(snake), "{counts:?}");
    }

    #[test]
    fn every_engine_that_counts_shows_all_its_counters() {
        let rng = || Rng::new(1);
        let node = bp::agent::Config { node: "dtn://a/".to_owned(), ..Default::default() };
        let agent = bp::agent::Agent::new(node, rng()).expect("a node ID");
        expect(&agent, "agent", &[counts(&bp::agent::Counters::default())]);
        let tcpcl = tcpcl::Session::active(tcpcl::Config::default(), rng());
        expect(&Checked::new("tcpcl", tcpcl), "tcpcl", &[counts(&tcpcl::Counters::default())]);
        let ax25cl = ax25cl::Session::active(ax25cl::Config::default(), rng());
        expect(&ax25cl, "ax25cl", &[counts(&ax25cl::Counters::default())]);
        let router = Box::new(aerorp::AeroRp::new(aerorp::Config::default()));
        let (node, flight) = (aeronp::Config::default(), Default::default());
        let node = aeronp::Node::new(node, router, flight, Instant::ZERO, rng());
        expect(&node, "aeronp", &[counts(&aeronp::Counters::default())]);
        let station = ax25::Station::new(ax25::Config::new("N0CALL".parse().expect("a callsign")));
        expect(&station, "ax25", &[counts(&ax25::Counters::default()), counts(&ax25::Drops::default())]);
        let host = tcp::Host::new(tcp::config::HostConfig::default(), rng());
        expect(&host, "tcp", &[counts(&tcp::Counters::default()), counts(&tcp::Drops::default())]);
        let tnc = kiss::KissTnc::new(kiss::Config::default(), controller::Config::default());
        expect(&tnc, "kiss", &[counts(&kiss::Counters::default())]);
        let port = agwpe::RawPort::new(agwpe::Config::default(), controller::Config::default());
        expect(&port, "agwpe", &[counts(&agwpe::Counters::default())]);
        let impair = Impair::<Frames>::new(ImpairConfig::default(), rng());
        expect(&impair, "impair", &[counts(&impair.counters)]);
    }

    #[test]
    fn joints_show_what_is_in_them_from_top_to_bottom() {
        let node = bp::agent::Config { node: "dtn://a/".to_owned(), ..Default::default() };
        let agent = bp::agent::Agent::new(node, Rng::new(1)).expect("a node ID");
        let session = |_: LinkId, _| Some(tcpcl::Session::active(tcpcl::Config::default(), Rng::new(2)));
        let links = Fan::new(session);
        let mut below = Beside { first: PassThrough::<Storage>::new(), second: links };
        for link in [7, 9] {
            below.second.handle_request(Instant::ZERO, (LinkId(link), BundlesRequest::Connect));
        }
        let node = Box::new(Stack::new(agent, below));
        let shown = Observation::of(&node);
        let parts: Vec<_> = shown.parts.iter().map(|part| (part.engine, part.id.join(" "))).collect();
        let link = |id: &str| ("tcpcl", format!("LinkId({id})"));
        assert_eq!(parts, [("agent", String::new()), link("7"), link("9")]);
        assert_eq!(shown.sum("tcpcl").len(), counts(&tcpcl::Counters::default()).len());
        assert!(shown.sum("another").is_empty());
    }

    #[test]
    #[should_panic(expected = "counters are a struct of numbers")]
    fn a_counter_is_a_number() {
        #[derive(serde::Serialize)]
        struct Named {
            name: &'static str,
        }
        counts(&Named { name: "a" });
    }
}
