//! Virtual time: engines on simulated nodes, joined by simulated channels.
//!
//! A [`Simulation`] plays a network of [nodes](NodeEngine) as fast as the machine allows. Each node is one engine over
//! a simulated [disk](DiskConfig) and interfaces; [channels](channel) join the interfaces. Everything that
//! happens is an event on one clock, and everything random is a function of one seed: the same seed and the same
//! calls give the same run, to the byte, on every machine.
//!
//! ```text
//!   request           indications
//!      |                  ^
//!   [ engine of node A ] ---- [ engine of node B ]     NodeEngine
//!      |         \  channel (two lines)  /    |
//!    disk         +======================+   disk
//! ```
//!
//! A simulation is `Send`: runs with different seeds spread over threads, each on its own.

pub mod airtime;
pub mod channel;
pub mod clock;
pub mod delay;
pub mod disk;
mod ether;
pub mod fault;
mod line;
pub mod node;
mod noise;
mod queue;
pub mod simulation;
pub mod swarm;
pub mod trace;
mod units;
pub mod world;

pub use airtime::Airtime;
pub use channel::{
    ChannelConfig, ChannelId, Counters, Direction, Errors, Fcs, GilbertElliott, LineConfig, Window,
};
pub use clock::{ClockConfig, EPOCH_DTN_MS, Jump};
pub use delay::{Delay, DelayPoint};
pub use disk::DiskConfig;
pub use fault::Fault;
pub use node::{Boot, Factory, NodeBelow, NodeEngine, NodeId};
pub use simulation::{Pause, Simulation};
pub use trace::{End, Fate, FrameRecord, FrameSink};
pub use world::{Told, World};
