//! Tests of the folder.

mod codec;
mod holes;
mod hostile;
mod laws;
mod pair;
mod pass;
mod scene;
mod shared;
mod transfers;

use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
