//! Tests of the folder.

mod adaptive;
mod codec;
mod hostile;
mod laws;
mod limits;
mod pair;
mod restarts;
mod services;
