//! `longwire status`.

use crate::failure::Failure;
use crate::reach::{Reach, bytes, seconds};
use clap::Args;
use serde_json::Value;
use std::fmt::Write;

/// How a node is: what it holds, its links, what it has counted
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    reach: Reach,
}

impl Status {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let status = self.reach.connect()?.status()?;
        self.reach.show(&status, || words(&status))
    }
}

fn words(status: &Value) -> String {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let mut out = format!(
        "{}, up for {}\n{} bundles, {} of payload\n",
        status["node"].as_str().unwrap_or("?"),
        seconds(number(&status["uptime_s"])),
        status["bundles"],
        bytes(number(&status["payload_bytes"]) as u64),
    );
    if status["ready"] == false {
        out += "its store is still being read\n";
    }
    if status["store"]["damaged"] != 0 {
        let _ = writeln!(out, "its store was damaged in {} places", status["store"]["damaged"]);
    }
    out += &super::links::words(&status["links"]);
    for (name, count) in status["counters"].as_object().into_iter().flatten() {
        if count != 0 {
            let _ = writeln!(out, "{:<28}{count}", name.replace('_', " "));
        }
    }
    out
}
