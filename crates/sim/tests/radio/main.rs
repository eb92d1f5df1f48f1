//! Radio channels: what always holds, who gets the channel, who hears whom, and AX.25 over them, controllers.

mod air;
mod ax25;
mod bundles;
mod cases;
mod controller;
mod flood;
mod group;
mod kiss;
mod laws;
mod nodes;
mod tcp;
mod tnc;
