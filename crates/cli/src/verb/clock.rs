//! `longwire clock`.

use crate::failure::CommandResult;
use crate::node_connection::{NodeOptions, seconds};
use clap::{Args, Subcommand};
use longwire_node::message::Request;
use longwire_node::view::Status;
use serde_json::json;

/// Show a node's clock, or confirm it after a jump
#[derive(Debug, Args)]
pub(crate) struct Clock {
    #[command(subcommand)]
    what: Option<ClockAction>,
    #[command(flatten)]
    reach: NodeOptions,
}

#[derive(Debug, Subcommand)]
enum ClockAction {
    /// Show whether the clock has jumped (default)
    Show,
    /// Confirm that the clock is correct: lifetimes follow it again, and expired bundles are deleted
    Trust,
}

impl Clock {
    pub(crate) fn run(&self) -> CommandResult {
        let mut talk = self.reach.connect()?;
        if matches!(self.what, Some(ClockAction::Trust)) {
            talk.done(Request::TrustClock)?;
        }
        let status = talk.status()?;
        let value = json!({ "dtn_ms": status.dtn_ms, "clock_ahead_s": status.clock_ahead_s });
        self.reach.show(&value, || words(&status))
    }
}

fn words(status: &Status) -> String {
    match (status.dtn_ms, jump(status)) {
        (None, _) => "no clock: lifetimes follow the age of bundles\n".to_owned(),
        (Some(_), None) => "clock in use: lifetimes follow it\n".to_owned(),
        (Some(_), Some(jump)) => jump,
    }
}

/// Returns a note if the clock has jumped.
pub(super) fn jump(status: &Status) -> Option<String> {
    let ahead_s = status.clock_ahead_s;
    let way = match ahead_s {
        0.0 => return None,
        _ if ahead_s > 0.0 => "ahead",
        _ => "back",
    };
    Some(format!(
        "the clock has jumped {} {way}; lifetimes follow elapsed time instead, and no bundle is deleted because of the jump\n\
         hint: correct the clock, or confirm it with `longwire clock trust`\n",
        seconds(ahead_s.abs()),
    ))
}
