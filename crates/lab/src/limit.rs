//! The limit: the time that the channel itself would need.
//!
//! The file is cut into packets of 40 header bytes each, of the size that is best for the link's bit-error rate and no
//! longer than its MTU. A packet of `b` bytes arrives with probability `(1 - ber)^(8 b)`, so on average it is sent
//! `1 / (1 - packet error rate)` times. All of that at line rate, plus the one-way delays, on the very outage schedule
//! of the run: nothing is sent during an outage, and what left before it arrives.
//!
//! On a half-duplex radio channel the packets are AX.25 frames of 19 bytes each beside the information: addresses, control,
//! protocol identifier, check sequence and one flag. Nobody is asked to acknowledge anything, no bit is stuffed, and every
//! key-up is as long as is allowed: before it a station waits for a slot as long as it does on average and then for TXDELAY,
//! and between two of them there is TXTAIL. Whoever acknowledges has to key up more often, so no protocol is faster on average.
//!
//! Over several hops there are two limits. Storing the whole file at every node is [`Limit::store_and_forward_s`];
//! passing each packet on as it comes, in packets of any length, is [`Limit::streaming_s`]. Over one hop they are the same.

/// Header bytes of a packet: IPv4 and TCP without options.
pub const HEADER_BYTES: u32 = 40;
/// Bytes of an AX.25 frame beside its information: two addresses of 7, control, protocol identifier, check sequence of 2 and
/// the flag behind it.
pub const AX25_BYTES: u32 = 19;

/// What a transmitter on a half-duplex channel takes beside its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keying {
    /// Before the first frame of a key-up: the mean wait for a slot, and TXDELAY, seconds.
    pub before_s: f64,
    /// Behind the last one: TXTAIL, seconds.
    pub after_s: f64,
    /// The frames of one key-up take so long at most, seconds.
    pub burst_max_s: f64,
    /// A key-up has so many frames at most.
    pub frames_max: u32,
}

/// One hop, in the direction of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Line rate, bit/s.
    pub rate_bps: f64,
    /// One-way delay, seconds.
    pub delay_s: f64,
    /// Bit-error rate.
    pub ber: f64,
    /// What each packet has beside its payload, bytes.
    pub header_bytes: u32,
    /// The longest payload of a packet, bytes, 1 or more.
    pub payload_max_bytes: u32,
    /// What keying takes, if the channel is shared.
    pub keying: Option<Keying>,
    /// When the link is out: beginning and end, seconds since the run began, in order, not overlapping.
    pub outages: Vec<(f64, f64)>,
}

/// What the channel itself would need for a file, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The whole file at every node before the next hop begins.
    pub store_and_forward_s: f64,
    /// Every packet passed on as it comes.
    pub streaming_s: f64,
    /// The best packet's payload on the slowest hop, bytes.
    pub payload_bytes: u32,
}

/// The limit for `bytes` bytes over these hops.
///
/// # Panics
/// Without a hop, or where packets have no room for a payload.
pub fn limit(hops: &[Hop], bytes: u64) -> Limit {
    assert!(!hops.is_empty(), "a path has a hop");
    let mut stored = 0.0;
    for hop in hops {
        stored = hop.sent_at(stored, hop.airtime_of_s(bytes)) + hop.delay_s;
    }
    let slowest = hops
        .iter()
        .max_by(|a, b| {
            a.seconds_a_byte(best_payload_bytes(a)).total_cmp(&b.seconds_a_byte(best_payload_bytes(b)))
        })
        .expect("a path has a hop");
    Limit {
        store_and_forward_s: stored,
        streaming_s: (0..hops.len()).map(|at| through_s(hops, at, bytes)).fold(0.0, f64::max),
        payload_bytes: best_payload_bytes(slowest),
    }
}

/// The payload with which a byte takes the least time on this hop.
///
/// # Panics
/// Where packets have no room for a payload.
pub fn best_payload_bytes(hop: &Hop) -> u32 {
    assert!(hop.payload_max_bytes > 0, "packets have no room for a payload");
    // Longer packets are always better without errors. With them, a packet longer than a few mean gaps between errors
    // is never the best, so the search ends there.
    let longest = hop.payload_max_bytes;
    let useful = if hop.ber > 0.0 { (4.0 / (8.0 * hop.ber)).min(f64::from(longest)) as u32 } else { longest };
    if hop.ber <= 0.0 {
        return longest;
    }
    let cost = |payload: &u32| hop.seconds_a_byte(*payload);
    (1..=useful.max(1)).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or(1)
}

/// When the last byte arrives if only the hop `at` took its time: all bytes cross it in packets that suit it best, and
/// before that and after it one byte at least has crossed the others. No way of cutting the file is faster, so the latest
/// over all hops is a lower bound, for tiny files and unequal hops, too.
fn through_s(hops: &[Hop], at: usize, bytes: u64) -> f64 {
    let mut arrived = 0.0;
    for (index, hop) in hops.iter().enumerate() {
        let air = match index == at {
            true => hop.airtime_of_s(bytes),
            false => hop.keyed_s(hop.airtime_s(hop.header_bytes + u32::from(bytes > 0))),
        };
        arrived = hop.sent_at(arrived, air) + hop.delay_s;
    }
    arrived
}

/// A file cut into packets.
#[derive(Clone, Copy)]
struct Packets {
    full: u64,
    full_bytes: u32,
    last_bytes: u32,
}

impl Packets {
    /// Cuts `bytes` bytes into payloads of `payload` bytes; an empty file is one packet that says so.
    fn of(bytes: u64, payload: u32, header_bytes: u32) -> Packets {
        let count = bytes.div_ceil(u64::from(payload)).max(1);
        let last = bytes - (count - 1) * u64::from(payload);
        Packets {
            full: count - 1,
            full_bytes: payload + header_bytes,
            last_bytes: last as u32 + header_bytes,
        }
    }

    /// The packets' lengths on the line, bytes.
    fn lengths(self) -> impl Iterator<Item = u32> {
        (0..self.full).map(move |_| self.full_bytes).chain([self.last_bytes])
    }
}

impl Hop {
    /// How long a packet of this length occupies the line on average, all its repetitions together.
    fn airtime_s(&self, length: u32) -> f64 {
        let bits = f64::from(length) * 8.0;
        bits / self.rate_bps * self.tries(bits)
    }

    /// The same for so many bytes, in packets of the best length.
    fn airtime_of_s(&self, bytes: u64) -> f64 {
        let packets = Packets::of(bytes, best_payload_bytes(self), self.header_bytes);
        self.keyed_s(packets.lengths().map(|length| self.airtime_s(length)).sum())
    }

    /// So many seconds of frames with the key-ups that they take.
    fn keyed_s(&self, air_s: f64) -> f64 {
        let Some(keying) = self.keying else { return air_s };
        let longest = f64::from(self.payload_max_bytes + self.header_bytes) * 8.0 / self.rate_bps;
        let burst_s = keying.burst_max_s.min(longest * f64::from(keying.frames_max));
        let bursts = (air_s / burst_s).ceil().max(1.0);
        air_s + bursts * keying.before_s + (bursts - 1.0) * keying.after_s
    }

    /// How often a packet of so many bits is sent on average.
    fn tries(&self, bits: f64) -> f64 {
        libm::exp(-bits * libm::log1p(-self.ber))
    }

    fn seconds_a_byte(&self, payload: u32) -> f64 {
        self.airtime_s(payload + self.header_bytes) / f64::from(payload)
    }

    /// When `air` seconds of sending that begin at `from` are over, given the outages.
    fn sent_at(&self, from: f64, air: f64) -> f64 {
        let (mut at, mut left) = (from, air);
        for (begin, end) in &self.outages {
            let (begin, end) = (*begin, *end);
            if end <= at {
                continue;
            }
            if at + left <= begin {
                break;
            }
            left -= (begin - at).max(0.0);
            at = end;
        }
        at + left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(delay_s: f64, ber: f64) -> Hop {
        Hop {
            rate_bps: 115_200.0,
            delay_s,
            ber,
            header_bytes: HEADER_BYTES,
            payload_max_bytes: 1500 - HEADER_BYTES,
            keying: None,
            outages: Vec::new(),
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn a_megabyte_over_one_error_free_hop() {
        // 685 packets: 684 of 1500 bytes and one of 1400, 1,027,400 bytes, 71.3472 s at 115,200 bit/s, and 2 s.
        let found = limit(&[hop(2.0, 0.0)], 1_000_000);
        assert_eq!(found.payload_bytes, 1460);
        assert!(near(found.store_and_forward_s, 73.3472), "{found:?}");
        assert!(near(found.streaming_s, 73.3472), "{found:?}");
    }

    #[test]
    fn two_hops_stored_and_streamed() {
        let found = limit(&[hop(2.0, 0.0), hop(2.0, 0.0)], 1_000_000);
        assert!(near(found.store_and_forward_s, 146.6944), "{found:?}");
        // The second hop begins one byte in a packet (41 bytes, 2.8 ms) and one delay late, and ends so.
        assert!(near(found.streaming_s, 71.3472 + 0.0028 + 4.0), "{found:?}");
    }

    #[test]
    fn a_tiny_file_over_unequal_hops_has_a_limit_that_packets_of_any_length_keep() {
        let slow = Hop { rate_bps: 1200.0, payload_max_bytes: 216, ..hop(0.0, 0.0) };
        let fast = Hop { rate_bps: 9600.0, ..hop(0.0, 0.0) };
        for bytes in [1, 50, 200, 216, 217, 1000] {
            for path in [[slow.clone(), fast.clone()], [fast.clone(), slow.clone()]] {
                let found = limit(&path, bytes);
                // What packets of one length need, each passed on as it comes.
                let by = |payload: u32| {
                    let (mut free, mut arrived) = ([0.0, 0.0], 0.0);
                    for length in Packets::of(bytes, payload, HEADER_BYTES).lengths() {
                        arrived = 0.0;
                        for (hop, free) in path.iter().zip(&mut free) {
                            *free = f64::max(*free, arrived) + hop.airtime_s(length);
                            arrived = *free;
                        }
                    }
                    arrived
                };
                let fastest = (1..=216).map(by).fold(f64::MAX, f64::min);
                assert!(found.streaming_s <= fastest + 1e-9, "{bytes}: {found:?}, but {fastest}");
                assert!(found.streaming_s <= found.store_and_forward_s + 1e-9, "{bytes}: {found:?}");
                assert!(found.streaming_s > 0.7 * fastest, "{bytes}: {found:?} is far from {fastest}");
            }
        }
    }

    #[test]
    fn bit_errors_make_packets_short_and_repeat_them() {
        // d/dm of (m + 40) / m * exp(8 (m + 40) p) is zero where m (m + 40) = 40 / (8 p): m = 687 at 1e-5.
        let payload = best_payload_bytes(&hop(0.0, 1e-5));
        assert!((686..=688).contains(&payload), "{payload}");
        assert_eq!(best_payload_bytes(&hop(0.0, 1e-6)), 1460, "the MTU binds");
        let found = limit(&[hop(2.0, 1e-5)], 1_000_000);
        // 1,000,000 / 687 * 727 * 8 / 115,200 * exp(727 * 8e-5) = 77.89 s, and 2 s.
        assert!((found.streaming_s - 79.89).abs() < 0.03, "{found:?}");
    }

    #[test]
    fn an_outage_takes_its_length() {
        let mut path = hop(2.0, 0.0);
        path.outages = vec![(30.0, 60.0)];
        let found = limit(&[path.clone()], 1_000_000);
        assert!(near(found.streaming_s, 73.3472 + 30.0), "{found:?}");
        path.outages = vec![(500.0, 600.0)];
        assert!(near(limit(&[path], 1_000_000).streaming_s, 73.3472), "it ends before");
    }

    #[test]
    fn an_empty_file_is_one_header_and_the_delay() {
        let found = limit(&[hop(2.0, 0.0)], 0);
        assert!(near(found.streaming_s, 2.0 + 320.0 / 115_200.0), "{found:?}");
    }

    #[test]
    fn a_shared_channel_is_keyed_as_seldom_as_is_allowed() {
        let keying = Keying { before_s: 0.6, after_s: 0.02, burst_max_s: 20.0, frames_max: 128 };
        let shared = Hop {
            rate_bps: 1200.0,
            header_bytes: AX25_BYTES,
            payload_max_bytes: 256,
            keying: Some(keying),
            ..hop(0.0, 0.0)
        };
        // 28 frames of 275 bytes and one of 33, 51.553 s: three key-ups.
        let found = limit(std::slice::from_ref(&shared), 7182);
        assert!(near(found.streaming_s, 51.5533 + 3.0 * 0.6 + 2.0 * 0.02), "{found:?}");
        // Ten frames each: three again; and at a hundred times the rate, three of ten frames where one would do for the time.
        let few = Keying { frames_max: 10, burst_max_s: 1000.0, ..keying };
        let found = limit(&[Hop { keying: Some(few), ..shared.clone() }], 7182);
        assert!(near(found.streaming_s, 51.5533 + 3.0 * 0.6 + 2.0 * 0.02), "{found:?}");
        let fast = Hop { rate_bps: 120_000.0, ..shared };
        assert!(near(limit(&[fast], 7182).streaming_s, 0.5155 + 0.6));
    }

    #[test]
    fn a_hopeless_link_still_has_a_finite_best() {
        assert_eq!(best_payload_bytes(&hop(0.0, 0.2)), 1);
    }
}
