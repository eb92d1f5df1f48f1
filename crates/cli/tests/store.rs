//! Snapshot of the complete output of `longwire store` for an intact and a damaged store.
//!
//! `INSTA_UPDATE=always cargo test -p longwire --test store` updates the snapshot.

use longwire_proto::codec::crc::crc32c;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Temporary folder with a copy of a store, removed on drop.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        let path = std::env::temp_dir().join(format!("longwire-store-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("store")).unwrap();
        fs::write(path.join("node.toml"), "node = 'dtn://alice/'\n").unwrap();
        let test_data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/store/format-1");
        for file in fs::read_dir(test_data).unwrap().flatten() {
            fs::copy(file.path(), path.join("store").join(file.file_name())).unwrap();
        }
        Place(path)
    }

    /// Runs a command and returns it with its output and exit status.
    fn transcript(&self, words: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(words).current_dir(&self.0).env_clear().stdin(Stdio::null());
        let output = command.output().unwrap();
        let mut out = format!("$ longwire {}\n", words.join(" "));
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                out += &format!("-- {name}\n{}", String::from_utf8_lossy(bytes));
            }
        }
        out += &format!("-- status {}\n\n", output.status.code().unwrap());
        out.replace(&*self.0.to_string_lossy(), "HERE")
    }

    /// Changes a file of the store.
    fn change(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.0.join("store").join(name);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_store_is_checked_and_repaired() {
    let place = Place::new();
    let mut out = String::new();
    let mut say = |words: &[&str]| out += &place.transcript(words);
    say(&["store", "--help"]);
    say(&["store", "check", "--help"]);
    say(&["store", "repair", "--help"]);
    say(&["store", "check"]);
    say(&["store", "check", "--json", "--store", "store"]);
    // The first opening writes the listings of the segments.
    say(&["store", "repair"]);
    place.change("00000001.log", |bytes| {
        let at = bytes.windows(20).position(|window| window == b"line 123 of a poem\nl").unwrap();
        bytes[at] ^= 1;
    });
    place.change("00000002.log", |bytes| bytes.truncate(300));
    say(&["store", "check"]);
    say(&["store", "check", "--json"]);
    say(&["store", "repair"]);
    say(&["store", "repair", "--json"]);
    // A segment as a newer version would write it.
    place.change("00000002.log", |bytes| {
        bytes[7] = b'2';
        let crc = crc32c(&bytes[..16]);
        bytes[16..20].copy_from_slice(&crc.to_be_bytes());
    });
    say(&["store", "check"]);
    say(&["store", "repair"]);
    say(&["store", "check", "--store", "."]);
    say(&["store", "check", "--store", "nowhere"]);
    fs::write(place.0.join("00000001.log"), "something else\n").unwrap();
    say(&["store", "repair", "--store", "."]);
    insta::assert_snapshot!(out);
}
