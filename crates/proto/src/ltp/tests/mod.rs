//! Tests of the folder.

mod authentication;
mod codec;
mod habits;
mod laws;
mod pair;
mod receiver;
mod room;
mod scene;
mod sender;
