//! Tests of the folder.

mod authentication;
mod codec;
mod habits;
mod laws;
mod pair;
mod receiver;
mod scene;
mod sender;
