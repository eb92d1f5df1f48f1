//! Operations: what can be asked of a node, over the control socket or over HTTP. What an operation is called, whether it changes
//! something, and how much it asks for is in one table.

use crate::surfaces::message::Request;
use Effect::{Change, Question};
use Method::{Delete, Get, Post};
use Weight::{Long, Payload, Short};

/// Effect of an operation on the status of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None: whoever waits for a new status does not get one.
    Question,
    /// The status changes, or may.
    Change,
}

/// What a request and its answer cost the node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The request carries payload, and counts by its bytes; the answer is a few bytes.
    Payload,
    /// The answer is a few bytes, so that many of them may wait.
    Short,
    /// The answer may be long.
    Long,
}

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
    Delete,
}

/// An operation over HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) method: Method,
    /// A trailing `{*name}` matches slashes, too.
    pub(crate) path: &'static str,
    /// `operationId` in the description (OpenAPI).
    pub(crate) id: &'static str,
}

/// One thing that can be asked of a node.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Name of the request on the control socket; `None` for an operation of the HTTP interface alone.
    pub(crate) request: Option<&'static str>,
    /// Place in the HTTP interface; `None` for an operation of the control socket alone.
    pub(crate) http: Option<Place>,
    /// What it does, in a sentence.
    pub(crate) about: &'static str,
    pub(crate) effect: Effect,
    pub(crate) weight: Weight,
}

const fn operation(
    request: Option<&'static str>,
    (effect, weight): (Effect, Weight),
    http: Option<Place>,
    about: &'static str,
) -> Operation {
    Operation { request, http, about, effect, weight }
}

const fn at(method: Method, path: &'static str, id: &'static str) -> Option<Place> {
    Some(Place { method, path, id })
}

pub(crate) static SEND: Operation = operation(
    Some("send"),
    (Change, Payload),
    at(Post, "/bundles", "send"),
    "Sends a bundle; the request body is its payload, of any size",
);
pub(crate) static PIECE: Operation =
    operation(Some("piece"), (Change, Payload), None, "Adds payload to a bundle that is being sent");
pub(crate) static CANCEL: Operation =
    operation(Some("cancel"), (Change, Short), None, "Cancels a bundle that is being sent");
pub(crate) static REGISTER: Operation = operation(
    Some("register"),
    (Change, Short),
    at(Post, "/registrations", "register"),
    "Registers an endpoint for as long as it is used",
);
pub(crate) static UNREGISTER: Operation = operation(
    Some("unregister"),
    (Change, Short),
    at(Delete, "/registrations/{*endpoint}", "unregister"),
    "Removes a registration; deliveries not accepted wait for the next one",
);
pub(crate) static READ: Operation = operation(
    Some("read"),
    (Change, Long),
    at(Get, "/deliveries/{id}", "download"),
    "Payload of a delivery, or a part of it (Range); does not accept the delivery",
);
pub(crate) static TAKEN: Operation = operation(
    Some("taken"),
    (Change, Short),
    at(Delete, "/deliveries/{id}", "take"),
    "Accepts a delivery: the client has stored it, and the node deletes its copy",
);
pub(crate) static STATUS: Operation = operation(
    Some("status"),
    (Question, Long),
    at(Get, "/status", "status"),
    "State and counters of the node",
);
pub(crate) static NEXT_STATUS: Operation = operation(
    Some("next-status"),
    (Question, Long),
    None,
    "State and counters of the node once something has changed",
);
pub(crate) static BUNDLES: Operation = operation(
    Some("bundles"),
    (Question, Long),
    at(Get, "/bundles", "bundles"),
    "Bundles in the store and why each is still there, in pages",
);
pub(crate) static BUNDLE: Operation = operation(
    Some("bundle"),
    (Question, Long),
    at(Get, "/bundles/{*id}", "bundle"),
    "One bundle and its fragments in detail",
);
pub(crate) static DELETE: Operation = operation(
    Some("delete"),
    (Change, Long),
    at(Delete, "/bundles/{*id}", "cancel_bundle"),
    "Deletes a bundle and all its fragments on this node",
);
pub(crate) static LINKS: Operation =
    operation(Some("links"), (Question, Long), at(Get, "/links", "links"), "All links");
pub(crate) static ADD_LINK: Operation = operation(
    Some("add-link"),
    (Change, Long),
    at(Post, "/links", "add_link"),
    "Adds and opens a link until the node restarts",
);
pub(crate) static CUT_LINK: Operation = operation(
    Some("cut-link"),
    (Change, Long),
    at(Post, "/links/{name}/cut", "cut_link"),
    "Closes a link; bundles wait until it is opened again",
);
pub(crate) static OPEN_LINK: Operation = operation(
    Some("open-link"),
    (Change, Long),
    at(Post, "/links/{name}/heal", "heal_link"),
    "Opens a link that was closed",
);
pub(crate) static REMOVE_LINK: Operation = operation(
    Some("remove-link"),
    (Change, Long),
    at(Delete, "/links/{name}", "remove_link"),
    "Removes a link and the routes over it until the node restarts",
);
pub(crate) static ROUTES: Operation =
    operation(Some("routes"), (Question, Long), at(Get, "/routes", "routes"), "All static routes");
pub(crate) static ADD_ROUTE: Operation = operation(
    Some("add-route"),
    (Change, Long),
    at(Post, "/routes", "add_route"),
    "Adds a route, or changes its cost, until the node restarts",
);
pub(crate) static REMOVE_ROUTE: Operation = operation(
    Some("remove-route"),
    (Change, Long),
    at(Delete, "/routes", "remove_route"),
    "Removes a route until the node restarts",
);
pub(crate) static WATCH: Operation = operation(
    Some("watch"),
    (Change, Long),
    at(Get, "/events", "events"),
    "Stream of server-sent events; the data of each is an event record",
);
pub(crate) static TRUST_CLOCK: Operation = operation(
    Some("trust-clock"),
    (Change, Long),
    at(Post, "/clock/trust", "trust_clock"),
    "Confirms the clock after a jump: lifetimes follow it, and expired bundles are deleted",
);
pub(crate) static RELOAD: Operation = operation(
    Some("reload"),
    (Change, Long),
    at(Post, "/reload", "reload"),
    "Reloads the configuration: links and routes change at once",
);
pub(crate) static LINK: Operation =
    operation(None, (Question, Long), at(Get, "/links/{name}", "link"), "One link");
pub(crate) static METRICS: Operation =
    operation(None, (Question, Long), at(Get, "/metrics", "metrics"), "Metrics for Prometheus");
pub(crate) static REGISTRATIONS: Operation = operation(
    None,
    (Question, Long),
    at(Get, "/registrations", "registrations"),
    "Endpoints registered over HTTP",
);
pub(crate) static DELIVERIES: Operation = operation(
    None,
    (Question, Long),
    at(Get, "/deliveries", "deliveries"),
    "Deliveries for an endpoint that were not accepted",
);
pub(crate) static PING: Operation = operation(
    None,
    (Change, Long),
    at(Post, "/ping", "ping"),
    "Measures the round-trip time to an echo service with small bundles",
);

/// All operations.
pub(crate) static OPERATIONS: [&Operation; 28] = [
    &SEND,
    &PIECE,
    &CANCEL,
    &REGISTER,
    &UNREGISTER,
    &READ,
    &TAKEN,
    &STATUS,
    &NEXT_STATUS,
    &BUNDLES,
    &BUNDLE,
    &DELETE,
    &LINKS,
    &ADD_LINK,
    &CUT_LINK,
    &OPEN_LINK,
    &REMOVE_LINK,
    &ROUTES,
    &ADD_ROUTE,
    &REMOVE_ROUTE,
    &WATCH,
    &TRUST_CLOCK,
    &RELOAD,
    &LINK,
    &METRICS,
    &REGISTRATIONS,
    &DELIVERIES,
    &PING,
];

impl Request {
    /// Returns the operation that the request asks for.
    pub(crate) fn operation(&self) -> &'static Operation {
        match self {
            Request::Send { .. } => &SEND,
            Request::Piece { .. } => &PIECE,
            Request::Cancel { .. } => &CANCEL,
            Request::Register { .. } => &REGISTER,
            Request::Unregister { .. } => &UNREGISTER,
            Request::Read { .. } => &READ,
            Request::Taken { .. } => &TAKEN,
            Request::Status => &STATUS,
            Request::NextStatus => &NEXT_STATUS,
            Request::Bundles { .. } => &BUNDLES,
            Request::Bundle(_) => &BUNDLE,
            Request::Delete(_) => &DELETE,
            Request::Links => &LINKS,
            Request::AddLink { .. } => &ADD_LINK,
            Request::CutLink { .. } => &CUT_LINK,
            Request::OpenLink { .. } => &OPEN_LINK,
            Request::RemoveLink { .. } => &REMOVE_LINK,
            Request::Routes => &ROUTES,
            Request::AddRoute { .. } => &ADD_ROUTE,
            Request::RemoveRoute { .. } => &REMOVE_ROUTE,
            Request::Watch => &WATCH,
            Request::TrustClock => &TRUST_CLOCK,
            Request::Reload => &RELOAD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn each_request_has_its_row_and_no_two_rows_are_the_same() {
        let recorded = std::fs::read_to_string(repository().join("vectors/control/requests.jsonl")).unwrap();
        let mut names = BTreeSet::new();
        for line in recorded.lines() {
            let request: Request = serde_json::from_str(line).unwrap();
            let text: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(request.operation().request, text["request"].as_str(), "{line}");
            assert!(OPERATIONS.iter().any(|row| std::ptr::eq(*row, request.operation())), "{line}");
            names.insert(request.operation().request);
        }
        let of_socket = OPERATIONS.iter().filter(|row| row.request.is_some()).count();
        assert_eq!(names.len(), of_socket);
        let over_http: Vec<&Place> = OPERATIONS.iter().filter_map(|row| row.http.as_ref()).collect();
        let ids: BTreeSet<&str> = over_http.iter().map(|place| place.id).collect();
        assert_eq!(ids.len(), over_http.len());
    }

    #[test]
    fn the_documentation_has_exactly_the_operations_over_http() {
        let document = std::fs::read_to_string(repository().join("docs/api.md")).unwrap();
        let table: String = document.lines().filter(|line| line.starts_with("| `")).collect();
        let written = table.split('`').skip(1).step_by(2).map(|text| text.split('?').next().unwrap());
        let written: BTreeSet<String> =
            written.filter(|text| text.contains(" /")).map(str::to_owned).collect();
        let mut all: BTreeSet<String> = OPERATIONS
            .iter()
            .filter_map(|row| row.http)
            .map(|place| {
                let (method, path) = (format!("{:?}", place.method), place.path.replace('*', ""));
                let path = path.split('/').map(|part| match part.strip_prefix('{') {
                    Some(name) => name.trim_end_matches('}').to_uppercase(),
                    None => part.to_owned(),
                });
                format!("{} {}", method.to_uppercase(), path.collect::<Vec<_>>().join("/"))
            })
            .collect();
        all.insert("GET /openapi.json".to_owned());
        assert_eq!(written, all);
    }
}
