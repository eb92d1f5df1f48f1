//! Facts about the links of a path, and the settings of TCP and AX.25 that follow from them.

use longwire_proto::ax25::{LinkConfig, RadioParameters, Version};
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;

/// One link of a path, as far as settings depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// Rate, bit/s.
    pub rate_bps: u64,
    /// Rate on the way back, bit/s; `None` if it is the same.
    pub back_rate_bps: Option<u64>,
    /// Longest round trip without queues and without the transmission of packets, seconds.
    pub delays_s: f64,
    /// Maximum length of a packet, bytes; on a radio channel that of the information field of a frame.
    pub mtu_bytes: u32,
    /// Queue of the interface, bytes.
    pub queue_bytes: u64,
    /// True if frames that find the queue full are dropped.
    pub drops: bool,
    /// Mean bit-error rate.
    pub mean_ber: f64,
    /// Parameters of the shared radio channel; `None` on a line.
    pub radio: Option<RadioParameters>,
    /// True if a line carries UI frames of AX.25 instead of IP packets.
    pub ui_frames: bool,
}

impl Hop {
    /// Round trip of a full packet in each direction, seconds: on a slow line the packets themselves take most of it, and
    /// on a radio channel each direction needs a key-up.
    fn round_trip_s(&self) -> f64 {
        let bits = f64::from(self.mtu_bytes) * 8.0;
        if let Some(radio) = &self.radio {
            return 2.0 * (radio.access().as_secs_f64() + bits / self.rate_bps as f64);
        }
        let back = self.back_rate_bps.unwrap_or(self.rate_bps);
        self.delays_s + bits / self.rate_bps as f64 + bits / back as f64
    }
}

/// Longest round trip of any hop.
pub fn round_trip(path: &[Hop]) -> Duration {
    Duration::from_secs_f64(path.iter().map(Hop::round_trip_s).fold(0.0, f64::max))
}

/// Returns the payload with which a byte takes the least time where each packet has a header of this length and a damaged
/// packet is sent again; infinity without errors.
///
/// Minimises `(m + h) / m * exp(growth * m)`: the minimum is at `m (m + h) = h / growth`, with the growth of the logarithm
/// of the number of transmissions with each byte.
pub fn best_payload_bytes(ber: f64, header_bytes: f64) -> f64 {
    let growth = -8.0 * libm::log1p(-ber);
    if growth == 0.0 {
        return f64::INFINITY;
    }
    ((header_bytes * header_bytes + 4.0 * header_bytes / growth).sqrt() - header_bytes) / 2.0
}

/// Linux with these rules and without limits on its buffers: half of the largest receive buffer is window.
pub fn as_installed(linux: Profile) -> Profile {
    Profile { send_buffer_bytes: 4 << 20, receive_buffer_bytes: 3 << 20, ..linux }
}

/// Current Linux without limits on its buffers.
pub fn linux_6_as_installed() -> Profile {
    as_installed(Profile::linux_6())
}

/// TCP tuned for the links of a path: windows of twice the bandwidth-delay product, an initial window that fills the
/// link instead of the round trips of slow start, timers that start beyond the round trip.
pub fn tuned_tcp(path: &[Hop]) -> Profile {
    let held = |hop: &Hop| hop.round_trip_s() * hop.rate_bps as f64 / 8.0;
    let product = path.iter().map(held).fold(0.0, f64::max);
    let window = (2.0 * product).clamp(262_144.0, 1e9) as u32;
    let round_trip = round_trip(path);
    let linux = linux_6_as_installed();
    // A queue that drops must hold what is not yet in transit.
    let dropping = path.iter().filter(|hop| hop.drops).map(|hop| hop.queue_bytes as f64);
    let flight = dropping.fold(product, f64::min);
    let segments = (flight / f64::from(linux.maximum_segment_bytes)) as u32;
    Profile {
        send_buffer_bytes: window.saturating_mul(2),
        receive_buffer_bytes: window,
        initial_window_segments: segments.clamp(linux.initial_window_segments, 1 << 20),
        // With a shorter timeout, every connection would start with a retransmitted SYN.
        rto_initial: (round_trip * 3 / 2).max(linux.rto_initial),
        rto_maximum: (round_trip * 4).max(linux.rto_maximum),
        ..linux
    }
}

/// AX.25 link of version 2.0 with this window, and the maximum frame length of the path.
pub fn plain_ax25(path: &[Hop], window_frames: u8) -> LinkConfig {
    LinkConfig { version: Version::Plain, window_frames, ..extended_ax25(path) }
}

/// AX.25 link of version 2.2: modulo 128, selective reject.
pub fn extended_ax25(path: &[Hop]) -> LinkConfig {
    let longest = path.iter().map(|hop| hop.mtu_bytes).min().unwrap_or(256);
    LinkConfig { information_bytes_max: longest, ..LinkConfig::default() }
}
