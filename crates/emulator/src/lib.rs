//! Links in real time, for programs that know nothing of this one.
//!
//! An [`Emulator`] runs a path of the simulator ([`EmulatedPath`](longwire_lab::emulation::EmulatedPath)) by the clock: a packet
//! that a program sends at one port leaves the other one when the simulated link delivers it.
//!
//! ```text
//!   program -- port -> [ path in virtual time, which follows the clock ] -> port -- program
//! ```
//!
//! | port | packets |
//! |---|---|
//! | [`Ports::Tun`] | IP packets of a TUN device in a network namespace |
//! | [`Ports::Udp`] | datagrams of a UDP port; each counts 28 bytes more on the link, for its headers |
//! | [`Ports::Kiss`] | frames of programs that use a controller (TNC) in KISS mode over TCP, on a radio channel |
//!
//! A packet cannot leave before the process has the processor, so each is a little late. The [`Lateness`] of all packets
//! is measured and reported, because a result is worth no more than its clock. It is that of leaving; a packet that enters is stamped
//! when it is read, which is late by as much.

#![forbid(unsafe_code)]

mod emulator;
mod kiss;
mod lateness;
mod namespace;
mod port;
mod tun;
mod udp;

pub use emulator::{EmulationReport, Emulator, EndReport, Ports};
pub use lateness::{Lateness, LatenessFigures};
pub use namespace::Namespace;
pub use udp::UdpPlace;
