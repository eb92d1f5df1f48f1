//! Tests of the folder.

mod codec;
mod laws;

use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
