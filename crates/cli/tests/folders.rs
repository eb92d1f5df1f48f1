//! Watched folders as a user sees them: real processes, and SIGKILL at any step.
//!
//! `LONGWIRE_KILLS=200 cargo test -p longwire --test folders` sets the number of kills.

mod common;

use common::{DEADLINE, Place, noise, reserved, wait};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Configuration of every node here: links reconnect quickly.
const QUICK: &str = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '100 ms'";

fn configure(place: &Place, name: &str, text: &str) {
    place.configure(name, &format!("{text}\n{QUICK}"));
}

/// Returns the status of a node as soon as it answers.
fn status(place: &Place, name: &str) -> serde_json::Value {
    let began = Instant::now();
    loop {
        let output = place.ask(name, &["status", "--json"]);
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).unwrap();
        }
        assert!(began.elapsed() < DEADLINE, "{output:?}\n{}", place.statuses());
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    // A file that is moved away between listing and reading is left out.
    files
        .filter_map(|entry| Some((entry.file_name().into_string().unwrap(), fs::read(entry.path()).ok()?)))
        .collect()
}

#[test]
fn what_is_put_in_comes_out() {
    let place = Place::new("story");
    let at = reserved();
    configure(
        &place,
        "alice",
        &format!(
            "[[link]]\nname = 'bob'\naddress = '{at}'\n\
             [[drop]]\nfolder = 'out'\nto = 'dtn://bob/files'\nlifetime = '3 h'\npriority = 'expedited'\n\
             [[drop]]\nfolder = 'away'\nto = 'dtn://bob/files'\nkeep = false"
        ),
    );
    configure(&place, "bob", &format!("listen = ['{at}']\n[[receive]]\nfolder = 'in'\nendpoint = 'files'"));
    let words = String::from_utf8(place.ask("alice", &["node", "--check"]).stdout).unwrap();
    assert!(words.contains("out: files are sent to dtn://bob/files, and moved to its `sent`"), "{words}");
    // A file that is in the folder before the node starts.
    fs::create_dir_all(place.path("out")).unwrap();
    fs::write(place.path("out/early.txt"), "early").unwrap();
    let (alice, bob) = (place.start("alice"), place.start("bob"));
    wait("the first comes", &place, || files(&place.path("in")).len() == 1);
    let photo = noise(3_000_000, 1);
    fs::write(place.path("out/photo.jpg"), &photo).unwrap();
    fs::write(place.path("away/note.txt"), "note").unwrap();
    fs::write(place.path("out/half.part"), "ha").unwrap();
    wait("three come", &place, || files(&place.path("in")).len() == 3);
    // A second file of the same name replaces no file at either node.
    fs::write(place.path("out/early.txt"), "late").unwrap();
    wait("four come", &place, || files(&place.path("in")).len() == 4);
    let got = files(&place.path("in"));
    assert!(got["photo.jpg"] == photo);
    assert_eq!((&*got["early.txt"], &*got["early-2.txt"]), (&b"early"[..], &b"late"[..]));
    wait("all are put away", &place, || files(&place.path("out/sent")).len() == 3);
    assert_eq!(files(&place.path("out")).keys().collect::<Vec<_>>(), ["half.part"]);
    assert_eq!(files(&place.path("away")).len() + files(&place.path("away/sent")).len(), 0);
    wait("all are counted", &place, || {
        let folder = status(&place, "alice")["folders"][0].clone();
        folder["files"] == 3 && folder["trouble"].is_null()
    });
    drop((alice, bob));
}

/// One file is too long for the node, and one has a second hard link elsewhere.
#[test]
fn what_cannot_be_sent_holds_up_nothing_else() {
    let place = Place::new("long");
    configure(
        &place,
        "alice",
        "agent.limits.bundle-bytes-max = 100000\n[[drop]]\nfolder = 'out'\nto = 'dtn://alice/files'\nsettle = '1 ms'\n\
         [[receive]]\nfolder = 'in'\nendpoint = 'files'",
    );
    fs::create_dir_all(place.path("out")).unwrap();
    fs::write(place.path("out/a-long"), noise(5_000_000, 1)).unwrap();
    let _alice = place.start("alice");
    let trouble = || status(&place, "alice")["folders"][0]["trouble"].to_string();
    wait("it is told", &place, || trouble().contains("a-long is waiting: the bundle exceeds a limit"));
    fs::write(place.path("letter"), "letter").unwrap();
    fs::hard_link(place.path("letter"), place.path("out/letter")).unwrap();
    wait("the other one comes", &place, || files(&place.path("in")).len() == 1);
    wait("it is put away", &place, || files(&place.path("out/sent")).contains_key("letter"));
    assert_eq!(files(&place.path("in"))["letter"], b"letter");
    let claims = fs::read_dir(place.path("out/.longwire")).unwrap().map(|entry| entry.unwrap().path());
    assert!(claims.into_iter().any(|claim| claim.join("a-long").exists()), "it is kept");
}

/// The folder for sent files is replaced by a symbolic link: a file that could not be moved there afterwards is
/// not sent, neither at once nor repeatedly.
#[test]
fn what_could_not_be_put_away_is_not_sent() {
    let place = Place::new("unkept");
    configure(
        &place,
        "alice",
        "[[drop]]\nfolder = 'out'\nto = 'dtn://bob/files'\nsettle = '1 ms'\n[[drop]]\nfolder = 'away'\nto = 'dtn://bob/files'\n\
         settle = '1 ms'\nkeep = false",
    );
    for folder in ["out", "away", "elsewhere"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    std::os::unix::fs::symlink(place.path("elsewhere"), place.path("out/sent")).unwrap();
    let _alice = place.start("alice");
    let begun = |folder: &str, name: &str| {
        let path = place.path(folder).join(name);
        fs::write(place.path(name), name).unwrap();
        fs::rename(place.path(name), path).unwrap();
    };
    begun("out", "letter");
    let folder = |status: &serde_json::Value| status["folders"][0].clone();
    wait("it is told", &place, || {
        let trouble = folder(&status(&place, "alice"))["trouble"].to_string();
        trouble.contains("letter is waiting: cannot archive sent files: sent is not a folder")
    });
    // Files that need not be kept are sent; no other file has been.
    begun("away", "note");
    wait("the other goes", &place, || status(&place, "alice")["folders"][1]["files"] == 1);
    let said = status(&place, "alice");
    assert_eq!((&folder(&said)["files"], &said["bundles"]), (&0.into(), &1.into()), "{said:#}");
    fs::remove_file(place.path("out/sent")).unwrap();
    wait("it is kept", &place, || files(&place.path("out/sent")).len() == 1);
    assert_eq!(status(&place, "alice")["bundles"], 2);
    assert_eq!(files(&place.path("elsewhere")).len(), 0);
}

#[test]
fn what_cannot_be_right_is_said() {
    let place = Place::new("wrong");
    let cases = [
        ("[[drop]]\nfolder = 'x'\nto = 'nowhere'", "is not an endpoint"),
        (
            "[[drop]]\nto = 'dtn://b/c'\n[[receive]]\nfolder = ''\nendpoint = 'x'",
            "[[drop]] or [[receive]] without `folder`",
        ),
        (
            "[[drop]]\nfolder = 'x'\nto = 'dtn://b/c'\n[[receive]]\nfolder = 'x'\nendpoint = 'y'",
            "each needs its own folder",
        ),
        ("[[receive]]\nfolder = 'x'", "has no `endpoint`"),
        ("[[drop]]\nfoldr = 'x'", "did you mean `folder`"),
    ];
    for (text, said) in cases {
        configure(&place, "alice", text);
        let output = place.ask("alice", &["node", "--check"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && stderr.contains(said), "{text}: {stderr}");
    }
}

/// Both nodes are killed repeatedly while files pass through their folders: each file arrives once and complete.
#[test]
fn nothing_is_lost_or_doubled_when_nodes_are_killed() {
    let kills: u64 = std::env::var("LONGWIRE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let place = Place::new("kills");
    let at = reserved();
    configure(
        &place,
        "alice",
        &format!(
            "[[link]]\nname = 'bob'\naddress = '{at}'\n\
             [[drop]]\nfolder = 'out'\nto = 'dtn://bob/files'"
        ),
    );
    configure(&place, "bob", &format!("listen = ['{at}']\n[[receive]]\nfolder = 'in'\nendpoint = 'files'"));
    fs::create_dir_all(place.path("out")).unwrap();
    let random = noise(kills as usize * 4 + 4, 7);
    let mut nodes = BTreeMap::from(["alice", "bob"].map(|name| (name, place.begin(name))));
    let mut expected = BTreeMap::new();
    for kill in 0..kills as usize {
        for part in 0..3 {
            let name = format!("file-{kill}-{part}");
            let length = [10, 2_000, 300_000, 3_000_000][usize::from(random[kill * 4 + part]) % 4];
            let content = noise(length, (kill * 3 + part) as u64);
            let hidden = place.path(&format!("out/.{name}"));
            fs::write(&hidden, &content).unwrap();
            fs::rename(hidden, place.path(&format!("out/{name}"))).unwrap();
            expected.insert(name, content);
        }
        // A random delay: the node works on the files from its first look at the folder.
        let wait = Duration::from_micros(u64::from(random[kill * 4 + 3]) * 400);
        let _ = mpsc::channel::<()>().1.recv_timeout(wait);
        let victim = ["alice", "bob"][usize::from(random[kill * 4]) / 16 % 2];
        drop(nodes.remove(victim));
        nodes.insert(victim, place.begin(victim));
    }
    wait("all arrive", &place, || files(&place.path("in")).len() >= expected.len());
    wait("all are put away", &place, || files(&place.path("out/sent")).len() >= expected.len());
    for name in ["alice", "bob"] {
        wait("the nodes are empty", &place, || status(&place, name)["bundles"] == 0);
    }
    let got = files(&place.path("in"));
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(got == expected, "each is whole");
    assert!(files(&place.path("out/sent")) == expected);
    assert_eq!(files(&place.path("out")).len(), 0);
}
