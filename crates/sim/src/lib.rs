//! Virtual time: engines on simulated nodes, joined by simulated channels.
//!
//! A [`Simulation`] runs a network of [nodes](NodeEngine) as fast as the machine allows. Each node is one engine over
//! a simulated [disk](DiskConfig) and interfaces; a [channel] of two lines joins two interfaces, a [radio
//! channel](radio) any number. Everything that happens is an event on one clock, and everything random is a function
//! of one seed: the same seed and the same calls give the same run, to the byte, on every machine.
//!
//! ```text
//!   request           indications
//!      |                  ^
//!   [ engine of node A ] ---- [ engine of node B ]     NodeEngine
//!      |         \  channel (two lines)  /    |
//!    disk         +======================+   disk
//! ```
//!
//! A node can be any engine over a disk and interfaces. The simplest one gives its user direct access to them:
//!
//! ```
//! use longwire_proto::joint::{Beside, PassThrough};
//! use longwire_proto::service::{Frames, FramesIndication, FramesRequest, InterfaceId, Many, Port, Shares, Storage};
//! use longwire_proto::time::Instant;
//! use longwire_sim::{ChannelConfig, Delay, LineConfig, NodeBelow, Simulation};
//!
//! let mut world: Simulation<NodeBelow> = Simulation::new(1);
//! let [moon, earth] = ["moon", "earth"].map(|name| {
//!     world.add_node(name, |_| {
//!         let (disk, interfaces) = (PassThrough::<Storage>::new(), PassThrough::<Many<InterfaceId, Frames>>::new());
//!         Box::new(Beside { first: disk, second: interfaces })
//!     })
//! });
//! let line = LineConfig { rate_bps: 115_200, delay: Delay::constant_ms(1280), ..LineConfig::default() };
//! let at = InterfaceId(0);
//! world.add_channel((moon, at), (earth, at), ChannelConfig::symmetric(line));
//!
//! world.request(moon, Port::Second((at, FramesRequest::Join)));
//! world.request(earth, Port::Second((at, FramesRequest::Join)));
//! let (bytes, shares) = (vec![0; 1440].into(), Shares::default());
//! world.request(moon, Port::Second((at, FramesRequest::Frame { bytes, token: None, last: true, shares })));
//! while world.step() {}
//!
//! let arrived = world.take_indications().into_iter().find_map(|(when, node, said)| match said {
//!     Port::Second((_, FramesIndication::Frame(_))) if node == earth => Some(when),
//!     _ => None,
//! });
//! assert_eq!(arrived, Some(Instant::from_millis(100 + 1280)));
//! ```
//!
//! A simulation is `Send`, so independent runs with different seeds can be distributed over threads.

#![forbid(unsafe_code)]

pub mod airtime;
pub mod channel;
pub mod clock;
pub mod delay;
pub mod disk;
pub mod fault;
mod line;
pub mod mobility;
mod network;
pub mod node;
mod noise;
mod queue;
pub mod radio;
pub mod simulation;
pub mod trace;
mod units;

pub use airtime::Airtime;
pub use channel::{
    ChannelConfig, ChannelId, Counters, Direction, ErrorChange, Errors, Fcs, GilbertElliott, LineConfig,
    Window,
};
pub use clock::{ClockConfig, EPOCH_DTN_MS, Jump};
pub use delay::{Delay, DelayPoint};
pub use disk::DiskConfig;
pub use fault::InjectedFault;
pub use mobility::WayPoints;
pub use node::{Boot, NodeBelow, NodeEngine, NodeId, OnRadio};
pub use radio::{
    Access, Controller, ControllerConfig, Firmware, Framing, PathConfig, RadioConfig, StationConfig, Tnc,
    TncConfig, TransmitReports,
};
pub use simulation::{NodeIndication, Pause, Simulation};
pub use trace::{ChannelEnd, FrameFate, FrameRecord, FrameSink};
