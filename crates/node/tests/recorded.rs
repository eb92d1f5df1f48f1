//! Interfaces that others build on stay as they are recorded in `vectors/`: explanations of configurations, messages of the control
//! socket, the description of the HTTP interface, names of metrics. With `LONGWIRE_WRITE=1` the records are written anew instead.

mod common;

use common::air::Air;
use common::{App, Place, config, start, web};
use longwire_node::Config;
use longwire_node::message::{Reply, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn vectors(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder)
}

/// Compares a text with its record, or records it.
#[track_caller]
fn is_as_recorded(path: &Path, text: &str) {
    if std::env::var_os("LONGWIRE_WRITE").is_some() {
        fs::write(path, text).expect("a record");
        return;
    }
    let recorded = fs::read_to_string(path).unwrap_or_default();
    if recorded == text {
        return;
    }
    let pairs = recorded.lines().zip(text.lines());
    let same = pairs.take_while(|(recorded, line)| recorded == line).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(nothing)").to_owned();
    panic!(
        "{} line {}\nrecorded: {}\nnow:      {}\nLONGWIRE_WRITE=1 records it anew",
        path.display(),
        same + 1,
        line(&recorded),
        line(text)
    );
}

#[test]
fn configurations_of_before_are_read_and_explained_as_before() {
    let mut count = 0;
    for entry in fs::read_dir(vectors("config")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a configuration");
        let config = Config::parse(&text, "node.toml", Path::new("/etc/longwire"));
        let words = config.unwrap_or_else(|error| panic!("{}: {error}", path.display())).explain_all();
        // The limit is that of the machine.
        let lines = words.lines().filter(|line| !line.contains("The limit of open files"));
        let words: String = lines.map(|line| format!("{line}\n")).collect();
        is_as_recorded(&path.with_extension("txt"), &words);
        count += 1;
    }
    assert_eq!(count, 16);
}

/// Reads each recorded message and writes it again.
#[track_caller]
fn is_read_and_written<T: DeserializeOwned + Serialize + PartialEq>(name: &str) -> Vec<T> {
    let path = vectors("control").join(name);
    let recorded = fs::read_to_string(&path).expect("a record");
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let messages: Vec<T> = recorded.lines().map(read).collect();
    let written: Vec<String> =
        messages.iter().map(|message| serde_json::to_string(message).expect("JSON")).collect();
    is_as_recorded(&path, &(written.join("\n") + "\n"));
    let again: Vec<T> = written.iter().map(|line| read(line)).collect();
    assert!(again == messages, "{name}: read again it is something else");
    messages
}

#[test]
fn requests_on_the_control_socket_are_as_recorded() {
    // A new request has to be recorded, too: the number is the place of its line.
    let place = |request: &Request| match request {
        Request::Send { .. } => 0,
        Request::Piece { .. } => 1,
        Request::Cancel { .. } => 2,
        Request::Register { .. } => 3,
        Request::Unregister { .. } => 4,
        Request::Read { .. } => 5,
        Request::Taken { .. } => 6,
        Request::Status => 7,
        Request::NextStatus => 8,
        Request::Bundles { .. } => 9,
        Request::Bundle(_) => 10,
        Request::Delete(_) => 11,
        Request::Links => 12,
        Request::AddLink { .. } => 13,
        Request::CutLink { .. } => 14,
        Request::OpenLink { .. } => 15,
        Request::RemoveLink { .. } => 16,
        Request::Routes => 17,
        Request::AddRoute { .. } => 18,
        Request::RemoveRoute { .. } => 19,
        Request::Watch => 20,
        Request::TrustClock => 21,
        Request::Reload => 22,
        Request::Inhibit { .. } => 23,
        Request::Permit { .. } => 24,
        Request::Heard => 25,
        Request::Keys => 26,
        Request::TrustKey { .. } => 27,
        Request::ForgetKey { .. } => 28,
        Request::Transmissions => 29,
        Request::Estimate { .. } => 30,
    };
    let places: Vec<usize> = is_read_and_written("requests.jsonl").iter().map(place).collect();
    assert_eq!(places, (0..31).collect::<Vec<_>>());
}

#[test]
fn replies_on_the_control_socket_are_as_recorded() {
    let place = |reply: &Reply| match reply {
        Reply::Done => 0,
        Reply::Error { .. } => 1,
        Reply::Accepted { .. } => 2,
        Reply::Progress { .. } => 3,
        Reply::Sent { .. } => 4,
        Reply::Failed { .. } => 5,
        Reply::Report { .. } => 6,
        Reply::Registered { .. } => 7,
        Reply::Delivered { .. } => 8,
        Reply::Data { .. } => 9,
        Reply::Gone { .. } => 10,
        Reply::Status { .. } => 11,
        Reply::Bundles { .. } => 12,
        Reply::Links { .. } => 13,
        Reply::Routes { .. } => 14,
        Reply::Heard { .. } => 15,
        Reply::Keys { .. } => 16,
        Reply::Transmissions { .. } => 17,
        Reply::Estimate { .. } => 18,
    };
    let places: Vec<usize> = is_read_and_written("replies.jsonl").iter().map(place).collect();
    assert_eq!(places, (0..19).collect::<Vec<_>>());
}

/// Removes the prose, whose wording may change, and the version.
fn without_prose(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                !(value.is_string() && matches!(&name[..], "description" | "summary" | "version"))
            });
            fields.values_mut().for_each(without_prose);
        }
        Value::Array(items) => items.iter_mut().for_each(without_prose),
        _ => {}
    }
}

#[test]
fn the_http_interface_is_described_as_recorded() {
    let node = start(config("node = 'dtn://moon/'\nhttp.listen = '127.0.0.1:0'\nstorage.kind = 'memory'"));
    let at = node.http_address().expect("it has an HTTP interface");
    let mut document = web::get(at, "/openapi.json").json();
    without_prose(&mut document);
    let text = serde_json::to_string_pretty(&document).expect("JSON");
    is_as_recorded(&vectors("http").join("openapi.json"), &format!("{text}\n"));
}

#[test]
fn metrics_are_named_as_recorded() {
    let (air, place) = (Air::new(), Place::new("recorded-mail"));
    let on_air = |at: usize, callsign: &str| {
        format!(
            "[storage]\nkind = 'memory'\n[ax25cl]\nretry-min = '50 ms'\nretry-max = '200 ms'\n\
             [[tnc]]\nname = 'vhf'\naddress = '{}'\ncallsign = '{callsign}'\nturnaround = '300 ms'\n\
             [tnc.channel]\nrate-bps = 10_000_000\ntx-delay = '0 ms'\ntx-tail = '0 ms'\nslot-time = '0 ms'\n",
            air.at(at)
        )
    };
    let bob =
        start(config(&format!("node = 'dtn://bob/'\nlisten = ['127.0.0.1:0']\n{}", on_air(1, "B0B-2"))));
    let tcp = bob.addresses()[0];
    let alice = start(config(&format!(
        "node = 'dtn://alice/'\nhttp.listen = '127.0.0.1:0'\n[discovery]\npeers = 'any'\ngroups = []\n{}\
         [[link]]\nname = 'tcp'\naddress = '{tcp}'\n\
         [[link]]\nname = 'udp'\nkind = 'udp'\naddress = '127.0.0.1:9'\n\
         [[link]]\nname = 'radio'\nkind = 'ax25cl'\ntnc = 'vhf'\ncallsign = 'B0B-2'\n\
         [[gateway]]\nport = 7\nconnect-tcp = '127.0.0.1:9'\n[mail]\nfolder = '{}'\nusers = ['alice']\n",
        on_air(0, "AL1CE-1"),
        place.0.display()
    )));
    App::new(&alice).wait_status(|status| {
        let links = status["links"].as_array().expect("a list");
        links.len() == 3 && links.iter().all(|link| link["up"] == true)
    });
    let text = web::get(alice.http_address().expect("it has an HTTP interface"), "/metrics").text();
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let names: String = names.iter().map(|name| format!("{name}\n")).collect();
    is_as_recorded(&vectors("http").join("metrics.txt"), &names);
}
