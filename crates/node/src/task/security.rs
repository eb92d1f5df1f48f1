//! Signatures that prove nothing, bundles that cannot be decrypted, and the public keys that are known.
//!
//! A stranger who sends one such bundle may send any number of them, so they are counted by node and reason, in at most
//! [`ENTRIES_MAX`] entries; an event and a line of the log about each follow at most every [`BETWEEN_LINES`].

use super::Task;
use super::link_states::plain;
use crate::config::Config;
use crate::known_keys;
use crate::surfaces::message::Reply;
use crate::view::{self, Event};
use longwire_proto::bp::Eid;
use longwire_proto::bp::agent::{Security, parse_node};
use longwire_proto::bp::bpsec::{Fingerprint, Key, PINS_MAX};
use longwire_proto::service::{BundleName, DecryptionFailure, SecurityFailure, Signature, SignatureFailure};
use longwire_proto::time::{Duration, Instant};
use longwire_settings::error::Error;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Maximum number of nodes and reasons.
const ENTRIES_MAX: usize = 64;
/// Minimum time between two lines about the same node and reason, and between two about new ones once there are many.
const BETWEEN_LINES: Duration = Duration::from_secs(10);
/// Minimum time between two times at which the file of the known keys is written because of new ones.
const BETWEEN_WRITES: Duration = Duration::from_secs(1);
/// Maximum number of contested names in the status.
const CONTESTED_SHOWN_MAX: usize = 64;
/// Maximum number of keys in one answer.
const KEYS_SHOWN_MAX: usize = PINS_MAX;

const CHANGED_KEY: SecurityFailure = SecurityFailure::Signature(SignatureFailure::ChangedKey);

#[derive(Debug)]
struct Entry {
    node: String,
    failure: SecurityFailure,
    count: u64,
    deleted: u64,
    latest: BundleName,
    last: Instant,
    logged_at: Option<Instant>,
}

/// Signatures that prove nothing, and the file of the known keys.
#[derive(Debug)]
pub(crate) struct SignatureLog {
    entries: Vec<Entry>,
    logged_at: Option<Instant>,
    path: PathBuf,
    own: Option<Fingerprint>,
    trouble: Option<String>,
    file: KnownKeysFile,
    /// Nodes with a known key for which another key was used, or none.
    contested: BTreeSet<String>,
    /// The known keys differ from those in the file.
    is_changed: bool,
    written: Option<Instant>,
    /// Thread that writes the file.
    writing: Option<JoinHandle<io::Result<()>>>,
}

impl SignatureLog {
    /// Creates the log of a node with these keys.
    pub(crate) fn new(config: &Config, security: &Security, file: KnownKeysFile) -> Self {
        SignatureLog {
            entries: Vec::new(),
            logged_at: None,
            path: config.known_keys(),
            own: own_fingerprint(security),
            trouble: None,
            file,
            contested: BTreeSet::new(),
            is_changed: false,
            written: None,
            writing: None,
        }
    }

    /// Handles the end of a write to the file of the known keys, and waits for it on request.
    fn end_writing(&mut self, waits: bool) {
        if let Some(thread) = self.writing.take_if(|thread| waits || thread.is_finished()) {
            let written = thread.join().unwrap_or_else(|_| Err(io::Error::other("an internal error")));
            self.written_with(written);
        }
    }

    fn written_with(&mut self, written: io::Result<()>) {
        let trouble = written.err().map(|error| format!("cannot write {}: {error}", self.path.display()));
        if let Some(trouble) = &trouble {
            tracing::error!(target: "security", "{trouble}; the known keys are kept until the node stops");
        }
        self.is_changed |= trouble.is_some();
        self.trouble = trouble;
    }

    /// Counts a bundle. Returns true if it is to be logged.
    fn add(
        &mut self,
        now: Instant,
        node: &str,
        failure: SecurityFailure,
        bundle: &BundleName,
        is_deleted: bool,
    ) -> bool {
        let at = self.entries.iter().position(|entry| entry.node == node && entry.failure == failure);
        let at = at.unwrap_or_else(|| {
            if self.entries.len() >= ENTRIES_MAX {
                // The changed keys of a name stay longest: they are what an operator must know.
                let rank = |entry: &Entry| (entry.failure == CHANGED_KEY, entry.last);
                let oldest = (0..self.entries.len()).min_by_key(|at| rank(&self.entries[*at]));
                self.entries.remove(oldest.expect("there are many"));
            }
            let (node, latest) = (node.to_owned(), bundle.clone());
            self.entries.push(Entry {
                node,
                failure,
                count: 0,
                deleted: 0,
                latest,
                last: now,
                logged_at: None,
            });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[at];
        entry.count += 1;
        entry.deleted += u64::from(is_deleted);
        entry.last = now;
        entry.latest = bundle.clone();
        let is_old =
            |logged_at: Option<Instant>| logged_at.is_none_or(|at| now.saturating_since(at) >= BETWEEN_LINES);
        let logs =
            is_old(entry.logged_at) && (is_old(self.logged_at) || self.entries.len() < ENTRIES_MAX / 4);
        if logs {
            self.entries[at].logged_at = Some(now);
            self.logged_at = Some(now);
        }
        logs
    }
}

fn own_fingerprint(security: &Security) -> Option<Fingerprint> {
    security.keys.iter().find_map(Key::public_key).map(|key| key.fingerprint())
}

/// Keys and rules of a configuration, with the public keys that were noted. These are read without `[security]` as well:
/// the file is replaced as a whole, and an order of the operator must not lose the others.
///
/// # Errors
/// Fails if a file cannot be read; without `[security]`, known keys that cannot be read are no error of the start.
pub(crate) fn read_security(config: &Config, path: &Path) -> Result<(Security, KnownKeysFile), Error> {
    let mut security = config.security()?;
    match known_keys::read(path) {
        Ok(known) => {
            for (node, fingerprint) in known {
                security.keys.pin(&node, fingerprint);
            }
            Ok((security, KnownKeysFile::Read))
        }
        Err(error) if config.security.is_on() => Err(error),
        Err(error) => Ok((security, KnownKeysFile::Unreadable(error.what))),
    }
}

/// Result of reading the file of the known keys at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownKeysFile {
    /// The known keys are those of the file.
    Read,
    /// The file cannot be read, so it must not be replaced.
    Unreadable(String),
}

impl Task {
    /// Records that the signature of a bundle proves nothing.
    pub(super) fn record_signature(
        &mut self,
        now: Instant,
        name: &BundleName,
        destination: &str,
        signature: &Signature,
        is_deleted: bool,
    ) {
        let Some(failure) = signature.failure else { return };
        let source = parse_node(&name.source).map_or_else(|| name.source.clone(), |node| node.to_string());
        let node = plain(signature.signer.as_deref().unwrap_or(&source));
        let is_known =
            || parse_node(&source).is_some_and(|node| self.engines.upper.known_keys().contains_key(&node));
        match failure {
            SignatureFailure::ChangedKey => drop(self.signatures.contested.insert(node.clone())),
            SignatureFailure::Missing if is_known() => drop(self.signatures.contested.insert(node.clone())),
            _ => {}
        }
        if !self.signatures.add(now, &node, SecurityFailure::Signature(failure), name, is_deleted) {
            return;
        }
        let then = if is_deleted { "deleted" } else { "not deleted" };
        let why = match failure {
            SignatureFailure::ChangedKey => format!("the key of {node} has changed"),
            other => other.to_string(),
        };
        let hint = (failure == SignatureFailure::ChangedKey).then_some(
            "if the node has a new key, compare fingerprints with its operator, then `longwire key forget` or `key trust`",
        );
        let bundle = plain(&name.to_string());
        tracing::warn!(target: "security", hint, "bundle {bundle}, signed by {node}, {then}: {why}");
        self.note(
            now,
            Event::SignatureFailed {
                id: bundle,
                destination: plain(destination),
                signer: signature.signer.as_deref().map(plain),
                reason: failure.name().to_owned(),
                why,
                deleted: is_deleted,
            },
        );
    }

    /// Records that the known key of a node did not sign an announcement.
    pub(super) fn contest(&mut self, node: &Eid) {
        self.signatures.contested.insert(plain(&node.to_string()));
    }

    /// Records that a bundle for this node was deleted, because it cannot be decrypted or is not encrypted.
    pub(super) fn record_decryption(
        &mut self,
        now: Instant,
        name: &BundleName,
        destination: &str,
        encrypted_by: Option<&str>,
        failure: DecryptionFailure,
    ) {
        let source = parse_node(&name.source).map_or_else(|| name.source.clone(), |node| node.to_string());
        let node = plain(encrypted_by.unwrap_or(&source));
        if !self.signatures.add(now, &node, SecurityFailure::Decryption(failure), name, true) {
            return;
        }
        let bundle = plain(&name.to_string());
        tracing::warn!(target: "security", "bundle {bundle} of {node} deleted: {failure}");
        let event = Event::DecryptionFailed {
            id: bundle,
            destination: plain(destination),
            encrypted_by: encrypted_by.map(plain),
            reason: failure.name().to_owned(),
            why: failure.to_string(),
        };
        self.note(now, event);
    }

    /// Records the first public key of a node.
    pub(super) fn record_key(&mut self, now: Instant, node: &str, fingerprint: &str) {
        tracing::info!(target: "security", "noted the key of {}: {fingerprint}", plain(node));
        self.signatures.is_changed = true;
        self.note(now, Event::KeyNoted { node: plain(node), fingerprint: fingerprint.to_owned() });
    }

    /// Writes the file of the known keys after they have changed, in a thread of its own because a disk may take its time, and
    /// at most once in [`BETWEEN_WRITES`]: a stranger may make any number of first keys.
    pub(super) fn keep_new_keys(&mut self, now: Instant) {
        self.signatures.end_writing(false);
        let is_old = |written: Instant| now.saturating_since(written) >= BETWEEN_WRITES;
        let log = &mut self.signatures;
        if !log.is_changed || log.writing.is_some() || !log.written.is_none_or(is_old) {
            return;
        }
        (log.written, log.is_changed) = (Some(now), false);
        let (path, keys) = (log.path.clone(), self.engines.upper.known_keys().clone());
        let writes = std::thread::Builder::new().name("known keys".into());
        match writes.spawn(move || known_keys::write(&path, &keys)) {
            Ok(thread) => log.writing = Some(thread),
            Err(error) => log.written_with(Err(error)),
        }
    }

    /// Writes the file of the known keys now: an operator waits for it, or the node stops.
    pub(super) fn keep_keys(&mut self) -> bool {
        self.signatures.end_writing(true);
        let written = known_keys::write(&self.signatures.path, self.engines.upper.known_keys());
        self.signatures.written_with(written);
        self.signatures.trouble.is_none()
    }

    /// Writes the file of the known keys if it does not have all of them.
    pub(super) fn keep_last_keys(&mut self) {
        self.signatures.end_writing(true);
        if self.signatures.is_changed {
            self.keep_keys();
        }
    }

    /// Reads keys and rules of a new configuration, and the known keys if they could not be read before. The keys are those
    /// of the node ID in use, which changes at a restart only.
    pub(super) fn new_security(&self, config: &Config) -> Result<(Security, KnownKeysFile), Error> {
        let running = Config { node: self.configuration.config.node.clone(), ..config.clone() };
        match self.signatures.file {
            KnownKeysFile::Read => Ok((running.security()?, KnownKeysFile::Read)),
            KnownKeysFile::Unreadable(_) => read_security(&running, &self.signatures.path),
        }
    }

    /// Applies keys and rules of a new configuration; known keys stay.
    pub(super) fn apply_security(&mut self, (mut security, file): (Security, KnownKeysFile)) {
        self.signatures.file = file;
        for (node, fingerprint) in self.engines.upper.known_keys() {
            security.keys.pin(node, *fingerprint);
        }
        self.signatures.own = own_fingerprint(&security);
        self.engines.upper.set_security(security);
    }

    pub(super) fn security_view(&self, now: Instant) -> view::Security {
        let mut entries: Vec<&Entry> = self.signatures.entries.iter().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.last));
        view::Security {
            fingerprint: self.signatures.own.map(|own| own.to_string()),
            known_keys: self.engines.upper.known_keys().len() as u64,
            contested: self.signatures.contested.iter().take(CONTESTED_SHOWN_MAX).cloned().collect(),
            failures: entries
                .iter()
                .map(|entry| view::SignatureTrouble {
                    node: entry.node.clone(),
                    reason: entry.failure.name().to_owned(),
                    why: entry.failure.to_string(),
                    count: entry.count,
                    deleted: entry.deleted,
                    latest: plain(&entry.latest.to_string()),
                    last_s: now.saturating_since(entry.last).as_secs_f64(),
                })
                .collect(),
            trouble: self.signatures.trouble.clone(),
        }
    }

    pub(super) fn keys(&self) -> Reply {
        let known = self.engines.upper.known_keys().iter().take(KEYS_SHOWN_MAX);
        let known = known.map(|(node, fingerprint)| {
            let node = node.to_string();
            let node = plain(&node);
            let contested = self.signatures.contested.contains(&node);
            view::KnownKey { node, fingerprint: fingerprint.to_string(), contested }
        });
        let own = self.signatures.own.map(|own| own.to_string());
        Reply::Keys { keys: view::Keys { own, known: known.collect() } }
    }

    pub(super) fn trust_key(&mut self, node: &str, fingerprint: &str) -> Reply {
        let Some(node) = parse_node(node) else { return no_node(node) };
        if let Some(refusal) = self.unreadable_keys() {
            return refusal;
        }
        let Ok(fingerprint) = fingerprint.parse::<Fingerprint>() else {
            return Reply::error(
                format!("`{fingerprint}` is not a fingerprint"),
                Some(
                    "a fingerprint has 32 hexadecimal digits; `longwire key list` at the other node shows it",
                ),
            );
        };
        if !self.engines.upper.trust_key(&node, fingerprint) {
            return Reply::error(
                format!("there are {PINS_MAX} known keys already"),
                Some("forget one that is not needed with `longwire key forget`"),
            );
        }
        self.keys_changed(&node)
    }

    pub(super) fn forget_key(&mut self, node: &str) -> Reply {
        let Some(node) = parse_node(node) else { return no_node(node) };
        if let Some(refusal) = self.unreadable_keys() {
            return refusal;
        }
        if !self.engines.upper.forget_key(&node) {
            return Reply::error(
                format!("no such key: that of `{node}`"),
                Some("list the known keys with `longwire key list`"),
            );
        }
        self.keys_changed(&node)
    }

    /// Refusal of a change to known keys that could not be read: the file would lose them.
    fn unreadable_keys(&self) -> Option<Reply> {
        let KnownKeysFile::Unreadable(what) = &self.signatures.file else { return None };
        Some(Reply::error(
            format!("nothing was changed, and the file was kept: {what}"),
            Some("repair or remove the file of the known keys, then restart the node"),
        ))
    }

    fn keys_changed(&mut self, node: &Eid) -> Reply {
        let name = node.to_string();
        self.signatures.contested.remove(&plain(&name));
        self.signatures.entries.retain(|entry| entry.node != name || entry.failure != CHANGED_KEY);
        match self.keep_keys() {
            true => Reply::Done,
            false => Reply::error(
                self.signatures.trouble.clone().unwrap_or_default(),
                Some("the change holds until the node stops; free some space and repeat it"),
            ),
        }
    }
}

fn no_node(text: &str) -> Reply {
    Reply::error(format!("`{text}` is not a node ID"), Some("a node ID looks like dtn://alice/ or ipn:7.0"))
}
