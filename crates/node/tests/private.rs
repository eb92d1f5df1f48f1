//! Folders and files that a node creates are accessible to its user only, whatever the umask. A program of its own: the umask
//! belongs to the process.

mod common;

use common::{App, Place, config, payload, start};
use longwire_node::envelope;
use longwire_node::message::MessageOptions;
use rustix::fs::Mode;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// All entries below a folder, with their rights.
fn modes(path: &Path, all: &mut Vec<(String, u32)>) {
    for entry in fs::read_dir(path).expect("a folder").flatten() {
        // An entry that has been moved or removed in the meantime.
        let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
        all.push((path.display().to_string(), about.permissions().mode() & 0o7777));
        if about.is_dir() {
            modes(&path, all);
        }
    }
}

#[test]
fn nobody_else_may_read_what_a_node_keeps() {
    rustix::process::umask(Mode::empty());
    let place = Place::new("private");
    let base = place.0.display();
    let mut config = config(&format!(
        "node = 'dtn://alice/'\nlisten = []\nstorage.path = '{base}/var/store'\n\
         [[drop]]\nfolder = '{base}/out/box'\nto = 'dtn://alice/files'\nsettle = '0 s'\nkeep = true\n\
         [[receive]]\nfolder = '{base}/in/box'\nendpoint = 'files'\n"
    ));
    config.control = Some(place.0.join("run/deep/longwire.sock"));
    // A store that an earlier version created with rights for all users.
    let store = place.0.join("var/store");
    fs::create_dir_all(&store).expect("a folder");
    let test_data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/store/format-1");
    for file in fs::read_dir(test_data).expect("test data").flatten() {
        fs::copy(file.path(), store.join(file.file_name())).expect("a copy");
        fs::set_permissions(store.join(file.file_name()), fs::Permissions::from_mode(0o644))
            .expect("its mode");
    }
    let node = start(config);
    let mut app = App::new(&node);
    app.wait_status(|status| status["ready"] == true && place.0.join("out/box/.longwire").is_dir());
    let sent = app.send(
        "dtn://alice/files",
        &[&envelope::head("a.txt")[..], &payload(9000, 1)].concat().into(),
        MessageOptions::default(),
    );
    app.wait_accepted(sent);
    fs::write(place.0.join("out/box/b.txt"), "b").expect("a file");
    let arrived = ["in/box/a.txt", "in/box/b.txt", "out/box/sent/b.txt"].map(|name| place.0.join(name));
    app.wait_status(|_| arrived.iter().all(|path| path.exists()));
    let mut all = Vec::new();
    modes(&place.0, &mut all);
    assert!(all.len() > 12, "{all:#?}");
    for (path, mode) in all {
        let made_by_others = path.ends_with("/var") || path.ends_with("/b.txt") && path.contains("/out/");
        // Its group may connect to the node if it has access to the folder.
        let wanted = if path.ends_with(".sock") { 0o660 } else { mode & 0o700 };
        assert!(made_by_others || mode == wanted, "{path}: {mode:o}");
    }
}
