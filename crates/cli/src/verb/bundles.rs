//! `longwire bundles`.

use crate::failure::Failure;
use crate::reach::{Reach, bytes};
use clap::{Args, Subcommand};
use longwire_node::message::{Reply, Request};
use longwire_settings::error::Error;
use serde_json::Value;
use std::fmt::Write;

/// The bundles that a node holds, and why each is still there
#[derive(Debug, Args)]
pub(crate) struct Bundles {
    #[command(subcommand)]
    what: Option<What>,
    /// Show at most so many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List them (the default)
    List,
    /// Show all that is known of one
    Show {
        /// As it stands in the list: SOURCE@TIME-NUMBER
        id: String,
    },
    /// Delete one, with all of its fragments here
    Cancel {
        /// As it stands in the list: SOURCE@TIME-NUMBER
        id: String,
    },
}

impl Bundles {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut talk = self.reach.connect()?;
        if let Some(What::Cancel { id }) = &self.what {
            let (source, created) = parse(id)?;
            return talk.done(Request::Delete { source, created });
        }
        let limit = if self.what.is_some() { usize::MAX } else { self.limit };
        talk.ask(Request::Bundles { limit })?;
        let (bundles, total) = talk.wait(|said| match said.head {
            Reply::Bundles { bundles, total } => Some((bundles, total)),
            _ => None,
        })?;
        match &self.what {
            Some(What::Show { id }) => {
                parse(id)?;
                let all = bundles.as_array().into_iter().flatten();
                let found: Value = all.filter(|bundle| name(bundle) == *id).cloned().collect();
                if found == Value::Array(Vec::new()) {
                    return Err(Failure::Failed(
                        Error::new(format!("there is no bundle {id}"))
                            .hint("it may have been delivered, or gone on"),
                    ));
                }
                self.reach.show(&found, || found.as_array().into_iter().flatten().map(in_full).collect())
            }
            _ => self.reach.show(&bundles, || list(&bundles, total)),
        }
    }
}

fn parse(id: &str) -> Result<(String, (u64, u64)), Failure> {
    let parts = || {
        let (source, created) = id.rsplit_once('@')?;
        let (time, number) = created.split_once('-')?;
        Some((source.to_owned(), (time.parse().ok()?, number.parse().ok()?)))
    };
    parts().ok_or_else(|| {
        let hint = "it looks like dtn://alice/@842000000000-256; `longwire bundles` lists them";
        Failure::Usage(Error::new(format!("`{id}` does not name a bundle")).hint(hint))
    })
}

fn name(bundle: &Value) -> String {
    let created = &bundle["created"];
    format!("{}@{}-{}", bundle["source"].as_str().unwrap_or("?"), created[0], created[1])
}

fn list(bundles: &Value, total: usize) -> String {
    let mut out = String::new();
    let all = bundles.as_array().map_or(&[][..], Vec::as_slice);
    for bundle in all {
        let _ = writeln!(
            out,
            "{} to {}, {}: {}",
            name(bundle),
            bundle["destination"].as_str().unwrap_or("?"),
            bytes(bundle["payload_bytes"].as_u64().unwrap_or(0)),
            bundle["why"].as_str().unwrap_or("?")
        );
    }
    match total - all.len().min(total) {
        0 if all.is_empty() => "no bundles\n".clone_into(&mut out),
        0 => {}
        more => {
            let _ = writeln!(out, "and {more} more; --limit shows more of them");
        }
    }
    out
}

fn in_full(bundle: &Value) -> String {
    let mut out = format!("{}\n", name(bundle));
    for (key, value) in bundle.as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(out, "  {:<16}{value}", key.replace('_', " "));
    }
    out
}
