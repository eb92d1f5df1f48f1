//! Stories of nodes on a channel that all within range hear.

mod forged;
mod layout;
mod neighbours;
mod spreading;
mod stories;
mod world;
