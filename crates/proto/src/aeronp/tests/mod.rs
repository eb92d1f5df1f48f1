//! Stories of nodes on a channel that all within range hear.

mod forged;
mod layout;
mod spreading;
mod stories;
mod world;
