//! Tests of the folder.

mod codec;
mod laws;
mod pair;
mod receiver;
mod scene;
mod sender;
