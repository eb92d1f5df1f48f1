//! `longwire key`.

use crate::failure::CommandResult;
use crate::node_connection::NodeOptions;
use crate::output::talk;
use clap::{Args, Subcommand};
use longwire_node::config::security::new_key;
use longwire_node::message::{Reply, Request};
use longwire_node::view::Keys;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;

/// Create a key that signs bundles, and list or change the public keys that a node knows
///
/// A node notes the first public key with which bundles of another node are signed, and refuses bundles with any other
/// key of that node from then on. Compare the fingerprint with the operator of the other node.
#[derive(Debug, Args)]
pub(crate) struct Key {
    #[command(subcommand)]
    what: Option<KeyAction>,
    #[command(flatten)]
    reach: NodeOptions,
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Create a private key for a node, or a key that several nodes share
    New {
        /// File for the key, which must not exist
        file: PathBuf,
        /// Create a key that several nodes share, for [[security.key]]
        #[arg(long)]
        shared: bool,
    },
    /// List the public keys that the node knows, and its own fingerprint (default)
    List,
    /// Accept this key of a node, and no other
    Trust {
        /// Node ID: dtn://name/ or ipn:N.0
        node: String,
        /// Fingerprint of the key: 32 hexadecimal digits, with or without dashes
        fingerprint: String,
    },
    /// Forget the key of a node: the next one is noted as its first
    Forget {
        /// Node ID: dtn://name/ or ipn:N.0
        node: String,
    },
}

impl Key {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.what {
            Some(KeyAction::New { file, shared }) => self.create(file, *shared),
            None | Some(KeyAction::List) => {
                let mut talk = self.reach.connect()?;
                talk.ask(Request::Keys)?;
                let keys =
                    talk.wait(|said| if let Reply::Keys { keys } = said.head { Some(keys) } else { None })?;
                self.reach.show(&keys, || words(&keys))
            }
            Some(KeyAction::Trust { node, fingerprint }) => {
                let request = Request::TrustKey { node: node.clone(), fingerprint: fingerprint.clone() };
                self.reach.connect()?.done(request)?;
                let value = json!({ "node": node, "fingerprint": fingerprint });
                self.reach.show(&value, || format!("{node} has the key {fingerprint}"))
            }
            Some(KeyAction::Forget { node }) => {
                self.reach.connect()?.done(Request::ForgetKey { node: node.clone() })?;
                self.reach.show(&json!({ "forgotten": node }), || format!("forgot the key of {node}"))
            }
        }
    }

    fn create(&self, file: &std::path::Path, is_shared: bool) -> CommandResult {
        let fingerprint = new_key(file, is_shared)?;
        let path = file.display();
        let value = json!({ "file": file, "fingerprint": fingerprint.map(|one| one.to_string()) });
        match fingerprint {
            Some(fingerprint) => talk(format_args!("created {path}; its fingerprint is {fingerprint}")),
            None => {
                talk(format_args!("created {path}; copy it to all nodes that share it, over a secret path"))
            }
        }
        self.reach.show(&value, || match is_shared {
            true => format!("[[security.key]]\nname = \"shared\"\nfile = \"{path}\"\nnodes = [\"dtn://alice/\", \"dtn://bob/\"]\n"),
            false => format!("[security]\nprivate-key = \"{path}\"\n"),
        })
    }
}

fn words(keys: &Keys) -> String {
    let mut out = String::new();
    if let Some(own) = &keys.own {
        let _ = writeln!(out, "{own}  this node");
    }
    for key in &keys.known {
        let contested = if key.contested { "  (contested: another key, or none, was used)" } else { "" };
        let _ = writeln!(out, "{}  {}{contested}", key.fingerprint, key.node);
    }
    if out.is_empty() {
        out += "no keys\n";
    }
    out
}
