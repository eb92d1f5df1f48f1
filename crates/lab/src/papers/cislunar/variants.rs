//! Assumptions, each with an alternative, so that the page can show which of them change the result.

use super::KERNEL_WINDOW_BYTES;
use crate::error::Error;
use crate::scenario::Scenario;
use crate::toml_text::{self, merge};
use longwire_proto::tcp::config::Profile;
use toml::Table;

/// Bit-error rates at which alternatives are tried.
pub(super) const BERS: [f64; 2] = [0.0, 1e-6];

/// Assumption with an alternative.
pub struct Variant {
    /// Name of the alternative.
    pub name: &'static str,
    /// Assumption.
    pub assumed: &'static str,
    /// Basis of the assumption.
    pub basis: &'static str,
    /// Description of the alternative.
    pub instead: &'static str,
    /// Alternative as changes of the scenario.
    change: &'static str,
}

impl Variant {
    /// Applies the alternative to the scenario.
    pub(super) fn apply(&self, scenario: &mut Scenario) -> Result<(), Error> {
        let mut table = toml_text::to_table(scenario);
        let mut change = toml_text::parse(self.change, self.name)?;
        if let Some(link) = change.remove("link") {
            for (key, value) in link.as_table().into_iter().flatten() {
                toml_text::set(&mut table, &format!("link.{key}"), value)?;
            }
        }
        merge(&mut table, &change);
        *scenario = toml_text::from_table(table, self.name)?;
        Ok(())
    }
}

/// Current Linux, with its effective window when measured alone.
pub(super) fn linux_6() -> Table {
    toml_text::to_table(&Profile { receive_buffer_bytes: KERNEL_WINDOW_BYTES, ..Profile::linux_6() })
}

/// Returns all variants.
pub(super) fn all() -> Vec<Variant> {
    let kernel = "Red Hat 7.3, kernel 2.4.18 (Table I); constants from the source code of that kernel";
    vec![
        Variant {
            name: "acknowledge every segment",
            assumed: "The receiver acknowledges every second segment.",
            basis: kernel,
            instead: "every segment",
            change: "[settings.tcp]\nacknowledge-every-segments = 1",
        },
        Variant {
            name: "window grows by bytes",
            assumed: "The congestion window grows by one segment per window of acknowledgements rather than bytes, \
                      half as fast as the standards allow with delayed acknowledgements.",
            basis: kernel,
            instead: "by bytes acknowledged",
            change: "[settings.tcp.growth.bytes]\nsegments-max = 2",
        },
        Variant {
            name: "delayed ACK 0.5 s",
            assumed: "A single segment is acknowledged after 40 to 200 ms, depending on the interval between \
                      segments.",
            basis: kernel,
            instead: "0.5 s, the maximum allowed by the standard",
            change: "[settings.tcp]\ndelayed-ack-minimum = '500 ms'\ndelayed-ack-maximum = '500 ms'",
        },
        Variant {
            name: "minimum RTO 1 s",
            assumed: "The retransmission timeout is the smoothed round trip and at least 200 ms.",
            basis: kernel,
            instead: "at least 1 s",
            change: "[settings.tcp]\nrto-minimum = '1 s'",
        },
        Variant {
            name: "standard RTO",
            assumed: "The retransmission timeout follows the rule of Linux.",
            basis: kernel,
            instead: "by RFC 6298, with its floor of 1 s",
            change: "[settings.tcp]\nrto-rule = 'rfc6298'\nrto-minimum = '1 s'",
        },
        Variant {
            name: "window 32 KB",
            assumed: "The receive window is 65,535 bytes.",
            basis: "the default of that kernel and the maximum without window scaling",
            instead: "32,767 bytes",
            change: "[settings.tcp]\nreceive-buffer-bytes = 32767",
        },
        Variant {
            name: "window 256 KB",
            assumed: "The windows were not tuned.",
            basis: "the paper mentions no tuning",
            instead: "262,144 bytes, scaled",
            change: "[settings.tcp]\nreceive-buffer-bytes = 262144\nsend-buffer-bytes = 524288",
        },
        Variant {
            name: "initial window 10",
            assumed: "The initial window is two segments.",
            basis: kernel,
            instead: "ten segments",
            change: "[settings.tcp]\ninitial-window-segments = 10",
        },
        Variant {
            name: "TCPCL segments of 1,024 bytes",
            assumed: "TCPCL segments are 4,096 bytes long.",
            basis: "DTN2's default",
            instead: "1,024 bytes",
            change: "[settings.tcpcl]\nsegment-bytes = 1024\nsegment-bytes-min = 1024",
        },
        Variant {
            name: "TCPCL segments of 65,536 bytes",
            assumed: "TCPCL segments are small compared with the window.",
            basis: "DTN2's default",
            instead: "65,536 bytes, acknowledged when complete",
            change: "[settings.tcpcl]\nsegment-bytes = 65536",
        },
        Variant {
            name: "keep-alive every 60 s",
            assumed: "Keep-alives are sent every 10 s; a silent connection is closed after 30 s.",
            basis: "defaults of DTN2; the paper has keep-alives but not their interval",
            instead: "every 60 s, closed after 120 s",
            change: "[settings.tcpcl]\nkeepalive = '60 s'\nkeepalive-timeout = '120 s'",
        },
        Variant {
            name: "no frame check",
            assumed: "The link has a 2-byte frame check and drops damaged frames.",
            basis: "as in HDLC and PPP; the paper does not describe its channel simulator in this detail",
            instead: "none: only the TCP checksum detects damage",
            change: "[link]\nfcs = 'none'",
        },
        Variant {
            name: "no errors towards the Moon",
            assumed: "Both directions have the same bit-error rate.",
            basis: "the paper states one rate for the channel",
            instead: "only the direction to the Earth has errors",
            change: "[link]\nback-ber = 0.0",
        },
    ]
}
