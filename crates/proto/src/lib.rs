//! Protocol engines as values.
//!
//! Every protocol here is an [`engine::Engine`]: a state machine that receives requests, indications and the time, and
//! emits indications and requests and the time of its next wake-up. The [`engine`] module contains the contract,
//! [`service`] the messages between layers, [`joint`] the composition of engines. Each protocol has a folder of its
//! own, which uses these common modules and never another protocol's folder.
//!
//! The feature `testing` adds what tests need and no program: checkers of the contract and timelines in [`wrap`], random
//! bundles, the bodies of the fuzz targets. Declare it in `[dev-dependencies]`.

#![forbid(unsafe_code)]

pub mod agwpe;
pub mod ax25;
pub mod ax25cl;
pub mod bp;
pub mod codec;
pub mod controller;
pub mod engine;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
pub mod joint;
pub mod kiss;
pub mod kit;
#[cfg(test)]
mod laws;
pub mod peers;
pub mod rng;
pub mod service;
pub mod setting;
pub mod tcp;
pub mod tcpcl;
pub mod time;
pub mod udpcl;
pub mod uicl;
pub mod wrap;
