//! `longwire heard`.

use crate::failure::CommandResult;
use crate::node_connection::{NodeOptions, seconds};
use clap::Args;
use longwire_node::message::{Reply, Request};
use longwire_node::view::HeardStation;
use std::fmt::Write;

/// Show the stations that a node's TNCs have heard, those heard last first
///
/// Each TNC remembers 256 stations since the node has started. Nothing about them is verified: frames claim the callsign of their
/// sender. Texts are those of UI frames, such as beacons; texts with control characters are not shown.
#[derive(Debug, Args)]
pub(crate) struct Heard {
    #[command(flatten)]
    reach: NodeOptions,
}

impl Heard {
    pub(crate) fn run(&self) -> CommandResult {
        let mut talk = self.reach.connect()?;
        talk.ask(Request::Heard)?;
        let stations =
            talk.wait(|said| if let Reply::Heard { stations } = said.head { Some(stations) } else { None })?;
        self.reach.show(&stations, || words(&stations))
    }
}

/// Formats one line per station.
fn words(stations: &[HeardStation]) -> String {
    let mut out = String::new();
    for station in stations {
        let HeardStation { callsign, tnc, first_s, last_s, frames, via, text, link } = station;
        let via = via.as_ref().map_or("directly".to_owned(), |via| format!("via {via}"));
        let _ = write!(
            out,
            "{callsign:<9} {} ago {via} on TNC `{tnc}`, {frames} frames in {}",
            seconds(*last_s),
            seconds(first_s - last_s)
        );
        let count = |name: &str| link.get(name).copied().unwrap_or(0);
        let sent = count("information_sent");
        if sent > 0 {
            let _ = write!(out, "; {} of {sent} frames to it retransmitted", count("information_repeated"));
        }
        if let Some(text) = text {
            let _ = write!(out, "; \"{text}\"");
        }
        out.push('\n');
    }
    if out.is_empty() { "no stations heard\n".to_owned() } else { out }
}
