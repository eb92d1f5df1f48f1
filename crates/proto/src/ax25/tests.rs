//! Bytes from the specification, and stations on a channel that one station uses at a time.

mod budget;
mod channel;
mod flood;
mod heard;
mod hostile;
mod identify;
mod links;
mod manners;
mod monitor;
mod restart;
mod sending;
mod states;
mod transmitting;
mod unconnected;
mod wire;
