//! Tests of the folder.

mod codec;
mod groups;
mod hostile;
mod laws;
mod scene;
mod transfers;

use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
