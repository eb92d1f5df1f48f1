//! `longwire clock`.

use crate::failure::CommandFailure;
use crate::node_connection::{NodeOptions, seconds};
use clap::{Args, Subcommand};
use longwire_node::message::Request;
use longwire_node::view::Status;
use serde_json::json;

/// A node's clock: whether it has jumped, and that it is right
#[derive(Debug, Args)]
pub(crate) struct Clock {
    #[command(subcommand)]
    what: Option<ClockAction>,
    #[command(flatten)]
    reach: NodeOptions,
}

#[derive(Debug, Subcommand)]
enum ClockAction {
    /// Show whether it has jumped (the default)
    Show,
    /// Say that it is right: lifetimes go by it again, and what is over by it is deleted
    Trust,
}

impl Clock {
    pub(crate) fn run(&self) -> Result<(), CommandFailure> {
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
        (None, _) => "it has no clock: lifetimes go by the age of bundles\n".to_owned(),
        (Some(_), None) => "lifetimes go by its clock\n".to_owned(),
        (Some(_), Some(jump)) => jump,
    }
}

/// A note that the clock has jumped, if it has.
pub(super) fn jump(status: &Status) -> Option<String> {
    let ahead_s = status.clock_ahead_s;
    let way = match ahead_s {
        0.0 => return None,
        _ if ahead_s > 0.0 => "ahead",
        _ => "back",
    };
    Some(format!(
        "its clock has jumped {} {way}: lifetimes go by the time that has passed; nothing is deleted for it\n\
         hint: set the clock right, or say that it is: `longwire clock trust`\n",
        seconds(ahead_s.abs()),
    ))
}
