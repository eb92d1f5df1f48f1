//! What an application and a node say to each other.
//!
//! A message is a head, in JSON, and a body of bytes. On the control socket:
//!
//! ```text
//!   head length 4 | body length 4 | head (JSON) .. | body ..          lengths big-endian
//! ```
//!
//! The first message of a connection may be any request; there is no greeting. Requests are answered in order, as far as
//! they have an answer; what happens later (deliveries, progress, reports) comes in between. A request that cannot be
//! carried out is answered by `error`, with the words for a person in it.
//!
//! ```text
//!   {"request":"send","send":1,"to":"dtn://earth/inbox","length":5}  + body "hello"
//!   {"reply":"accepted","send":1,"source":"dtn://moon/","created":[842000000000,256]}
//!   {"reply":"sent","send":1}
//! ```
//!
//! Bodies: of `send` and `piece` the payload's next bytes; of `data` what was read; of `delivered` the whole payload, if
//! it is no longer than the registration's `inline_bytes`. Limits: the head of a request 64 KiB, of a reply 4 MiB, a body
//! 1 MiB.

use crate::view;
use bytes::Bytes;
use longwire_proto::service::{BundleVersion, Priority, SendOptions};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bytes of a head that an application sends, at the most.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a head that a node sends, at the most: lists of links and bundles are long.
pub const REPLY_HEAD_BYTES_MAX: usize = 4 << 20;
/// Bytes of a body at the most.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// A head with its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<T> {
    /// What is said.
    pub head: T,
    /// The bytes that belong to it.
    pub body: Bytes,
}

impl<T> From<T> for Message<T> {
    fn from(head: T) -> Self {
        Message { head, body: Bytes::new() }
    }
}

/// How a bundle is to be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageOptions {
    /// Its urgency: `bulk`, `normal`, `expedited`.
    pub priority: Priority,
    /// How long it is worth delivering, seconds. Default one day.
    pub lifetime_s: f64,
    /// Ask for a report on delivery.
    pub report_delivery: bool,
    /// Ask every node for a report on reception.
    pub report_reception: bool,
    /// Ask every node for a report on forwarding.
    pub report_forwarding: bool,
    /// Ask every node for a report on deletion.
    pub report_deletion: bool,
    /// Never fragment it.
    pub must_not_fragment: bool,
    /// The most hops it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_limit: Option<u8>,
    /// The endpoint of this node that it is sent from; none: the node itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The version of the Bundle Protocol that it is sent in, 6 or 7; none: as the node's configuration says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle_version: Option<BundleVersion>,
    /// The creation timestamp that it is to have, for who sends the same bundle again after a crash.
    #[serde(skip)]
    pub created: Option<(u64, u64)>,
    /// Ask for custody transfer, which makes it a bundle of version 6.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub custody: bool,
    /// Say in the answer if the payload begins with a file's name and nothing is known of whether the destination's
    /// applications take it off; once for each node.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub note_name: bool,
}

impl Default for MessageOptions {
    fn default() -> Self {
        MessageOptions {
            priority: Priority::Normal,
            lifetime_s: 86_400.0,
            report_delivery: false,
            report_reception: false,
            report_forwarding: false,
            report_deletion: false,
            must_not_fragment: false,
            hop_limit: None,
            source: None,
            bundle_version: None,
            created: None,
            note_name: false,
            custody: false,
        }
    }
}

impl MessageOptions {
    /// As the agent has them.
    pub(crate) fn options(&self) -> SendOptions {
        // Ten thousand years are for ever, and fit into what follows.
        let lifetime = if self.lifetime_s.is_nan() { 0.0 } else { self.lifetime_s.clamp(0.0, 3.2e11) };
        SendOptions {
            priority: self.priority,
            lifetime: Duration::from_secs_f64(lifetime),
            report_delivery: self.report_delivery,
            report_reception: self.report_reception,
            report_forwarding: self.report_forwarding,
            report_deletion: self.report_deletion,
            must_not_fragment: self.must_not_fragment,
            hop_limit: self.hop_limit,
            report_to: None,
            source: self.source.clone(),
            created: self.created,
            version: self.bundle_version,
            custody: self.custody,
            report_custody: false,
        }
    }
}

/// From an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Opens a bundle; the body is the first of its payload.
    Send {
        /// The application's number for it, its own and never used twice.
        send: u64,
        /// Where it goes.
        to: String,
        /// The payload's length, bytes.
        length: u64,
        /// How.
        #[serde(default)]
        options: MessageOptions,
    },
    /// The next bytes of its payload.
    Piece {
        /// The send.
        send: u64,
    },
    /// Gives a send up.
    Cancel {
        /// The send.
        send: u64,
    },
    /// Wants the bundles for an endpoint; one application at a time.
    Register {
        /// The endpoint: whole, or what stands behind the node id.
        endpoint: String,
        /// Payloads of so many bytes at the most come with their delivery.
        #[serde(default)]
        inline_bytes: u32,
    },
    /// Wants them no longer.
    Unregister {
        /// The endpoint.
        endpoint: String,
    },
    /// Reads a part of a delivery.
    Read {
        /// The delivery.
        delivery: u64,
        /// Bytes from its beginning.
        offset: u64,
        /// How many; at most 262,144.
        length: u32,
    },
    /// The application has it safe: the node may forget it.
    Taken {
        /// The delivery.
        delivery: u64,
    },
    /// How the node is.
    Status,
    /// How the node is, answered by `status` once something has happened since this application last heard that; asked
    /// again before, it is answered once.
    NextStatus,
    /// What is stored, and why it is still here, in parts.
    Bundles {
        /// At most so many; fewer come where many were looked at that are not wanted.
        limit: usize,
        /// Behind this place: what the answer before called `next`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Which.
        #[serde(default)]
        filter: view::Filter,
    },
    /// All that is known of one bundle and its fragments.
    Bundle {
        /// Its source.
        source: String,
        /// Its creation timestamp.
        created: (u64, u64),
    },
    /// Deletes a bundle.
    Delete {
        /// Its source.
        source: String,
        /// Its creation timestamp.
        created: (u64, u64),
    },
    /// All links.
    Links,
    /// Adds a link, until the next start.
    AddLink {
        /// What it is called.
        name: String,
        /// Where the peer is: host and port.
        address: String,
    },
    /// Cuts a link, until it is opened again.
    CutLink {
        /// What it is called.
        name: String,
    },
    /// Opens a link that was cut.
    OpenLink {
        /// What it is called.
        name: String,
    },
    /// Removes a link, until the next start; bundles that would take it wait for another way.
    RemoveLink {
        /// What it is called.
        name: String,
    },
    /// All static routes.
    Routes,
    /// Adds a route, until the next start.
    AddRoute {
        /// Where it leads.
        route: view::Route,
    },
    /// Removes a route, until the next start.
    RemoveRoute {
        /// For which endpoints.
        to: String,
        /// Over which link, or by which node.
        via: String,
    },
    /// Notes what happens to bundles, too, for whoever reads events.
    Watch,
    /// Says that the clock is right although it has jumped: lifetimes go by it from here on, and what is over by it is
    /// deleted.
    TrustClock,
    /// Reads the configuration again: links and routes change without a restart.
    Reload,
}

/// From the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// It was done.
    Done,
    /// It could not be done.
    Error {
        /// What happened.
        what: String,
        /// What may help.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
    /// The bundle is durable: from here on it is the node's.
    Accepted {
        /// The send.
        send: u64,
        /// The bundle's source.
        source: String,
        /// Its creation timestamp.
        created: (u64, u64),
        /// It begins with a file's name, and nothing is known of whether the destination's applications take that off.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        name_may_stay: bool,
    },
    /// How much of it is safe with the next hop.
    Progress {
        /// The send.
        send: u64,
        /// Bytes of payload.
        up_to: u64,
    },
    /// All of it is safe with the next hop, or it was delivered here: the last word.
    Sent {
        /// The send.
        send: u64,
    },
    /// It could not be sent: the last word.
    Failed {
        /// The send.
        send: u64,
        /// Why, for a person.
        reason: String,
        /// Why, in one word: `bad_endpoint`, `full`, `expired`, `cancelled`, `limit`, `storage`, `refused`,
        /// `no_custody`.
        #[serde(default)]
        code: String,
    },
    /// A status report about a bundle that this application sent.
    Report {
        /// The send.
        send: u64,
        /// `received`, `forwarded`, `delivered`, `deleted`.
        status: String,
        /// The reason code.
        reason: u64,
        /// Who says so.
        reporter: String,
    },
    /// The registration stands.
    Registered {
        /// The endpoint in full.
        endpoint: String,
    },
    /// A bundle is here, whole. Said again at each registration until it is taken.
    Delivered {
        /// The node's number for it.
        delivery: u64,
        /// Who sent it.
        source: String,
        /// The endpoint it is for.
        destination: String,
        /// Its creation timestamp.
        created: (u64, u64),
        /// The payload's length, bytes.
        length: u64,
    },
    /// A part of a delivery.
    Data {
        /// The delivery.
        delivery: u64,
        /// Bytes from its beginning.
        offset: u64,
    },
    /// The delivery is over.
    Gone {
        /// The delivery.
        delivery: u64,
        /// True if it was taken, and that is durable; false if it expired first.
        taken: bool,
    },
    /// How the node is.
    Status {
        /// All of it.
        status: Box<view::Status>,
    },
    /// What is stored.
    Bundles {
        /// A part of it.
        page: view::Page,
    },
    /// All links.
    Links {
        /// Each.
        links: Vec<view::Link>,
    },
    /// All static routes.
    Routes {
        /// Each.
        routes: Vec<view::Route>,
    },
}

impl Reply {
    /// It could not be done.
    pub(crate) fn error(what: impl Into<String>, hint: Option<&str>) -> Self {
        Reply::Error { what: what.into(), hint: hint.map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_as_documented() {
        let head = r#"{"request":"send","send":1,"to":"dtn://earth/inbox","length":5}"#;
        let parsed: Request = serde_json::from_str(head).expect("a request");
        let options = MessageOptions::default();
        assert_eq!(parsed, Request::Send { send: 1, to: "dtn://earth/inbox".into(), length: 5, options });
        let reply = Reply::Accepted {
            send: 1,
            source: "dtn://moon/".into(),
            created: (842_000_000_000, 256),
            name_may_stay: false,
        };
        let text = serde_json::to_string(&reply).expect("JSON");
        let expected = r#"{"reply":"accepted","send":1,"source":"dtn://moon/","created":[842000000000,256]}"#;
        assert_eq!(text, expected);
        assert!(serde_json::from_str::<Request>(r#"{"request":"taken","delivery":1,"more":2}"#).is_err());
    }
}
