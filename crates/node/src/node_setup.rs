//! Parameters with which a node starts.

use crate::clock::{WallClock, system_dtn_ms};
use crate::config::{ClockSource, Config};
use crate::pumps::connect::{Connector, call};
use crate::storage::StoreOpener;
use std::path::PathBuf;
use std::sync::Arc;

/// Parameters with which a node starts: its configuration, and replacements for tests.
#[derive(Clone)]
pub struct NodeSetup {
    /// Configuration.
    pub config: Config,
    /// Path of the configuration file, for reloads.
    pub path: Option<PathBuf>,
    /// Wall clock.
    pub wall_clock: WallClock,
    /// Function that connects a link; TCP by default.
    pub connector: Connector,
    /// True if the node handles the signals of the process: SIGHUP reloads the configuration, SIGINT and SIGTERM stop the
    /// node in an orderly way.
    pub signals: bool,
    /// Store that is opened instead of the configured one.
    pub store: Option<StoreOpener>,
}

impl NodeSetup {
    /// Creates the parameters for this configuration, with the system clock and TCP.
    pub fn new(config: Config) -> Self {
        let wall_clock: WallClock = match config.clock {
            ClockSource::System => Arc::new(system_dtn_ms),
            ClockSource::None => Arc::new(|| None),
        };
        NodeSetup {
            config,
            path: None,
            wall_clock,
            connector: Arc::new(|to, config| Box::pin(call(to, config.clone()))),
            signals: false,
            store: None,
        }
    }
}
