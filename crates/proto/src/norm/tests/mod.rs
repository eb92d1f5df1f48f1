//! Tests of the folder.

mod bottleneck;
mod codec;
mod congestion;
mod groups;
mod hostile;
mod laws;
mod scene;
mod sessions;
mod streams;
mod transfers;

use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
