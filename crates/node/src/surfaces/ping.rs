//! Pings: small bundles that a node's echo service returns. Shared by the command and the HTTP interface.
//!
//! A ping's payload begins with its number, eight bytes, big-endian; the rest is padding.

use crate::surfaces::echo;
use crate::surfaces::message::{Message, MessageOptions, PART_BYTES, Request};
use crate::view::Pings;
use bytes::{BufMut, Bytes, BytesMut};

/// Minimum payload length of a ping: its number.
pub const BYTES_MIN: u32 = 8;
/// Maximum payload length of a ping: the longest that an echo service answers.
pub const BYTES_MAX: u32 = echo::PAYLOAD_BYTES_MAX;

/// Returns the echo service of a node given by its node ID; any other text is an endpoint ID already.
pub fn target(to: &str) -> String {
    match to {
        to if to.starts_with("dtn://") && to.ends_with('/') => format!("{to}{}", echo::service(false)),
        to if to.starts_with("dtn://") && to.matches('/').count() == 2 => {
            format!("{to}/{}", echo::service(false))
        }
        to if to.starts_with("ipn:") && to.ends_with(".0") => {
            format!("{}.{}", &to[..to.len() - 2], echo::service(true))
        }
        to => to.to_owned(),
    }
}

fn payload(number: u64, bytes: u32) -> Bytes {
    let bytes = bytes.clamp(BYTES_MIN, BYTES_MAX) as usize;
    let mut payload = BytesMut::with_capacity(bytes);
    payload.put_u64(number);
    payload.resize(bytes, b'.');
    payload.freeze()
}

/// Requests that send a ping: its beginning, and the rest of a long payload in pieces.
pub fn requests(
    number: u64,
    to: &str,
    source: &str,
    bytes: u32,
    lifetime_s: f64,
) -> impl Iterator<Item = Message<Request>> {
    let mut rest = payload(number, bytes);
    let source = Some(source.to_owned());
    let options = MessageOptions { source, lifetime_s, ..MessageOptions::default() };
    let length = rest.len() as u64;
    let mut head = Some(Request::Send { send: number, to: to.to_owned(), length, options });
    std::iter::from_fn(move || {
        let head = head.take().or((!rest.is_empty()).then_some(Request::Piece { send: number }))?;
        Some(Message { head, body: rest.split_to(rest.len().min(PART_BYTES as usize)) })
    })
}

/// Number of a returned ping.
pub fn number(payload: &[u8]) -> Option<u64> {
    payload.first_chunk::<8>().map(|number| u64::from_be_bytes(*number))
}

/// Summary of pings, each with its round-trip time in milliseconds, or `None` if unanswered.
pub fn add_up(to: String, round_trips_ms: Vec<Option<f64>>) -> Pings {
    let back: Vec<f64> = round_trips_ms.iter().flatten().copied().collect();
    let (sent, received) = (round_trips_ms.len() as u64, back.len() as u64);
    let mean = back.iter().sum::<f64>() / received.max(1) as f64;
    let variance = back.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / received.max(1) as f64;
    let some = |value: f64| (received > 0).then_some(value);
    Pings {
        to,
        sent,
        received,
        lost_percent: (sent - received) as f64 * 100.0 / sent.max(1) as f64,
        least_ms: back.iter().copied().reduce(f64::min),
        mean_ms: some(mean),
        most_ms: back.iter().copied().reduce(f64::max),
        deviation_ms: some(variance.sqrt()),
        round_trips_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_pinged_at_its_echo_service() {
        for (to, target) in [
            ("dtn://bob/", "dtn://bob/echo"),
            ("dtn://bob", "dtn://bob/echo"),
            ("dtn://bob/ping", "dtn://bob/ping"),
            ("ipn:7.0", "ipn:7.7"),
            ("ipn:7.2047", "ipn:7.2047"),
        ] {
            assert_eq!(super::target(to), target);
        }
    }

    #[test]
    fn a_long_ping_is_sent_in_pieces() {
        let lengths = |bytes| {
            let requests = requests(3, "dtn://bob/echo", "ping-1", bytes, 10.0);
            requests.map(|Message { head, body }| match head {
                Request::Send { send: 3, length, .. } => (Some(length), body.len()),
                Request::Piece { send: 3 } => (None, body.len()),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(lengths(64).collect::<Vec<_>>(), [(Some(64), 64)]);
        let (long, part) = (2 * PART_BYTES + 1, PART_BYTES as usize);
        let expected = [(Some(long.into()), part), (None, part), (None, 1)];
        assert_eq!(lengths(long).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_came_back_is_told_by_its_number_and_added_up() {
        assert_eq!(number(&payload(77, 8)), Some(77));
        assert_eq!((payload(1, 1000).len(), number(b"short")), (1000, None));
        let pings = add_up("dtn://bob/echo".into(), vec![Some(1.0), None, Some(3.0), Some(2.0)]);
        assert_eq!((pings.sent, pings.received, pings.lost_percent), (4, 3, 25.0));
        assert_eq!((pings.least_ms, pings.mean_ms, pings.most_ms), (Some(1.0), Some(2.0), Some(3.0)));
        assert!(pings.deviation_ms.is_some_and(|deviation| (deviation - 0.8165).abs() < 1e-4));
        let none = add_up(String::new(), vec![None]);
        assert_eq!((none.lost_percent, none.mean_ms, none.deviation_ms), (100.0, None, None));
    }
}
