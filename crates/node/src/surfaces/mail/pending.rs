//! Messages on their way whose senders are to be notified, each in a file: they outlive a restart.

use super::envelope::Recipient;
use crate::private_files;
use longwire_proto::service::BundleName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Maximum number of messages; further ones are not accepted.
const MESSAGES_MAX: usize = 10_000;
/// Maximum length of a file, bytes: a hundred recipients and a header.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// A message on its way to the recipients of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingMessage {
    pub(super) bundle: BundleName,
    /// Node of the recipients.
    pub(super) node: String,
    /// Address; empty for a notification.
    pub(super) sender: String,
    pub(super) envelope_id: Option<String>,
    /// Recipients without a known outcome.
    pub(super) recipients: Vec<Recipient>,
    /// Addresses of recipients as the sender wrote them.
    #[serde(default)]
    pub(super) written: BTreeMap<String, String>,
    /// Beginning of the message's header, for notices.
    pub(super) header: String,
    /// True once the next node has the bundle.
    pub(super) forwarded: bool,
    /// End of the lifetime; `None` without a clock.
    pub(super) expires_dtn_ms: Option<u64>,
}

impl PendingMessage {
    /// True if the sender is to be notified of any outcome.
    pub(super) fn wants_notices(&self) -> bool {
        !self.sender.is_empty() && self.recipients.iter().any(|one| one.on_success || one.on_failure)
    }
}

/// All of these messages.
#[derive(Debug)]
pub(super) struct PendingMessages {
    folder: PathBuf,
    messages: BTreeMap<String, PendingMessage>,
}

impl PendingMessages {
    pub(super) fn new(folder: PathBuf) -> Self {
        PendingMessages { folder, messages: BTreeMap::new() }
    }

    /// Reads the files of an earlier start. Those that cannot be read are left alone.
    pub(super) fn load(&mut self) -> io::Result<()> {
        private_files::make_folder(&self.folder)?;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "part") {
                let _ = fs::remove_file(path);
                continue;
            }
            let is_file =
                entry.metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX);
            let read = || serde_json::from_slice::<PendingMessage>(&fs::read(&path).ok()?).ok();
            if let Some(message) = is_file.then(read).flatten()
                && self.messages.len() < MESSAGES_MAX
            {
                self.messages.insert(message.bundle.to_string(), message);
            }
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn get(&self, bundle: &str) -> Option<&PendingMessage> {
        self.messages.get(bundle)
    }

    /// Adds or replaces a message; it is durable.
    pub(super) fn add(&mut self, message: PendingMessage) -> io::Result<()> {
        let bundle = message.bundle.to_string();
        if self.messages.len() >= MESSAGES_MAX && !self.messages.contains_key(&bundle) {
            return Err(io::Error::other(format!("{MESSAGES_MAX} messages are on their way already")));
        }
        let path = self.folder.join(file_name(&message.bundle));
        let part = path.with_extension("part");
        private_files::make_folder(&self.folder)?;
        let mut file = private_files::file().write(true).create(true).truncate(true).open(&part)?;
        file.write_all(&serde_json::to_vec(&message).expect("a message is JSON"))?;
        file.sync_all()?;
        fs::rename(&part, &path)?;
        File::open(&self.folder)?.sync_all()?;
        self.messages.insert(bundle, message);
        Ok(())
    }

    pub(super) fn remove(&mut self, bundle: &BundleName) -> Option<PendingMessage> {
        let removed = self.messages.remove(&bundle.to_string())?;
        // A leftover causes at most one more notice.
        let _ = fs::remove_file(self.folder.join(file_name(bundle)));
        Some(removed)
    }

    /// Returns the messages whose lifetime ended before this time.
    pub(super) fn expired(&self, dtn_ms: u64) -> Vec<PendingMessage> {
        let is_over = |message: &&PendingMessage| message.expires_dtn_ms.is_some_and(|end| end < dtn_ms);
        self.messages.values().filter(is_over).cloned().collect()
    }

    /// Returns the messages whose lifetime has no end yet.
    pub(super) fn endless(&self) -> Vec<PendingMessage> {
        self.messages.values().filter(|message| message.expires_dtn_ms.is_none()).cloned().collect()
    }
}

/// Name of the file of a bundle of this node: its creation timestamp.
fn file_name(bundle: &BundleName) -> String {
    format!("{}.json", bundle.created)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    fn message(time: u64) -> PendingMessage {
        PendingMessage {
            bundle: BundleName { source: "dtn://alice/".into(), created: (time, 7).into() },
            node: "dtn://bob/".into(),
            sender: "alice@alice".into(),
            envelope_id: None,
            recipients: vec![Recipient { address: "bob@bob".into(), on_success: true, on_failure: true }],
            written: BTreeMap::new(),
            header: "Subject: x\n".into(),
            forwarded: false,
            expires_dtn_ms: Some(time + 1000),
        }
    }

    #[test]
    fn what_is_on_its_way_outlives_a_restart() {
        let place = TestFolder::new("mail-pending");
        let folder = place.0.join("pending");
        let mut all = PendingMessages::new(folder.clone());
        all.load().unwrap();
        for time in [1, 2, 3] {
            all.add(message(time)).unwrap();
        }
        assert_eq!(all.remove(&message(2).bundle), Some(message(2)));
        assert_eq!(all.remove(&message(2).bundle), None);
        fs::write(folder.join("damaged.json"), "{").unwrap();
        fs::write(folder.join("9-9.part"), "half").unwrap();
        let mut again = PendingMessages::new(folder.clone());
        again.load().unwrap();
        assert_eq!((again.len(), again.get(&message(1).bundle.to_string())), (2, Some(&message(1))));
        assert!(!folder.join("9-9.part").exists());
        assert_eq!(again.expired(1002), [message(1)]);
        assert_eq!(again.expired(1001), []);
    }

    /// Submitted without a clock: such a message gets its end when there is one, and takes the place of the one without.
    #[test]
    fn a_message_without_an_end_is_found_until_it_has_one() {
        let place = TestFolder::new("mail-endless");
        let mut all = PendingMessages::new(place.0.join("pending"));
        all.load().unwrap();
        let endless = PendingMessage { expires_dtn_ms: None, ..message(1) };
        all.add(endless.clone()).unwrap();
        all.add(message(2)).unwrap();
        assert_eq!((all.endless(), all.expired(u64::MAX)), (vec![endless], vec![message(2)]));
        all.add(message(1)).unwrap();
        assert_eq!((all.endless(), all.expired(u64::MAX).len()), (vec![], 2));
    }
}
