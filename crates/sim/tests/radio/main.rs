//! Radio channels: invariants, channel access, reception, AX.25 over them, and controllers.

mod air;
mod ax25;
mod bundles;
mod cases;
mod controller;
mod ethernet;
mod flood;
mod group;
mod kiss;
mod laws;
mod nodes;
mod tcp;
mod tnc;
