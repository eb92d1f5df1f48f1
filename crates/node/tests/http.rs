//! The HTTP interface over real sockets, checked against its own description.

mod common;

use common::web::{self, Answer, ask, escaped, get, post};
use common::{App, Place, Until, config, payload, start};
use longwire_node::message::MessageOptions;
use longwire_node::{Config, Node, NodeSetup};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

fn node(name: &str, more: &str) -> (Node, SocketAddr) {
    let node = start(config(&format!(
        "node = 'dtn://{name}/'\nlisten = ['127.0.0.1:0']\n{more}\n[storage]\nkind = 'memory'\n[agent.reports]\ndelivery = true"
    )));
    let at = node.http_address().expect("it has an HTTP interface");
    (node, at)
}

fn moon(more: &str) -> (Node, SocketAddr) {
    node("moon", &format!("http.listen = '127.0.0.1:0'\n{more}"))
}

/// Checks answers against the description, and records which operations were used.
struct Described {
    at: SocketAddr,
    document: Value,
    asked: BTreeSet<String>,
}

impl Described {
    fn new(at: SocketAddr) -> Self {
        Described { at, document: get(at, "/openapi.json").json(), asked: BTreeSet::new() }
    }

    /// Schema of an operation's answer, with the schemas that it refers to.
    fn schema(&self, method: &str, path: &str, status: u16) -> Value {
        let responses = &self.document["paths"][path][method.to_lowercase()]["responses"];
        let status = status.to_string();
        let response = responses.get(&status).unwrap_or(&responses["default"]);
        let schema = response["content"]["application/json"]["schema"].clone();
        assert!(schema.is_object(), "{method} {path} does not describe {status}: {responses:#}");
        json!({"allOf": [schema], "components": self.document["components"]})
    }

    /// Sends a request, and fails if the answer does not match its description. Sends a payload as the body.
    #[track_caller]
    fn send(&mut self, query: &str, payload: &[u8]) -> (u16, Value) {
        self.asked.insert("POST /bundles".into());
        let answer = ask(self.at, "POST", &format!("/bundles?{query}"), "", payload);
        self.judge("POST", "/bundles", &answer)
    }

    #[track_caller]
    fn ask(&mut self, method: &str, path: &str, named: &str, body: &Value) -> (u16, Value) {
        let name = path.split_once('{').map(|(_, rest)| rest.split_once('}').expect("a bracket").0);
        let mut real = path.to_owned();
        if let Some(name) = name {
            real = path.replace(&format!("{{{name}}}"), &escaped(named));
        } else if !named.is_empty() {
            real = format!("{path}?{named}");
        }
        self.asked.insert(format!("{method} {path}"));
        let answer = match body {
            Value::Null => ask(self.at, method, &real, "", b""),
            body => post(self.at, &real, body),
        };
        self.judge(method, path, &answer)
    }

    #[track_caller]
    fn judge(&self, method: &str, path: &str, answer: &Answer) -> (u16, Value) {
        let value = answer.json();
        let validator =
            jsonschema::draft202012::new(&self.schema(method, path, answer.status)).expect("a schema");
        let wrong: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{method} {path}: {wrong:?}\n{value:#}");
        (answer.status, value)
    }
}

#[test]
fn every_operation_is_described_and_answers_as_described() {
    let (node, at) = moon("[[link]]\nname = 'earth'\naddress = '127.0.0.1:1'");
    let mut app = App::new(&node);
    let send = app.send("dtn://mars/inbox", &payload(44, 1), MessageOptions::default());
    app.wait_accepted(send);
    let mut api = Described::new(at);
    assert_eq!(api.document["openapi"], "3.1.0");

    let (_, status) = api.ask("GET", "/status", "", &Value::Null);
    assert_eq!((&status["node"], &status["bundles"]), (&json!("dtn://moon/"), &json!(1)));
    let (_, page) = api.ask("GET", "/bundles", "", &Value::Null);
    let bundle = &page["bundles"][0];
    assert_eq!((&bundle["state"], &bundle["payload_bytes"]), (&json!("no_route"), &json!(44)));
    let id = bundle["id"].as_str().expect("an id").to_owned();
    let (_, same) = api.ask("GET", "/bundles/{id}", &id, &Value::Null);
    assert_eq!(same["bundles"][0]["id"], id.as_str());
    let plain = get(at, &format!("/bundles/{id}"));
    assert_eq!(plain.json()["bundles"][0]["id"], id.as_str(), "slashes may stand as they are");
    let (_, none) = api.ask("GET", "/bundles", "destination=dtn://venus/*&limit=7", &Value::Null);
    assert_eq!((&none["bundles"], &none["total"]), (&json!([]), &json!(1)));

    let (_, links) = api.ask("GET", "/links", "", &Value::Null);
    assert_eq!(links["links"][0]["name"], "earth");
    let (_, link) = api.ask("POST", "/links", "", &json!({"name": "mars", "address": "127.0.0.1:1"}));
    assert_eq!(link["name"], "mars");
    api.ask("POST", "/routes", "", &json!({"to": "dtn://venus/*", "via": "mars", "cost": 3}));
    let (_, channel) = api.ask("GET", "/transmissions", "", &Value::Null);
    assert_eq!(channel["transmissions"], json!([]), "the node has no TNC");
    let (_, heard) = api.ask("GET", "/heard", "", &Value::Null);
    assert_eq!(heard["stations"], json!([]), "the node has no TNC");
    let fingerprint = "0011-2233-4455-6677-8899-aabb-ccdd-eeff";
    let key = json!({"node": "dtn://venus/", "fingerprint": fingerprint});
    // The node has no folder, so that the file of known keys cannot be written; they are kept until it stops.
    let (status, problem) = api.ask("POST", "/keys", "", &key);
    assert!(
        status == 400 && problem["error"].as_str().is_some_and(|error| error.contains("known-keys")),
        "{problem}"
    );
    let (_, keys) = api.ask("GET", "/keys", "", &Value::Null);
    assert_eq!(
        (&keys["known"][0]["node"], &keys["known"][0]["fingerprint"]),
        (&key["node"], &key["fingerprint"])
    );
    assert_eq!(api.ask("DELETE", "/keys/{node}", "dtn://venus/", &Value::Null).0, 404);
    let (_, routes) = api.ask("GET", "/routes", "", &Value::Null);
    assert_eq!(routes["routes"], json!([{"to": "dtn://venus/*", "via": "mars", "cost": 3}]));
    assert_eq!(api.ask("DELETE", "/routes", "to=dtn://venus/*&via=mars", &Value::Null).0, 200);
    let (_, link) = api.ask("POST", "/links/{name}/cut", "mars", &Value::Null);
    assert_eq!((&link["up"], &link["down_reason"]), (&json!(false), &json!("cut")));
    assert_eq!(api.ask("POST", "/links/{name}/heal", "mars", &Value::Null).0, 200);
    assert_eq!(api.ask("GET", "/links/{name}", "mars", &Value::Null).0, 200);
    assert_eq!(api.ask("DELETE", "/links/{name}", "mars", &Value::Null).0, 200);
    assert_eq!(api.ask("DELETE", "/bundles/{id}", &id, &Value::Null).0, 200);

    let (status, accepted) = api.send("to=dtn://moon/files&name=a.txt&lifetime_s=60", b"hello");
    assert_eq!((status, &accepted["payload_bytes"]), (201, &json!(24)));
    let (_, registered) = api.ask("POST", "/registrations", "", &json!({"endpoint": "files"}));
    assert_eq!(registered["endpoint"], "dtn://moon/files");
    let (_, list) = api.ask("GET", "/deliveries", "endpoint=files&wait_s=60", &Value::Null);
    assert_eq!(list["deliveries"][0]["bundle"], accepted["id"]);
    let delivery = list["deliveries"][0]["id"].as_str().expect("an id").to_owned();
    let (_, all) = api.ask("GET", "/registrations", "", &Value::Null);
    assert_eq!(
        all["registrations"],
        json!([{"endpoint": "dtn://moon/files", "lease_s": 300, "deliveries": 1}])
    );
    // IDs of deliveries may be used again after a restart: a client can say which bundle it means.
    for method in ["GET", "DELETE"] {
        let path = format!("/deliveries/{delivery}?bundle=dtn://moon/@1-1");
        let other = ask(at, method, &path, "", b"");
        assert_eq!(other.status, 409, "{}", other.text());
        assert!(other.json()["hint"].is_string(), "{}", other.text());
    }
    let same = format!("/deliveries/{delivery}?bundle={}", escaped(accepted["id"].as_str().expect("an id")));
    assert_eq!(get(at, &same).status, 200);
    assert_eq!(ask(at, "DELETE", &same, "", b"").status, 200);
    assert_eq!(api.ask("DELETE", "/registrations/{endpoint}", "files", &Value::Null).0, 200);
    let (_, pings) = api.ask("POST", "/ping", "", &json!({"to": "dtn://moon/", "count": 3}));
    assert_eq!((&pings["to"], &pings["received"]), (&json!("dtn://moon/echo"), &json!(3)));

    // Missing objects are reported in the same words everywhere.
    for (method, path, named) in [
        ("GET", "/bundles/{id}", id.as_str()),
        ("DELETE", "/bundles/{id}", id.as_str()),
        ("GET", "/links/{name}", "mars"),
        ("DELETE", "/links/{name}", "mars"),
        ("POST", "/links/{name}/cut", "mars"),
        ("POST", "/tncs/{name}/inhibit", "uhf"),
        ("POST", "/tncs/{name}/permit", "uhf"),
        ("DELETE", "/keys/{node}", "dtn://venus/"),
        ("DELETE", "/routes", "to=dtn://venus/*&via=mars"),
        ("DELETE", "/deliveries/{id}", delivery.as_str()),
    ] {
        let (status, problem) = api.ask(method, path, named, &Value::Null);
        assert_eq!(status, 404, "{method} {path}: {problem}");
        assert!(problem["error"].as_str().is_some_and(|error| error.starts_with("no such ")), "{problem}");
    }
    for (method, path, named, body) in [
        ("GET", "/bundles", "limt=7", Value::Null),
        ("GET", "/bundles", "state=lost", Value::Null),
        ("GET", "/bundles", "after=x", Value::Null),
        ("GET", "/bundles/{id}", "x", Value::Null),
        ("POST", "/links", "", json!({"name": "mars"})),
        ("POST", "/links", "", json!({"name": "mars", "address": "nowhere"})),
        ("POST", "/routes", "", json!({"to": "*", "via": "mrs"})),
        ("POST", "/registrations", "", json!({"endpoint": "mars:inbox"})),
        ("POST", "/ping", "", json!({"to": "mars"})),
        // The clock has not jumped, and the node has no file.
        ("POST", "/clock/trust", "", Value::Null),
        ("POST", "/reload", "", Value::Null),
    ] {
        let (status, problem) = api.ask(method, path, named, &body);
        assert_eq!(status, 400, "{method} {path} {named} {body}: {problem}");
    }
    every_operation_was_asked(&api);
}

fn every_operation_was_asked(api: &Described) {
    let paths = api.document["paths"].as_object().expect("paths");
    let mut described = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let id = operation["operationId"].as_str().expect("a name");
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            assert!(operation["summary"].as_str().is_some_and(|words| !words.is_empty()), "{path}");
            let is_json = operation["responses"]
                .as_object()
                .expect("responses")
                .values()
                .all(|response| !response["content"]["application/json"].is_null());
            if is_json && path != "/openapi.json" {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    assert_eq!(described, api.asked);
}

#[test]
fn a_file_goes_from_one_node_to_another() {
    let (earth, there) = node("earth", "http.listen = '127.0.0.1:0'");
    let (_moon, here) = moon(&format!("[[link]]\nname = 'earth'\naddress = '{}'", earth.addresses()[0]));
    let file = payload(3_000_001, 7);
    let sent = ask(here, "POST", "/bundles?to=dtn://earth/files&name=photo.jpg", "", &file);
    assert_eq!(sent.status, 201, "{}", sent.text());
    let bundle = sent.json()["id"].clone();
    assert_eq!(
        sent.header("location"),
        Some(format!("/bundles/{}", bundle.as_str().expect("an id")).as_str())
    );
    assert_eq!(post(there, "/registrations", &json!({"endpoint": "files"})).status, 200);
    let list = get(there, "/deliveries?endpoint=files&wait_s=60").json();
    assert_eq!(list["deliveries"][0]["bundle"], bundle);
    let path = format!("/deliveries/{}", list["deliveries"][0]["id"].as_str().expect("an id"));
    let got = get(there, &path);
    assert!(got.status == 200 && got.body == file, "the file is whole");
    assert_eq!(
        got.header("content-disposition"),
        Some("attachment; filename=\"photo.jpg\"; filename*=UTF-8''photo.jpg")
    );
    // A client fails in the middle; the rest is still there, and so is the whole payload.
    let mut broken = web::connect(there);
    broken.write_all(format!("GET {path} HTTP/1.1\r\nhost: {there}\r\n\r\n").as_bytes()).expect("it reads");
    let mut some = [0; 1000];
    broken.read_exact(&mut some).expect("a beginning");
    drop(broken);
    let rest = ask(there, "GET", &path, "range: bytes=1000000-\r\n", b"");
    assert!(rest.status == 206 && rest.body == file[1_000_000..], "the rest");
    assert_eq!(rest.header("content-range"), Some("bytes 1000000-3000000/3000001"));
    let part = ask(there, "GET", &path, "range: bytes=5-9\r\n", b"");
    assert_eq!((part.status, &part.body[..]), (206, &file[5..10]));
    assert_eq!(ask(there, "GET", &path, "range: bytes=3000001-\r\n", b"").status, 416);
    let raw = get(there, &format!("{path}?raw=true"));
    assert!(raw.body.len() > file.len() && raw.body.ends_with(&file), "with the name before it");
    // The next registration finds the deliveries that were left, and none that was taken.
    assert_eq!(ask(there, "DELETE", "/registrations/files", "", b"").status, 200);
    assert_eq!(get(there, &path).status, 404);
    assert_eq!(post(there, "/registrations", &json!({"endpoint": "dtn://earth/files"})).status, 200);
    let list = get(there, "/deliveries?endpoint=files&wait_s=60").json();
    let path = format!("/deliveries/{}", list["deliveries"][0]["id"].as_str().expect("an id"));
    assert_eq!(ask(there, "DELETE", &path, "", b"").status, 200);
    assert_eq!(get(there, &path).status, 404);
    assert_eq!(get(there, "/status").json()["bundles"], 0, "and that is durable");
}

#[test]
fn a_registration_that_nobody_uses_ends() {
    let (moon, at) = moon("");
    assert_eq!(post(at, "/registrations", &json!({"endpoint": "files", "lease_s": 1})).status, 200);
    let mut app = App::new(&moon);
    app.wait_status(|status| !status["endpoints"].to_string().contains("files"));
    assert_eq!(get(at, "/registrations").json()["registrations"], json!([]));
    app.register("files", 0);
    let taken = post(at, "/registrations", &json!({"endpoint": "files"}));
    assert_eq!(taken.status, 400);
    assert!(taken.json()["error"].as_str().is_some_and(|error| error.contains("another application")));
}

/// A stream of events.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(at: SocketAddr, query: &str, headers: &str) -> Self {
        let mut stream = web::connect(at);
        let request = format!("GET /events{query} HTTP/1.1\r\nhost: {at}\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut stream = BufReader::new(stream);
        let (status, head) = web::read_head(&mut stream);
        assert!(status == 200 && head.contains("text/event-stream"), "{head}");
        Stream(stream)
    }

    /// Returns the next event with this name and its number; skips those before it.
    #[track_caller]
    fn wait(&mut self, name: &str) -> (Option<u64>, Value) {
        let (mut id, mut called) = (None, String::new());
        loop {
            let mut line = String::new();
            let some = self.0.read_line(&mut line).expect("an event in time");
            assert!(some > 0, "the stream has ended before {name}");
            let line = line.trim_end();
            if let Some(said) = line.strip_prefix("id: ") {
                id = said.parse().ok();
            } else if let Some(said) = line.strip_prefix("event: ") {
                called = said.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).expect("JSON");
                assert_eq!(data["event"], called.as_str());
                if called == name {
                    return (id, data);
                }
                id = None;
            }
        }
    }
}

#[test]
fn what_happens_is_told_as_it_happens() {
    let (earth, there) = node("earth", "http.listen = '127.0.0.1:0'");
    let (moon, here) = moon(&format!("[[link]]\nname = 'earth'\naddress = '{}'", earth.addresses()[0]));
    App::new(&moon).wait_status(|status| status["links"][0]["up"] == true);
    let api = Described::new(here);
    let schema = json!({"$ref": "#/components/schemas/Noted", "components": api.document["components"]});
    let noted = jsonschema::draft202012::new(&schema).expect("a schema");
    let mut told = Vec::new();
    // The link came up before the stream was opened, and its event is kept.
    let mut stream = Stream::open(here, "?after=0", "");
    let (_, up) = stream.wait("link_up");
    assert_eq!((&up["link"], &up["peer"]), (&json!("earth"), &json!("dtn://earth/")));
    told.push(up);
    let mut far = Stream::open(there, "", "");
    let query = "/bundles?to=dtn://earth/files&report_delivery=true";
    let id = ask(here, "POST", query, "", b"hello").json()["id"].clone();
    for name in ["bundle_accepted", "bundle_forwarded"] {
        let (_, event) = stream.wait(name);
        assert_eq!((&event["id"], &event["payload_bytes"]), (&id, &json!(5)));
        told.push(event);
    }
    let (_, received) = far.wait("bundle_received");
    assert_eq!((&received["id"], &received["destination"]), (&id, &json!("dtn://earth/files")));
    told.push(received);
    let mut app = App::new(&earth);
    app.register("files", 100);
    told.push(far.wait("bundle_arrived").1);
    let (delivery, _) = app.receive();
    app.take(delivery);
    told.push(far.wait("bundle_delivered").1);
    let (seen, report) = stream.wait("report");
    assert_eq!(
        (&report["id"], &report["status"], &report["reporter"]),
        (&id, &json!("delivered"), &json!("dtn://earth/"))
    );
    told.push(report);
    drop(stream);
    // A client that reconnects resumes after the last event that it has seen.
    let deleted = ask(here, "POST", "/bundles?to=dtn://mars/x", "", b"hello").json()["id"].clone();
    ask(here, "DELETE", &format!("/bundles/{}", escaped(deleted.as_str().expect("an id"))), "", b"");
    let last = seen.expect("a number");
    let mut again = Stream::open(here, "", &format!("last-event-id: {last}\r\n"));
    let (number, gone) = again.wait("bundle_deleted");
    assert!(
        number > Some(last) && gone["id"] == deleted && gone["reason"] == "transmission_canceled",
        "{gone}"
    );
    told.push(gone);
    post(here, "/links/earth/cut", &json!({}));
    let (_, down) = again.wait("link_down");
    assert_eq!((&down["reason"], &down["link"]), (&json!("cut"), &json!("earth")));
    told.push(down);
    for event in &told {
        let wrong: Vec<String> = noted.iter_errors(event).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{wrong:?}: {event:#}");
    }
    // Numbers increase by one, and none is repeated.
    let mut all = Stream::open(here, "?after=0", "");
    for expected in 1..=number.expect("a number") {
        let mut line = String::new();
        while !line.starts_with("id: ") {
            line.clear();
            all.0.read_line(&mut line).expect("an event");
        }
        assert_eq!(line.trim(), format!("id: {expected}"));
    }
}

#[test]
fn who_reads_events_too_slowly_is_told_how_many_are_gone() {
    let (moon, at) = moon("http.events-max = 10");
    let mut app = App::new(&moon);
    let watching = Stream::open(at, "", "");
    for number in 0..100 {
        let send = app.send("dtn://mars/x", &payload(4, number), MessageOptions::default());
        app.wait_accepted(send);
    }
    drop(watching);
    let mut late = Stream::open(at, "?after=1", "");
    let (number, missed) = late.wait("missed");
    assert_eq!(number, None, "it is no event of the node");
    let (first, _) = late.wait("bundle_accepted");
    assert_eq!(missed["count"].as_u64(), first.map(|first| first - 2), "what is between 1 and the first");
}

#[test]
fn what_cannot_be_sent_is_refused_and_costs_nothing() {
    // Times out in no other case than that of a test of it, however slow the machine is.
    let (moon, at) = moon(
        "http.patience = '10 min'\n[agent.limits]\nstore-bytes-max = 2000000\nbundle-bytes-max = 1500000",
    );
    let mut app = App::new(&moon);
    for (query, length, status) in [
        ("to=mars", 5, 400),
        ("to=dtn:none/x", 5, 400),
        ("", 5, 400),
        ("to=dtn://mars/x&lifetime_s=-1", 5, 400),
        ("to=dtn://mars/x&priority=soon", 5, 400),
        ("to=dtn://mars/x", 1_600_000, 413),
    ] {
        let answer = ask(at, "POST", &format!("/bundles?{query}"), "", &payload(length, 1));
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
    }
    let head = format!("POST /bundles?to=dtn://mars/x HTTP/1.1\r\nhost: {at}\r\n");
    let no_length = web::say(at, format!("{head}transfer-encoding: chunked\r\n\r\n0\r\n\r\n").as_bytes());
    assert_eq!(no_length.status, 411);
    let mut gone = web::connect(at);
    gone.write_all(format!("{head}content-length: 1000000\r\n\r\n").as_bytes()).expect("it reads");
    gone.write_all(&payload(500_000, 1)).expect("it reads");
    app.wait_status(|status| status["applications"] == 5);
    drop(gone);
    // The echo and measuring services, the interface itself and this test remain; incomplete sends are cancelled.
    app.wait_status(|status| status["bundles"] == 0 && status["applications"] == 4);
    assert_eq!(ask(at, "POST", "/bundles?to=dtn://mars/x", "", &payload(1_400_000, 1)).status, 201);
    let full = ask(at, "POST", "/bundles?to=dtn://mars/x", "", &payload(1_400_000, 1));
    assert_eq!(full.status, 507, "{}", full.text());
    assert!(full.json()["hint"].is_string());
    app.wait_status(|status| status["bundles"] == 1);
}

#[test]
fn a_payload_that_stops_coming_is_refused_and_costs_nothing() {
    let (moon, at) = moon("http.patience = '2 s'");
    let head = format!("POST /bundles?to=dtn://mars/x HTTP/1.1\r\nhost: {at}\r\n");
    let slow = web::say(at, format!("{head}content-length: 1000\r\n\r\nhello").as_bytes());
    assert_eq!(slow.status, 408, "{}", slow.text());
    // The echo and measuring services, the interface itself and this test remain.
    let status = App::new(&moon).wait_status(|status| status["bundles"] == 0 && status["applications"] == 4);
    assert_eq!(status["http"]["stalled"], 1);
}

#[test]
fn pings_of_all_sizes_come_back() {
    let (earth, _) = node("earth", "http.listen = '127.0.0.1:0'");
    let (_moon, at) = moon(&format!("[[link]]\nname = 'earth'\naddress = '{}'", earth.addresses()[0]));
    for size_bytes in [8, 65_536, 65_537, 1_000_000, 16_777_216] {
        let answer =
            post(at, "/ping", &json!({"to": "dtn://earth", "size_bytes": size_bytes, "timeout_s": 60}));
        assert_eq!(
            (answer.status, &answer.json()["received"]),
            (200, &json!(1)),
            "{size_bytes}: {}",
            answer.text()
        );
    }
    let none = post(at, "/ping", &json!({"to": "dtn://mars/", "count": 2, "timeout_s": 0.01})).json();
    assert_eq!((&none["received"], &none["lost_percent"]), (&json!(0), &json!(100.0)));
    assert_eq!(none["mean_ms"], Value::Null);
}

#[test]
fn the_description_is_a_document_by_its_own_rules() {
    let (_node, at) = moon("");
    let document = get(at, "/openapi.json").json();
    // Every reference has its target, and every schema is valid.
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 10);
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("it is in the same document");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        assert!(jsonschema::meta::is_valid(schema), "{name}");
        assert!(schema["description"].is_string(), "{name} is not explained");
    }
    for (path, operations) in document["paths"].as_object().expect("paths") {
        assert!(path.starts_with('/'), "{path}");
        for operation in operations.as_object().expect("operations").values() {
            let named = operation["parameters"].as_array().into_iter().flatten();
            let in_path: Vec<&str> = named
                .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            let expected: Vec<&str> =
                path.split('{').skip(1).filter_map(|part| part.split('}').next()).collect();
            assert_eq!(in_path, expected, "{path}");
        }
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}

#[test]
fn metrics_say_the_same_as_the_status() {
    let (earth, _) = node("earth", "http.listen = '127.0.0.1:0'");
    let link = format!("[[link]]\nname = 'earth'\naddress = '{}'", earth.addresses()[0]);
    let (moon, at) = moon(&link);
    let mut app = App::new(&moon);
    for number in 0..3 {
        let send = app.send("dtn://earth/inbox", &payload(10_000, number), MessageOptions::default());
        app.wait_sent(send);
    }
    let send = app.send("dtn://mars/inbox", &payload(44, 1), MessageOptions::default());
    app.wait_accepted(send);
    app.wait_status(|status| status["bundles"] == 1);

    let answer = get(at, "/metrics");
    assert!(
        answer.header("content-type").is_some_and(|kind| kind.starts_with("application/openmetrics-text"))
    );
    let text = String::from_utf8(answer.body).expect("text");
    let status = get(at, "/status").json();
    let lines = text.lines().map(|line| Ok(line.to_owned()));
    let scrape = prometheus_parse::Scrape::parse(lines).expect("Prometheus reads it");
    let sample = |name: &str, label: Option<(&str, &str)>| {
        let found = scrape.samples.iter().find(|sample| {
            sample.metric == name
                && label.is_none_or(|(label, value)| sample.labels.get(label) == Some(value))
        });
        match found.map(|sample| &sample.value) {
            Some(
                prometheus_parse::Value::Counter(value)
                | prometheus_parse::Value::Gauge(value)
                | prometheus_parse::Value::Untyped(value),
            ) => *value,
            other => panic!("{name} {label:?}: {other:?}\n{text}"),
        }
    };
    assert_eq!(sample("longwire_store_bundles", None), 1.0);
    assert_eq!(sample("longwire_store_bytes", None), status["stored_bytes"].as_f64().expect("a number"));
    assert_eq!(
        sample("longwire_store_limit_bytes", None),
        status["stored_bytes_max"].as_f64().expect("a number")
    );
    assert_eq!(sample("longwire_link_up", Some(("link", "earth"))), 1.0);
    // Each counter of the status is present with its value.
    for (counter, count) in status["counters"].as_object().expect("counters") {
        let count = count.as_f64().expect("a number");
        let group = ["refused", "deleted", "dropped"]
            .into_iter()
            .find_map(|group| Some((group, counter.strip_prefix(group)?.strip_prefix('_')?)));
        let found = match group {
            Some((group, reason)) => {
                sample(&format!("longwire_bundles_{group}_total"), Some(("reason", reason)))
            }
            None if counter == "payload_bytes_saved" => {
                sample("longwire_agent_payload_saved_bytes_total", None)
            }
            None => sample(&format!("longwire_agent_{counter}_total"), None),
        };
        assert_eq!(found, count, "{counter}");
    }
    assert_eq!(sample("longwire_agent_forwarded_total", None), 3.0);
    for (counter, count) in status["links"][0]["counters"].as_object().expect("counters") {
        // Keep-alives may be sent at any time.
        if !counter.starts_with("keepalives") {
            let bytes = if counter.starts_with("payload") { "_bytes" } else { "" };
            let found = sample(&format!("longwire_link_{counter}{bytes}_total"), Some(("link", "earth")));
            assert_eq!(Some(found), count.as_f64(), "{counter}");
        }
    }
    assert_eq!(sample("longwire_tcpcl_segments_sent_total", None), status["sessions"]["segments_sent"]);
    assert!(sample("longwire_link_payload_sent_bytes_total", Some(("link", "earth"))) > 30_000.0);
    assert!(sample("process_resident_memory_bytes", None) > 100_000.0);
    assert!(sample("process_cpu_seconds_total", None) >= 0.0);
    // Counters never decrease: passes of the event loop continue, and the sum of the histogram is their number.
    let turns = scrape.samples.iter().find_map(|sample| match &sample.value {
        prometheus_parse::Value::Histogram(buckets) if sample.metric == "longwire_turn_seconds" => {
            Some(buckets.clone())
        }
        _ => None,
    });
    let turns = turns.unwrap_or_else(|| panic!("no histogram of turns\n{text}"));
    let last = turns.last().expect("buckets");
    assert!(
        last.less_than.is_infinite()
            && last.count > 0.0
            && turns.windows(2).all(|two| two[0].count <= two[1].count)
    );
    // Every family has a help text.
    let families = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(text.lines().filter(|line| line.starts_with("# HELP ")).count(), families);
    assert!(families > 40, "{families}");
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let text = |http: &str| format!("node = 'dtn://moon/'\n[http]\n{http}\n[storage]\nkind = 'memory'");
    let refused = |http: &str| {
        let error = Config::parse(&text(http), "test", Path::new("/nowhere")).expect_err(http).to_string();
        assert!(error.contains("hint: "), "{error}");
        error
    };
    assert!(refused("listen = '0.0.0.0:0'").contains("needs a token"));
    assert!(refused("listen = '[::]:0'").contains("needs a token"));
    assert!(refused("listen = '0.0.0.0:0'\ntoken = 'short'").contains("at least 16 characters"));
    assert!(refused("listen = 'here'").contains("is not a valid address"));
    let setup = NodeSetup::new(config(&text("listen = '127.0.0.1:0'\ntoken-file = 'nothing-here'")));
    let error = Node::start(setup).expect_err("no token").to_string();
    assert!(error.contains("cannot read the token"), "{error}");

    let place = Place::new("token");
    std::fs::write(place.0.join("token"), "0123456789abcdef\n").expect("it is written");
    let parsed =
        Config::parse(&text("listen = '0.0.0.0:0'\ntoken-file = 'token'"), "test", &place.0).expect("fine");
    let node = start(Config { control: None, ..parsed });
    let port = node.http_address().expect("on").port();
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let denied = get(at, "/status");
    assert_eq!((denied.status, denied.header("www-authenticate")), (401, Some("Bearer")));
    let wrong = ask(at, "GET", "/status", "authorization: Bearer 0123456789abcdeX\r\n", b"");
    assert_eq!(wrong.status, 401);
    let right = ask(at, "GET", "/status", "authorization: Bearer 0123456789abcdef\r\n", b"");
    assert_eq!((right.status, &right.json()["http"]["refused_token"]), (200, &json!(2)));
}

#[test]
fn pages_from_elsewhere_command_nothing() {
    let (node, at) = moon("");
    for headers in ["origin: http://evil.example\r\n", "sec-fetch-site: cross-site\r\n"] {
        let answer = ask(at, "POST", "/links", headers, br#"{"name":"evil","address":"evil.example:4556"}"#);
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    let rebound = web::say(at, b"GET /status HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert_eq!(rebound.status, 403);
    let own = ask(at, "GET", "/status", &format!("origin: http://{at}\r\n"), b"");
    assert_eq!(own.status, 200);
    assert_eq!(own.header("access-control-allow-origin"), None);
    let status = App::new(&node).status();
    assert_eq!(status["links"], json!([]));
    assert_eq!((&status["http"]["refused_origin"], &status["http"]["refused_host"]), (&json!(2), &json!(1)));
}

/// Connections with slow headers take all places: a client with the token is served all the same.
#[test]
fn slow_heads_keep_nobody_out_who_has_the_token() {
    // None times out by itself, however slow the machine is: a connection that ends was replaced.
    let settings = "http.connections-max = 8\nhttp.patience = '10 min'\nhttp.token = '0123456789abcdef'";
    let (node, at) = moon(settings);
    let mut slow: Vec<_> = (0..8).map(|_| web::connect(at)).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /status HTTP/1.1\r\nx: ").expect("it reads");
    }
    let mut app = App::new(&node);
    app.wait_status(|status| status["http"]["connections"].as_u64() == Some(8));
    let token = "authorization: Bearer 0123456789abcdef\r\n";
    for round in 0..50_u64 {
        assert_eq!(ask(at, "GET", "/status", token, b"").status, 200, "{round}");
        // Those that were replaced connect again.
        let mut again = web::connect(at);
        again.write_all(b"GET /status HTTP/1.1\r\nx: ").expect("it reads");
        slow.push(again);
        app.wait_status(|status| status["http"]["connections"].as_u64() == Some(10 + 2 * round));
    }
    let counted = app.status()["http"].clone();
    assert_eq!(counted["refused_connections"], 0, "{counted}");
    assert!(counted["gave_way"].as_u64() >= Some(50), "{counted}");
}

#[test]
fn what_is_too_much_is_refused_and_counted() {
    let (node, at) = moon("http.header-bytes-max = 8192");
    let long = ask(at, "GET", "/status", &format!("x: {}\r\n", "y".repeat(10_000)), b"");
    assert_eq!(long.status, 431, "{}", long.text());
    let garbage = web::say(at, b"\x16\x03\x01 what\r\n\r\n");
    assert_eq!(garbage.status, 400);
    let document = format!("{{\"name\": \"{}\"}}", "x".repeat(70_000));
    assert_eq!(ask(at, "POST", "/links", "", document.as_bytes()).status, 413);
    assert_eq!(get(at, "/nothing").status, 404);
    assert_eq!(ask(at, "DELETE", "/status", "", b"").status, 405);
    App::new(&node).wait_status(|status| {
        let counted = &status["http"];
        counted["refused_too_long"] == 1 && counted["refused_malformed"] == 1
    });
}

#[test]
fn silent_connections_make_room_and_too_many_are_refused() {
    let (node, at) = moon("http.connections-max = 2\nhttp.patience = '2 s'");
    let mut app = App::new(&node);
    // Silent connections are closed after the timeout.
    let mut silent: Vec<_> = (0..2).map(|_| web::connect(at)).collect();
    silent[0].write_all(b"GET /status HTT").expect("it reads");
    for stream in &mut silent {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("it is ended");
    }
    app.wait_status(|status| status["http"]["stalled"] == 2);
    // There is place again, a moment after a connection has ended.
    let until = Until::new();
    while get(at, "/status").status != 200 {
        until.check(|| "the places of silent connections are free".into());
    }
    let half = format!("POST /links HTTP/1.1\r\nhost: {at}\r\ncontent-length: 100\r\n\r\n{{\"name\":");
    while web::say(at, half.as_bytes()).status != 408 {
        until.check(|| "a document that does not come is refused".into());
    }
    app.wait_status(|status| status["http"]["stalled"] == 3);
    // Two clients of the event stream take all places, and are not replaced.
    let mut busy = Vec::new();
    while busy.len() < 2 {
        let mut stream = BufReader::new(web::connect(at));
        let request = format!("GET /events HTTP/1.1\r\nhost: {at}\r\n\r\n");
        stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        // Until the place of the request before is free.
        if web::read_head(&mut stream).0 == 200 {
            busy.push(stream);
        }
    }
    assert_eq!(web::say(at, b"").status, 503, "all places are taken");
    app.wait_status(|status| status["http"]["refused_connections"].as_u64() >= Some(1));
}
