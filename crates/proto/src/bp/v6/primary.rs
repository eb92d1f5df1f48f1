//! Primary block and its dictionary (RFC 5050 4.4, 4.5.1, 4.7; RFC 6260).
//!
//! The four endpoint IDs of a bundle are references: offsets of a scheme and of a scheme-specific part in the
//! dictionary, or, with an empty dictionary, the numbers of an `ipn` endpoint ID (compressed). The dictionary
//! is kept as received, and rebuilt only when an endpoint ID changes.

use super::block::{Block, BundleFlags};
use crate::bp::block::Fragment;
use crate::bp::{CreationTimestamp, Eid};
use crate::codec::DecodeError;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::BTreeMap;

const EID: &str = "RFC 5050 4.4";

/// Role of an endpoint in the primary block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndpointRole {
    Destination = 0,
    Source = 1,
    ReportTo = 2,
    Custodian = 3,
}

/// Reference to an endpoint ID: offsets of its scheme and its scheme-specific part in the dictionary, or node
/// and service number without a dictionary (RFC 6260 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EidReference {
    /// Offset of the scheme, or node number.
    pub scheme: u64,
    /// Offset of the scheme-specific part, or service number.
    pub ssp: u64,
}

/// Primary block (RFC 5050 4.5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryBlock {
    /// Bundle processing control flags.
    pub flags: BundleFlags,
    /// Creation time, seconds since 2000-01-01 UTC.
    pub created_s: u64,
    /// Creation timestamp sequence number, which distinguishes bundles of the same second.
    pub sequence: u64,
    /// Lifetime: time from creation to expiry, seconds.
    pub lifetime_s: u64,
    /// Part of the application data unit that the bundle carries; `None` if the bundle is not a fragment.
    pub fragment: Option<Fragment>,
    pub(super) references: [EidReference; 4],
    /// Endpoint IDs to which the references resolve.
    endpoints: [Eid; 4],
    pub(super) dictionary: Bytes,
}

impl PrimaryBlock {
    /// Creation timestamp, whose time has a resolution of one second.
    pub fn timestamp(&self) -> CreationTimestamp {
        (self.created_s.saturating_mul(1000), self.sequence).into()
    }

    /// Creates a primary block without a custodian. If `compressed` is set, the block has no dictionary if
    /// all endpoint IDs are `ipn` or null.
    pub fn new(destination: Eid, source: Eid, report_to: Eid, compressed: bool) -> Self {
        let endpoints = [destination, source, report_to, Eid::Null];
        let mut primary = PrimaryBlock {
            flags: BundleFlags::NONE,
            created_s: 0,
            sequence: 0,
            lifetime_s: 0,
            fragment: None,
            references: [EidReference { scheme: 0, ssp: 0 }; 4],
            endpoints,
            dictionary: Bytes::new(),
        };
        let numbers = primary.endpoints.each_ref().map(compressed_reference);
        match numbers {
            [Some(a), Some(b), Some(c), Some(d)] if compressed => primary.references = [a, b, c, d],
            _ => {
                let mut dictionary = Dictionary::default();
                primary.references = primary.endpoints.each_ref().map(|eid| dictionary.add_eid(eid));
                primary.dictionary = dictionary.bytes.freeze();
            }
        }
        primary
    }

    /// Resolves the decoded references.
    ///
    /// # Errors
    /// Fails if a reference does not resolve.
    pub(super) fn read(
        references: [EidReference; 4],
        dictionary: Bytes,
    ) -> Result<([EidReference; 4], [Eid; 4], Bytes), DecodeError> {
        let mut endpoints = [Eid::Null, Eid::Null, Eid::Null, Eid::Null];
        for (endpoint, reference) in endpoints.iter_mut().zip(references) {
            *endpoint = resolve(reference, &dictionary)?;
        }
        Ok((references, endpoints, dictionary))
    }

    pub(super) fn assemble(
        flags: BundleFlags,
        (references, endpoints, dictionary): ([EidReference; 4], [Eid; 4], Bytes),
        [created_s, sequence, lifetime_s]: [u64; 3],
        fragment: Option<Fragment>,
    ) -> Self {
        PrimaryBlock { flags, created_s, sequence, lifetime_s, fragment, references, endpoints, dictionary }
    }

    /// Destination endpoint ID.
    pub fn destination(&self) -> &Eid {
        &self.endpoints[EndpointRole::Destination as usize]
    }

    /// Source endpoint ID; the null endpoint if the bundle is anonymous.
    pub fn source(&self) -> &Eid {
        &self.endpoints[EndpointRole::Source as usize]
    }

    /// Report-to endpoint ID.
    pub fn report_to(&self) -> &Eid {
        &self.endpoints[EndpointRole::ReportTo as usize]
    }

    /// Current custodian; the null endpoint if there is none.
    pub fn custodian(&self) -> &Eid {
        &self.endpoints[EndpointRole::Custodian as usize]
    }

    /// True if there is no dictionary (RFC 6260).
    pub fn is_compressed(&self) -> bool {
        self.dictionary.is_empty()
    }

    /// Dictionary: null-terminated scheme names and scheme-specific parts.
    pub fn dictionary(&self) -> &Bytes {
        &self.dictionary
    }

    /// Resolves a reference.
    ///
    /// # Errors
    /// Fails if the reference does not lead to valid strings of the dictionary.
    pub fn resolve(&self, reference: EidReference) -> Result<Eid, DecodeError> {
        resolve(reference, &self.dictionary)
    }

    /// Replaces the custodian (RFC 5050 5.10.1). The references of the blocks follow the strings of the
    /// dictionary: strings without a reference are removed (4.7), the others keep their order, and the new
    /// endpoint ID is added at the end.
    pub(super) fn set_custodian<'a>(&mut self, custodian: Eid, blocks: impl Iterator<Item = &'a mut Block>) {
        self.endpoints[EndpointRole::Custodian as usize] = custodian;
        let custodian = &self.endpoints[EndpointRole::Custodian as usize];
        if self.is_compressed()
            && let Some(reference) = compressed_reference(custodian)
        {
            self.references[EndpointRole::Custodian as usize] = reference;
            return;
        }
        let (head, last) = self.references.split_at_mut(EndpointRole::Custodian as usize);
        let of_blocks = blocks.flat_map(|block| block.references.iter_mut().flatten());
        let mut all: Vec<&mut EidReference> = head.iter_mut().chain(of_blocks).collect();
        let mut dictionary = Dictionary::default();
        match self.dictionary.is_empty() {
            true => {
                for reference in &mut all {
                    let eid = resolve(**reference, &[]).expect("two numbers always name something");
                    **reference = dictionary.add_eid(&eid);
                }
            }
            false => dictionary.keep(&self.dictionary, &mut all),
        }
        last[0] = dictionary.add_eid(custodian);
        self.dictionary = dictionary.bytes.freeze();
    }
}

/// Builder of a dictionary: null-terminated strings, each once.
#[derive(Debug, Default)]
struct Dictionary {
    bytes: BytesMut,
    offsets: BTreeMap<Bytes, u64>,
}

impl Dictionary {
    fn add(&mut self, string: &[u8]) -> u64 {
        if let Some(offset) = self.offsets.get(string) {
            return *offset;
        }
        let offset = self.bytes.len() as u64;
        self.bytes.put_slice(string);
        self.bytes.put_u8(0);
        self.offsets.insert(Bytes::copy_from_slice(string), offset);
        offset
    }

    fn add_eid(&mut self, eid: &Eid) -> EidReference {
        let uri = eid.uri();
        let (scheme, ssp) = uri.split_once(':').expect("every identifier is a URI");
        EidReference { scheme: self.add(scheme.as_bytes()), ssp: self.add(ssp.as_bytes()) }
    }

    /// Copies the strings that the references name, in their original order.
    fn keep(&mut self, old: &[u8], references: &mut [&mut EidReference]) {
        let mut offsets: Vec<u64> =
            references.iter().flat_map(|reference| [reference.scheme, reference.ssp]).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let moved: BTreeMap<u64, u64> = offsets
            .into_iter()
            .map(|offset| (offset, self.add(string(old, offset).expect("references were checked"))))
            .collect();
        for reference in references {
            **reference = EidReference { scheme: moved[&reference.scheme], ssp: moved[&reference.ssp] };
        }
    }
}

/// Null-terminated string at this offset.
fn string(dictionary: &[u8], offset: u64) -> Option<&[u8]> {
    let rest = dictionary.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(&rest[..end])
}

/// Resolves a reference with this dictionary.
fn resolve(reference: EidReference, dictionary: &[u8]) -> Result<Eid, DecodeError> {
    let EidReference { scheme, ssp } = reference;
    if dictionary.is_empty() {
        return Ok(match (scheme, ssp) {
            (0, 0) => Eid::Null,
            (node, service) => Eid::ipn_number(node, service),
        });
    }
    const WHAT: &str = "a reference to no string of the dictionary";
    let part = |offset| string(dictionary, offset).ok_or(DecodeError::invalid(WHAT, EID));
    let (scheme, ssp) = (part(scheme)?, part(ssp)?);
    let text = [scheme, b":", ssp].concat();
    let text = core::str::from_utf8(&text).map_err(|_| DecodeError::invalid("an endpoint ID", EID))?;
    if scheme.contains(&b':') {
        return Err(DecodeError::invalid("a scheme name of an endpoint ID", EID));
    }
    Eid::from_uri(text)
}

/// Numbers of an endpoint ID that needs no dictionary (RFC 6260 2.2).
fn compressed_reference(eid: &Eid) -> Option<EidReference> {
    match eid {
        Eid::Null => Some(EidReference { scheme: 0, ssp: 0 }),
        Eid::Ipn(ipn) => {
            let node = u64::from(ipn.allocator) << 32 | u64::from(ipn.node);
            // The numbers zero and zero decode as `dtn:none`.
            (node != 0 || ipn.service != 0).then_some(EidReference { scheme: node, ssp: ipn.service })
        }
        Eid::Dtn(_) | Eid::Unknown { .. } | Eid::Uri(_) => None,
    }
}
