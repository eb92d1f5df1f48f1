//! Messages between an application and a node.
//!
//! A message is a header, in JSON, and a body of bytes. On the control socket:
//!
//! ```text
//!   header length 4 | body length 4 | header (JSON) .. | body ..       lengths big-endian
//! ```
//!
//! The first message of a connection may be any request; there is no greeting. Requests are answered in order, if they have an
//! answer; later indications (deliveries, progress, reports) are sent in between. A request that fails is answered by `error`,
//! which contains the reason as text.
//!
//! ```text
//!   {"request":"send","send":1,"to":"dtn://earth/inbox","length":5}  + body "hello"
//!   {"reply":"accepted","send":1,"source":"dtn://moon/","created":[842000000000,256]}
//!   {"reply":"sent","send":1}
//! ```
//!
//! Bodies: of `send` and `piece` the payload's next bytes; of `data` the bytes read; of `delivered` the whole payload, if
//! it is no longer than the registration's `inline_bytes`. Limits: the header of a request 64 KiB, of a reply 4 MiB, a body
//! 1 MiB.

use crate::view;
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::service::{BundleName, BundleVersion, CreationTimestamp, Priority, SendOptions};
use longwire_proto::settings;
use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Maximum length of a header from an application, bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of a header from a node, bytes: lists of links and bundles are long.
pub const REPLY_HEAD_BYTES_MAX: usize = 4 << 20;
/// Bytes of a payload that one message carries: a read returns at most as many, and a send is passed on in parts of that length.
pub const PART_BYTES: u32 = 256 * 1024;
/// Maximum length of a body, bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// A header with its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<T> {
    /// Header: the request or reply.
    pub head: T,
    /// Body.
    pub body: Bytes,
}

impl<T> From<T> for Message<T> {
    fn from(head: T) -> Self {
        Message { head, body: Bytes::new() }
    }
}

settings! {
    /// Parameters of a bundle to send.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct MessageOptions {
        /// Priority: `bulk`, `normal`, `expedited`.
        pub priority: Priority,
        /// Lifetime, seconds. Default one day.
        pub lifetime_s: f64 = 86_400.0,
        /// Requests a delivery report.
        pub report_delivery: bool,
        /// Requests reception reports from every node.
        pub report_reception: bool,
        /// Requests forwarding reports from every node.
        pub report_forwarding: bool,
        /// Requests deletion reports from every node.
        pub report_deletion: bool,
        /// Forbids fragmentation.
        pub must_not_fragment: bool,
        /// Hop limit; `None` or zero for none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub hop_limit: Option<u8>,
        /// Source endpoint of this node; `None` for the node ID.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<String>,
        /// Bundle Protocol version, 6 or 7; `None` for the configured one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub bundle_version: Option<BundleVersion>,
        /// Creation timestamp, for applications that send the same bundle again after a crash.
        #[serde(skip)]
        pub created: Option<CreationTimestamp>,
        /// Requests custody transfer, which implies version 6.
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        pub custody: bool,
        /// Asks whether the file name at the beginning of the payload may stay there because the destination's applications are not
        /// known to remove it; answered once per node.
        #[serde(skip_serializing_if = "core::ops::Not::not")]
        pub note_name: bool,
    }
}

impl MessageOptions {
    /// Converts the parameters for the agent.
    pub(crate) fn options(&self) -> SendOptions {
        // 3.2e11 s (10,000 years) serve as no limit, and fit into the following types.
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
            source: self.source.clone(),
            created: self.created,
            version: self.bundle_version,
            custody: self.custody,
            ..SendOptions::default()
        }
    }
}

/// Requests of an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Opens a bundle; the body is the beginning of its payload.
    Send {
        /// Number of the send, chosen by the application and never reused.
        send: u64,
        /// Destination.
        to: String,
        /// Payload length, bytes.
        length: u64,
        /// Parameters.
        #[serde(default)]
        options: MessageOptions,
    },
    /// Sends the next bytes of the payload.
    Piece {
        /// Number of the send.
        send: u64,
    },
    /// Cancels a send.
    Cancel {
        /// Number of the send.
        send: u64,
    },
    /// Registers an endpoint; one application at a time.
    Register {
        /// Endpoint: complete, or the part after the node ID.
        endpoint: String,
        /// Maximum length of payloads that are sent together with their delivery, bytes.
        #[serde(default)]
        inline_bytes: u32,
    },
    /// Removes a registration.
    Unregister {
        /// Registered endpoint.
        endpoint: String,
    },
    /// Reads a part of a delivery.
    Read {
        /// Number of the delivery.
        delivery: u64,
        /// Offset in the payload, bytes.
        offset: u64,
        /// Maximum bytes to read; at most 262,144.
        length: u32,
    },
    /// Takes a delivery: the application has stored it, and the node may delete it.
    Taken {
        /// Number of the delivery.
        delivery: u64,
    },
    /// Requests the state of the node.
    Status,
    /// Waits for a change since the last `status` sent to this application, and is then answered by `status`. Several pending
    /// requests get one answer.
    NextStatus,
    /// Lists stored bundles and why each is still there, in pages.
    Bundles {
        /// Maximum bundles in the page; it has fewer if many examined bundles do not pass the filter.
        limit: usize,
        /// Position to continue from: `next` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
        /// Filter.
        #[serde(default)]
        filter: view::Filter,
    },
    /// Returns one bundle and its fragments in detail.
    Bundle(BundleName),
    /// Deletes a bundle.
    Delete(BundleName),
    /// Lists all links.
    Links,
    /// Adds a link until the node restarts.
    AddLink {
        /// Name of the link.
        name: String,
        /// Address of the peer: host and port.
        address: String,
    },
    /// Closes a link until it is opened again.
    CutLink {
        /// Name of the link.
        name: String,
    },
    /// Opens a link that was closed.
    OpenLink {
        /// Name of the link.
        name: String,
    },
    /// Removes a link until the node restarts; its bundles wait for another route.
    RemoveLink {
        /// Name of the link.
        name: String,
    },
    /// Inhibits transmissions over a TNC until they are permitted again, or the node restarts.
    Inhibit {
        /// Name of the TNC.
        name: String,
    },
    /// Permits transmissions over a TNC.
    Permit {
        /// Name of the TNC.
        name: String,
    },
    /// Lists the stations that TNCs have heard.
    Heard,
    /// Lists the latest transmissions on the channels of the TNCs.
    Transmissions,
    /// Estimates how long a bundle would take over the link that it would leave by.
    Estimate {
        /// Destination.
        to: String,
        /// Payload length, bytes.
        length: u64,
    },
    /// Lists all static routes.
    Routes,
    /// Adds a route until the node restarts.
    AddRoute {
        /// Route to add.
        route: view::Route,
    },
    /// Removes a route until the node restarts.
    RemoveRoute {
        /// Destination pattern of the route.
        to: String,
        /// Name of the link, or node ID of the next hop.
        via: String,
    },
    /// Starts the recording of events of bundles, for programs that read events.
    Watch,
    /// Confirms the clock after a jump: lifetimes follow it, and bundles that it makes expired are deleted.
    TrustClock,
    /// Lists the public keys that the node knows.
    Keys,
    /// Sets the public key of a node, in place of an earlier one.
    TrustKey {
        /// Node ID.
        node: String,
        /// Fingerprint of the key.
        fingerprint: String,
    },
    /// Forgets the public key of a node.
    ForgetKey {
        /// Node ID.
        node: String,
    },
    /// Reloads the configuration: links, routes, limits and folders change without a restart.
    Reload,
}

/// Replies of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The request was carried out.
    Done,
    /// The request failed.
    Error {
        /// Reason, as text.
        what: String,
        /// Hint on what to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// True if the same request may be carried out soon.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        is_temporary: bool,
    },
    /// The bundle is durable in the node's store.
    Accepted {
        /// Number of the send.
        send: u64,
        /// Source of the bundle.
        source: String,
        /// Creation timestamp of the bundle.
        created: CreationTimestamp,
        /// True if the payload begins with a file name and the destination's applications are not known to remove it.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        name_may_stay: bool,
    },
    /// The next hop has acknowledged a part of the payload.
    Progress {
        /// Number of the send.
        send: u64,
        /// Acknowledged bytes from the beginning of the payload.
        up_to: u64,
    },
    /// The next hop has acknowledged the whole bundle, or it was delivered on this node. The last reply for the send.
    Sent {
        /// Number of the send.
        send: u64,
    },
    /// The send failed. The last reply for the send.
    Failed {
        /// Number of the send.
        send: u64,
        /// Reason, as text.
        reason: String,
        /// Reason, as an identifier: `bad_endpoint`, `full`, `expired`, `cancelled`, `limit`, `storage`, `refused`, `no_custody`.
        #[serde(default)]
        code: String,
    },
    /// A status report about a bundle that this application sent.
    Report {
        /// Number of the send.
        send: u64,
        /// `received`, `forwarded`, `delivered`, `deleted`, `in custody`.
        status: String,
        /// Reason code (RFC 9171 9.5).
        reason: u64,
        /// Node that sent the report.
        reporter: String,
    },
    /// The endpoint is registered.
    Registered {
        /// Complete endpoint ID.
        endpoint: String,
    },
    /// A complete bundle is ready for delivery. Sent again at each registration until it is taken.
    Delivered {
        /// Number of the delivery, assigned by the node.
        delivery: u64,
        /// Source of the bundle.
        source: String,
        /// Destination of the bundle.
        destination: String,
        /// Creation timestamp of the bundle.
        created: CreationTimestamp,
        /// Payload length, bytes.
        length: u64,
        /// Outcome of the verification of its signature; `None` if it has none, or none was verified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Box<view::Signature>>,
    },
    /// A part of a delivery.
    Data {
        /// Number of the delivery.
        delivery: u64,
        /// Offset in the payload, bytes.
        offset: u64,
    },
    /// The delivery has ended.
    Gone {
        /// Number of the delivery.
        delivery: u64,
        /// True if it was taken, which is durable; false if it expired before.
        taken: bool,
    },
    /// State of the node.
    Status {
        /// State and counters.
        status: Box<view::Status>,
    },
    /// Stored bundles.
    Bundles {
        /// Page of the list.
        page: view::Page,
    },
    /// All links.
    Links {
        /// Links.
        links: Vec<view::Link>,
    },
    /// Public keys.
    Keys {
        /// Own fingerprint, and keys of other nodes.
        keys: view::Keys,
    },
    /// Stations that TNCs have heard.
    Heard {
        /// Stations, those heard last first.
        stations: Vec<view::HeardStation>,
    },
    /// Expected transmission of a bundle.
    Estimate {
        /// Link and times.
        estimate: view::Estimate,
    },
    /// All static routes.
    Routes {
        /// Routes.
        routes: Vec<view::Route>,
    },
    /// Latest transmissions on the channels of the TNCs.
    Transmissions {
        /// Transmissions, the latest of each TNC first.
        transmissions: Vec<view::Transmission>,
    },
}

impl Reply {
    /// An error with its reason and a hint.
    pub(crate) fn error(what: impl Into<String>, hint: Option<&str>) -> Self {
        Error { what: what.into(), hint: hint.map(str::to_owned) }.into()
    }
}

impl From<Error> for Reply {
    fn from(Error { what, hint }: Error) -> Self {
        Reply::Error { what, hint, is_temporary: false }
    }
}

/// Appends an encoded message to `out`.
pub(crate) fn encode<T: serde::Serialize>(message: &Message<T>, out: &mut BytesMut) {
    let start = out.len();
    out.put_u64(0);
    serde_json::to_writer(out.writer(), &message.head).expect("heads are JSON");
    let head_bytes = (out.len() - start - 8) as u32;
    out[start..start + 4].copy_from_slice(&head_bytes.to_be_bytes());
    out[start + 4..start + 8].copy_from_slice(&(message.body.len() as u32).to_be_bytes());
    out.extend_from_slice(&message.body);
}

/// Removes the next message from the front of `input`; `None` if it is incomplete.
pub(crate) fn decode<T: serde::de::DeserializeOwned>(
    input: &mut BytesMut,
    head_bytes_max: usize,
) -> Result<Option<Message<T>>, String> {
    let Some((lengths, rest)) = input.split_first_chunk::<8>() else { return Ok(None) };
    let head_bytes = u32::from_be_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
    let body_bytes = u32::from_be_bytes([lengths[4], lengths[5], lengths[6], lengths[7]]) as usize;
    if head_bytes > head_bytes_max || body_bytes > BODY_BYTES_MAX {
        return Err(format!(
            "a message with a header of {head_bytes} bytes and a body of {body_bytes} bytes is too long"
        ));
    }
    if rest.len() < head_bytes + body_bytes {
        input.reserve(head_bytes + body_bytes);
        return Ok(None);
    }
    let mut whole = input.split_to(8 + head_bytes + body_bytes).freeze();
    let body: Bytes = whole.split_off(8 + head_bytes);
    let head = serde_json::from_slice(&whole[8..]).map_err(|error| format!("not a message: {error}"))?;
    Ok(Some(Message { head, body }))
}

/// Completes an endpoint ID that an application has given in full or as the part after the node ID.
pub(crate) fn full_endpoint(node: &str, endpoint: &str) -> String {
    if endpoint.contains(':') {
        return endpoint.to_owned();
    }
    match node.strip_suffix(".0").filter(|node| node.starts_with("ipn:")) {
        Some(node) => format!("{node}.{endpoint}"),
        None => format!("{node}{endpoint}"),
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
            created: (842_000_000_000, 256).into(),
            name_may_stay: false,
        };
        let text = serde_json::to_string(&reply).expect("JSON");
        let expected = r#"{"reply":"accepted","send":1,"source":"dtn://moon/","created":[842000000000,256]}"#;
        assert_eq!(text, expected);
        assert!(serde_json::from_str::<Request>(r#"{"request":"taken","delivery":1,"more":2}"#).is_err());
    }
}
