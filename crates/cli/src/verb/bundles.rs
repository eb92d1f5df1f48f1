//! `longwire bundles`.

use crate::failure::{CommandFailure, CommandResult};
use crate::flag;
use crate::node_connection::{NodeConversation, NodeOptions, bytes, seconds};
use clap::{Args, Subcommand};
use longwire_node::message::{Reply, Request};
use longwire_node::view::{Bundle, Filter, Page, State};
use longwire_proto::service::BundleName;
use serde_json::json;
use std::fmt::Write;

/// List the bundles that a node holds and why each is still there
#[derive(Debug, Args)]
pub(crate) struct Bundles {
    #[command(subcommand)]
    what: Option<BundlesAction>,
    /// Maximum number of bundles to show
    #[arg(long, value_name = "N", default_value = "1000", value_parser = flag::whole::<usize>(1, u64::MAX))]
    limit: usize,
    /// Only bundles from this source; a trailing * matches anything
    #[arg(long, value_name = "EID")]
    from: Option<String>,
    /// Only bundles to this destination; a trailing * matches anything
    #[arg(long, value_name = "EID")]
    to: Option<String>,
    /// Only bundles in this state
    #[arg(long, value_parser = flag::explained(STATES), value_name = "WHY")]
    state: Option<State>,
    #[command(flatten)]
    reach: NodeOptions,
}

const STATES: flag::ExplainedWords<State> = &[
    ("arriving", State::Arriving, "Being received"),
    ("storing", State::Storing, "Being written to the store"),
    ("checking", State::Checking, "Being verified"),
    ("without-key", State::WithoutKey, "Accepted with earlier keys; waiting for a key that fits"),
    ("no-route", State::NoRoute, "No route to the destination"),
    ("encrypted", State::Encrypted, "Encrypted, and every usable link is amateur radio"),
    ("links-down", State::LinksDown, "Every usable link is down"),
    ("no-contact", State::NoContact, "Waiting for the next contact"),
    ("better-hop", State::BetterHop, "Waiting for the preferred link, which is down"),
    ("spread", State::Spread, "Copies go to other nodes as they come into contact"),
    ("queued", State::Queued, "Queued for a link"),
    ("on-the-way", State::OnTheWay, "Being sent"),
    ("resting", State::Resting, "The next hop had no space; waiting to retry"),
    (
        "in-custody",
        State::InCustody,
        "Sent, but in the custody of this node until another node accepts custody",
    ),
    ("in-parts", State::InParts, "For this node; fragments are missing"),
    (
        "nobody-registered",
        State::NobodyRegistered,
        "For this node; no application has registered the endpoint",
    ),
    ("not-taken", State::NotTaken, "For this node; the application has not taken them"),
];

#[derive(Debug, Subcommand)]
enum BundlesAction {
    /// List bundles (default)
    List,
    /// Show one bundle in detail
    Show {
        /// Bundle ID as listed: SOURCE@TIME-NUMBER
        id: String,
    },
    /// Delete one bundle and all its fragments on this node
    Cancel {
        /// Bundle ID as listed: SOURCE@TIME-NUMBER
        id: String,
    },
}

impl Bundles {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.what {
            None | Some(BundlesAction::List) => self.list(),
            Some(BundlesAction::Show { id }) => {
                let name = parse(id)?;
                let page = ask(&mut self.reach.connect()?, Request::Bundle(name))?;
                self.reach.show(&page.bundles, || page.bundles.iter().map(in_full).collect())
            }
            Some(BundlesAction::Cancel { id }) => {
                let name = parse(id)?;
                self.reach.connect()?.done(Request::Delete(name))?;
                self.reach.show(&json!({ "cancelled": id }), || format!("deleted {id}"))
            }
        }
    }

    fn list(&self) -> CommandResult {
        let filter = Filter { source: self.from.clone(), destination: self.to.clone(), state: self.state };
        let mut talk = self.reach.connect()?;
        let mut all = Page::default();
        loop {
            let limit = self.limit.saturating_sub(all.bundles.len()).max(1);
            let page = ask(&mut talk, Request::Bundles { limit, after: all.next, filter: filter.clone() })?;
            all.bundles.extend(page.bundles);
            (all.total, all.next) = (page.total, page.next);
            if all.next.is_none() || all.bundles.len() >= self.limit {
                return self.reach.show(&all.bundles, || words(&all, filter == Filter::default()));
            }
        }
    }
}

fn ask(talk: &mut NodeConversation, request: Request) -> CommandResult<Page> {
    talk.ask(request)?;
    talk.wait(|said| if let Reply::Bundles { page } = said.head { Some(page) } else { None })
}

fn parse(id: &str) -> CommandResult<BundleName> {
    id.parse().map_err(|_| {
        let hint = "use an ID such as dtn://alice/@842000000000-256; list the IDs with `longwire bundles`";
        CommandFailure::usage(format!("`{id}` is not a valid bundle ID"), hint)
    })
}

fn words(page: &Page, is_all: bool) -> String {
    let mut out = String::new();
    for bundle in &page.bundles {
        let Bundle { id, destination, payload_bytes, why, .. } = bundle;
        let _ = writeln!(out, "{id} to {destination}, {}: {why}", bytes(*payload_bytes));
    }
    if page.next.is_some() {
        let _ = writeln!(out, "{} of {} bundles; use --limit to show more", page.bundles.len(), page.total);
    } else if page.bundles.is_empty() {
        out += if is_all { "no bundles\n" } else { "no matching bundles\n" };
    }
    out
}

fn in_full(bundle: &Bundle) -> String {
    let mut out = format!("{}\n", bundle.id);
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<16}{text}");
    };
    line("from", bundle.source.clone());
    line("to", bundle.destination.clone());
    line("version", bundle.version.to_string());
    if bundle.wants_custody {
        line("custody", bundle.custodian.clone().unwrap_or_else(|| "requested; no custodian yet".into()));
    }
    line("priority", format!("{:?}", bundle.priority).to_lowercase());
    line("payload", bytes(bundle.payload_bytes));
    if let Some(part) = bundle.fragment {
        line("fragment", format!("offset {} of {} bytes", part.offset_bytes, part.total_bytes));
    }
    line("transmitted", bytes(bundle.transmitted_bytes));
    line("acknowledged", format!("{} by the next hop", bytes(bundle.safe_bytes)));
    line("age", seconds(bundle.age_s));
    line("lifetime left", seconds(bundle.lifetime_left_s));
    if let Some(link) = &bundle.arrived_over {
        line("received over", format!("`{link}`"));
    }
    if bundle.refusals > 0 {
        line("refused", format!("{} times by the next hop", bundle.refusals));
    }
    if let Some(signature) = &bundle.signature {
        line("signature", signature.words());
    }
    line("state", bundle.why.clone());
    out
}
