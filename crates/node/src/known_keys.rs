//! Public keys that a node has noted: a file with a line for each node, beside the store.
//!
//! ```text
//! dtn://alice/ 1a2b-3c4d-5e6f-7a8b-9c0d-1e2f-3a4b-5c6d
//! ```
//!
//! The file is replaced as a whole, so that a crash leaves the old one or the new one. It has at most [`PINS_MAX`] lines.

use crate::private_files;
use longwire_proto::bp::Eid;
use longwire_proto::bp::bpsec::{Fingerprint, PINS_MAX};
use longwire_settings::error::Error;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Maximum length of the file, bytes: a name has at most 1024 bytes or so.
const FILE_BYTES_MAX: u64 = 8 << 20;
const HINT: &str = "each line is a node ID and a fingerprint; remove the line, or the file to note all keys anew. A running node replaces the file: stop it, or use `longwire key`";

/// Reads the file; empty if there is none.
///
/// # Errors
/// Fails if the file cannot be read, or has a line of another form: a key that is forgotten by mistake is accepted from anyone.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<Eid, Fingerprint>, Error> {
    let failed = |what: String| Error::new(format!("the known keys {}: {what}", path.display())).hint(HINT);
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Ok(about) if about.len() > FILE_BYTES_MAX => return Err(failed("the file is too long".into())),
        _ => {}
    }
    let text = longwire_settings::file::read_regular_text(path).map_err(|error| failed(error.to_string()))?;
    let mut keys = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (node, fingerprint) =
            line.trim().split_once(' ').ok_or_else(|| failed(format!("line {} is incomplete", at + 1)))?;
        let node = node.parse::<Eid>().ok().filter(Eid::is_node_id);
        let fingerprint = fingerprint.trim().parse::<Fingerprint>().ok();
        let (node, fingerprint) =
            node.zip(fingerprint).ok_or_else(|| failed(format!("line {} is not valid", at + 1)))?;
        if keys.insert(node.detached(), fingerprint).is_some() {
            return Err(failed(format!("line {} has a node that occurs twice", at + 1)));
        }
    }
    if keys.len() > PINS_MAX {
        return Err(failed(format!("there are more than {PINS_MAX} keys")));
    }
    Ok(keys)
}

/// Replaces the file.
///
/// # Errors
/// Fails if it cannot be written; then the old one is unchanged.
pub(crate) fn write(path: &Path, keys: &BTreeMap<Eid, Fingerprint>) -> io::Result<()> {
    let lines = keys.iter().map(|(node, fingerprint)| format!("{node} {fingerprint}\n"));
    private_files::replace(path, lines.collect::<String>().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let folder = TestFolder::new("known-keys");
        let path = folder.0.join("store.known-keys");
        let other = folder.0.join("store.new");
        std::fs::write(&other, "of somebody else").expect("it is written");
        assert!(read(&path).expect("no file").is_empty());
        let node = |text: &str| text.parse::<Eid>().expect("a node ID");
        let keys = BTreeMap::from([
            (node("dtn://alice/"), Fingerprint([1; 16])),
            (node("ipn:7.0"), Fingerprint([2; 16])),
            (node("ipn:977000.7.0"), Fingerprint([3; 16])),
        ]);
        write(&path, &keys).expect("it is written");
        assert_eq!(read(&path).expect("it is read"), keys);
        assert_eq!(std::fs::read_to_string(&other).expect("it is read"), "of somebody else");
        let fingerprint = Fingerprint([1; 16]);
        for wrong in [
            "dtn://alice/".to_owned(),
            "dtn://alice/ 12".to_owned(),
            format!("dtn://alice/evil {fingerprint}"),
            format!("eid:5:01 {fingerprint}"),
            format!("dtn:none {fingerprint}"),
            format!("dtn://alice/ {fingerprint}\ndtn://alice/ {}", Fingerprint([2; 16])),
        ] {
            std::fs::write(&path, &wrong).expect("it is written");
            assert!(read(&path).expect_err(&wrong).hint.is_some());
        }
    }
}
