//! Presets of [`Profile`]: the behaviour of TCP in certain systems.

use super::config::{
    CongestionControl, Growth, Halved, IdleRestart, Nagle, Profile, Recovery, Reduction, ReductionBound,
    RtoRule, RttSampling, WindowValidation,
};
use crate::time::Duration;

impl Profile {
    /// Names of the presets.
    pub const NAMES: [&'static str; 6] =
        ["rfc5681", "linux-2.4", "linux-2.6", "ns3-2010", "linux-6", "linux-6-cubic"];

    /// Returns the preset with this name.
    pub fn named(name: &str) -> Option<Profile> {
        match name {
            "rfc5681" => Some(Profile::rfc5681()),
            "linux-2.4" => Some(Profile::linux_2_4()),
            "ns3-2010" => Some(Profile::ns3_2010()),
            "linux-2.6" => Some(Profile::linux_2_6()),
            "linux-6" => Some(Profile::linux_6()),
            "linux-6-cubic" => Some(Profile::linux_6_cubic()),
            _ => None,
        }
    }

    /// Preset by the standards: RFC 5681, 6582, 6675, 6298, 7323, 3042, each with its own numbers.
    pub fn rfc5681() -> Profile {
        Profile {
            maximum_segment_bytes: 1460,
            send_buffer_bytes: 262_144,
            receive_buffer_bytes: 65_535,
            announced_bytes_max: None,
            window_scaling: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            sack: true,
            duplicate_sack: false,
            congestion_control: CongestionControl::Reno,
            hystart: false,
            initial_window_segments: 3,
            growth: Growth::Bytes { segments_max: 1 },
            window_validation: WindowValidation::Off,
            halved: Halved::Flight,
            whole_segments: false,
            recovery: Recovery::Sack6675,
            reduction: Reduction::Immediate,
            reduction_bound: ReductionBound::SlowStart,
            limited_transmit: true,
            find_lost_retransmissions: false,
            repeat_on_suspicion: true,
            tail_loss_probe: false,
            forward_rto: false,
            undo_by_timestamps: false,
            undo_syn_timeout: false,
            idle_restart: IdleRestart::Rfc5681,
            remember_threshold: false,
            rto_initial: Duration::from_secs(1),
            rto_minimum: Duration::from_secs(1),
            rto_maximum: Duration::from_secs(60),
            rto_rule: RtoRule::Rfc6298,
            rtt_sampling: RttSampling::PerRoundTrip,
            delayed_ack_minimum: Duration::from_millis(200),
            delayed_ack_maximum: Duration::from_millis(200),
            acknowledge_every_segments: 2,
            quick_acks: 0,
            quick_acks_after_disorder: false,
            nagle: Nagle::Rfc9293,
            retries: 15,
            retries_as_time: false,
            syn_retries: 5,
            keep_alive_idle: None,
            keep_alive_interval: Duration::from_secs(75),
            keep_alive_probes: 9,
            time_wait: Duration::from_secs(60),
        }
    }

    /// Linux 2.4 of Red Hat 7.3 (2002): initial window 2, initial timeout 3 s, a window of 65,535 bytes, forward
    /// acknowledgement with rate halving, and a route cache that remembers the slow-start threshold.
    pub fn linux_2_4() -> Profile {
        Profile {
            send_buffer_bytes: 65_536,
            window_scaling: true,
            timestamp_tick: Duration::from_millis(10),
            initial_window_segments: 2,
            growth: Growth::PerAcknowledgementLinux,
            window_validation: WindowValidation::WhenFull,
            halved: Halved::Window,
            recovery: Recovery::Fack,
            reduction: Reduction::RateHalving,
            find_lost_retransmissions: true,
            repeat_on_suspicion: false,
            undo_by_timestamps: true,
            undo_syn_timeout: true,
            idle_restart: IdleRestart::Halving,
            remember_threshold: true,
            rto_initial: Duration::from_secs(3),
            rto_minimum: Duration::from_millis(200),
            rto_maximum: Duration::from_secs(120),
            rto_rule: RtoRule::Linux,
            rtt_sampling: RttSampling::PerAcknowledgement,
            delayed_ack_minimum: Duration::from_millis(40),
            quick_acks: 16,
            quick_acks_after_disorder: true,
            nagle: Nagle::Minshall,
            ..Profile::rfc5681()
        }
    }

    /// Linux 2.6.32 to 2.6.38 (2009 to 2011): CUBIC with HyStart, SACK with forward acknowledgement and rate halving, F-RTO,
    /// initial window 3, initial timeout 3 s, and a route cache that remembers the slow-start threshold.
    ///
    /// Neither RACK-TLP nor proportional rate reduction, which came with Linux 3.2 to 3.10 and 4.4. After a spurious
    /// timeout these kernels continued with the halved window; here the reduction is undone.
    pub fn linux_2_6() -> Profile {
        Profile {
            send_buffer_bytes: 262_144,
            timestamp_tick: Duration::from_millis(4),
            congestion_control: CongestionControl::Cubic,
            hystart: true,
            whole_segments: true,
            initial_window_segments: 3,
            forward_rto: true,
            duplicate_sack: true,
            retries_as_time: true,
            ..Profile::linux_2_4()
        }
    }

    /// Preset with the defaults of ns-3 around 2010: 536-byte segments, NewReno without SACK, both the minimum timeout
    /// and the delayed acknowledgement 0.2 s, six retries; and limited transmit, without which ns-3 3.44 fails an assertion.
    ///
    /// Compared with ns-3 3.44 (`interop/ns3/aerotp.py`), 1 MB at 4.416 Mbit/s over 5 Mbit/s and 10 ms one way, seconds on
    /// average of the complete ones of 100 runs (standard error), and their share:
    ///
    /// | bit-error rate | here | ns-3 |
    /// |---|---|---|
    /// | 0 | 1.90 | 1.95 |
    /// | 1e-6 | 10.2 (4.8) | 13.2 (5.9) |
    /// | 2.5e-6 | 36.9 (8.5) | 53.2 (11.2) |
    /// | 5e-6 | 123.0 (13.5) | 152.3 (16.0) |
    /// | 1e-5 | 316.8 (11.8) | 313.0 (11.6) |
    /// | 2.5e-5 | 451.0 (2.1) | 438.1 (3.2) |
    /// | 5e-5 | 555.9 (1.5), 96 % | 546.1 (2.3), 92 % |
    /// | 7.5e-5 | 699.7 (3.6), 59 % | 700.1 (9.4), 59 % |
    /// | 1e-4 | 874 (2), 8 % | 939 (46), 6 % |
    ///
    /// From 1e-6 to 5e-6 the times have two peaks: a run meets the case of [`Recovery::NewRenoNs3`] in which every segment times
    /// out, or not, and the mean follows the share of those that do.
    pub fn ns3_2010() -> Profile {
        Profile {
            maximum_segment_bytes: 536,
            send_buffer_bytes: 131_072,
            window_scaling: false,
            timestamps: false,
            sack: false,
            initial_window_segments: 1,
            growth: Growth::PerAcknowledgement,
            recovery: Recovery::NewRenoNs3,
            quick_acks: 1,
            nagle: Nagle::Off,
            idle_restart: IdleRestart::Off,
            rto_initial: Duration::from_secs(3),
            rto_minimum: Duration::from_millis(200),
            rtt_sampling: RttSampling::PerAcknowledgement,
            retries: 6,
            syn_retries: 6,
            ..Profile::rfc5681()
        }
    }

    /// Preset for a current Linux kernel with `reno`: initial window 10, initial timeout 1 s, its own rule for the
    /// timeout, RACK-TLP, F-RTO, proportional rate reduction, undo by timestamps and by duplicate SACKs.
    ///
    /// Compared with Linux 6.18 over a link of 115,200 bit/s with delays of seconds, 1,000,000 bytes and a window of 53,000
    /// bytes: within 0.5 % without errors. With bit errors, seconds on average of 400 runs, and of the kernel's (standard
    /// error, runs):
    ///
    /// | one way, bit-error rate | here | kernel |
    /// |---|---|---|
    /// | 1.28 s, 1e-6 | 149.2 | 151.5 (2.3, 239) |
    /// | 1.28 s, 1e-5 | 592.5 | 607.2 (5.6, 55) |
    /// | 2 s, 1e-6 | 218.3 | 227.2 (6.0, 109) |
    /// | 2 s, 1e-5 | 905.6 | 905.6 (9.3, 48) |
    ///
    /// The kernel recovers with RACK alone, as since Linux 6.17; earlier kernels have the rule of RFC 6675 beside it.
    pub fn linux_6() -> Profile {
        Profile {
            initial_window_segments: 10,
            growth: Growth::Bytes { segments_max: 0 },
            window_validation: WindowValidation::SlowStartDoubles,
            halved: Halved::Window,
            whole_segments: true,
            recovery: Recovery::Rack,
            reduction: Reduction::Proportional,
            reduction_bound: ReductionBound::SlowStartWithoutLoss,
            tail_loss_probe: true,
            forward_rto: true,
            duplicate_sack: true,
            repeat_on_suspicion: false,
            undo_by_timestamps: true,
            undo_syn_timeout: true,
            idle_restart: IdleRestart::Halving,
            rto_minimum: Duration::from_millis(200),
            rto_maximum: Duration::from_secs(120),
            rto_rule: RtoRule::Linux,
            rtt_sampling: RttSampling::PerAcknowledgement,
            delayed_ack_minimum: Duration::from_millis(40),
            quick_acks: 16,
            nagle: Nagle::Minshall,
            retries_as_time: true,
            syn_retries: 6,
            ..Profile::rfc5681()
        }
    }

    /// [`Profile::linux_6`] with CUBIC and HyStart, the default of most distributions.
    ///
    /// Compared with the CUBIC of Linux 6.18 in the same way, over 200 runs: 1.28 s one way, 91.7 s and 95.1 s at 1e-6, 282.4 s
    /// and 295.7 s at 1e-5; 2 s one way, 123.0 s and 122.4 s, 415.7 s and 436.2 s.
    pub fn linux_6_cubic() -> Profile {
        Profile { congestion_control: CongestionControl::Cubic, hystart: true, ..Profile::linux_6() }
    }
}
