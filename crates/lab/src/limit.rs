//! The limit: the ideal time that the channel itself needs.
//!
//! Two bounds, both below every protocol here and both with the outages of the run: nothing is sent during an outage,
//! and what was sent before it arrives.
//!
//! - **Without errors**: no run is faster. The file is divided into the fewest packets, each with the smallest header
//!   of any protocol here: [`IP_BYTES`] on a line, [`AX25_BYTES`] on a radio channel. They leave back to back at the
//!   line rate, plus the one-way delay. A single run is compared with this bound.
//! - **On average**: the mean of many runs is not lower. In addition to the above it includes the retransmissions that
//!   bit errors make necessary, in packets of the best size, from a sender that learns of losses at once. A packet of
//!   `b` bits arrives with probability `(1 - ber)^b`; for errors in bursts see [`bursts`]. Outages count only as far as
//!   they affect the transfer without errors, which no run ends before; the air time of retransmissions is added to its end.
//!   Whether they run into a later outage differs between runs.
//!
//! Where damaged packets are delivered, a code can use them. There the mean is that of the channel's capacity: packets of full
//! length, of which those with an intact IPv4 header carry `1 - H(ber)` of each bit, with the binary entropy `H`.
//!
//! On a half-duplex radio channel there are no acknowledgements and no bit stuffing, and every key-up has the maximum
//! length: it is preceded by TXDELAY and, on average, a wait for a slot; between two of them there is TXTAIL. Stations
//! that acknowledge have to key up more often.
//!
//! Over several hops there are two of each: [`Limit::store_and_forward`] for storing the complete file at every node,
//! and [`Limit::streaming`] for forwarding each packet as it arrives, in packets of any length. Over one hop they are
//! equal.

pub mod bursts;

use longwire_sim::Errors;
use serde::{Deserialize, Serialize};

/// Header bytes of a packet on a line: IPv4 and UDP. TCP without options has 12 more.
pub const IP_BYTES: u32 = 28;
/// Part of [`IP_BYTES`] whose damage loses a packet whatever is above it.
const IPV4_BYTES: f64 = 20.0;
/// Bytes of an AX.25 frame besides its information: two addresses of 7, control, protocol identifier, check sequence of
/// 2 and the closing flag.
pub const AX25_BYTES: u32 = 19;

/// Time of a transmitter on a half-duplex channel besides its frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keying {
    /// Mean wait for a slot before a key-up, seconds. A single key-up may get its slot at once.
    pub access_s: f64,
    /// Time from key-up to the first frame (TXDELAY), seconds.
    pub before_s: f64,
    /// Time after the last frame (TXTAIL), seconds.
    pub after_s: f64,
    /// Maximum time from the start of the first frame of a key-up to the start of the last one, seconds.
    pub burst_max_s: f64,
    /// Maximum frames in a key-up.
    pub frames_max: u32,
}

/// One hop, in the direction of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitHop {
    /// Line rate, bit/s.
    pub rate_bps: f64,
    /// One-way delay, seconds.
    pub delay_s: f64,
    /// Model of the bit errors.
    pub errors: Errors,
    /// Header bytes of each packet.
    pub header_bytes: u32,
    /// Maximum payload of a packet, bytes, at least 1.
    pub payload_max_bytes: u32,
    /// True if damaged packets are delivered, without a frame check.
    pub delivers_damaged: bool,
    /// Keying, if the channel is shared.
    pub keying: Option<Keying>,
    /// Outages of the link: start and end, seconds since the start of the run, ascending.
    pub outages: Vec<(f64, f64)>,
}

/// Two lower bounds, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Bound of every single run.
    pub error_free_s: f64,
    /// Bound of the mean of many runs.
    pub mean_s: f64,
}

/// Ideal time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The complete file is stored at every node before the next hop starts.
    pub store_and_forward: Bound,
    /// Every packet is forwarded as it arrives.
    pub streaming: Bound,
    /// Payload of the best packet on the slowest hop, bytes.
    pub payload_bytes: u32,
}

/// Computes the limit for `bytes` bytes over these hops.
///
/// # Panics
/// Panics without a hop, or if packets have no room for a payload.
pub fn limit(hops: &[LimitHop], bytes: u64) -> Limit {
    assert!(!hops.is_empty(), "a path has a hop");
    // The hop `at` carries all bytes in the packets that suit it best, and the others one byte, before and after it. No
    // division of the file is faster, so the latest time over all hops is a bound, also for tiny files and unequal
    // hops.
    let through = |at: usize| arrival(hops, |hop| if hop == at { bytes } else { bytes.min(1) });
    let streaming = (0..hops.len()).map(through).fold(Bound::default(), Bound::later);
    let slowest = hops
        .iter()
        .max_by(|a, b| a.sending(bytes).keyed.mean_s.total_cmp(&b.sending(bytes).keyed.mean_s))
        .expect("a path has a hop");
    Limit {
        store_and_forward: arrival(hops, |_| bytes),
        streaming,
        payload_bytes: best_payload_bytes(slowest),
    }
}

/// Returns the payload with which a byte takes the least time on this hop.
///
/// # Panics
/// Panics if packets have no room for a payload.
pub fn best_payload_bytes(hop: &LimitHop) -> u32 {
    assert!(hop.payload_max_bytes > 0, "packets have no room for a payload");
    match hop.errors {
        _ if hop.delivers_damaged => hop.payload_max_bytes,
        Errors::GilbertElliott(model) => {
            bursts::ceiling(&model, hop.header_bytes, hop.payload_max_bytes).payload_bytes
        }
        errors => {
            let best = even_payload_bytes(errors.mean_ber(), hop.header_bytes);
            best.clamp(1.0, f64::from(hop.payload_max_bytes)).round() as u32
        }
    }
}

fn even_payload_bytes(ber: f64, header_bytes: u32) -> f64 {
    longwire_towers::path::best_payload_bytes(ber, f64::from(header_bytes))
}

/// Growth of the logarithm of the number of transmissions of a packet with each byte of its length.
fn growth_a_byte(ber: f64) -> f64 {
    -8.0 * libm::log1p(-ber)
}

/// Arrival of the last byte if these bytes cross each hop, one hop after the other.
fn arrival(hops: &[LimitHop], bytes: impl Fn(usize) -> u64) -> Bound {
    let mut at = Bound::default();
    for (index, hop) in hops.iter().enumerate() {
        let HopTime { air, keyed } = hop.sending(bytes(index));
        let out_s = hop.sent_at(at.error_free_s, air.error_free_s);
        let error_free_s = out_s.max(at.error_free_s + keyed.error_free_s);
        // No run starts before the error-free time, a later start never ends earlier, and airtime added by errors is added
        // to the end.
        let later_s = out_s + air.mean_s - air.error_free_s;
        let mean_s = error_free_s.max(at.mean_s + keyed.mean_s).max(later_s);
        at = Bound { error_free_s: error_free_s + hop.delay_s, mean_s: mean_s + hop.delay_s };
    }
    at
}

/// Time of a file on a hop, without delay and outages.
#[derive(Clone, Copy)]
struct HopTime {
    /// Packets only.
    air: Bound,
    /// Packets with their key-ups.
    keyed: Bound,
}

impl Bound {
    /// Returns the later of both bounds, separately for each.
    fn later(self, other: Bound) -> Bound {
        Bound {
            error_free_s: self.error_free_s.max(other.error_free_s),
            mean_s: self.mean_s.max(other.mean_s),
        }
    }
}

impl LimitHop {
    fn sending(&self, bytes: u64) -> HopTime {
        assert!(self.payload_max_bytes > 0, "packets have no room for a payload");
        let fewest = bytes.div_ceil(u64::from(self.payload_max_bytes)).max(1);
        let line_bytes = bytes + fewest * u64::from(self.header_bytes);
        let error_free_s = 8.0 * line_bytes as f64 / self.rate_bps;
        let air_s = match self.delivers_damaged {
            true => error_free_s / self.capacity(),
            false => self.repeated_s(bytes, fewest).max(error_free_s),
        };
        let (fewest_keyed_s, keyed_s) = self.keyed_s(error_free_s, air_s);
        // In bursts the time that a sender may have to wait counts, too.
        let in_bursts_s = match self.errors {
            Errors::GilbertElliott(model) if !self.delivers_damaged => {
                let ceiling = bursts::ceiling(&model, self.header_bytes, self.payload_max_bytes);
                ceiling.bits_least(bytes, self.outages.len()) / self.rate_bps
            }
            _ => 0.0,
        };
        HopTime {
            air: Bound { error_free_s, mean_s: air_s.max(in_bursts_s) },
            keyed: Bound { error_free_s: fewest_keyed_s, mean_s: keyed_s.max(in_bursts_s) },
        }
    }

    /// Bit-error rate; in bursts that of the better state.
    fn better_ber(&self) -> f64 {
        match self.errors {
            Errors::GilbertElliott(model) => model.good_ber.min(model.bad_ber),
            errors => errors.mean_ber(),
        }
    }

    /// Information in each bit, if damaged packets arrive as well.
    fn capacity(&self) -> f64 {
        let ber = self.better_ber();
        let part = |share: f64| if share > 0.0 { -share * libm::log2(share) } else { 0.0 };
        let intact_header = libm::exp(-growth_a_byte(ber) * IPV4_BYTES);
        (1.0 - part(ber) - part(1.0 - ber)) * intact_header
    }

    /// Mean time for which this number of bytes occupies the line including all retransmissions, in at least `fewest`
    /// packets. The cost grows ever faster with the length of a packet, so packets of equal length are best; their
    /// number is one of the two integers next to the optimum. In bursts the line counts as if it were always in its
    /// better state.
    fn repeated_s(&self, bytes: u64, fewest: u64) -> f64 {
        let ber = self.better_ber();
        let growth = growth_a_byte(ber);
        let cost_s = |packets: u64| {
            let length = bytes as f64 / packets as f64 + f64::from(self.header_bytes);
            packets as f64 * 8.0 * length / self.rate_bps * libm::exp(growth * length)
        };
        let best = (bytes as f64 / even_payload_bytes(ber, self.header_bytes)) as u64;
        let most = bytes.max(1);
        [best, best + 1]
            .map(|packets| cost_s(packets.clamp(fewest, most)))
            .into_iter()
            .fold(f64::MAX, f64::min)
    }

    /// Time of frames with their key-ups, seconds: minimum, and with frames that take `mean_s` on average.
    fn keyed_s(&self, least_s: f64, mean_s: f64) -> (f64, f64) {
        let Some(keying) = self.keying else { return (least_s, mean_s) };
        let longest_s = 8.0 * f64::from(self.payload_max_bytes + self.header_bytes) / self.rate_bps;
        let burst_s = (keying.burst_max_s + longest_s).min(longest_s * f64::from(keying.frames_max));
        // Tolerates rounding errors in the last bit.
        let fewest = (least_s / burst_s - 1e-9).ceil().max(1.0);
        let keyed_s = |air_s: f64, bursts: f64, access_s: f64| {
            air_s + bursts * (access_s + keying.before_s) + (bursts - 1.0) * keying.after_s
        };
        (keyed_s(least_s, fewest, 0.0), keyed_s(mean_s, fewest.max(mean_s / burst_s), keying.access_s))
    }

    /// Returns the end of `air` seconds of transmission that start at `from`, given the outages.
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

    fn hop(delay_s: f64, ber: f64) -> LimitHop {
        LimitHop {
            rate_bps: 115_200.0,
            delay_s,
            errors: Errors::Ber(ber),
            header_bytes: IP_BYTES,
            payload_max_bytes: 1500 - IP_BYTES,
            delivers_damaged: false,
            keying: None,
            outages: Vec::new(),
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    /// Returns true if both bounds are equal to this time, as without errors.
    fn same(bound: Bound, seconds: f64) -> bool {
        near(bound.error_free_s, seconds) && near(bound.mean_s, seconds)
    }

    #[test]
    fn a_megabyte_over_one_error_free_hop() {
        // 680 packets, 1,019,040 bytes, 70.7667 s at 115,200 bit/s, and 2 s.
        let found = limit(&[hop(2.0, 0.0)], 1_000_000);
        assert_eq!(found.payload_bytes, 1472);
        assert!(same(found.store_and_forward, 72.7667), "{found:?}");
        assert!(same(found.streaming, 72.7667), "{found:?}");
    }

    #[test]
    fn each_frame_of_a_channel_with_one_frame_per_transmission_has_its_cost() {
        let keying = Keying { access_s: 0.0, before_s: 0.02, after_s: 0.0, burst_max_s: 0.0, frames_max: 1 };
        let shared = LimitHop { header_bytes: 46, keying: Some(keying), ..hop(0.0, 0.0) };
        // 680 packets, 1,031,280 bytes with 46 bytes around each, and 20 ms each.
        let found = limit(&[shared], 1_000_000);
        assert!(same(found.store_and_forward, 71.6167 + 13.6), "{found:?}");
    }

    #[test]
    fn damaged_packets_that_arrive_carry_information() {
        let damaged = |ber: f64| LimitHop { delivers_damaged: true, ..hop(2.0, ber) };
        let mean_s = |hop: LimitHop| limit(&[hop], 1_000_000).streaming.mean_s;
        assert!(near(mean_s(damaged(0.0)), 72.7667));
        // H(1e-4) is 0.001473, and 1.59 % of the packets have a damaged header.
        assert!(near((mean_s(damaged(1e-4)) - 2.0) / 70.7667, 1.0 / (0.998527 * 0.984127)));
        assert!(mean_s(damaged(1e-4)) < mean_s(hop(2.0, 1e-4)), "a code can use what is damaged");
        let error_free_s = |hop: LimitHop| limit(&[hop], 1_000_000).streaming.error_free_s;
        assert_eq!(error_free_s(damaged(1e-4)), error_free_s(hop(2.0, 1e-4)));
    }

    #[test]
    fn two_hops_stored_and_streamed() {
        let found = limit(&[hop(2.0, 0.0), hop(2.0, 0.0)], 1_000_000);
        assert!(same(found.store_and_forward, 145.5333), "{found:?}");
        // The second hop starts one byte in a packet (29 bytes, 2 ms) and one delay late, and ends as late.
        assert!(same(found.streaming, 70.7667 + 0.0020 + 4.0), "{found:?}");
    }

    #[test]
    fn a_tiny_file_over_unequal_hops_has_a_limit_that_packets_of_any_length_keep() {
        let slow = LimitHop { rate_bps: 1200.0, payload_max_bytes: 216, ..hop(0.0, 0.0) };
        let fast = LimitHop { rate_bps: 9600.0, ..hop(0.0, 0.0) };
        for bytes in [1, 50, 200, 216, 217, 1000] {
            for path in [[slow.clone(), fast.clone()], [fast.clone(), slow.clone()]] {
                let found = limit(&path, bytes);
                // Time for packets of one length, each forwarded as it arrives.
                let by = |payload: u64| {
                    let (mut free, mut arrived, mut left) = ([0.0, 0.0], 0.0, bytes);
                    while left > 0 {
                        let length = payload.min(left) + u64::from(IP_BYTES);
                        left -= payload.min(left);
                        arrived = 0.0;
                        for (hop, free) in path.iter().zip(&mut free) {
                            *free = f64::max(*free, arrived) + 8.0 * length as f64 / hop.rate_bps;
                            arrived = *free;
                        }
                    }
                    arrived
                };
                let fastest = (1..=216).map(by).fold(f64::MAX, f64::min);
                let (streaming_s, stored_s) =
                    (found.streaming.error_free_s, found.store_and_forward.error_free_s);
                assert!(streaming_s <= fastest + 1e-9, "{bytes}: {found:?}, but {fastest}");
                assert!(streaming_s <= stored_s + 1e-9, "{bytes}: {found:?}");
                assert!(streaming_s > 0.7 * fastest, "{bytes}: {found:?} is far from {fastest}");
            }
        }
    }

    #[test]
    fn bit_errors_make_packets_short_and_repeat_them() {
        // d/dm of (m + 28) / m * exp(8 (m + 28) p) is zero where m (m + 28) = 28 / (8 p): m = 578 at 1e-5.
        assert_eq!(best_payload_bytes(&hop(0.0, 1e-5)), 578);
        assert_eq!(best_payload_bytes(&hop(0.0, 1e-6)), 1472, "the MTU binds");
        let found = limit(&[hop(2.0, 1e-5)], 1_000_000);
        // 1,000,000 / 578 * 606 * 8 / 115,200 * exp(606 * 8e-5) = 76.42 s, and 2 s.
        assert!((found.streaming.mean_s - 78.42).abs() < 0.03, "{found:?}");
        assert!(near(found.streaming.error_free_s, 72.7667), "no error has to come: {found:?}");
    }

    /// No division into packets of any lengths is faster on average; the best one comes close.
    #[test]
    fn no_way_of_cutting_a_file_is_faster_on_average() {
        for ber in [1e-5, 1e-4, 1e-3] {
            let hop = LimitHop { payload_max_bytes: 200, ..hop(0.0, ber) };
            let cost_s = |payload: usize| {
                let bits = 8.0 * (payload as f64 + f64::from(IP_BYTES));
                bits / hop.rate_bps * libm::exp(-bits * libm::log1p(-ber))
            };
            let mut fastest = vec![0.0];
            for bytes in 1..=1000 {
                let last = (1..=bytes.min(200)).map(|payload| cost_s(payload) + fastest[bytes - payload]);
                fastest.push(last.fold(f64::MAX, f64::min));
                let found = limit(std::slice::from_ref(&hop), bytes as u64).streaming.mean_s;
                assert!(found <= fastest[bytes] + 1e-12, "{ber}, {bytes} bytes: {found}");
                assert!(found > 0.999 * fastest[bytes], "{ber}, {bytes} bytes: {found} is far off");
            }
        }
    }

    #[test]
    fn bursts_cost_what_they_take_and_never_more_than_independent_bits_of_the_same_rate() {
        let model = longwire_sim::GilbertElliott {
            good_bits_mean: 200_000.0,
            bad_bits_mean: 500.0,
            good_ber: 0.0,
            bad_ber: 0.3,
        };
        let bursts = limit(&[LimitHop { errors: Errors::GilbertElliott(model), ..hop(0.0, 0.0) }], 1_000_000);
        let even = limit(&[hop(0.0, model.mean_ber())], 1_000_000);
        let free = limit(&[hop(0.0, 0.0)], 1_000_000);
        assert_eq!(bursts.streaming.error_free_s, free.streaming.error_free_s);
        assert!(bursts.streaming.mean_s > 1.02 * free.streaming.mean_s, "{bursts:?}");
        assert!(bursts.streaming.mean_s < 0.5 * even.streaming.mean_s, "{bursts:?}, {even:?}");
    }

    #[test]
    fn an_outage_takes_its_length() {
        let mut path = hop(2.0, 0.0);
        path.outages = vec![(30.0, 60.0)];
        assert!(same(limit(&[path.clone()], 1_000_000).streaming, 72.7667 + 30.0));
        path.outages = vec![(500.0, 600.0)];
        assert!(same(limit(&[path.clone()], 1_000_000).streaming, 72.7667), "it ends before");
        path.outages = vec![(0.0, 10.0)];
        assert!(same(limit(&[path], 1_000_000).streaming, 72.7667 + 10.0), "one under way at the start");
    }

    /// Nothing leaves before the end of an outage that started before the run or before the second hop has the file.
    #[test]
    fn an_outage_under_way_at_the_start_takes_what_is_left_of_it() {
        let mut path = hop(2.0, 0.0);
        path.outages = vec![(-5.0, 10.0)];
        assert!(same(limit(&[path.clone()], 1_000_000).streaming, 72.7667 + 10.0));
        path.outages = vec![(-5.0, 0.0)];
        assert!(same(limit(&[path.clone()], 1_000_000).streaming, 72.7667), "one that is over costs nothing");
        path.outages = vec![(60.0, 100.0)];
        let found = limit(&[hop(2.0, 0.0), path], 1_000_000);
        assert!(near(found.store_and_forward.error_free_s, 100.0 + 72.7667), "{found:?}");
    }

    #[test]
    fn an_outage_that_only_some_runs_meet_is_not_in_the_limit_of_their_mean() {
        // 70.77 s without errors, 74.42 s on average: some runs end before 72 s.
        let mut path = hop(0.0, 1e-5);
        path.outages = vec![(72.0, 1072.0)];
        let found = limit(&[path.clone()], 1_000_000);
        assert!((found.streaming.mean_s - 76.42).abs() < 0.03, "{found:?}");
        // All runs meet this outage, and errors are added to it.
        path.outages = vec![(30.0, 60.0)];
        let found = limit(&[path.clone()], 1_000_000);
        assert!((found.streaming.mean_s - 106.42).abs() < 0.03, "{found:?}");
        // A second hop starts when the first one ends, which is not known.
        let second = limit(&[hop(0.0, 1e-5), path], 1_000_000);
        assert!((second.store_and_forward.mean_s - 2.0 * 76.42).abs() < 0.06, "{second:?}");
        assert!(near(second.store_and_forward.error_free_s, 2.0 * 70.7667), "{second:?}");
        // The same holds for the start of a third hop: it cannot end before its outage, and errors are added to it.
        let late = LimitHop { outages: vec![(150.0, 1150.0)], ..hop(0.0, 1e-5) };
        let third = limit(&[hop(0.0, 1e-5), hop(0.0, 1e-5), late], 1_000_000).store_and_forward;
        assert!(near(third.error_free_s, 1000.0 + 3.0 * 70.7667), "{third:?}");
        assert!((third.mean_s - third.error_free_s - 5.65).abs() < 0.03, "{third:?}");
    }

    #[test]
    fn an_empty_file_is_one_header_and_the_delay() {
        assert!(same(limit(&[hop(2.0, 0.0)], 0).streaming, 2.0 + 224.0 / 115_200.0));
    }

    #[test]
    fn a_shared_channel_is_keyed_as_seldom_as_is_allowed() {
        let keying =
            Keying { access_s: 0.2, before_s: 0.4, after_s: 0.02, burst_max_s: 20.0, frames_max: 128 };
        let shared = LimitHop {
            rate_bps: 1200.0,
            header_bytes: AX25_BYTES,
            payload_max_bytes: 256,
            keying: Some(keying),
            ..hop(0.0, 0.0)
        };
        // 28 frames of 275 bytes and one of 33, 51.553 s: three key-ups.
        let found = limit(std::slice::from_ref(&shared), 7182).streaming;
        assert!(near(found.mean_s, 51.5533 + 3.0 * 0.6 + 2.0 * 0.02), "{found:?}");
        assert!(near(found.error_free_s, 51.5533 + 3.0 * 0.4 + 2.0 * 0.02), "every slot free: {found:?}");
        // Ten frames each: three key-ups again; and at a hundred times the rate, three of ten frames although one would
        // suffice for the time.
        let few = Keying { frames_max: 10, burst_max_s: 1000.0, ..keying };
        let found = limit(&[LimitHop { keying: Some(few), ..shared.clone() }], 7182).streaming;
        assert!(near(found.mean_s, 51.5533 + 3.0 * 0.6 + 2.0 * 0.02), "{found:?}");
        let fast = LimitHop { rate_bps: 120_000.0, ..shared.clone() };
        assert!(near(limit(&[fast], 7182).streaming.mean_s, 0.5155 + 0.6));
        // A transmitter may be keyed during an outage, so that its first frame leaves when the channel is back.
        let out = LimitHop { outages: vec![(0.0, 100.0)], ..shared };
        assert!(near(limit(&[out], 7182).streaming.error_free_s, 151.5533));
    }

    #[test]
    fn a_hopeless_link_still_has_a_finite_best() {
        assert_eq!(best_payload_bytes(&hop(0.0, 0.2)), 1);
        assert!(limit(&[hop(0.0, 0.5)], 100).streaming.mean_s.is_finite());
    }
}
