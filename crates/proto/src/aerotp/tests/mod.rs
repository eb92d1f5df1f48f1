//! Tests of the folder.

mod adaptive;
mod codec;
mod hostile;
mod laws;
mod pair;
mod services;
