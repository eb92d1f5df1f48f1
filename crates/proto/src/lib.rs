//! Protocol engines as values.
//!
//! Every protocol here is an [`engine::Engine`]: a state machine that hears requests, indications and the time,
//! and says indications, requests and when to wake it. The [`engine`] module has the contract, [`service`] the
//! words between layers, [`joint`] how engines join. Each protocol has a folder of its own, which uses this heart
//! and never another protocol's folder.

pub mod agwpe;
pub mod ax25;
pub mod ax25cl;
pub mod bp;
pub mod codec;
pub mod controller;
pub mod engine;
pub mod fuzz;
pub mod joint;
pub mod kiss;
#[cfg(test)]
mod laws;
pub mod rng;
pub mod service;
pub mod setting;
pub mod tcp;
pub mod tcpcl;
pub mod time;
pub mod udpcl;
pub mod uicl;
pub mod wrap;
