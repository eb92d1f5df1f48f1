//! Reloads under load: links, routes, limits and folders change while bundles are sent and received, and none is lost.

mod common;

use common::{App, Place, payload, reserved, start};
use longwire_node::message::{MessageOptions, Reply, Request};
use longwire_node::{Config, Node, NodeSetup};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

const RELOADS: u64 = 24;
const QUICK: &str = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\n";

/// Bob, who has two addresses and a folder for files.
fn bob(at: [SocketAddr; 2], files: &Path) -> Node {
    start(common::config(&format!(
        "node = 'dtn://bob/'\nlisten = ['{}', '{}']\nstorage.kind = 'memory'\n[[receive]]\nfolder = '{}'\nendpoint = 'files'\n{QUICK}",
        at[0],
        at[1],
        files.display()
    )))
}

/// Configuration of Alice after so many reloads.
fn alice(reload: u64, place: &Path, at: [SocketAddr; 2]) -> String {
    let [even, odd] = [reload % 2, (reload / 2) % 2];
    // The link has another name, or leads to another address, or has other sessions; and now and then there are two.
    let second = match reload % 3 {
        0 => format!("[[link]]\nname = 'second'\naddress = '{}'\n", at[(odd as usize + 1) % 2]),
        _ => String::new(),
    };
    format!(
        "node = 'dtn://alice/'\nstorage.path = '{store}'\n[agent.limits]\nbundles-max = {bundles}\nsends-max = {sends}\n\
         [[link]]\nname = 'bob-{even}'\naddress = '{to}'\n{second}[[route]]\nto = 'dtn://bob/*'\nvia = 'bob-{even}'\n\
         [[drop]]\nfolder = '{out}'\nto = 'dtn://bob/files'\nlifetime = '{days} d'\nkeep = false\n\
         [tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'\nkeepalive = '{keepalive} s'\n",
        store = place.join("store").display(),
        bundles = 10_000 + reload,
        sends = 500 + reload,
        to = at[odd as usize],
        out = place.join(format!("out-{odd}")).display(),
        days = 1 + even,
        keepalive = 10 + reload % 5,
    )
}

#[test]
fn links_routes_limits_and_folders_change_under_load_and_nothing_is_lost() {
    let place = Place::new("reload-load");
    let at = [reserved(), reserved()];
    let files = place.0.join("files");
    let bob = bob(at, &files);
    let path = place.0.join("alice.toml");
    fs::write(&path, alice(0, &place.0, at)).expect("a file");
    let mut settings = Config::load(&path).expect("it makes sense");
    settings.control = None;
    let alice_node =
        Node::start(NodeSetup { path: Some(path.clone()), ..NodeSetup::new(settings) }).expect("it starts");
    common::watch::enter(&alice_node);
    let (mut here, mut there) = (App::new(&alice_node), App::new(&bob));
    there.register("inbox", 1 << 20);
    let mut sent = 0;
    let mut names = BTreeSet::new();
    for reload in 1..=RELOADS {
        // A bundle that takes a while, small ones, and a file in each folder, even in the one that is not served now.
        for length in [1_500_000, 10, 2_000, 40_000] {
            let number = here.send("dtn://bob/inbox", &payload(length, sent), MessageOptions::default());
            here.wait_accepted(number);
            sent += 1;
        }
        for folder in ["out-0", "out-1"] {
            let name = format!("{folder}-{reload}");
            let folder = place.0.join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(place.0.join(&name), payload(30_000, reload)).expect("a file");
            fs::rename(place.0.join(&name), folder.join(&name)).expect("a move");
            names.insert(name);
        }
        fs::write(&path, alice(reload, &place.0, at)).expect("a file");
        here.ask(Request::Reload);
        here.wait(|said| (said.head == Reply::Done).then_some(()));
        let told = here.status()["configuration"].clone();
        let has = |key: &str| told["applied"].as_array().is_some_and(|keys| keys.contains(&key.into()));
        assert!(
            ["agent.limits", "drop", "link", "route", "tcpcl"].into_iter().filter(|key| has(key)).count()
                >= 3,
            "{told:#}"
        );
        assert_eq!(
            told["needs_restart"],
            serde_json::json!(["control"]),
            "the test has set it beside the file"
        );
    }
    let mut got = Vec::new();
    for _ in 0..sent {
        let (delivery, data) = there.receive();
        there.take(delivery);
        got.push(data);
    }
    let lengths = [1_500_000, 10, 2_000, 40_000];
    for number in 0..sent {
        let wanted = payload(lengths[number as usize % 4], number);
        assert_eq!(got.iter().filter(|data| **data == wanted).count(), 1, "bundle {number}");
    }
    // Both folders are served in turn; here both at once, for what is left.
    let both = alice(RELOADS, &place.0, at).replace(
        "[tcpcl]",
        &format!(
            "[[drop]]\nfolder = '{}'\nto = 'dtn://bob/files'\nkeep = false\n[tcpcl]",
            place.0.join(format!("out-{}", (RELOADS / 2 + 1) % 2)).display()
        ),
    );
    fs::write(&path, both).expect("a file");
    here.ask(Request::Reload);
    here.wait(|said| (said.head == Reply::Done).then_some(()));
    assert_eq!(here.status()["folders"].as_array().map(Vec::len), Some(2));
    there.wait_status(|status| status["folders"][0]["files"].as_u64() >= Some(names.len() as u64));
    let arrived: BTreeSet<String> = fs::read_dir(&files)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert_eq!(arrived, names);
    for name in &names {
        let reload: u64 = name.rsplit('-').next().and_then(|text| text.parse().ok()).expect("a number");
        assert!(fs::read(files.join(name)).expect("a file") == payload(30_000, reload), "{name} is whole");
    }
    here.wait_status(|status| status["bundles"] == 0);
}

/// A smaller limit refuses what comes, and keeps what is there; a larger one accepts again.
#[test]
fn limits_change_without_a_restart() {
    let place = Place::new("reload-limits");
    let path = place.0.join("alice.toml");
    let write = |bundles: u64| {
        let text = format!(
            "node = 'dtn://alice/'\nstorage.kind = 'memory'\n[agent.limits]\nbundles-max = {bundles}\n"
        );
        fs::write(&path, text).expect("a file");
    };
    write(100);
    let settings = Config { control: None, ..Config::load(&path).expect("it makes sense") };
    let node =
        Node::start(NodeSetup { path: Some(path.clone()), ..NodeSetup::new(settings) }).expect("it starts");
    let mut app = App::new(&node);
    let outcome = |app: &mut App| {
        let number = app.send("dtn://far/x", &payload(10, 1), MessageOptions::default());
        app.wait(|said| match said.head {
            Reply::Accepted { send, .. } if send == number => Some(true),
            Reply::Failed { send, .. } if send == number => Some(false),
            _ => None,
        })
    };
    for _ in 0..5 {
        assert!(outcome(&mut app));
    }
    for (limit, is_accepted) in [(3, false), (100, true)] {
        write(limit);
        app.ask(Request::Reload);
        app.wait(|said| (said.head == Reply::Done).then_some(()));
        assert_eq!(outcome(&mut app), is_accepted, "at most {limit}");
    }
    assert_eq!(app.status()["bundles"], 6, "those above the limit stayed");
}

/// A node with this configuration file.
fn from_file(path: &Path) -> Node {
    let settings = Config { control: None, ..Config::load(path).expect("it makes sense") };
    let node = Node::start(NodeSetup { path: Some(path.to_owned()), ..NodeSetup::new(settings) })
        .expect("it starts");
    common::watch::enter(&node);
    node
}

/// A file that a program is still writing when the settings of its folder change is sent when it is complete.
#[test]
fn a_file_that_is_being_written_is_sent_whole_after_a_reload() {
    let place = Place::new("reload-writing");
    let (path, out) = (place.0.join("alice.toml"), place.0.join("out"));
    let write = |lifetime: u64| {
        let text = format!(
            "node = 'dtn://alice/'\nstorage.kind = 'memory'\n[[drop]]\nfolder = '{}'\nto = 'dtn://alice/files'\nraw = true\n\
             lifetime = '{lifetime} d'\nsettle = '1 ms'\n",
            out.display()
        );
        fs::write(&path, text).expect("a file");
    };
    write(1);
    let node = from_file(&path);
    let mut app = App::new(&node);
    app.register("files", 1 << 20);
    let send = |app: &mut App, name: &str| {
        fs::write(place.0.join(name), name).expect("a file");
        fs::rename(place.0.join(name), out.join(name)).expect("a move");
        let (delivery, got) = app.receive();
        assert_eq!(got, name.as_bytes());
        app.take(delivery);
    };
    // The folder is served once a file from it has arrived.
    app.wait_status(|status| status["folders"][0]["folder"].is_string() && out.join(".longwire").exists());
    send(&mut app, "first");
    let mut slow = fs::File::create(out.join("slow")).expect("a file");
    std::io::Write::write_all(&mut slow, b"half").expect("it writes");
    for lifetime in 2..5 {
        write(lifetime);
        app.ask(Request::Reload);
        app.wait(|said| (said.head == Reply::Done).then_some(()));
        // Each look at the folder comes after the time in which a file without a writer would be at rest.
        send(&mut app, &format!("after-{lifetime}"));
    }
    std::io::Write::write_all(&mut slow, b" and half").expect("it writes");
    drop(slow);
    let (_, got) = app.receive();
    assert_eq!(got, "half and half");
}

/// The store and mail stay where they were until a restart, so no folder may get their place before.
#[test]
fn a_folder_does_not_get_the_place_of_what_is_still_in_use() {
    let place = Place::new("reload-places");
    let path = place.0.join("alice.toml");
    let text = |store: &str, more: &str| {
        let folder = place.0.join("old");
        let more = more.replace("FOLDER", &folder.display().to_string());
        format!("node = 'dtn://alice/'\nstorage.path = '{}'\n{more}", place.0.join(store).display())
    };
    fs::write(&path, text("old", "")).expect("a file");
    let node = from_file(&path);
    let mut app = App::new(&node);
    fs::write(&path, text("new", "[[drop]]\nfolder = 'FOLDER'\nto = 'dtn://bob/files'\n")).expect("a file");
    app.ask(Request::Reload);
    let what = loop {
        if let Reply::Error { what, .. } = app.hear().head {
            break what;
        }
    };
    assert!(what.contains("store"), "{what}");
    assert_eq!(app.status()["folders"].as_array().map(Vec::len), Some(0));
}
