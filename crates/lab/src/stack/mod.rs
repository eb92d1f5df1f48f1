//! The table of stacks: everything that an experiment can run, each with the settings worth trying.
//!
//! A protocol that joins the table needs a row in [`STACKS`]: a name, what it is, its settings, and how a node of it is
//! put together ([`node`]). Settings are those of the engines themselves, so that what an experiment finds best is what
//! a node is configured with.

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
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::{Boot, NodeEngine};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use toml::Table;

/// A protocol stack as the table has it.
pub struct Stack {
    /// Its name on the command line and in records.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// The settings worth trying; the first is meant where none is named.
    pub variants: &'static [Variant],
    /// What its links have to be.
    pub medium: Medium,
    /// The most hops that it spans.
    pub hops_max: usize,
    /// What a node calls such links, if it has any.
    pub node_kind: Option<&'static str>,
    /// True if the source learns what has arrived, and sends the rest again.
    pub acknowledges: bool,
    /// True if a bundle goes on where a break stopped it, and false if it begins anew.
    pub resumes: bool,
    /// The settings where nothing is said.
    defaults: fn() -> Table,
    /// Puts it together from its settings.
    assemble: fn(Table, &[LinkProfile]) -> Result<Assembly, Error>,
}

impl Stack {
    /// Its full names, one for each of its settings.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.variants.iter().map(move |variant| format!("{}/{}", self.name, variant.name))
    }

    /// The settings where nothing is said.
    pub fn defaults(&self) -> Table {
        (self.defaults)()
    }
}

/// What a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A line each way, which carries IP packets.
    Line,
    /// A radio channel, which carries AX.25 frames.
    Radio,
}

impl Medium {
    fn of(link: &LinkProfile) -> Medium {
        if link.radio.is_some() { Medium::Radio } else { Medium::Line }
    }
}

/// Settings worth trying.
pub struct Variant {
    /// Their name, behind the stroke: `tcpcl3/dtn2`.
    pub name: &'static str,
    /// What they are, for people.
    pub about: &'static str,
    /// The settings for a path of these links.
    pub settings: fn(&[LinkProfile]) -> Table,
}

/// All of them.
pub const STACKS: &[Stack] = &[
    Stack {
        name: "tcp",
        about: "a plain TCP connection for each file, begun anew when it breaks",
        variants: &[
            Variant {
                name: "linux-6",
                about: "a Linux of today as installed: initial window 10, buffers of 4 MB and 3 MB; without RACK-TLP and F-RTO, so where \
                        packets are lost 11 to 17 % slower than Linux 6.18",
                settings: |_| node::stream_settings(linux_6_as_installed()),
            },
            Variant {
                name: "linux-6-64k",
                about: "the same with a window of 65,535 bytes, as old peers and small devices have it",
                settings: |_| node::stream_settings(Profile::linux_6()),
            },
            Variant {
                name: "rfc5681",
                about: "what the standards ask for and no more: initial window 3, minimum timeout 1 s",
                settings: |_| node::stream_settings(Profile::rfc5681()),
            },
            Variant {
                name: "tuned",
                about: "windows of twice what the link holds and a first flight that fills it, timers that know its round trip",
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
        about: "bundles over TCPCL version 3 (RFC 7242), stored at every node",
        variants: &[
            Variant {
                name: "dtn2",
                about: "as DTN2 and a Linux 2.4 come: windows of 64 KB, segments of 4,096 bytes",
                settings: bundles::dtn2,
            },
            Variant {
                name: "tuned",
                about: "windows of twice what the link holds and a first flight that fills it, segments of 16 KB, timers that know its \
                        round trip",
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
        about: "bundles over TCPCL version 4 (RFC 9174), stored at every node",
        variants: &[
            Variant {
                name: "default",
                about: "everything as it comes, on a Linux of today, whose TCP is that of tcp/linux-6",
                settings: bundles::default_4,
            },
            Variant {
                name: "tuned",
                about: "windows of twice what the link holds and a first flight that fills it, segments of 16 KB, timers that know its \
                        round trip",
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
        about: "bundles over UDP (RFC 7122), one a datagram, stored at every node; nobody acknowledges anything",
        variants: &[Variant {
            name: "paced",
            about: "at the rate of the slowest link, in datagrams as long as its packets",
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
        about: "each file over a connected AX.25 link and nothing else, begun anew when it breaks",
        variants: &[
            Variant {
                name: "k7",
                about: "version 2.0, seven frames on their way",
                settings: radio::link::<7>,
            },
            Variant {
                name: "k4",
                about: "version 2.0, four frames on their way",
                settings: radio::link::<4>,
            },
            Variant { name: "k1", about: "version 2.0, one frame on its way", settings: radio::link::<1> },
            Variant {
                name: "tuned",
                about: "version 2.2: 32 frames on their way, lost ones asked for one by one",
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
        about: "bundles over AX25CM-CL, TCPCL version 3 on a connected AX.25 link as DTN2 has it, stored at every node",
        variants: &[
            Variant {
                name: "k7",
                about: "seven frames on their way, a message of acknowledgement every eight segments",
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
                about: "four frames on their way, a message of acknowledgement every eight segments",
                settings: radio::segments::<4, 8>,
            },
            Variant {
                name: "k1",
                about: "one frame on its way, a message of acknowledgement every eight segments",
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
        about: "bundles over a connected AX.25 link with acknowledgements that ride on the link's own, stored at every node",
        variants: &[
            Variant {
                name: "tuned",
                about: "version 2.2: 32 frames on their way, lost ones asked for one by one",
                settings: radio::own_extended,
            },
            Variant {
                name: "k7",
                about: "version 2.0, seven frames on their way",
                settings: radio::own::<7>,
            },
            Variant { name: "k4", about: "version 2.0, four frames on their way", settings: radio::own::<4> },
            Variant { name: "k1", about: "version 2.0, one frame on its way", settings: radio::own::<1> },
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
        about: "bundles over UI frames, made to tell many stations at once, here one; stored at every node",
        variants: &[Variant {
            name: "one",
            about: "all segments once, then what is lacking, asked for in a slot as long as an answer takes",
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
        about: "a plain TCP connection for each file over IP over AX.25, begun anew when it breaks",
        variants: &[
            Variant {
                name: "frames",
                about: "over UI frames, a Linux of today as installed",
                settings: radio::over_frames,
            },
            Variant {
                name: "frames-tuned",
                about: "over UI frames, 32 segments at once, no timestamps, a first timer that knows the channel",
                settings: radio::over_frames_tuned,
            },
            Variant {
                name: "link-k7",
                about: "over a link of version 2.0 with seven frames on their way, a Linux of today as installed",
                settings: radio::over_link::<7>,
            },
            Variant {
                name: "link-k4",
                about: "the same with four frames on their way",
                settings: radio::over_link::<4>,
            },
            Variant {
                name: "link-k1",
                about: "the same with one frame on its way",
                settings: radio::over_link::<1>,
            },
            Variant {
                name: "link-tuned",
                about: "over a link of version 2.2, 32 segments at once, no timestamps; TCP waits 60 s before it repeats what the \
                        link repeats anyway",
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

/// The most hops of any path: networks are numbered with one byte.
pub const HOPS_MAX: usize = 200;

/// Makes the engine of a node.
type Make = dyn Fn(&NodePosition, Boot) -> NodeEngine<FileTask> + Send + Sync;

/// A stack with its settings, ready to be started on any node of a path.
#[derive(Clone)]
pub struct Assembly {
    make: Arc<Make>,
    /// True if it carries bundles, false for a plain stream.
    pub carries_bundles: bool,
    /// What is to be said about these settings on this path, in words.
    pub cautions: Vec<String>,
    /// The settings in full, as a node's configuration has them.
    pub settings: Table,
}

impl Assembly {
    /// The engine of one node.
    pub fn node(&self, place: &NodePosition, boot: Boot) -> NodeEngine<FileTask> {
        (self.make)(place, boot)
    }
}

/// Where a node stands on its path, and where it reports to.
#[derive(Clone, Debug)]
pub struct NodePosition {
    /// Its position, from zero: the source.
    pub position: usize,
    /// The names of all nodes of the path.
    pub names: Vec<String>,
    /// The MTU of each hop, bytes.
    pub mtus: Vec<u16>,
    /// What is known of each hop's channel where it is a shared one, and the longest key-up there.
    pub radios: Vec<Option<(ax25::RadioParameters, Duration)>>,
    /// When its hop towards the destination is out and everybody knows it beforehand: beginning and end, seconds since
    /// the run began, in order.
    pub announced_outages: Vec<(f64, f64)>,
    /// Where its witness writes.
    pub bundles: bundle_observer::SharedObservations,
    /// Where its counts go when it ends.
    pub tally: Arc<Mutex<Tally>>,
}

impl NodePosition {
    /// True for the last node.
    pub fn is_destination(&self) -> bool {
        self.position + 1 == self.names.len()
    }
}

/// Counts by name, summed over all nodes of a run.
pub type Tally = BTreeMap<&'static str, u64>;

/// Puts a stack together: `name` is `stack` or `stack/variant`, `over` changes single settings.
///
/// # Errors
/// A name or a setting that does not exist, or a path that the stack cannot span.
pub fn assemble(name: &str, links: &[LinkProfile], over: &Table) -> Result<Assembly, Error> {
    let (stack, variant) = find(name)?;
    if links.len() > stack.hops_max {
        return Err(Error::new(format!(
            "`{}` spans {} hop, not {}",
            stack.name,
            stack.hops_max,
            links.len()
        ))
        .hint("relays store bundles: choose a bundle stack, such as tcpcl4"));
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
        Medium::Line => "carries IP packets, and it needs a radio channel with AX.25",
        Medium::Radio => "is a radio channel with AX.25, and it needs one that carries IP packets",
    };
    let fitting: Vec<&str> =
        STACKS.iter().filter(|other| other.medium == link).map(|other| other.name).collect();
    Error::new(format!("`{}` cannot run here: the link {has}", stack.name))
        .hint(format!("stacks that run on it: {}", fitting.join(", ")))
}

/// The row and the settings that a name means.
///
/// # Errors
/// A name that means nothing, with the nearest that does.
pub fn find(name: &str) -> Result<(&'static Stack, &'static Variant), Error> {
    let (stack_name, variant_name) = name.split_once('/').map_or((name, None), |(s, v)| (s, Some(v)));
    let known = || format!("known stacks: {}", names().collect::<Vec<_>>().join(", "));
    let hint = |near: Option<&str>| match near {
        Some(near) => format!("did you mean `{near}`? {}", known()),
        None => known(),
    };
    let stack = STACKS.iter().find(|stack| stack.name == stack_name).ok_or_else(|| {
        let near = nearest(stack_name, STACKS.iter().map(|stack| stack.name));
        Error::new(format!("there is no stack called `{stack_name}`")).hint(hint(near))
    })?;
    let Some(variant_name) = variant_name else { return Ok((stack, &stack.variants[0])) };
    let variant = stack.variants.iter().find(|variant| variant.name == variant_name).ok_or_else(|| {
        let near = nearest(variant_name, stack.variants.iter().map(|variant| variant.name));
        Error::new(format!("`{stack_name}` has no settings called `{variant_name}`")).hint(hint(near))
    })?;
    Ok((stack, variant))
}

/// The full names of all stacks with all their settings.
pub fn names() -> impl Iterator<Item = String> {
    STACKS.iter().flat_map(Stack::names)
}

/// The stacks that run on a link, and those that do not.
pub fn fitting(link: &LinkProfile) -> (Vec<&'static Stack>, Vec<&'static Stack>) {
    STACKS.iter().partition(|stack| stack.medium == Medium::of(link))
}

/// Linux of today without limits on its buffers: half of the largest receive buffer is window.
pub(crate) fn linux_6_as_installed() -> Profile {
    Profile { send_buffer_bytes: 4 << 20, receive_buffer_bytes: 3 << 20, ..Profile::linux_6() }
}

/// TCP for a path whose links are known: windows of twice the bandwidth-delay product, a first flight that fills the
/// link instead of slow start's round trips, timers that begin beyond the round trip.
fn tuned(links: &[LinkProfile]) -> Profile {
    let held = |link: &LinkProfile| round_trip_s(link) * link.rate_bps as f64 / 8.0;
    let product = links.iter().map(held).fold(0.0, f64::max);
    let window = (2.0 * product).clamp(262_144.0, 1e9) as u32;
    let round_trip = round_trip(links);
    let linux = linux_6_as_installed();
    // A queue that drops has to hold what is not yet on its way.
    let dropping = links.iter().filter(|link| link.tail_drop).map(|link| link.queue_bytes as f64);
    let flight = dropping.fold(product, f64::min);
    let segments = (flight / f64::from(linux.maximum_segment_bytes)) as u32;
    Profile {
        send_buffer_bytes: window.saturating_mul(2),
        receive_buffer_bytes: window,
        initial_window_segments: segments.clamp(linux.initial_window_segments, 1 << 20),
        // Longer than the round trip, or every connection begins with a SYN sent twice.
        rto_initial: (round_trip * 3 / 2).max(linux.rto_initial),
        rto_maximum: (round_trip * 4).max(linux.rto_maximum),
        ..linux
    }
}

/// The round trip of a full packet and a full packet back, seconds: on a slow line the packets themselves are most of it, and
/// on a radio channel each way is keyed.
fn round_trip_s(link: &LinkProfile) -> f64 {
    let bits = f64::from(link.mtu_bytes) * 8.0;
    if let Some((radio, _)) = link.believed_radio() {
        return 2.0 * (radio.access().as_secs_f64() + bits / link.rate_bps as f64);
    }
    let back = link.back_rate_bps.unwrap_or(link.rate_bps);
    link.round_trip_s() + bits / link.rate_bps as f64 + bits / back as f64
}

/// The longest round trip of any hop.
pub(crate) fn round_trip(links: &[LinkProfile]) -> Duration {
    Duration::from_secs_f64(links.iter().map(round_trip_s).fold(0.0, f64::max))
}
