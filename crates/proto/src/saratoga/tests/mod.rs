//! Tests of the folder.

mod codec;
mod laws;
mod pair;
mod pass;
mod transfers;

use crate::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
