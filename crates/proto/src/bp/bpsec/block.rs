//! Abstract security block: the data of every security block (RFC 9172 3.6).
//!
//! ```text
//! [targets ...] | context | flags | source | [[id, value] ...]  | [[[id, value] ...] ...]
//!                                            parameters, if       results of each target
//!                                            flag 1 is set
//! ```

use super::Fault;
use crate::bp::Eid;
use crate::codec::cbor::{self, Major};
use crate::codec::{self, DecodeError};
use bytes::{Bytes, BytesMut};

/// Maximum number of targets of a block. No specification has a limit.
pub const TARGETS_MAX: usize = 64;
/// Maximum number of parameters of a block, and of results of a target. No specification has a limit.
pub const FIELDS_MAX: usize = 16;
/// Maximum length of the value of a parameter or result, bytes. No specification has a limit.
pub const VALUE_BYTES_MAX: usize = 4096;

const CLAUSE: &str = "RFC 9172 3.6";
/// Security context flag: parameters are present.
const PARAMETERS_PRESENT: u64 = 1;
/// Maximum nesting of the value of a parameter or result.
const VALUE_DEPTH_MAX: u8 = 8;

/// Abstract security block: security operations that share a source, a context and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityBlock {
    /// Security context identifier; negative ones are for private use (RFC 9172 11.3).
    pub context: i64,
    /// Security source: the node that added the block.
    pub source: Eid,
    /// Security context parameters.
    pub parameters: Vec<Field>,
    /// Security operations, one for each target.
    pub operations: Vec<Operation>,
}

/// Security operation: a target and its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Block number of the target.
    pub target: u64,
    /// Security results.
    pub results: Vec<Field>,
}

/// Security context parameter or security result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Identifier, defined by the security context.
    pub id: u64,
    /// Value, one CBOR item.
    pub value: Bytes,
}

impl Field {
    /// Creates a field whose value is an unsigned integer.
    pub fn unsigned(id: u64, value: u64) -> Self {
        Field { id, value: codec::encoded(9, |out| cbor::put_unsigned(value, out)) }
    }

    /// Creates a field whose value is a byte string.
    pub fn byte_string(id: u64, value: &[u8]) -> Self {
        Field { id, value: codec::encoded(9 + value.len(), |out| cbor::put_byte_string(value, out)) }
    }

    /// Value, if it is an unsigned integer.
    pub fn as_unsigned(&self) -> Option<u64> {
        let mut input = &self.value[..];
        cbor::unsigned(&mut input, "a value", CLAUSE).ok().filter(|_| input.is_empty())
    }

    /// Value, if it is a byte string.
    pub fn as_byte_string(&self) -> Option<Bytes> {
        let mut input = self.value.clone();
        cbor::byte_string(&mut input, "a value", CLAUSE).ok().filter(|_| input.is_empty())
    }

    fn decode(input: &mut Bytes, what: &'static str) -> Result<Self, DecodeError> {
        if cbor::array(input, what, CLAUSE)? != Some(2) {
            return Err(DecodeError::invalid(what, CLAUSE));
        }
        let id = cbor::unsigned(input, what, CLAUSE)?;
        let value = cbor::item(input, VALUE_DEPTH_MAX)?;
        if value.len() > VALUE_BYTES_MAX {
            return Err(DecodeError::Limit { what });
        }
        Ok(Field { id, value })
    }

    fn decode_all(input: &mut Bytes, what: &'static str) -> Result<Vec<Self>, DecodeError> {
        let count = length(input, FIELDS_MAX, what)?;
        let mut fields: Vec<Field> = Vec::new();
        for _ in 0..count {
            let field = Field::decode(input, what)?;
            // Two values for one identifier have no meaning (RFC 9172 3.10).
            if fields.iter().any(|other| other.id == field.id) {
                return Err(DecodeError::invalid(what, "RFC 9172 3.10"));
            }
            fields.push(field);
        }
        Ok(fields)
    }

    fn encode_all(fields: &[Field], out: &mut BytesMut) {
        cbor::put_array(fields.len() as u64, out);
        for field in fields {
            cbor::put_array(2, out);
            cbor::put_unsigned(field.id, out);
            out.extend_from_slice(&field.value);
        }
    }
}

impl SecurityBlock {
    /// Decodes an abstract security block from the front of the input. Reserved flags are ignored.
    ///
    /// # Errors
    /// Fails if the input is incomplete, not valid, or exceeds a limit.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let targets = decode_targets(input)?;
        let context = decode_context(input)?;
        let flags = cbor::unsigned(input, "the security context flags field", CLAUSE)?;
        let source = Eid::decode(input)?;
        let parameters = match flags & PARAMETERS_PRESENT {
            0 => Vec::new(),
            _ => decode_parameters(input)?,
        };
        const RESULTS: &str = "the security results";
        if length(input, TARGETS_MAX, RESULTS)? != targets.len() {
            return Err(DecodeError::invalid(RESULTS, CLAUSE));
        }
        let results = |target| Ok(Operation { target, results: Field::decode_all(input, RESULTS)? });
        let operations = targets.into_iter().map(results).collect::<Result<_, DecodeError>>()?;
        Ok(SecurityBlock { context, source, parameters, operations })
    }

    /// Decodes the data of a security block, which contain nothing else.
    ///
    /// # Errors
    /// Fails if the data are not an abstract security block.
    pub fn from_bytes(data: &Bytes) -> Result<Self, Fault> {
        let mut input = data.clone();
        match SecurityBlock::decode(&mut input) {
            Ok(block) if input.is_empty() => Ok(block),
            Ok(_) | Err(DecodeError::Incomplete) => {
                Err(Fault::Undecodable(DecodeError::invalid("the data of a security block", CLAUSE)))
            }
            Err(error) => Err(Fault::Undecodable(error)),
        }
    }

    /// Appends the abstract security block.
    ///
    /// # Panics
    /// Panics if there is no operation.
    pub fn encode(&self, out: &mut BytesMut) {
        assert!(!self.operations.is_empty(), "a security block has a target");
        cbor::put_array(self.operations.len() as u64, out);
        self.operations.iter().for_each(|operation| cbor::put_unsigned(operation.target, out));
        match u64::try_from(self.context) {
            Ok(context) => cbor::put_unsigned(context, out),
            Err(_) => cbor::put_head(Major::Negative, self.context.unsigned_abs() - 1, out),
        }
        cbor::put_unsigned(if self.parameters.is_empty() { 0 } else { PARAMETERS_PRESENT }, out);
        self.source.encode(out);
        if !self.parameters.is_empty() {
            Field::encode_all(&self.parameters, out);
        }
        cbor::put_array(self.operations.len() as u64, out);
        self.operations.iter().for_each(|operation| Field::encode_all(&operation.results, out));
    }

    /// Encodes the abstract security block.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(128, |out| self.encode(out))
    }
}

fn decode_context(input: &mut Bytes) -> Result<i64, DecodeError> {
    let invalid = DecodeError::invalid("a security context identifier", CLAUSE);
    let (major, argument) = cbor::head(input)?;
    let argument = argument.and_then(|argument| i64::try_from(argument).ok());
    match (major, argument) {
        (Major::Unsigned, Some(context)) => Ok(context),
        (Major::Negative, Some(argument)) => Ok(-1 - argument),
        _ => Err(invalid),
    }
}

fn decode_targets(input: &mut Bytes) -> Result<Vec<u64>, DecodeError> {
    const TARGETS: &str = "the security targets";
    let count = length(input, TARGETS_MAX, TARGETS)?;
    let mut targets = Vec::new();
    for _ in 0..count {
        let target = cbor::unsigned(input, TARGETS, CLAUSE)?;
        if targets.contains(&target) {
            return Err(DecodeError::invalid("a security target that occurs twice", CLAUSE));
        }
        targets.push(target);
    }
    if targets.is_empty() { Err(DecodeError::invalid(TARGETS, CLAUSE)) } else { Ok(targets) }
}

fn decode_parameters(input: &mut Bytes) -> Result<Vec<Field>, DecodeError> {
    const PARAMETERS: &str = "the security context parameters";
    let parameters = Field::decode_all(input, PARAMETERS)?;
    if parameters.is_empty() { Err(DecodeError::invalid(PARAMETERS, CLAUSE)) } else { Ok(parameters) }
}

/// Consumes the head of an array of definite length.
fn length(input: &mut Bytes, most: usize, what: &'static str) -> Result<usize, DecodeError> {
    let length = cbor::array(input, what, CLAUSE)?.and_then(|length| usize::try_from(length).ok());
    length.filter(|length| *length <= most).ok_or(DecodeError::Limit { what })
}
