//! Table of protocols: everything that an experiment can run, each with settings worth trying.
//!
//! A protocol needs a row in [`STACKS`]: name, description, settings, and the assembly of a node ([`node`]). The
//! settings are those of the engines, so that a node can be configured with the best ones of an experiment.

mod air;
mod bundles;
pub mod node;
mod radio;
mod udp;

use crate::bundle_observer;
use crate::error::{Error, nearest};
use crate::link::LinkProfile;
use crate::toml_text::merge;
use crate::workload::FileTask;
use longwire_proto::ax25;
use longwire_proto::service::InterfaceId;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::{Boot, NodeEngine};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use toml::Table;

/// Interface of a node towards the destination.
pub const ONWARD: InterfaceId = InterfaceId(1);
/// Interface of a node towards the source.
pub const INWARD: InterfaceId = InterfaceId(0);

/// Protocol of the table.
pub struct Stack {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Settings worth trying; the first ones are the default.
    pub variants: &'static [Variant],
    /// Required medium of its links.
    pub medium: Medium,
    /// Maximum hops.
    pub hops_max: usize,
    /// Kind of such links in the configuration of a node; `None` if nodes do not have them.
    pub node_kind: Option<&'static str>,
    /// True if the source receives acknowledgements and retransmits.
    pub acknowledges: bool,
    /// True if a bundle resumes after a break, false if it restarts.
    pub resumes: bool,
    /// Default settings.
    defaults: fn() -> Table,
    /// Assembles the protocol with its settings.
    assemble: fn(Table, &[LinkProfile]) -> Result<Assembly, Error>,
}

impl Stack {
    /// Full names, one for each of its settings.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.variants.iter().map(move |variant| format!("{}/{}", self.name, variant.name))
    }

    /// Default settings.
    pub fn defaults(&self) -> Table {
        (self.defaults)()
    }
}

/// Medium of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Line in each direction, which carries IP packets.
    Line,
    /// Radio channel, which carries AX.25 frames.
    Radio,
}

impl Medium {
    fn of(link: &LinkProfile) -> Medium {
        if link.radio.is_some() { Medium::Radio } else { Medium::Line }
    }
}

/// Settings worth trying.
pub struct Variant {
    /// Name, which follows the slash: `tcpcl3/dtn2`.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Returns the settings for a path of these links.
    pub settings: fn(&[LinkProfile]) -> Table,
}

/// All protocols.
pub const STACKS: &[Stack] = &[
    Stack {
        name: "tcp",
        about: "one TCP connection per file, restarted when it breaks",
        variants: &[
            Variant {
                name: "linux-6",
                about: "current Linux with default settings: initial window 10, buffers of 4 MB and 3 MB; without \
                        RACK-TLP and F-RTO, therefore 11 to 17 % slower than Linux 6.18 when packets are lost",
                settings: |_| node::stream_settings(linux_6_as_installed()),
            },
            Variant {
                name: "linux-6-64k",
                about: "the same with a window of 65,535 bytes, as on old systems and small devices",
                settings: |_| node::stream_settings(Profile::linux_6()),
            },
            Variant {
                name: "rfc5681",
                about: "the minimum that the standards require: initial window 3, minimum timeout 1 s",
                settings: |_| node::stream_settings(Profile::rfc5681()),
            },
            Variant {
                name: "tuned",
                about: "windows of twice the bandwidth-delay product, an initial window that fills the link, timers \
                        set for its round trip",
                settings: |links| node::stream_settings(tuned(links)),
            },
        ],
        medium: Medium::Line,
        hops_max: 1,
        node_kind: None,
        acknowledges: true,
        resumes: false,
        defaults: || node::stream_settings(Profile::default()),
        assemble: |settings, _| node::assemble_stream(settings),
    },
    Stack {
        name: "tcpcl3",
        about: "bundles over TCPCL version 3 (RFC 7242), stored at each node",
        variants: &[
            Variant {
                name: "dtn2",
                about: "defaults of DTN2 and Linux 2.4: windows of 64 KB, segments of 4,096 bytes",
                settings: bundles::dtn2,
            },
            Variant {
                name: "tuned",
                about: "windows of twice the bandwidth-delay product, an initial window that fills the link, \
                        segments of 16 KB, timers set for its round trip",
                settings: bundles::tuned_3,
            },
        ],
        medium: Medium::Line,
        hops_max: HOPS_MAX,
        node_kind: Some("tcp"),
        acknowledges: true,
        resumes: true,
        defaults: bundles::defaults,
        assemble: bundles::assemble,
    },
    Stack {
        name: "tcpcl4",
        about: "bundles over TCPCL version 4 (RFC 9174), stored at each node",
        variants: &[
            Variant {
                name: "default",
                about: "defaults, on current Linux (TCP as in tcp/linux-6)",
                settings: bundles::default_4,
            },
            Variant {
                name: "tuned",
                about: "windows of twice the bandwidth-delay product, an initial window that fills the link, \
                        segments of 16 KB, timers set for its round trip",
                settings: bundles::tuned_4,
            },
        ],
        medium: Medium::Line,
        hops_max: HOPS_MAX,
        node_kind: Some("tcp"),
        acknowledges: true,
        resumes: true,
        defaults: bundles::defaults,
        assemble: bundles::assemble,
    },
    Stack {
        name: "udp",
        about: "bundles over UDP (RFC 7122), one per datagram, stored at each node, without acknowledgements",
        variants: &[Variant {
            name: "paced",
            about: "sent at the rate of the slowest link, in datagrams of its packet size",
            settings: udp::paced,
        }],
        medium: Medium::Line,
        hops_max: HOPS_MAX,
        node_kind: Some("udp"),
        acknowledges: false,
        resumes: false,
        defaults: udp::defaults,
        assemble: udp::assemble,
    },
    Stack {
        name: "ax25",
        about: "each file directly over a connected AX.25 link, restarted when it breaks",
        variants: &[
            Variant { name: "k7", about: "version 2.0, window of 7 frames", settings: radio::link::<7> },
            Variant { name: "k4", about: "version 2.0, window of 4 frames", settings: radio::link::<4> },
            Variant { name: "k1", about: "version 2.0, window of 1 frame", settings: radio::link::<1> },
            Variant {
                name: "tuned",
                about: "version 2.2, window of 32 frames, selective reject",
                settings: radio::link_extended,
            },
        ],
        medium: Medium::Radio,
        hops_max: 1,
        node_kind: None,
        acknowledges: true,
        resumes: false,
        defaults: radio::link_defaults,
        assemble: radio::assemble_link,
    },
    Stack {
        name: "ax25cm",
        about: "bundles over AX25CM-CL (TCPCL version 3 on a connected-mode AX.25 link, as in DTN2), stored at each \
                node",
        variants: &[
            Variant {
                name: "k7",
                about: "window of 7 frames, an acknowledgement every 8 segments",
                settings: radio::segments::<7, 8>,
            },
            Variant {
                name: "k7-ack-1",
                about: "the same, every segment acknowledged",
                settings: radio::segments::<7, 1>,
            },
            Variant {
                name: "k7-ack-32",
                about: "the same, every 32 segments acknowledged",
                settings: radio::segments::<7, 32>,
            },
            Variant {
                name: "k4",
                about: "window of 4 frames, an acknowledgement every 8 segments",
                settings: radio::segments::<4, 8>,
            },
            Variant {
                name: "k1",
                about: "window of 1 frame, an acknowledgement every 8 segments",
                settings: radio::segments::<1, 8>,
            },
        ],
        medium: Medium::Radio,
        hops_max: HOPS_MAX,
        node_kind: Some("ax25cm"),
        acknowledges: true,
        resumes: true,
        defaults: radio::segment_defaults,
        assemble: radio::assemble_segments,
    },
    Stack {
        name: "ax25cl",
        about: "bundles over a connected AX.25 link, acknowledged by the link itself, stored at each node",
        variants: &[
            Variant {
                name: "tuned",
                about: "version 2.2, window of 32 frames, selective reject",
                settings: radio::own_extended,
            },
            Variant { name: "k7", about: "version 2.0, window of 7 frames", settings: radio::own::<7> },
            Variant { name: "k4", about: "version 2.0, window of 4 frames", settings: radio::own::<4> },
            Variant { name: "k1", about: "version 2.0, window of 1 frame", settings: radio::own::<1> },
        ],
        medium: Medium::Radio,
        hops_max: HOPS_MAX,
        node_kind: Some("ax25cl"),
        acknowledges: true,
        resumes: true,
        defaults: radio::own_defaults,
        assemble: radio::assemble_own,
    },
    Stack {
        name: "uicl",
        about: "bundles over UI frames, designed for groups of stations (here one receiver), stored at each node",
        variants: &[Variant {
            name: "one",
            about: "all segments once, then the missing ones on request",
            settings: radio::group,
        }],
        medium: Medium::Radio,
        hops_max: HOPS_MAX,
        node_kind: Some("uicl"),
        acknowledges: true,
        resumes: false,
        defaults: radio::group_defaults,
        assemble: radio::assemble_group,
    },
    Stack {
        name: "tcp-ax25",
        about: "one TCP connection per file over IP over AX.25, restarted when it breaks",
        variants: &[
            Variant {
                name: "frames",
                about: "over UI frames, current Linux with default settings",
                settings: radio::over_frames,
            },
            Variant {
                name: "frames-tuned",
                about: "over UI frames, initial window of 32 segments, no timestamps, initial timeout set for the \
                        channel",
                settings: radio::over_frames_tuned,
            },
            Variant {
                name: "link-k7",
                about: "over a link of version 2.0 with a window of 7 frames, current Linux with default settings",
                settings: radio::over_link::<7>,
            },
            Variant {
                name: "link-k4",
                about: "the same with a window of 4 frames",
                settings: radio::over_link::<4>,
            },
            Variant {
                name: "link-k1",
                about: "the same with a window of 1 frame",
                settings: radio::over_link::<1>,
            },
            Variant {
                name: "link-tuned",
                about: "over a link of version 2.2, initial window of 32 segments, no timestamps; minimum timeout of \
                        60 s, because the link retransmits by itself",
                settings: radio::over_link_tuned,
            },
        ],
        medium: Medium::Radio,
        hops_max: 1,
        node_kind: None,
        acknowledges: true,
        resumes: false,
        defaults: radio::internet_defaults,
        assemble: radio::assemble_internet,
    },
];

/// Maximum hops of any path: networks are numbered with one byte.
pub const HOPS_MAX: usize = 200;

/// Function that creates the engine of a node.
type Make = dyn Fn(&NodePosition, Boot) -> NodeEngine<FileTask> + Send + Sync;

/// Protocol with its settings, ready to be started on any node of a path.
#[derive(Clone)]
pub struct Assembly {
    make: Arc<Make>,
    /// True for bundles, false for a plain stream.
    pub carries_bundles: bool,
    /// Warnings about these settings on this path.
    pub cautions: Vec<String>,
    /// Complete settings, as in the configuration of a node.
    pub settings: Table,
}

impl Assembly {
    /// Creates the engine of one node.
    pub fn node(&self, place: &NodePosition, boot: Boot) -> NodeEngine<FileTask> {
        (self.make)(place, boot)
    }
}

/// Position of a node on its path, and the targets of its reports.
#[derive(Clone, Debug)]
pub struct NodePosition {
    /// Position from zero, the source.
    pub position: usize,
    /// Names of all nodes of the path.
    pub names: Vec<String>,
    /// MTU of each hop, bytes.
    pub mtus: Vec<u16>,
    /// Parameters of each shared channel, and its maximum key-up; `None` for a line.
    pub radios: Vec<Option<(ax25::RadioParameters, Duration)>>,
    /// Outages of the node's hop towards the destination that are known beforehand: start and end, seconds since the
    /// start of the run, ascending.
    pub announced_outages: Vec<(f64, f64)>,
    /// Records of the bundle observer.
    pub bundles: bundle_observer::SharedObservations,
    /// Target of its counters at the end.
    pub tally: Arc<Mutex<Tally>>,
}

impl NodePosition {
    /// Returns true for the last node.
    pub fn is_destination(&self) -> bool {
        self.position + 1 == self.names.len()
    }
}

/// Counters by name, summed over all nodes of a run.
pub type Tally = BTreeMap<&'static str, u64>;

/// Assembles a protocol: `name` is `protocol` or `protocol/settings`, `over` changes single settings.
///
/// # Errors
/// Fails if a name or setting does not exist, or the protocol does not support the path.
pub fn assemble(name: &str, links: &[LinkProfile], over: &Table) -> Result<Assembly, Error> {
    let (stack, variant) = find(name)?;
    if links.len() > stack.hops_max {
        return Err(Error::new(format!(
            "`{}` spans {} hop, not {}",
            stack.name,
            stack.hops_max,
            links.len()
        ))
        .hint("for several hops choose a bundle protocol such as tcpcl4"));
    }
    if let Some(other) = links.iter().map(Medium::of).find(|medium| *medium != stack.medium) {
        return Err(wrong_medium(stack, other));
    }
    let mut settings = (variant.settings)(links);
    merge(&mut settings, over);
    (stack.assemble)(settings, links)
}

fn wrong_medium(stack: &Stack, link: Medium) -> Error {
    let has = match link {
        Medium::Line => "carries IP packets, but the protocol needs AX.25 on a radio channel",
        Medium::Radio => "is an AX.25 radio channel, but the protocol needs a link for IP packets",
    };
    let fitting: Vec<&str> =
        STACKS.iter().filter(|other| other.medium == link).map(|other| other.name).collect();
    Error::new(format!("`{}` cannot be used on this link, which {has}", stack.name))
        .hint(format!("protocols for this link: {}", fitting.join(", ")))
}

/// Returns the protocol and the settings with this name.
///
/// # Errors
/// Fails if the name is unknown, with the nearest known one.
pub fn find(name: &str) -> Result<(&'static Stack, &'static Variant), Error> {
    let (stack_name, variant_name) = name.split_once('/').map_or((name, None), |(s, v)| (s, Some(v)));
    let known = || format!("known protocols: {}", names().collect::<Vec<_>>().join(", "));
    let hint = |near: Option<&str>| match near {
        Some(near) => format!("did you mean `{near}`? {}", known()),
        None => known(),
    };
    let stack = STACKS.iter().find(|stack| stack.name == stack_name).ok_or_else(|| {
        let near = nearest(stack_name, STACKS.iter().map(|stack| stack.name));
        Error::new(format!("no such protocol: `{stack_name}`")).hint(hint(near))
    })?;
    let Some(variant_name) = variant_name else { return Ok((stack, &stack.variants[0])) };
    let variant = stack.variants.iter().find(|variant| variant.name == variant_name).ok_or_else(|| {
        let near = nearest(variant_name, stack.variants.iter().map(|variant| variant.name));
        Error::new(format!("no such settings of `{stack_name}`: `{variant_name}`")).hint(hint(near))
    })?;
    Ok((stack, variant))
}

/// Full names of all protocols with all their settings.
pub fn names() -> impl Iterator<Item = String> {
    STACKS.iter().flat_map(Stack::names)
}

/// Returns the protocols that run on a link, and the others.
pub fn fitting(link: &LinkProfile) -> (Vec<&'static Stack>, Vec<&'static Stack>) {
    STACKS.iter().partition(|stack| stack.medium == Medium::of(link))
}

/// Current Linux without limits on its buffers: half of the largest receive buffer is window.
pub(crate) fn linux_6_as_installed() -> Profile {
    Profile { send_buffer_bytes: 4 << 20, receive_buffer_bytes: 3 << 20, ..Profile::linux_6() }
}

/// TCP tuned for the links of a path: windows of twice the bandwidth-delay product, an initial window that fills the
/// link instead of the round trips of slow start, timers that start beyond the round trip.
fn tuned(links: &[LinkProfile]) -> Profile {
    let held = |link: &LinkProfile| round_trip_s(link) * link.rate_bps as f64 / 8.0;
    let product = links.iter().map(held).fold(0.0, f64::max);
    let window = (2.0 * product).clamp(262_144.0, 1e9) as u32;
    let round_trip = round_trip(links);
    let linux = linux_6_as_installed();
    // A queue that drops must hold what is not yet in transit.
    let dropping = links.iter().filter(|link| link.tail_drop).map(|link| link.queue_bytes as f64);
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

/// Round trip of a full packet in each direction, seconds: on a slow line the packets themselves take most of it, and
/// on a radio channel each direction needs a key-up.
fn round_trip_s(link: &LinkProfile) -> f64 {
    let bits = f64::from(link.mtu_bytes) * 8.0;
    if let Some((radio, _)) = link.believed_radio() {
        return 2.0 * (radio.access().as_secs_f64() + bits / link.rate_bps as f64);
    }
    let back = link.back_rate_bps.unwrap_or(link.rate_bps);
    link.round_trip_s() + bits / link.rate_bps as f64 + bits / back as f64
}

/// Longest round trip of any hop.
pub(crate) fn round_trip(links: &[LinkProfile]) -> Duration {
    Duration::from_secs_f64(links.iter().map(round_trip_s).fold(0.0, f64::max))
}
