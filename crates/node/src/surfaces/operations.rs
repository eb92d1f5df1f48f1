//! Operations of a node, over the control socket or over HTTP. One table has their names, their effect on the status, and the
//! memory that they cost.

use crate::surfaces::message::Request;

/// Effect of an operation on the status of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No effect: clients that wait for a new status go on waiting.
    Question,
    /// The status changes, or may.
    Change,
}

/// Memory that a request and its answer cost the node.
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

/// An operation: a request on the control socket, an operation over HTTP, or both.
#[derive(Debug)]
pub(crate) struct Operation {
    /// Name of the request on the control socket; `None` for an operation of the HTTP interface alone.
    pub(crate) request: Option<&'static str>,
    /// Place in the HTTP interface; `None` for an operation of the control socket alone.
    pub(crate) http: Option<Place>,
    /// Description, in a sentence.
    pub(crate) about: &'static str,
    pub(crate) effect: Effect,
    pub(crate) weight: Weight,
}

/// Makes a static of each row, the list of all, and the operation of each request: name, (variant and name of the request), effect,
/// weight, (method, path and ID over HTTP), and what it does. It is a macro because a row names a variant.
macro_rules! operations {
    ($($name:ident ($($request:ident $word:literal)?) $effect:ident $weight:ident
       ($($method:ident $path:literal $id:literal)?) $about:literal;)*) => {
        $(pub(crate) static $name: Operation = Operation {
            request: [$(Some($word),)? None][0],
            http: [$(Some(Place { method: Method::$method, path: $path, id: $id }),)? None][0],
            about: $about,
            effect: Effect::$effect,
            weight: Weight::$weight,
        };)*

        /// All operations.
        pub(crate) static OPERATIONS: &[&Operation] = &[$(&$name),*];

        impl Request {
            pub(crate) fn operation(&self) -> &'static Operation {
                match self {
                    $($(Request::$request { .. } => &$name,)?)*
                }
            }
        }
    };
}

operations! {
    SEND (Send "send") Change Payload (Post "/bundles" "send")
        "Sends a bundle; the request body is its payload, of any size";
    PIECE (Piece "piece") Change Payload () "Adds payload to a bundle that is being sent";
    CANCEL (Cancel "cancel") Change Short () "Cancels a bundle that is being sent";
    REGISTER (Register "register") Change Short (Post "/registrations" "register")
        "Registers an endpoint for as long as it is used";
    UNREGISTER (Unregister "unregister") Change Short (Delete "/registrations/{*endpoint}" "unregister")
        "Removes a registration; deliveries not accepted wait for the next one";
    READ (Read "read") Change Long (Get "/deliveries/{id}" "download")
        "Payload of a delivery, or a part of it (Range); does not accept the delivery";
    TAKEN (Taken "taken") Change Short (Delete "/deliveries/{id}" "take")
        "Accepts a delivery: the client has stored it, and the node deletes its copy";
    STATUS (Status "status") Question Long (Get "/status" "status") "State and counters of the node";
    NEXT_STATUS (NextStatus "next-status") Question Long () "State and counters of the node once something has changed";
    BUNDLES (Bundles "bundles") Question Long (Get "/bundles" "bundles")
        "Bundles in the store and why each is still there, in pages";
    BUNDLE (Bundle "bundle") Question Long (Get "/bundles/{*id}" "bundle") "One bundle and its fragments in detail";
    DELETE (Delete "delete") Change Long (Delete "/bundles/{*id}" "cancel_bundle")
        "Deletes a bundle and all its fragments on this node";
    LINKS (Links "links") Question Long (Get "/links" "links") "All links";
    ADD_LINK (AddLink "add-link") Change Long (Post "/links" "add_link") "Adds and opens a link until the node restarts";
    CUT_LINK (CutLink "cut-link") Change Long (Post "/links/{name}/cut" "cut_link")
        "Closes a link; bundles wait until it is opened again";
    OPEN_LINK (OpenLink "open-link") Change Long (Post "/links/{name}/heal" "heal_link") "Opens a link that was closed";
    REMOVE_LINK (RemoveLink "remove-link") Change Long (Delete "/links/{name}" "remove_link")
        "Removes a link and the routes over it until the node restarts";
    INHIBIT (Inhibit "inhibit") Change Long (Post "/tncs/{name}/inhibit" "inhibit")
        "Inhibits transmissions over a TNC until they are permitted, or the node restarts; everything waits";
    PERMIT (Permit "permit") Change Long (Post "/tncs/{name}/permit" "permit") "Permits transmissions over a TNC";
    HEARD (Heard "heard") Question Long (Get "/heard" "heard") "Stations that the TNCs have heard, those heard last first";
    ROUTES (Routes "routes") Question Long (Get "/routes" "routes") "All static routes";
    ADD_ROUTE (AddRoute "add-route") Change Long (Post "/routes" "add_route")
        "Adds a route, or changes its cost, until the node restarts";
    REMOVE_ROUTE (RemoveRoute "remove-route") Change Long (Delete "/routes" "remove_route")
        "Removes a route until the node restarts";
    WATCH (Watch "watch") Change Long (Get "/events" "events")
        "Stream of server-sent events; the data of each is an event record";
    TRUST_CLOCK (TrustClock "trust-clock") Change Long (Post "/clock/trust" "trust_clock")
        "Confirms the clock after a jump: lifetimes follow it, and expired bundles are deleted";
    KEYS (Keys "keys") Question Long (Get "/keys" "keys") "Public keys that the node knows, and its own fingerprint";
    TRUST_KEY (TrustKey "trust-key") Change Long (Post "/keys" "trust_key")
        "Sets the public key of a node, in place of an earlier one";
    FORGET_KEY (ForgetKey "forget-key") Change Long (Delete "/keys/{*node}" "forget_key")
        "Forgets the public key of a node: the next one is noted as its first";
    RELOAD (Reload "reload") Change Long (Post "/reload" "reload")
        "Reloads the configuration: links, routes, limits and folders change at once";
    TRANSMISSIONS (Transmissions "transmissions") Question Long (Get "/transmissions" "transmissions")
        "Latest transmissions on the channels of the TNCs: who had the channel when, and for how long";
    ESTIMATE (Estimate "estimate") Question Short () "Expected time of a bundle on the link that it would take";
    LINK () Question Long (Get "/links/{name}" "link") "One link";
    METRICS () Question Long (Get "/metrics" "metrics") "Metrics for Prometheus";
    REGISTRATIONS () Question Long (Get "/registrations" "registrations") "Endpoints registered over HTTP";
    DELIVERIES () Question Long (Get "/deliveries" "deliveries") "Deliveries for an endpoint that were not accepted";
    PING () Change Long (Post "/ping" "ping") "Measures the round-trip time to an echo service with small bundles";
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
