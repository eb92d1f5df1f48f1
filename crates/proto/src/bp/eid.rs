//! Endpoint IDs (RFC 9171 4.2.5, RFC 9758).
//!
//! Two endpoint IDs are equal if they name the same endpoint, whatever their encoding: `dtn:none`, `ipn:0.0`
//! and the malformed `ipn:0.7` are all the null endpoint (RFC 9758 3.4.1, 5.2), and the two CBOR encodings of
//! an `ipn` endpoint ID are equal (RFC 9758 6.4). The encoding is kept, because a primary block must be
//! forwarded byte for byte.

use crate::codec::cbor::Major;
use crate::codec::{DecodeError, cbor, take};
use crate::service::{BundleName, CreationTimestamp};
use bytes::{Bytes, BytesMut};
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Maximum length of an accepted scheme-specific part, bytes. No specification has a limit.
pub const SSP_BYTES_MAX: usize = 1024;

const EID: &str = "RFC 9171 4.2.5.1";
const DTN: &str = "RFC 9171 4.2.5.1.1";
const IPN: &str = "RFC 9758 6";
const IPN_TEXT: &str = "RFC 9758 4.1";

/// Endpoint ID; that of the administrative endpoint is the node ID.
///
/// A clone is cheap, and a decoded endpoint ID shares the memory of its input: see [`Eid::detached`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Eid {
    /// `dtn:none`: the null endpoint, which has no members.
    Null,
    /// `dtn://node/demux`.
    Dtn(DtnName),
    /// `ipn:node.service`, `ipn:allocator.node.service`.
    Ipn(IpnNumbers),
    /// Endpoint ID of an unknown scheme.
    Unknown {
        /// URI scheme code number.
        scheme: u64,
        /// Scheme-specific part, one CBOR item.
        ssp: Bytes,
    },
    /// Any other URI. Version 6 carries URIs as text. Version 7 has no scheme number for them: its decoders
    /// refuse what [`Eid::encode`] writes for one.
    Uri(Bytes),
}

/// Scheme-specific part of a `dtn` endpoint ID, with valid syntax: `//node/demux`.
#[derive(Clone)]
pub struct DtnName {
    ssp: Bytes,
    /// Offset of the demux in it, bytes.
    demux_at: u16,
    /// True for the form `//node` of version 6, without the final slash. Not part of the identity.
    bare: bool,
}

/// Numbers of an `ipn` endpoint ID (RFC 9758 3).
#[derive(Clone, Copy)]
pub struct IpnNumbers {
    /// Allocator identifier: the authority that assigned the node number; zero for IANA.
    pub allocator: u32,
    /// Node number.
    pub node: u32,
    /// Service number; zero for the administrative endpoint.
    pub service: u64,
    /// True for the three-element CBOR encoding. Not part of the identity (RFC 9758 6.4). All implementations
    /// read the two-element encoding.
    pub three_elements: bool,
}

/// Parts of an endpoint ID that decide equality, order and hash.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Identity<'a> {
    Null,
    Ipn(u32, u32, u64),
    Dtn(&'a [u8]),
    Unknown(u64, &'a [u8]),
    Uri(&'a [u8]),
}

impl Eid {
    /// Returns the name of the bundle of this source with this creation timestamp.
    pub fn bundle_name(&self, created: CreationTimestamp) -> BundleName {
        BundleName { source: self.to_string(), created }
    }

    /// Creates `ipn:node.service`.
    pub const fn ipn(node: u32, service: u64) -> Self {
        Eid::Ipn(IpnNumbers { allocator: 0, node, service, three_elements: false })
    }

    /// Creates `ipn:node.service` from a fully qualified node number of 64 bits, whose upper half is the
    /// allocator identifier (RFC 9758 3.3.1).
    pub const fn ipn_number(node: u64, service: u64) -> Self {
        let (allocator, node) = ((node >> 32) as u32, node as u32);
        Eid::Ipn(IpnNumbers { allocator, node, service, three_elements: false })
    }

    /// True for every form of the null endpoint.
    pub fn is_null(&self) -> bool {
        match self {
            Eid::Null => true,
            // Node number zero of the default allocator is the null endpoint whatever the service (RFC 9758 3.4.1).
            Eid::Ipn(ipn) => ipn.allocator == 0 && ipn.node == 0,
            Eid::Dtn(_) | Eid::Unknown { .. } | Eid::Uri(_) => false,
        }
    }

    /// True for `ipn:!.n`, which is valid only within the node (RFC 9758 5.4).
    pub fn is_local_node(&self) -> bool {
        matches!(self, Eid::Ipn(ipn) if ipn.allocator == 0 && ipn.node == u32::MAX)
    }

    /// True for a singleton endpoint, which has at most one member: every `ipn` endpoint, and every `dtn`
    /// endpoint whose demux does not begin with a tilde. Endpoints of unknown schemes count as singletons;
    /// the null endpoint has no members.
    pub fn is_singleton(&self) -> bool {
        match self {
            Eid::Dtn(name) => name.demux_bytes().first() != Some(&b'~'),
            Eid::Ipn(_) | Eid::Unknown { .. } | Eid::Uri(_) => !self.is_null(),
            Eid::Null => false,
        }
    }

    /// Node ID of the node to which the endpoint belongs: its administrative endpoint (RFC 9171 4.2.5.2). For
    /// a group endpoint, that of the node name in it. The null endpoint and endpoints of unknown schemes are
    /// returned unchanged.
    pub fn node_id(&self) -> Eid {
        match self {
            _ if self.is_null() => Eid::Null,
            Eid::Dtn(name) => {
                // An endpoint ID without a demux keeps its form.
                let bare = name.bare && name.demux_bytes().is_empty();
                let ssp = name.ssp.slice(..usize::from(name.demux_at));
                Eid::Dtn(DtnName { ssp, demux_at: name.demux_at, bare })
            }
            Eid::Ipn(ipn) => Eid::Ipn(IpnNumbers { service: 0, ..*ipn }),
            other => other.clone(),
        }
    }

    /// True if this is the administrative endpoint of a node.
    pub fn is_node_id(&self) -> bool {
        match self {
            Eid::Dtn(name) => name.demux_bytes().is_empty(),
            Eid::Ipn(ipn) => ipn.service == 0 && !self.is_null(),
            Eid::Null | Eid::Unknown { .. } | Eid::Uri(_) => false,
        }
    }

    /// True if both endpoints belong to the same node.
    pub fn same_node(&self, other: &Eid) -> bool {
        match (self, other) {
            (Eid::Dtn(a), Eid::Dtn(b)) => a.up_to_demux() == b.up_to_demux(),
            (Eid::Ipn(a), Eid::Ipn(b)) => (a.allocator, a.node) == (b.allocator, b.node),
            _ => self == other,
        }
    }

    /// Returns the same endpoint ID in its own memory. A decoded endpoint ID keeps its whole input buffer
    /// alive: use this for one that is kept long.
    pub fn detached(&self) -> Eid {
        let mut own = self.clone();
        Eid::detach([&mut own]);
        own
    }

    /// Moves several endpoint IDs into one shared allocation, which is smaller than one for each.
    pub fn detach<const N: usize>(names: [&mut Eid; N]) {
        let mut all: Vec<u8> =
            Vec::with_capacity(names.iter().map(|name| name.text().map_or(0, Bytes::len)).sum());
        for text in names.iter().filter_map(|name| name.text()) {
            all.extend_from_slice(text);
        }
        let mut all = Bytes::from(all);
        for name in names {
            if let Eid::Dtn(DtnName { ssp: text, .. }) | Eid::Uri(text) | Eid::Unknown { ssp: text, .. } =
                name
            {
                *text = all.split_to(text.len());
            }
        }
    }

    /// The part that is stored on the heap.
    fn text(&self) -> Option<&Bytes> {
        match self {
            Eid::Dtn(DtnName { ssp: text, .. }) | Eid::Uri(text) | Eid::Unknown { ssp: text, .. } => {
                Some(text)
            }
            Eid::Null | Eid::Ipn(_) => None,
        }
    }

    /// Decodes an endpoint ID from the front of the input: an array of scheme number and scheme-specific
    /// part.
    ///
    /// # Errors
    /// Fails if the syntax is invalid, or if the scheme-specific part exceeds [`SSP_BYTES_MAX`].
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if cbor::array(input, "an endpoint ID", EID)? != Some(2) {
            return Err(DecodeError::invalid("an endpoint ID", EID));
        }
        match cbor::unsigned(input, "a URI scheme number", EID)? {
            0 => Err(DecodeError::invalid("the reserved URI scheme number", "RFC 9171 9.6")),
            1 => decode_dtn(input),
            2 => decode_ipn(input),
            scheme => {
                let ssp = cbor::item(input, 8)?;
                limit(ssp.len())?;
                Ok(Eid::Unknown { scheme, ssp })
            }
        }
    }

    /// Appends the endpoint ID.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Eid::Null => {
                cbor::put_heads([(Major::Array, 2), (Major::Unsigned, 1), (Major::Unsigned, 0)], out)
            }
            Eid::Dtn(name) => {
                let length = name.ssp.len() as u64;
                let heads = [(Major::Array, 2), (Major::Unsigned, 1), (Major::TextString, length)];
                cbor::put_heads(heads, out);
                out.extend_from_slice(&name.ssp);
            }
            Eid::Ipn(ipn) => ipn.encode(out),
            Eid::Unknown { scheme, ssp } => {
                cbor::put_heads([(Major::Array, 2), (Major::Unsigned, *scheme)], out);
                out.extend_from_slice(ssp);
            }
            Eid::Uri(uri) => {
                let length = uri.len() as u64;
                let heads = [(Major::Array, 2), (Major::Unsigned, 0), (Major::ByteString, length)];
                cbor::put_heads(heads, out);
                out.extend_from_slice(uri);
            }
        }
    }

    fn identity(&self) -> Identity<'_> {
        match self {
            _ if self.is_null() => Identity::Null,
            Eid::Null => Identity::Null,
            Eid::Ipn(ipn) => Identity::Ipn(ipn.allocator, ipn.node, ipn.service),
            Eid::Dtn(name) => Identity::Dtn(&name.ssp),
            Eid::Unknown { scheme, ssp } => Identity::Unknown(*scheme, ssp),
            Eid::Uri(uri) => Identity::Uri(uri),
        }
    }
}

impl Eid {
    /// Parses an endpoint ID of version 6: any URI (RFC 5050 4.4). `dtn://node` names the same endpoint as
    /// `dtn://node/`, the form of version 7; [`Eid::uri`] returns the original text.
    ///
    /// # Errors
    /// Fails if the text is not a URI, or if its scheme name or scheme-specific part exceeds 1023 bytes.
    pub fn from_uri(text: &str) -> Result<Self, DecodeError> {
        const CLAUSE: &str = "RFC 5050 4.4";
        let (scheme, ssp) =
            text.split_once(':').ok_or(DecodeError::invalid("an endpoint ID without a scheme", CLAUSE))?;
        if scheme.len() > URI_PART_BYTES_MAX || ssp.len() > URI_PART_BYTES_MAX {
            return Err(DecodeError::invalid("an endpoint ID with a part of more than 1023 bytes", CLAUSE));
        }
        let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if !starts || !scheme.bytes().all(is_scheme) || ssp.is_empty() {
            return Err(DecodeError::invalid("an endpoint ID that is not a URI", CLAUSE));
        }
        if !ssp.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(DecodeError::invalid("a character of an endpoint ID", CLAUSE));
        }
        let known = match scheme {
            "dtn" if ssp.starts_with("//") && !ssp[2..].contains('/') => bare_node(ssp),
            "ipn" => full_node_number(ssp),
            _ => text.parse().ok(),
        };
        let exact = known.filter(|eid: &Eid| eid.uri() == text);
        Ok(exact.unwrap_or_else(|| Eid::Uri(Bytes::copy_from_slice(text.as_bytes()))))
    }

    /// Returns the text that version 6 carries: that which [`Eid::from_uri`] parsed, with `ipn` node numbers
    /// as one number (RFC 6260 2.1).
    pub fn uri(&self) -> String {
        match self {
            Eid::Ipn(ipn) => {
                format!("ipn:{}.{}", u64::from(ipn.allocator) << 32 | u64::from(ipn.node), ipn.service)
            }
            Eid::Dtn(name) if name.bare => format!("dtn://{}", name.node()),
            other => other.to_string(),
        }
    }

    /// Bytes of its text. The usual schemes are not written for it: this is asked at every step of a bundle.
    pub(crate) fn text_length(&self) -> usize {
        match self {
            Eid::Dtn(name) => "dtn:".len() + name.ssp.len(),
            Eid::Uri(uri) => uri.len(),
            Eid::Null | Eid::Ipn(_) | Eid::Unknown { .. } => self.to_string().len(),
        }
    }
}

/// Maximum length of a scheme name and of a scheme-specific part, bytes (RFC 5050 4.4).
const URI_PART_BYTES_MAX: usize = 1023;

/// Parses `//node`, the node ID of many nodes of version 6.
fn bare_node(ssp: &str) -> Option<Eid> {
    let name = DtnName::new(format!("{ssp}/").into()).ok()?;
    (!name.node().is_empty()).then_some(Eid::Dtn(DtnName { bare: true, ..name }))
}

/// Parses `node.service`, both numbers of up to 64 bits.
fn full_node_number(ssp: &str) -> Option<Eid> {
    let (node, service) = ssp.split_once('.')?;
    let (node, service) = (parse_number::<u64>(node).ok()?, parse_number::<u64>(service).ok()?);
    Some(Eid::ipn_number(node, service))
}

fn limit(length: usize) -> Result<(), DecodeError> {
    if length > SSP_BYTES_MAX { Err(DecodeError::Limit { what: "an endpoint ID" }) } else { Ok(()) }
}

fn decode_dtn(input: &mut Bytes) -> Result<Eid, DecodeError> {
    match cbor::peek_head(input)?.0 {
        (cbor::Major::Unsigned, Some(0)) => {
            cbor::head(input)?;
            Ok(Eid::Null)
        }
        (cbor::Major::TextString, Some(length)) => {
            limit(usize::try_from(length).unwrap_or(usize::MAX))?;
            // No check for UTF-8: all characters that the syntax check accepts are ASCII.
            cbor::head(input)?;
            DtnName::new(take(input, length as usize)?).map(Eid::Dtn)
        }
        (cbor::Major::TextString, None) => {
            Err(DecodeError::Limit { what: "an endpoint ID of indefinite length" })
        }
        _ => Err(DecodeError::invalid("a dtn endpoint ID", DTN)),
    }
}

fn decode_ipn(input: &mut Bytes) -> Result<Eid, DecodeError> {
    let elements = cbor::array(input, "an ipn endpoint ID", IPN)?;
    let mut number = |what| cbor::unsigned(input, what, IPN);
    match elements {
        Some(2) => {
            let node = number("a fully qualified node number")?;
            Ok(Eid::ipn_number(node, number("a service number")?))
        }
        Some(3) => {
            let narrow = |number: u64, what| {
                u32::try_from(number).map_err(|_| DecodeError::invalid(what, "RFC 9758 6.3"))
            };
            let allocator = narrow(number("an allocator identifier")?, "an allocator identifier")?;
            let node = narrow(number("a node number")?, "a node number")?;
            let service = number("a service number")?;
            Ok(Eid::Ipn(IpnNumbers { allocator, node, service, three_elements: true }))
        }
        Some(_) => Err(DecodeError::invalid("an ipn endpoint ID", IPN)),
        None => Err(DecodeError::Limit { what: "an endpoint ID of indefinite length" }),
    }
}

impl DtnName {
    /// Checks the syntax of `//node/demux` (RFC 9171 4.2.5.1.1; the node name is a reg-name of RFC 3986
    /// 3.2.2).
    fn new(ssp: Bytes) -> Result<Self, DecodeError> {
        limit(ssp.len())?;
        let rest =
            ssp.strip_prefix(b"//").ok_or(DecodeError::invalid("a dtn endpoint ID without //", DTN))?;
        let node = rest.iter().position(|&byte| byte == b'/');
        let node =
            node.ok_or(DecodeError::invalid("a dtn endpoint ID without / after the node name", DTN))?;
        if !rest[..node].iter().copied().all(is_reg_name) {
            return Err(DecodeError::invalid("a character of a dtn node name", DTN));
        }
        if !rest[node..].iter().all(u8::is_ascii_graphic) {
            return Err(DecodeError::invalid("a character of a dtn demux", DTN));
        }
        let demux_at = u16::try_from("//".len() + node + 1).expect("the length is limited");
        Ok(DtnName { ssp, demux_at, bare: false })
    }

    fn as_str(&self) -> &str {
        core::str::from_utf8(&self.ssp).expect("a checked name is ASCII")
    }

    /// `//node/`.
    fn up_to_demux(&self) -> &[u8] {
        &self.ssp[..usize::from(self.demux_at)]
    }

    fn demux_bytes(&self) -> &[u8] {
        &self.ssp[usize::from(self.demux_at)..]
    }

    /// Node name.
    pub fn node(&self) -> &str {
        &self.as_str()[2..usize::from(self.demux_at) - 1]
    }

    /// Demux: the part after the node name.
    pub fn demux(&self) -> &str {
        &self.as_str()[usize::from(self.demux_at)..]
    }
}

fn is_reg_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte)
}

impl IpnNumbers {
    /// Appends the endpoint ID with these numbers.
    fn encode(&self, out: &mut BytesMut) {
        let [pair, scheme] = [(Major::Array, 2), (Major::Unsigned, 2)];
        let [allocator, node] = [u64::from(self.allocator), u64::from(self.node)];
        let service = (Major::Unsigned, self.service);
        if self.three_elements {
            let numbers = (Major::Array, 3);
            let [allocator, node] = [(Major::Unsigned, allocator), (Major::Unsigned, node)];
            cbor::put_heads([pair, scheme, numbers, allocator, node, service], out);
        } else {
            let node = (Major::Unsigned, allocator << 32 | node);
            cbor::put_heads([pair, scheme, pair, node, service], out);
        }
    }
}

impl FromStr for Eid {
    type Err = DecodeError;

    /// Parses the forms that version 7 can carry: `dtn:none`, `dtn://node/demux`, `ipn:node.service`,
    /// `ipn:allocator.node.service` and `ipn:!.service`.
    fn from_str(text: &str) -> Result<Self, DecodeError> {
        if text == "dtn:none" {
            Ok(Eid::Null)
        } else if let Some(ssp) = text.strip_prefix("dtn:") {
            DtnName::new(Bytes::copy_from_slice(ssp.as_bytes())).map(Eid::Dtn)
        } else if let Some(ssp) = text.strip_prefix("ipn:") {
            parse_ipn(ssp)
        } else {
            Err(DecodeError::invalid("an endpoint ID that begins with neither dtn: nor ipn:", EID))
        }
    }
}

fn parse_ipn(ssp: &str) -> Result<Eid, DecodeError> {
    let mut parts = ssp.split('.');
    let mut next = || parts.next();
    let (allocator, node, service) = match (next(), next(), next(), next()) {
        (Some("!"), Some(service), None, None) => (0, u32::MAX, service),
        (Some(node), Some(service), None, None) => (0, parse_number(node)?, service),
        (Some(allocator), Some(node), Some(service), None) => {
            (parse_number(allocator)?, parse_number(node)?, service)
        }
        _ => {
            return Err(DecodeError::invalid(
                "an ipn endpoint ID that is not two or three numbers",
                IPN_TEXT,
            ));
        }
    };
    let service = parse_number(service)?;
    Ok(Eid::Ipn(IpnNumbers { allocator, node, service, three_elements: false }))
}

/// Parses digits without a leading zero.
fn parse_number<T: FromStr>(text: &str) -> Result<T, DecodeError> {
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number = if canonical { text.parse().ok() } else { None };
    number.ok_or(DecodeError::invalid("a number of an ipn endpoint ID", IPN_TEXT))
}

impl fmt::Display for Eid {
    /// Writes the URI; an endpoint ID of an unknown scheme as `eid:`, the scheme number and the bytes of its
    /// item in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Eid::Null => f.write_str("dtn:none"),
            Eid::Dtn(name) => {
                f.write_str("dtn:")?;
                f.write_str(name.as_str())
            }
            Eid::Ipn(ipn) => match (ipn.allocator, ipn.node) {
                (0, u32::MAX) => write!(f, "ipn:!.{}", ipn.service),
                (0, node) => write!(f, "ipn:{node}.{}", ipn.service),
                (allocator, node) => write!(f, "ipn:{allocator}.{node}.{}", ipn.service),
            },
            Eid::Unknown { scheme, ssp } => {
                write!(f, "eid:{scheme}:")?;
                ssp.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Eid::Uri(uri) => f.write_str(core::str::from_utf8(uri).expect("a checked URI is ASCII")),
        }
    }
}

impl fmt::Debug for Eid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Eid> for String {
    fn from(eid: Eid) -> String {
        eid.to_string()
    }
}

impl TryFrom<String> for Eid {
    type Error = DecodeError;
    fn try_from(text: String) -> Result<Self, DecodeError> {
        text.parse()
    }
}

impl PartialEq for Eid {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // Fast path for the most frequent case.
            (Eid::Dtn(one), Eid::Dtn(other)) => one.ssp == other.ssp,
            _ => self.identity() == other.identity(),
        }
    }
}

impl Eq for Eid {}

impl PartialOrd for Eid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Eid {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Eid::Dtn(one), Eid::Dtn(other)) => one.ssp.cmp(&other.ssp),
            _ => self.identity().cmp(&other.identity()),
        }
    }
}

impl Hash for Eid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

#[cfg(test)]
mod tests;
