//! Engines below the agent: sessions with all neighbours, over TCP, UDP and TNCs.

pub(crate) mod identities;
pub(crate) mod links;
pub(crate) mod neighbours;
pub(crate) mod radio;
