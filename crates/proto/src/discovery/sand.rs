//! Announcements of SAND, Secure Advertisement and Neighborhood Discovery (draft-ietf-dtn-bp-sand-02).
//!
//! An announcement is a bundle with hop limit 1, in a UDP datagram to a multicast group (4.6). Its payload is a CBOR sequence:
//! the version and byte strings, each with a message, which is a map (4.2, 5).
//!
//! | message | type | used of it |
//! |---|---|---|
//! | Data Solicitation | 1 | sent at the start; answered with an announcement |
//! | Convergence Layer Advertisement | 3 | the port of TCPCL version 4 or 3 |
//! | Underlayer Advertisement | 8 | sent with the index alone, because the address is the one of the datagram |
//! | others | | ignored |
//!
//! Not implemented: Credential Advertisements, because the keys of nodes are no certificates and stand in the signatures;
//! topology, router, resource and endpoint advertisements, because routing does without them; schedules and names of hosts.
//! The draft signs with the COSE context; the signature here is that of [`crate::bp::bpsec`], and announcements without any
//! are read as well. The numbers of the endpoint and the addresses of the groups are not assigned yet (8.1, 8.2): the
//! destination here is `dtn://~neighbours/sand`, the source is the node ID with `sand` or service 4556, and receivers judge by
//! the payload alone.

use super::{Announcement, Format, is_plain_node};
use crate::bp::{Bundle, BundleFlags, Content, CrcType, DecodePolicy, Eid, Head, HopCount, PrimaryBlock};
use crate::codec::cbor::{self, Major};
use crate::codec::{self, DecodeError};
use crate::service::{CreationTimestamp, DtnTime};
use crate::time::Duration;
use bytes::{Bytes, BytesMut};

/// Maximum length of a datagram with an announcement, bytes.
pub const DATAGRAM_BYTES_MAX: usize = 4096;
/// Version of the messages.
const VERSION: u64 = 1;
/// Maximum number of messages in an announcement, of pairs in a map, and of entries in a list.
const ENTRIES_MAX: u64 = 32;
/// Maximum nesting of values that are skipped.
const DEPTH_MAX: u8 = 8;
/// Default port of the convergence layers (RFC 9174 8.1).
const DEFAULT_PORT: u16 = 4556;
/// Service of the announcements of nodes with numbers.
const SERVICE: u64 = 4556;
const DESTINATION: &str = "dtn://~neighbours/sand";

const STRUCTURE: &str = "draft-ietf-dtn-bp-sand 4.2";
const MESSAGE: &str = "draft-ietf-dtn-bp-sand 5";
const INSTANCE: &str = "draft-ietf-dtn-bp-sand 5.4.1";

const TYPE: i64 = 0;
const VALIDITY: i64 = 3;
const INTERVAL: i64 = 4;
const LIST: i64 = -1;
const SOLICITATION: i64 = 1;
const CONVERGENCE_LAYERS: i64 = 3;
const UNDERLAYER: i64 = 8;

const POINT: i64 = 1;
const PORT: i64 = 4;
const ROLE: i64 = 6;
/// Role of a node that accepts connections (5.4.1).
const PASSIVE: u64 = 1;
/// Role of a node that only connects to others.
const ACTIVE: u64 = 2;
/// Codes of TCPCL versions 4 and 3 (5.4.1.1, 5.4.1.4).
const TCPCL: [i64; 2] = [1, 254];

/// Messages of an announcement, as far as they are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Types of messages that the node asks for; none if it asks for nothing.
    pub solicited: Vec<i64>,
    /// Time for which the messages are valid, milliseconds.
    pub validity_ms: Option<u64>,
    /// Interval of the messages, milliseconds.
    pub interval_ms: Option<u64>,
    /// Instances of convergence layers.
    pub instances: Vec<Instance>,
}

/// Instance of a convergence layer (5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Code of the convergence layer.
    pub code: i64,
    /// Port; `None` for the one that is assigned to it.
    pub port: Option<u16>,
    /// The node accepts connections.
    pub passive: bool,
}

impl Messages {
    /// Decodes the payload of an announcement, which is the whole input.
    ///
    /// # Errors
    /// Fails if the structure is invalid, or has more than 32 entries anywhere.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        // A prototype of the draft sends no version.
        let begins_with_message = input.first().is_some_and(|first| first >> 5 == Major::ByteString as u8);
        if !begins_with_message && cbor::unsigned(input, "a version of SAND", STRUCTURE)? != VERSION {
            return Err(DecodeError::invalid("an unknown version of SAND", STRUCTURE));
        }
        let (mut messages, mut count) = (Messages::default(), 0);
        while !input.is_empty() {
            count += 1;
            if count > ENTRIES_MAX {
                return Err(DecodeError::invalid("a number of messages", STRUCTURE));
            }
            let mut message = cbor::byte_string(input, "a message of SAND", STRUCTURE)?;
            messages.add(&mut message)?;
            if !message.is_empty() {
                return Err(DecodeError::invalid("the end of a message", STRUCTURE));
            }
        }
        if count == 0 { Err(DecodeError::invalid("a number of messages", STRUCTURE)) } else { Ok(messages) }
    }

    fn add(&mut self, message: &mut Bytes) -> Result<(), DecodeError> {
        let mut kind = None;
        for _ in 0..pairs(message, MESSAGE)? {
            match (integer(message, MESSAGE)?, kind) {
                (TYPE, None) => kind = Some(integer(message, MESSAGE)?),
                (_, None) => return Err(DecodeError::invalid("the first key of a message", STRUCTURE)),
                (VALIDITY, _) => {
                    least(&mut self.validity_ms, cbor::unsigned(message, "a validity", MESSAGE)?)
                }
                (INTERVAL, _) => {
                    least(&mut self.interval_ms, cbor::unsigned(message, "an interval", MESSAGE)?)
                }
                (LIST, Some(SOLICITATION)) => {
                    for _ in 0..entries(message)? {
                        let wanted = integer(message, MESSAGE)?;
                        if self.solicited.len() < ENTRIES_MAX as usize {
                            self.solicited.push(wanted);
                        }
                    }
                }
                (LIST, Some(CONVERGENCE_LAYERS)) => {
                    for _ in 0..entries(message)? {
                        let instance = Instance::decode(message)?;
                        if self.instances.len() < ENTRIES_MAX as usize {
                            self.instances.push(instance);
                        }
                    }
                }
                _ => drop(cbor::any_item(message, DEPTH_MAX)?),
            }
        }
        kind.map(drop).ok_or(DecodeError::invalid("a message without a type", MESSAGE))
    }

    /// Appends the payload of an announcement.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_unsigned(VERSION, out);
        if !self.solicited.is_empty() {
            self.put_message(SOLICITATION, out, |out| {
                cbor::put_array(self.solicited.len() as u64, out);
                self.solicited.iter().for_each(|wanted| put_integer(*wanted, out));
            });
        }
        self.put_message(UNDERLAYER, out, |out| {
            cbor::put_array(1, out);
            cbor::put_head(Major::Map, 1, out);
            put_integer(0, out);
            cbor::put_unsigned(0, out);
        });
        self.put_message(CONVERGENCE_LAYERS, out, |out| {
            cbor::put_array(self.instances.len() as u64, out);
            self.instances.iter().for_each(|instance| instance.encode(out));
        });
    }

    fn put_message(&self, kind: i64, out: &mut BytesMut, list: impl FnOnce(&mut BytesMut)) {
        let common = [(VALIDITY, self.validity_ms), (INTERVAL, self.interval_ms)];
        let common: Vec<(i64, u64)> =
            common.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        let message = codec::encoded(64, |out| {
            cbor::put_head(Major::Map, 2 + common.len() as u64, out);
            put_integer(TYPE, out);
            put_integer(kind, out);
            for (key, value) in common {
                put_integer(key, out);
                cbor::put_unsigned(value, out);
            }
            put_integer(LIST, out);
            list(out);
        });
        cbor::put_byte_string(&message, out);
    }

    /// Port on which the node accepts connections of TCPCL; `None` if it accepts none.
    fn tcp_port(&self) -> Option<u16> {
        let of = |code: i64| {
            let mut fit = self.instances.iter().filter(|instance| instance.code == code && instance.passive);
            fit.next().map(|instance| instance.port.unwrap_or(DEFAULT_PORT))
        };
        TCPCL.into_iter().find_map(of)
    }
}

impl Instance {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let (mut code, mut port, mut passive) = (None, None, true);
        for _ in 0..pairs(input, INSTANCE)? {
            match integer(input, INSTANCE)? {
                TYPE => code = Some(integer(input, INSTANCE)?),
                PORT => {
                    let number = cbor::unsigned(input, "a port", INSTANCE)?;
                    let number = u16::try_from(number).ok().filter(|number| *number > 0);
                    port = Some(number.ok_or(DecodeError::invalid("a port", INSTANCE))?);
                }
                ROLE => passive = cbor::unsigned(input, "roles", INSTANCE)? & PASSIVE != 0,
                _ => drop(cbor::any_item(input, DEPTH_MAX)?),
            }
        }
        let code = code.ok_or(DecodeError::invalid("a convergence layer without a type", INSTANCE))?;
        Ok(Instance { code, port, passive })
    }

    fn encode(&self, out: &mut BytesMut) {
        let count = 2 + u64::from(self.port.is_some()) + u64::from(!self.passive);
        cbor::put_head(Major::Map, count, out);
        put_integer(TYPE, out);
        put_integer(self.code, out);
        put_integer(POINT, out);
        cbor::put_unsigned(0, out);
        if let Some(port) = self.port {
            put_integer(PORT, out);
            cbor::put_unsigned(port.into(), out);
        }
        if !self.passive {
            put_integer(ROLE, out);
            cbor::put_unsigned(ACTIVE, out);
        }
    }
}

/// Keeps the lowest value that was said.
fn least(known: &mut Option<u64>, said: u64) {
    *known = Some(known.map_or(said, |known| known.min(said)));
}

fn pairs(input: &mut Bytes, clause: &'static str) -> Result<u64, DecodeError> {
    match cbor::head(input)? {
        (Major::Map, Some(count)) if count <= ENTRIES_MAX => Ok(count),
        _ => Err(DecodeError::invalid("a map", clause)),
    }
}

fn entries(input: &mut Bytes) -> Result<u64, DecodeError> {
    match cbor::array(input, "a list", MESSAGE)? {
        Some(count) if count <= ENTRIES_MAX => Ok(count),
        _ => Err(DecodeError::invalid("a list", MESSAGE)),
    }
}

/// Consumes an integer of 16 bits (figure 2).
fn integer(input: &mut Bytes, clause: &'static str) -> Result<i64, DecodeError> {
    const MAX: u64 = 0x7fff;
    match cbor::head(input)? {
        (Major::Unsigned, Some(value)) if value <= MAX => Ok(value as i64),
        (Major::Negative, Some(value)) if value <= MAX => Ok(-1 - value as i64),
        _ => Err(DecodeError::invalid("an integer of 16 bits", clause)),
    }
}

fn put_integer(value: i64, out: &mut BytesMut) {
    match u64::try_from(value) {
        Ok(value) => cbor::put_unsigned(value, out),
        Err(_) => cbor::put_head(Major::Negative, value.unsigned_abs() - 1, out),
    }
}

/// Properties of this node that it announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Node ID.
    pub node: Eid,
    /// Port on which it accepts connections of TCPCL; `None` if it accepts none.
    pub tcp_port: Option<u16>,
    /// Interval of its announcements.
    pub interval: Duration,
    /// Time for which they are valid.
    pub validity: Duration,
}

impl Own {
    /// Makes an announcement, not yet signed.
    pub fn bundle(&self, created: CreationTimestamp, solicits: bool) -> Bundle {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let messages = Messages {
            solicited: if solicits { vec![CONVERGENCE_LAYERS, UNDERLAYER] } else { Vec::new() },
            validity_ms: Some(millis(self.validity)),
            interval_ms: Some(millis(self.interval)),
            instances: vec![Instance {
                code: TCPCL[0],
                port: self.tcp_port,
                passive: self.tcp_port.is_some(),
            }],
        };
        let payload = codec::encoded(96, |out| messages.encode(out));
        let destination = DESTINATION.parse().expect("it is an endpoint ID");
        let mut primary = PrimaryBlock::new(destination, self.source(), created, millis(self.validity));
        primary.flags = BundleFlags::MUST_NOT_FRAGMENT;
        primary.crc = CrcType::Crc32c;
        let mut head = Head::new(primary, payload.len() as u64);
        head.set(&Content::HopCount(HopCount { limit: 1, count: 0 }));
        if created.time == DtnTime::UNKNOWN {
            head.set(&Content::BundleAge(0));
        }
        Bundle::new(head, payload)
    }

    fn source(&self) -> Eid {
        match &self.node {
            Eid::Ipn(ipn) => {
                let mut numbers = *ipn;
                numbers.service = SERVICE;
                Eid::Ipn(numbers)
            }
            node => format!("{node}sand").parse().unwrap_or_else(|_| node.clone()),
        }
    }
}

/// True if a datagram may be an announcement of SAND: a bundle of version 7 begins with an array of indefinite length.
pub fn recognises(datagram: &[u8]) -> bool {
    datagram.first() == Some(&0x9f)
}

/// Decodes the bundle of a datagram.
///
/// # Errors
/// Fails if the datagram is too long or no valid bundle, or has a hop limit other than 1.
pub fn bundle(datagram: &Bytes) -> Result<Bundle, DecodeError> {
    if datagram.len() > DATAGRAM_BYTES_MAX {
        return Err(DecodeError::invalid("the length of an announcement", STRUCTURE));
    }
    let policy = DecodePolicy { accept_no_time_no_age: true, ..DecodePolicy::STRICT };
    let bundle = Bundle::from_bytes(datagram, &policy)?;
    // A bundle that was forwarded came from elsewhere.
    let is_direct = bundle.head.hop_count().is_some_and(|hops| hops.limit == 1 && hops.count <= 1);
    let is_whole = bundle.head.primary.fragment.is_none();
    match is_direct && is_whole && bundle.head.previous_node().is_none() {
        true => Ok(bundle),
        false => Err(DecodeError::invalid("the hop limit of an announcement", STRUCTURE)),
    }
}

/// Reads the announcement in a bundle.
///
/// # Errors
/// Fails if the payload is no announcement, or the node has no name that can be used.
pub fn announcement(bundle: &Bundle) -> Result<Announcement, DecodeError> {
    let primary = &bundle.head.primary;
    let node = primary.source.node_id().detached();
    if !is_plain_node(&node) {
        return Err(DecodeError::invalid("the source of an announcement", STRUCTURE));
    }
    let messages = Messages::decode(&mut bundle.payload.clone())?;
    let lifetime = Duration::from_millis(primary.lifetime_ms);
    let validity = messages.validity_ms.map_or(lifetime, |ms| Duration::from_millis(ms).min(lifetime));
    Ok(Announcement {
        format: Format::Sand,
        node,
        created: Some(primary.timestamp).filter(|created| created.time != DtnTime::UNKNOWN),
        validity: Some(validity),
        tcp_port: messages.tcp_port(),
        solicits: !messages.solicited.is_empty(),
    })
}
