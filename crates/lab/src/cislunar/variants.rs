//! What had to be assumed, each with another choice, so that the page can say which of them move the result.

use super::KERNEL_WINDOW_BYTES;
use crate::error::Error;
use crate::scenario::Scenario;
use crate::toml_text::{self, merge};
use longwire_proto::tcp::config::Profile;
use toml::Table;

/// The bit-error rates at which other choices are tried.
pub(super) const BERS: [f64; 2] = [0.0, 1e-6];

/// An assumption, and another choice in its place.
pub struct Variant {
    /// The other choice's name.
    pub name: &'static str,
    /// What is assumed.
    pub assumed: &'static str,
    /// Why, or where from.
    pub basis: &'static str,
    /// The other choice, in words.
    pub instead: &'static str,
    /// The other choice, as changes of the scenario.
    change: &'static str,
}

impl Variant {
    /// Changes the scenario.
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

/// Linux of today, with the window that it effectively used where it was measured alone.
pub(super) fn linux_6() -> Table {
    toml_text::to_table(&Profile { receive_buffer_bytes: KERNEL_WINDOW_BYTES, ..Profile::linux_6() })
}

/// All of them.
pub(super) fn all() -> Vec<Variant> {
    let kernel = "Red Hat 7.3, kernel 2.4.18 (Table I); its constants are those of the kernel's sources";
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
            assumed: "The congestion window grows by one segment for each window of acknowledgements, not of bytes: half \
                      as fast as the standards allow when every second segment is acknowledged.",
            basis: kernel,
            instead: "by bytes acknowledged",
            change: "[settings.tcp.growth.bytes]\nsegments-max = 2",
        },
        Variant {
            name: "delayed ACK 0.5 s",
            assumed: "A lone segment is acknowledged after 40 to 200 ms, as the gaps between segments suggest.",
            basis: kernel,
            instead: "0.5 s, the most that the standard allows",
            change: "[settings.tcp]\ndelayed-ack-minimum = '500 ms'\ndelayed-ack-maximum = '500 ms'",
        },
        Variant {
            name: "minimum RTO 1 s",
            assumed: "The retransmission timeout is the smoothed round trip and at least 200 ms.",
            basis: kernel,
            instead: "and at least 1 s",
            change: "[settings.tcp]\nrto-minimum = '1 s'",
        },
        Variant {
            name: "standard RTO",
            assumed: "The retransmission timeout is computed by Linux's own rule.",
            basis: kernel,
            instead: "by RFC 6298, with its floor of 1 s",
            change: "[settings.tcp]\nrto-rule = 'rfc6298'\nrto-minimum = '1 s'",
        },
        Variant {
            name: "window 32 KB",
            assumed: "The receive window is 65,535 bytes.",
            basis: "the default of that kernel; without window scaling there is no larger one",
            instead: "32,767 bytes",
            change: "[settings.tcp]\nreceive-buffer-bytes = 32767",
        },
        Variant {
            name: "window 256 KB",
            assumed: "Nobody had set larger windows.",
            basis: "the paper mentions no tuning",
            instead: "262,144 bytes, scaled",
            change: "[settings.tcp]\nreceive-buffer-bytes = 262144\nsend-buffer-bytes = 524288",
        },
        Variant {
            name: "initial window 10",
            assumed: "A connection begins with two segments.",
            basis: kernel,
            instead: "with ten",
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
            assumed: "TCPCL segments are short against the window.",
            basis: "DTN2's default",
            instead: "65,536 bytes, each acknowledged when whole",
            change: "[settings.tcpcl]\nsegment-bytes = 65536",
        },
        Variant {
            name: "keep-alive every 60 s",
            assumed: "A keep-alive goes every 10 s and a silent connection is broken after 30 s.",
            basis: "DTN2's defaults; the paper has keep-alives but not their interval",
            instead: "every 60 s, broken after 120 s",
            change: "[settings.tcpcl]\nkeepalive = '60 s'\nkeepalive-timeout = '120 s'",
        },
        Variant {
            name: "no frame check",
            assumed: "The link checks frames with two bytes and drops damaged ones.",
            basis: "as HDLC and PPP do; the paper's channel simulator is not described so far",
            instead: "none: TCP's checksum alone finds the damage",
            change: "[link]\nfcs = 'none'",
        },
        Variant {
            name: "no errors towards the Moon",
            assumed: "Both ways have the same bit-error rate.",
            basis: "the paper states one rate for the channel",
            instead: "only the way to the Earth has errors",
            change: "[link]\nback-ber = 0.0",
        },
    ]
}
