//! Payloads of mail bundles, in the deterministic CBOR of bundles (RFC 8949 4.2.1).
//!
//! ```text
//!   message = [1, 0, sender, [[recipient, notify], ..], message]     sender empty for a notification; message as submitted
//!   receipt = [1, 1, [time, number], [[recipient, status, reason], ..]]    of the message bundle that was created then
//! ```
//!
//! The first number is the version. Addresses, statuses and reasons are text strings; `notify` is 1 for receipts of delivery, 2 for
//! those of failure, 3 for both. A status is an enhanced status code (RFC 3463), 2.x.x for a delivery. A message bundle goes from the node
//! of its sender to `mail` of the node of all its recipients (service 25 of an `ipn` node), and a receipt goes back.

use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::codec::DecodeError;
use longwire_proto::codec::cbor::{self, Major};
use longwire_proto::service::CreationTimestamp;

const VERSION: u64 = 1;
/// Maximum recipients of a bundle.
pub(super) const RECIPIENTS_MAX: usize = 100;
/// Maximum length of a text, bytes.
const TEXT_BYTES_MAX: u64 = 1000;
/// Maximum length of everything before the message, bytes: enough of a payload to decode it.
pub(super) const HEAD_BYTES_MAX: u64 = 128 * 1024;

const CLAUSE: &str = "mail envelope";

/// Everything before the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageHead {
    /// Address; empty for a notification.
    pub(super) sender: String,
    pub(super) recipients: Vec<Recipient>,
    /// Length of the message, bytes.
    pub(super) message_bytes: u64,
}

/// A recipient, and the receipts that its sender wants.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Recipient {
    pub(super) address: String,
    pub(super) on_success: bool,
    pub(super) on_failure: bool,
}

/// Outcome for a recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) address: String,
    /// Enhanced status code.
    pub(super) status: String,
    /// Reason of a failure, in a sentence.
    pub(super) reason: String,
}

impl Outcome {
    pub(super) fn is_delivered(&self) -> bool {
        self.status.starts_with("2.")
    }
}

/// A payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Envelope {
    /// A message follows.
    Message(MessageHead),
    /// Outcomes of the message with this creation timestamp.
    Receipt(CreationTimestamp, Vec<Outcome>),
}

fn put_text(text: &str, out: &mut BytesMut) {
    let mut end = text.len().min(TEXT_BYTES_MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    cbor::put_head(Major::TextString, end as u64, out);
    out.put_slice(&text.as_bytes()[..end]);
}

impl Envelope {
    /// Encodes an envelope; the message itself follows.
    pub(super) fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Envelope::Message(head) => {
                cbor::put_array(5, &mut out);
                cbor::put_unsigned(VERSION, &mut out);
                cbor::put_unsigned(0, &mut out);
                put_text(&head.sender, &mut out);
                cbor::put_array(head.recipients.len() as u64, &mut out);
                for recipient in &head.recipients {
                    cbor::put_array(2, &mut out);
                    put_text(&recipient.address, &mut out);
                    let notify = u64::from(recipient.on_success) + 2 * u64::from(recipient.on_failure);
                    cbor::put_unsigned(notify, &mut out);
                }
                cbor::put_head(Major::ByteString, head.message_bytes, &mut out);
            }
            Envelope::Receipt(created, outcomes) => {
                cbor::put_array(4, &mut out);
                cbor::put_unsigned(VERSION, &mut out);
                cbor::put_unsigned(1, &mut out);
                cbor::put_array(2, &mut out);
                cbor::put_unsigned(created.time.0, &mut out);
                cbor::put_unsigned(created.sequence, &mut out);
                cbor::put_array(outcomes.len() as u64, &mut out);
                for outcome in outcomes {
                    cbor::put_array(3, &mut out);
                    put_text(&outcome.address, &mut out);
                    put_text(&outcome.status, &mut out);
                    put_text(&outcome.reason, &mut out);
                }
            }
        }
        out.freeze()
    }

    /// Decodes an envelope at the front of a payload of this length, and consumes it. The rest of the payload must be the message.
    ///
    /// # Errors
    /// Fails if the payload is none of this version.
    pub(super) fn decode(input: &mut Bytes, payload_bytes: u64) -> Result<Envelope, DecodeError> {
        let before = input.len() as u64;
        let fields = array(input, 5)?;
        if cbor::unsigned(input, "the version", CLAUSE)? != VERSION {
            return Err(DecodeError::invalid("an unknown version", CLAUSE));
        }
        match (cbor::unsigned(input, "the kind", CLAUSE)?, fields) {
            (0, 5) => {
                let sender = text(input)?;
                let count = array(input, RECIPIENTS_MAX)?;
                let recipients = (0..count).map(|_| recipient(input)).collect::<Result<_, _>>()?;
                let (Major::ByteString, Some(message_bytes)) = cbor::head(input)? else {
                    return Err(DecodeError::invalid("the message", CLAUSE));
                };
                if (before - input.len() as u64).checked_add(message_bytes) != Some(payload_bytes) {
                    return Err(DecodeError::invalid("the length of the message", CLAUSE));
                }
                Ok(Envelope::Message(MessageHead { sender, recipients, message_bytes }))
            }
            (1, 4) => {
                let 2 = array(input, 2)? else {
                    return Err(DecodeError::invalid("the creation timestamp", CLAUSE));
                };
                let time = cbor::unsigned(input, "the creation time", CLAUSE)?;
                let number = cbor::unsigned(input, "the sequence number", CLAUSE)?;
                let count = array(input, RECIPIENTS_MAX)?;
                let outcomes = (0..count).map(|_| outcome(input)).collect::<Result<_, _>>()?;
                if !input.is_empty() || before != payload_bytes {
                    return Err(DecodeError::invalid("more than a receipt", CLAUSE));
                }
                Ok(Envelope::Receipt((time, number).into(), outcomes))
            }
            _ => Err(DecodeError::invalid("an unknown kind", CLAUSE)),
        }
    }
}

/// Reads the head of an array of at most this length.
fn array(input: &mut Bytes, length_max: usize) -> Result<usize, DecodeError> {
    match cbor::head(input)? {
        (Major::Array, Some(length)) if length <= length_max as u64 => Ok(length as usize),
        _ => Err(DecodeError::invalid("an array", CLAUSE)),
    }
}

fn text(input: &mut Bytes) -> Result<String, DecodeError> {
    let (Major::TextString, Some(length)) = cbor::head(input)? else {
        return Err(DecodeError::invalid("a text", CLAUSE));
    };
    if length > TEXT_BYTES_MAX {
        return Err(DecodeError::invalid("a text that is too long", CLAUSE));
    }
    if length > input.len() as u64 {
        return Err(DecodeError::Incomplete);
    }
    let bytes = input.split_to(length as usize);
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or(DecodeError::invalid("a text with control characters", CLAUSE))
}

fn recipient(input: &mut Bytes) -> Result<Recipient, DecodeError> {
    let 2 = array(input, 2)? else { return Err(DecodeError::invalid("a recipient", CLAUSE)) };
    let address = text(input)?;
    match cbor::unsigned(input, "notifications", CLAUSE)? {
        notify @ 0..=3 => Ok(Recipient { address, on_success: notify & 1 > 0, on_failure: notify & 2 > 0 }),
        _ => Err(DecodeError::invalid("notifications", CLAUSE)),
    }
}

fn outcome(input: &mut Bytes) -> Result<Outcome, DecodeError> {
    let 3 = array(input, 3)? else { return Err(DecodeError::invalid("an outcome", CLAUSE)) };
    let (address, status, reason) = (text(input)?, text(input)?, text(input)?);
    let numbers: Vec<&str> = status.split('.').collect();
    let is_number =
        |text: &&str| (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match numbers.len() == 3 && numbers.iter().all(is_number) && reason.is_ascii() {
        true => Ok(Outcome { address, status, reason }),
        false => Err(DecodeError::invalid("a status", CLAUSE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::rng::Rng;

    fn message(recipients: usize) -> Envelope {
        let recipient = |at: usize| Recipient {
            address: format!("user{at}@bob"),
            on_success: at.is_multiple_of(2),
            on_failure: at < 3,
        };
        let recipients = (0..recipients).map(recipient).collect();
        Envelope::Message(MessageHead { sender: "alice@alice".into(), recipients, message_bytes: 500 })
    }

    fn receipt() -> Envelope {
        let outcome = |status: &str, reason: &str| Outcome {
            address: "bob@bob".into(),
            status: status.into(),
            reason: reason.into(),
        };
        let outcomes = vec![outcome("2.1.5", ""), outcome("5.1.1", "no such user")];
        Envelope::Receipt((842_000_000_000, 77).into(), outcomes)
    }

    #[test]
    fn an_envelope_is_read_as_it_was_written_and_nothing_less() {
        for (envelope, message_bytes) in [(message(1), 500), (message(RECIPIENTS_MAX), 500), (receipt(), 0)] {
            let bytes = envelope.to_bytes();
            assert!((bytes.len() as u64) < HEAD_BYTES_MAX);
            let length = bytes.len() as u64 + message_bytes;
            assert_eq!(Envelope::decode(&mut bytes.clone(), length), Ok(envelope.clone()));
            assert!(Envelope::decode(&mut bytes.clone(), length + 1).is_err());
            for end in 0..bytes.len() {
                assert!(Envelope::decode(&mut bytes.slice(..end), length).is_err(), "{end}");
            }
        }
        assert!(Envelope::decode(&mut message(RECIPIENTS_MAX + 1).to_bytes(), 1 << 20).is_err());
    }

    #[test]
    fn no_bytes_break_the_decoder() {
        let mut accepted = 0;
        for seed in 0..20_000 {
            let mut rng = Rng::new(seed);
            let valid = if seed % 2 == 0 { message(3) } else { receipt() };
            let mut bytes = valid.to_bytes().to_vec();
            let length = bytes.len() as u64 + if seed % 2 == 0 { 500 } else { 0 };
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.next_u64() as u8;
            }
            if let Ok(envelope) = Envelope::decode(&mut bytes.into(), length) {
                accepted += 1;
                let again = envelope.to_bytes();
                let length = match &envelope {
                    Envelope::Message(head) => again.len() as u64 + head.message_bytes,
                    Envelope::Receipt(..) => again.len() as u64,
                };
                assert_eq!(Envelope::decode(&mut again.clone(), length), Ok(envelope), "seed {seed}");
            }
        }
        assert!((100..19_000).contains(&accepted), "{accepted}");
    }
}
