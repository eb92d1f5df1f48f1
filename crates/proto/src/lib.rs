//! Protocol engines as values.
//!
//! Every protocol here is an [`engine::Engine`]: a state machine that receives requests, indications and the time, and
//! emits indications and requests and the time of its next wake-up. The [`engine`] module contains the contract,
//! [`service`] the messages between layers, [`joint`] the composition of engines. Each protocol has a folder of its
//! own, which uses these common modules and never another protocol's folder.
//!
//! The feature `testing` adds parts for tests: checkers of the contract and timelines in [`wrap`], the laws, random
//! bundles, the bodies of the fuzz targets. Declare it in `[dev-dependencies]`.
//!
//! # Write a protocol
//!
//! 1. Read [`engine`]: what an engine and its owner owe each other, and the six rules for every engine.
//! 2. Choose the service above and the service below in [`service`]. Each of them documents its messages: which of them
//!    need room, which are terminal, which answer others, and what breaks the contract. A convergence layer provides
//!    [`service::Bundles`].
//! 3. Follow `examples/echo.rs`, a complete engine in one file, from its service to two nodes in virtual time:
//!    `cargo run -p longwire-proto --example echo`. [`time::Timers`] is a table of the timers of an engine,
//!    and [`kit`] has other parts that engines have in common: repeated attempts, deadlines of many things, maps of very many, pacing.
//!    `examples/bundle.rs` and `examples/terminal.rs` show owners of the engines that exist, in virtual time and with
//!    sockets.
//! 4. Wrap the engine in `Checked` of [`wrap`] in every test: it panics where the engine, its user or its provider breaks
//!    a rule of the contract. Several engines go into a [`joint::Fan`], each in a `Checked` of its own: a `Fan` passes
//!    a timeout only to engines that are due, so a `Checked` around it never sends them an early one.
//! 5. Run the laws with it, from a test: `laws::hold_over_stream`, `hold_over_packets` or `hold_over_datagrams` puts two
//!    nodes in hostile worlds from thousands of seeds, in which the engine never panics, delivers what was sent, ends what
//!    was begun, and costs nothing when idle. The page of `laws` has an example, and lists what these worlds do not
//!    contain. The files in `src/laws` show runs for the other services.

// One file has vector instructions: `fec/gf256/kernels.rs`.
#![deny(unsafe_code)]

pub mod aeronp;
pub mod aerorp;
pub mod aerotp;
pub mod agwpe;
pub mod ax25;
pub mod ax25cl;
pub mod bp;
pub mod codec;
pub mod controller;
pub mod discovery;
pub mod duration;
pub mod engine;
pub mod fec;
pub mod fecframe;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod gateway;
pub mod joint;
pub mod kiss;
pub mod kit;
#[cfg(any(test, feature = "testing"))]
pub mod laws;
pub mod ltp;
pub mod motion;
pub mod norm;
pub mod observe;
pub mod packet_router;
pub mod peers;
mod ranges;
pub mod rng;
pub mod saratoga;
pub mod service;
pub mod setting;
pub mod smtp;
pub mod tcp;
pub mod tcpcl;
pub mod time;
pub mod udpcl;
pub mod uicl;
pub mod wrap;
