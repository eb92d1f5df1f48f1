//! Table of protocols: everything that an experiment can run, each with settings worth trying.
//!
//! The table has a row for each family of settings of the convergence layers ([`CARRIERS`]), and rows for plain file
//! transfers with which they are compared. A row assembles a node ([`node`]) from settings, which are those of the
//! engines, so that a node can be configured with the best ones of an experiment.

mod air;
mod bundles;
pub mod node;
mod radio;
mod relay;
mod udp;

pub use node::host as stream_host;
pub use relay::IpRelay;
pub use udp::UdpHost;

use crate::arrivals::SharedArrivals;
use crate::bundle_observer;
use crate::error::{Error, nearest};
use crate::link::{LineFrames, LinkProfile};
use crate::toml_text::merge;
use crate::workload::FileTask;
use longwire_proto::ax25;
use longwire_proto::service::InterfaceId;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::{Boot, NodeEngine};
use longwire_towers::path::{Hop, as_installed, linux_6_as_installed, tuned_tcp};
use longwire_towers::{AnyCarrier, CARRIERS, Family, Preset};
use std::sync::{Arc, LazyLock};
use toml::Table;

/// Interface of a node towards the destination.
pub const ONWARD: InterfaceId = InterfaceId(1);
/// Interface of a node towards the source.
pub const INWARD: InterfaceId = InterfaceId(0);

/// Protocol of the table.
pub struct Protocol {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Settings worth trying; the first ones are the default.
    pub variants: Vec<Variant>,
    /// Convergence layer, which nodes have as well; `None` for a plain file transfer, which is repeated from the start if
    /// it breaks.
    pub carrier: Option<&'static dyn AnyCarrier>,
    media: Vec<Medium>,
    hops_max: usize,
    defaults: Table,
    assemble: Box<Assemble>,
}

/// Function that assembles a protocol with its settings.
type Assemble = dyn Fn(Table, &[LinkProfile]) -> Result<Assembly, Error> + Send + Sync;

impl Protocol {
    /// Full names, one for each of its settings.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.variants.iter().map(move |variant| format!("{}/{}", self.name, variant.name))
    }

    /// Default settings.
    pub fn defaults(&self) -> &Table {
        &self.defaults
    }

    /// Returns true if the protocol can be used on links of this medium.
    pub fn runs_on(&self, medium: Medium) -> bool {
        self.media.contains(&medium)
    }

    /// Kind of the `[[link]]` of a node; `None` for a plain file transfer.
    pub fn link_kind(&self) -> Option<&'static str> {
        self.carrier.map(|carrier| carrier.about().name)
    }

    /// Returns true if the source receives acknowledgements and retransmits.
    pub fn acknowledges(&self) -> bool {
        self.carrier.is_none_or(|carrier| carrier.about().acknowledges)
    }

    /// Returns true if a bundle resumes after a break, false if it restarts.
    pub fn resumes(&self) -> bool {
        self.carrier.is_some_and(|carrier| carrier.about().resumes)
    }

    fn of_carrier(carrier: &'static dyn AnyCarrier, family: &'static Family) -> Protocol {
        let variant = |preset: &'static Preset| {
            let settings = |links: &[LinkProfile]| bundles::settings(carrier, preset, links);
            Variant { name: preset.name, about: preset.about, settings: Box::new(settings) }
        };
        Protocol {
            name: family.name,
            about: family.about,
            variants: family.presets.iter().map(variant).collect(),
            carrier: Some(carrier),
            media: bundles::media(carrier.about()),
            hops_max: HOPS_MAX,
            defaults: bundles::defaults(carrier),
            assemble: Box::new(|settings, links| bundles::assemble(carrier, settings, links)),
        }
    }
}

/// Medium of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Line in each direction, which carries IP packets.
    Line,
    /// Line in each direction, which carries UI frames of AX.25.
    UiLine,
    /// Radio channel, which carries AX.25 frames.
    Radio,
}

impl Medium {
    fn of(link: &LinkProfile) -> Medium {
        match (&link.radio, link.frames) {
            (Some(_), _) => Medium::Radio,
            (None, LineFrames::Ax25Ui) => Medium::UiLine,
            (None, LineFrames::Ip) => Medium::Line,
        }
    }
}

/// Settings worth trying.
pub struct Variant {
    /// Name, which follows the slash: `tcpcl3/dtn2`.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Returns the settings for a path of these links.
    pub settings: Box<VariantSettings>,
}

type VariantSettings = dyn Fn(&[LinkProfile]) -> Table + Send + Sync;

impl Variant {
    fn new(name: &'static str, about: &'static str, settings: fn(&[LinkProfile]) -> Table) -> Variant {
        Variant { name, about, settings: Box::new(settings) }
    }
}

/// All protocols: those over lines before those over radio channels, and convergence layers in the order of their table.
pub static PROTOCOLS: LazyLock<Vec<Protocol>> = LazyLock::new(|| {
    let families = CARRIERS.iter().flat_map(|carrier| {
        carrier.about().families.iter().map(|family| Protocol::of_carrier(*carrier, family))
    });
    let (over_lines, over_radio): (Vec<Protocol>, Vec<Protocol>) =
        families.partition(|protocol| protocol.runs_on(Medium::Line));
    let plain = |protocol: Protocol| std::iter::once(protocol);
    let lines = plain(tcp()).chain(over_lines);
    lines.chain(plain(ax25_link())).chain(over_radio).chain(plain(tcp_over_ax25())).collect()
});

fn tcp() -> Protocol {
    Protocol {
        name: "tcp",
        about: "one TCP connection per file, restarted when it breaks",
        variants: vec![
            Variant::new(
                "linux-6",
                "current Linux with default settings but Reno congestion control: initial window 10, buffers of 4 MB and 3 MB",
                |_| node::stream_settings(linux_6_as_installed()),
            ),
            Variant::new(
                "linux-6-64k",
                "the same with a window of 65,535 bytes, as on old systems and small devices",
                |_| node::stream_settings(Profile::linux_6()),
            ),
            Variant::new(
                "linux-6-cubic",
                "current Linux with default settings: as linux-6, with CUBIC congestion control",
                |_| node::stream_settings(as_installed(Profile::linux_6_cubic())),
            ),
            Variant::new(
                "linux-2.6",
                "Linux of 2009 to 2011 with default settings: CUBIC, initial window 3, no RACK-TLP",
                |_| node::stream_settings(as_installed(Profile::linux_2_6())),
            ),
            Variant::new(
                "rfc5681",
                "the minimum that the standards require: initial window 3, minimum timeout 1 s",
                |_| node::stream_settings(Profile::rfc5681()),
            ),
            Variant::new(
                "tuned",
                "windows of twice the bandwidth-delay product, an initial window that fills the link, timers set for \
                 its round trip",
                |links| node::stream_settings(tuned_tcp(&[end_to_end(links)])),
            ),
        ],
        carrier: None,
        media: vec![Medium::Line],
        hops_max: HOPS_MAX,
        defaults: node::stream_settings(Profile::default()),
        assemble: Box::new(|settings, _| node::assemble_stream(settings)),
    }
}

fn ax25_link() -> Protocol {
    Protocol {
        name: "ax25",
        about: "each file directly over a connected AX.25 link, restarted when it breaks",
        variants: vec![
            Variant::new("k7", "version 2.0, window of 7 frames", radio::link::<7>),
            Variant::new("k4", "version 2.0, window of 4 frames", radio::link::<4>),
            Variant::new("k1", "version 2.0, window of 1 frame", radio::link::<1>),
            Variant::new("tuned", "version 2.2, window of 32 frames, selective reject", radio::link_extended),
        ],
        carrier: None,
        media: vec![Medium::Radio],
        hops_max: 1,
        defaults: radio::link_defaults(),
        assemble: Box::new(radio::assemble_link),
    }
}

fn tcp_over_ax25() -> Protocol {
    Protocol {
        name: "tcp-ax25",
        about: "one TCP connection per file over IP over AX.25, restarted when it breaks",
        variants: vec![
            Variant::new("frames", "over UI frames, current Linux with default settings", radio::over_frames),
            Variant::new(
                "frames-tuned",
                "over UI frames, initial window of 32 segments, no timestamps, initial timeout set for the channel",
                radio::over_frames_tuned,
            ),
            Variant::new(
                "link-k7",
                "over a link of version 2.0 with a window of 7 frames, current Linux with default settings",
                radio::over_link::<7>,
            ),
            Variant::new("link-k4", "the same with a window of 4 frames", radio::over_link::<4>),
            Variant::new("link-k1", "the same with a window of 1 frame", radio::over_link::<1>),
            Variant::new(
                "link-tuned",
                "over a link of version 2.2, initial window of 32 segments, no timestamps; minimum timeout of 60 s, \
                 because the link retransmits by itself",
                radio::over_link_tuned,
            ),
        ],
        carrier: None,
        media: vec![Medium::Radio],
        hops_max: 1,
        defaults: radio::internet_defaults(),
        assemble: Box::new(radio::assemble_internet),
    }
}

/// Maximum hops of any path: networks are numbered with one byte.
pub const HOPS_MAX: usize = 200;

type Make = dyn Fn(&NodePosition, Boot) -> NodeEngine<FileTask> + Send + Sync;

/// Protocol with its settings, ready to be started on any node of a path.
#[derive(Clone)]
pub struct Assembly {
    make: Arc<Make>,
    /// Makes a node of a group; `None` for protocols with one receiver.
    make_in_group: Option<Arc<Make>>,
    /// True for bundles, false for a plain stream.
    pub carries_bundles: bool,
    /// Warnings about these settings on this path.
    pub cautions: Vec<String>,
    /// Complete settings, as in the configuration of a node.
    pub settings: Table,
}

impl Assembly {
    /// Protocol without bundles, whose settings have no warnings.
    fn of_stream(
        make: impl Fn(&NodePosition, Boot) -> NodeEngine<FileTask> + Send + Sync + 'static,
        settings: Table,
    ) -> Assembly {
        let make = Arc::new(make);
        Assembly { make, make_in_group: None, carries_bundles: false, cautions: Vec::new(), settings }
    }

    /// Returns true if one transmission can serve several receivers.
    pub fn serves_groups(&self) -> bool {
        self.make_in_group.is_some()
    }

    /// Creates the engine of one node of a group, of which the first one is the source and all others receive. The path has one hop.
    ///
    /// # Panics
    /// Panics if the protocol has one receiver.
    pub fn node_in_group(&self, place: &NodePosition, boot: Boot) -> NodeEngine<FileTask> {
        let make = self.make_in_group.as_ref().expect("a protocol that serves groups");
        make(place, boot)
    }

    /// Creates the engine of one node.
    pub fn node(&self, place: &NodePosition, boot: Boot) -> NodeEngine<FileTask> {
        (self.make)(place, boot)
    }
}

/// Position of a node on its path, and the target of its observations.
#[derive(Clone, Debug)]
pub struct NodePosition {
    /// Position from zero, the source.
    pub position: usize,
    /// Names of all nodes of the path.
    pub names: Vec<String>,
    /// MTU of each hop, bytes.
    pub mtus: Vec<u16>,
    /// Parameters of the stations of each hop, and their maximum key-up; `None` for a line with IP packets.
    pub radios: Vec<Option<(ax25::RadioParameters, Duration)>>,
    /// Outages of the node's hop towards the destination that are known beforehand: start and end, seconds since the
    /// start of the run, ascending.
    pub announced_outages: Vec<(f64, f64)>,
    /// Records of the bundle observer.
    pub bundles: bundle_observer::SharedObservations,
    /// Record of what arrives at the destination.
    pub arrivals: SharedArrivals,
}

impl NodePosition {
    /// Returns true for the last node.
    pub fn is_destination(&self) -> bool {
        self.position + 1 == self.names.len()
    }

    /// Record of the arrivals, for the destination.
    fn recorded_arrivals(&self) -> Option<SharedArrivals> {
        self.is_destination().then(|| self.arrivals.clone())
    }
}

/// Assembles a protocol: `name` is `protocol` or `protocol/settings`, `over` changes single settings.
///
/// # Errors
/// Fails if a name or setting does not exist, or the protocol does not support the path.
pub fn assemble(name: &str, links: &[LinkProfile], over: &Table) -> Result<Assembly, Error> {
    let (protocol, variant) = find(name)?;
    if links.len() > protocol.hops_max {
        let Protocol { name, hops_max, .. } = protocol;
        return Err(Error::new(format!("`{name}` spans {hops_max} hop, not {}", links.len()))
            .hint("for several hops choose a bundle protocol such as tcpcl4"));
    }
    if let Some(other) = links.iter().map(Medium::of).find(|medium| !protocol.runs_on(*medium)) {
        return Err(wrong_medium(protocol, other));
    }
    if links.iter().any(|link| Medium::of(link) != Medium::of(&links[0])) {
        return Err(Error::new("the path has links of different media")
            .hint("use only links for IP packets, only lines for UI frames, or only radio channels"));
    }
    let mut settings = (variant.settings)(links);
    merge(&mut settings, over);
    (protocol.assemble)(settings, links)
}

fn wrong_medium(protocol: &Protocol, link: Medium) -> Error {
    let has = match link {
        Medium::Line => "carries IP packets, but the protocol needs AX.25 on a radio channel",
        Medium::UiLine => "carries UI frames of AX.25, but the protocol does not",
        Medium::Radio => "is an AX.25 radio channel, but the protocol needs a link for IP packets",
    };
    let fitting: Vec<&str> =
        PROTOCOLS.iter().filter(|other| other.runs_on(link)).map(|other| other.name).collect();
    Error::new(format!("`{}` cannot be used on this link, which {has}", protocol.name))
        .hint(format!("protocols for this link: {}", fitting.join(", ")))
}

/// Returns the protocol and the settings with this name.
///
/// # Errors
/// Fails if the name is unknown, with the nearest known one.
pub fn find(name: &str) -> Result<(&'static Protocol, &'static Variant), Error> {
    let (protocol_name, variant_name) = name.split_once('/').map_or((name, None), |(s, v)| (s, Some(v)));
    let known = || format!("known protocols: {}", names().collect::<Vec<_>>().join(", "));
    let hint = |near: Option<&str>| match near {
        Some(near) => format!("did you mean `{near}`? {}", known()),
        None => known(),
    };
    let protocol = PROTOCOLS.iter().find(|protocol| protocol.name == protocol_name).ok_or_else(|| {
        let near = nearest(protocol_name, PROTOCOLS.iter().map(|protocol| protocol.name));
        Error::new(format!("no such protocol: `{protocol_name}`")).hint(hint(near))
    })?;
    let Some(variant_name) = variant_name else { return Ok((protocol, &protocol.variants[0])) };
    let variant = protocol.variants.iter().find(|variant| variant.name == variant_name).ok_or_else(|| {
        let near = nearest(variant_name, protocol.variants.iter().map(|variant| variant.name));
        Error::new(format!("no such settings of `{protocol_name}`: `{variant_name}`")).hint(hint(near))
    })?;
    Ok((protocol, variant))
}

/// Full names of all protocols with all their settings.
pub fn names() -> impl Iterator<Item = String> {
    PROTOCOLS.iter().flat_map(Protocol::names)
}

/// Returns the protocols that run on a path of these links, and the others.
pub fn fitting(links: &[LinkProfile]) -> (Vec<&'static Protocol>, Vec<&'static Protocol>) {
    PROTOCOLS.iter().partition(|protocol| {
        links.len() <= protocol.hops_max && links.iter().all(|link| protocol.runs_on(Medium::of(link)))
    })
}

/// A path as one link, for a connection from end to end.
fn end_to_end(links: &[LinkProfile]) -> Hop {
    let is_narrower = |pair: &[LinkProfile]| pair[1].rate_bps < pair[0].rate_bps;
    let narrows = links.windows(2).any(is_narrower);
    let join = |path: Hop, hop: Hop| Hop {
        rate_bps: path.rate_bps.min(hop.rate_bps),
        back_rate_bps: Some(path.back_rate_bps.unwrap_or(path.rate_bps))
            .min(Some(hop.back_rate_bps.unwrap_or(hop.rate_bps))),
        delays_s: path.delays_s + hop.delays_s,
        mtu_bytes: path.mtu_bytes.min(hop.mtu_bytes),
        queue_bytes: path.queue_bytes.min(hop.queue_bytes),
        // The relay in front of a slower link drops what its queue does not hold.
        drops: path.drops || hop.drops || narrows,
        mean_ber: path.mean_ber + hop.mean_ber,
        radio: None,
        ui_frames: path.ui_frames || hop.ui_frames,
    };
    hops(links).into_iter().reduce(join).expect("a path has a link")
}

/// The links of a path, as far as settings depend on them.
fn hops(links: &[LinkProfile]) -> Vec<Hop> {
    links.iter().map(LinkProfile::for_settings).collect()
}
