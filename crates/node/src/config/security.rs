//! `[security]`: keys for the signatures and the encryption of bundles, and which bundles are signed, verified and encrypted
//! (RFC 9172).

use super::contacts::dtn_ms;
use super::{Config, LinkSettings};
use crate::private_files;
use longwire_proto::bp::agent::{
    CheckRule, EncryptRule, EncryptedRule, Endpoints, KeyName, Security, SignRule, SignatureCheck,
};
use longwire_proto::bp::bpsec::{Algorithm, Fingerprint, Key};
use longwire_proto::bp::{DtnTime, Eid};
use longwire_proto::settings;
use longwire_settings::error::{Error, did_you_mean};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::value::Datetime;

/// Maximum number of shared keys of a node: all of them are tried.
const KEYS_OF_NODE_MAX: usize = 8;
/// Beginning of the file of a private key.
pub(crate) const PRIVATE_KEY: &str = "longwire-ed25519";
/// Maximum length of the file of a key, bytes.
const FILE_BYTES_MAX: u64 = 4096;

settings! {
    /// Signatures and encryption of bundles. Without keys and rules, bundles are neither signed, verified nor encrypted.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct SecuritySettings {
        /// Private key of this node (Ed25519), made by `longwire key new`: bundles of this node are signed with it. Default:
        /// none. RFC 9053 2.2.
        pub private_key: Option<PathBuf>,
        /// Accepts and notes the public key of a node of which none is known; later only that one is accepted of it. Default:
        /// true.
        pub first_use: bool = true,
        /// Shared keys. RFC 9173 3, 4.
        pub key: Vec<KeySettings>,
        /// Rules for bundles: the first one that matches decides, apart for signing, verifying, encrypting and requiring
        /// encryption.
        pub policy: Vec<PolicySettings>,
    }
}

/// Shared key: nodes that have it sign or encrypt with it, and verify or decrypt what the others send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct KeySettings {
    /// Name, for rules and in lists; it does not leave this node.
    pub name: String,
    /// Node IDs of the nodes that sign or encrypt with it. Default: this node.
    pub nodes: Vec<String>,
    /// Algorithm: for signatures `hmac-sha256`, `hmac-sha384` or `hmac-sha512`; for encryption `aes128-gcm`, `aes256-gcm`, or
    /// `aes-key-wrap`, which encrypts a key for each bundle. Default: hmac-sha256. RFC 9173 3.3.1, 4.3.2, 4.3.3.
    pub algorithm: SharedAlgorithm,
    /// File with the key in hexadecimal digits, which only the user of the node can read: 16 to 128 bytes for signatures; 16
    /// for `aes128-gcm`, 32 for `aes256-gcm`, and 16, 24 or 32 for `aes-key-wrap`.
    pub file: PathBuf,
    /// Beginning of its validity: date and time in TOML, with `Z` or an offset. Default: unlimited.
    pub valid_from: Option<Datetime>,
    /// End of its validity, for bundles that arrive later, too. Default: unlimited.
    pub valid_until: Option<Datetime>,
}

/// Algorithm of a shared key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharedAlgorithm {
    /// HMAC 256/256 of RFC 9173.
    #[default]
    HmacSha256,
    /// HMAC 384/384.
    HmacSha384,
    /// HMAC 512/512.
    HmacSha512,
    /// A128GCM.
    Aes128Gcm,
    /// A256GCM.
    Aes256Gcm,
    /// AES key wrap of a key for A256GCM.
    AesKeyWrap,
}

impl SharedAlgorithm {
    const fn algorithm(self) -> Algorithm {
        match self {
            SharedAlgorithm::HmacSha256 => Algorithm::Hmac256,
            SharedAlgorithm::HmacSha384 => Algorithm::Hmac384,
            SharedAlgorithm::HmacSha512 => Algorithm::Hmac512,
            SharedAlgorithm::Aes128Gcm => Algorithm::Aes128Gcm,
            SharedAlgorithm::Aes256Gcm => Algorithm::Aes256Gcm,
            SharedAlgorithm::AesKeyWrap => Algorithm::KeyWrap,
        }
    }

    /// True if the key encrypts, false if it signs.
    const fn encrypts(self) -> bool {
        matches!(self, SharedAlgorithm::Aes128Gcm | SharedAlgorithm::Aes256Gcm | SharedAlgorithm::AesKeyWrap)
    }

    /// Lengths of keys.
    const fn lengths(self) -> &'static str {
        match self {
            SharedAlgorithm::HmacSha256 | SharedAlgorithm::HmacSha384 | SharedAlgorithm::HmacSha512 => {
                "16 to 128 bytes"
            }
            SharedAlgorithm::Aes128Gcm => "16 bytes",
            SharedAlgorithm::Aes256Gcm => "32 bytes",
            SharedAlgorithm::AesKeyWrap => "16, 24 or 32 bytes",
        }
    }
}

/// Rule for the bundles between two sets of endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PolicySettings {
    /// Source of the bundles; a trailing `*` matches anything. Default: any.
    pub source: String,
    /// Destination of the bundles; a trailing `*` matches anything. Default: any.
    pub destination: String,
    /// `sign` or `do-not-sign`, and `encrypt` or `do-not-encrypt`, for bundles of this node; `require`, `verify` or `ignore`
    /// signatures, and `require-encryption` or `accept-plaintext`, for received ones. No default.
    pub action: Option<PolicyAction>,
    /// `sign` and `encrypt` only: name of the shared key, or `private`. Default: for signatures the private key, otherwise the
    /// newest shared one.
    pub key: Option<String>,
    /// `require` and `verify` only: nodes that may sign beside the source of the bundle; a trailing `*` matches anything.
    /// Default: none.
    pub signers: Vec<String>,
    /// `require` and `verify` only: bundles that this node forwards are verified, too, before they leave. Default: false.
    pub on_the_way: bool,
    /// `verify` only: what becomes of a bundle whose signature is wrong: `delete` or `pass`. Default: delete.
    pub on_failure: OnFailure,
}

impl Default for PolicySettings {
    fn default() -> Self {
        PolicySettings {
            source: "*".into(),
            destination: "*".into(),
            action: None,
            key: None,
            signers: Vec::new(),
            on_the_way: false,
            on_failure: OnFailure::Delete,
        }
    }
}

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyAction {
    /// Signs bundles of this node; without a valid key they are not sent.
    Sign,
    /// Leaves bundles of this node unsigned.
    DoNotSign,
    /// Deletes bundles without a valid signature.
    Require,
    /// Verifies signatures where there are some and the key is known.
    Verify,
    /// Verifies nothing.
    Ignore,
    /// Encrypts bundles of this node; without a valid key they are not sent.
    Encrypt,
    /// Leaves bundles of this node in plaintext.
    DoNotEncrypt,
    /// Deletes bundles for this node whose payload is not encrypted.
    RequireEncryption,
    /// Accepts bundles for this node whether they are encrypted or not.
    AcceptPlaintext,
}

/// Treatment of a bundle whose signature is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The bundle is deleted.
    #[default]
    Delete,
    /// The bundle passes, and the failure is shown.
    Pass,
}

/// Name by which rules mean the private key.
const PRIVATE: &str = "private";

impl SecuritySettings {
    /// Returns true if bundles are signed, verified or encrypted.
    pub(crate) fn is_on(&self) -> bool {
        self.private_key.is_some() || !self.key.is_empty() || !self.policy.is_empty()
    }

    pub(super) fn beside(&mut self, folder: &Path) {
        let keys = self.key.iter_mut().map(|key| &mut key.file).filter(|file| !file.as_os_str().is_empty());
        keys.chain(&mut self.private_key).for_each(|file| *file = folder.join(&*file));
    }

    /// Files of the keys.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.key.iter().map(|key| key.file.as_path()).chain(self.private_key.as_deref())
    }
}

impl Config {
    /// Path of the file with the public keys that were noted.
    pub fn known_keys(&self) -> PathBuf {
        self.beside_store(".known-keys")
    }

    /// Path of the file with the names of the TNCs whose transmissions are inhibited.
    pub fn inhibited(&self) -> PathBuf {
        self.beside_store(".inhibited")
    }

    fn beside_store(&self, ending: &str) -> PathBuf {
        let mut name = self.storage.path.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        self.storage.path.with_file_name(name)
    }

    /// Checks keys and rules, without reading files.
    pub(super) fn check_security(&self) -> Result<(), Error> {
        let settings = &self.security;
        for (at, key) in settings.key.iter().enumerate() {
            if key.name.is_empty() || key.name == PRIVATE {
                return Err(Error::new(format!("[[security.key]] number {} has no usable `name`", at + 1))
                    .hint("lists show the key by its name; `private` is the name of the private key"));
            }
            if settings.key[..at].iter().any(|other| other.name == key.name) {
                return Err(Error::new(format!("[[security.key]]: duplicate name `{}`", key.name)).hint(
                    "rename one; all keys of a node are tried, so that a new key can have a new name",
                ));
            }
            if key.file.as_os_str().is_empty() {
                return Err(Error::new(format!("[[security.key]] `{}` has no `file`", key.name))
                    .hint("create one with `longwire key new --shared FILE`"));
            }
            for at in key.valid_from.iter().chain(&key.valid_until) {
                if dtn_ms(at).is_none() {
                    return Err(Error::new(format!("[[security.key]] `{}`: `{at}` is not a time", key.name))
                        .hint("a time looks like 2026-05-17T12:00:00Z, without quotation marks"));
                }
            }
            let (from, until) =
                (key.valid_from.as_ref().and_then(dtn_ms), key.valid_until.as_ref().and_then(dtn_ms));
            if from.zip(until).is_some_and(|(from, until)| from > until) {
                return Err(Error::new(format!("[[security.key]] `{}` ends before it begins", key.name))
                    .hint("`valid-from` must be before `valid-until`"));
            }
            let is_other = |other: &&KeySettings| other.file == key.file && other.algorithm != key.algorithm;
            if let Some(other) = settings.key[..at].iter().find(is_other) {
                return Err(Error::new(format!(
                    "[[security.key]] `{}` and `{}` have one file, and different algorithms",
                    other.name, key.name
                ))
                .hint("create a file for each with `longwire key new --shared FILE`; RFC 9173 6.2"));
            }
            self.nodes_of(key)?;
        }
        for node in self.key_nodes()? {
            let of_node = |key: &&KeySettings| self.nodes_of(key).is_ok_and(|nodes| nodes.contains(&node));
            let count = |encrypts| {
                let keys = settings.key.iter().filter(of_node);
                keys.filter(|key| key.algorithm.encrypts() == encrypts).count()
            };
            if count(true).max(count(false)) > KEYS_OF_NODE_MAX {
                return Err(Error::new(format!(
                    "[[security.key]]: {node} has more than {KEYS_OF_NODE_MAX} keys for one purpose"
                ))
                .hint("remove those that are no longer valid"));
            }
        }
        settings.policy.iter().enumerate().try_for_each(|(at, rule)| self.check_policy(at, rule))
    }

    fn check_policy(&self, at: usize, rule: &PolicySettings) -> Result<(), Error> {
        let place = format!("[[security.policy]] number {}", at + 1);
        let Some(action) = rule.action else {
            return Err(Error::new(format!("{place} has no `action`"))
                .hint("set it to `sign`, `do-not-sign`, `require`, `verify`, `ignore`, `encrypt`, `do-not-encrypt`, `require-encryption` or `accept-plaintext`"));
        };
        let verifies = matches!(action, PolicyAction::Require | PolicyAction::Verify);
        let strange = [
            ("key", rule.key.is_some() && !matches!(action, PolicyAction::Sign | PolicyAction::Encrypt)),
            ("signers", !rule.signers.is_empty() && !verifies),
            ("on-the-way", rule.on_the_way && !verifies),
            ("on-failure", rule.on_failure != OnFailure::Delete && action != PolicyAction::Verify),
        ];
        if let Some((key, _)) = strange.iter().find(|(_, is_strange)| *is_strange) {
            return Err(
                Error::new(format!("{place}: `{key}` does not apply to this action")).hint("remove it")
            );
        }
        match action {
            PolicyAction::Sign => self.check_own_key(&place, rule.key.as_deref(), false),
            PolicyAction::Encrypt => self.check_own_key(&place, rule.key.as_deref(), true),
            _ => Ok(()),
        }
    }

    /// Checks that this node has the key of a rule, for encryption or for signatures.
    fn check_own_key(&self, place: &str, name: Option<&str>, encrypts: bool) -> Result<(), Error> {
        let node = self.node_id()?;
        let own = |key: &&KeySettings| {
            key.algorithm.encrypts() == encrypts
                && self.nodes_of(key).is_ok_and(|nodes| nodes.contains(&node))
        };
        let has_private = self.security.private_key.is_some() && !encrypts;
        let purpose = if encrypts { "that encrypts" } else { "that signs" };
        let mut names: Vec<&str> =
            self.security.key.iter().filter(own).map(|key| key.name.as_str()).collect();
        names.extend(has_private.then_some(PRIVATE));
        match name {
            Some(name) if names.contains(&name) => Ok(()),
            Some(name) => {
                let hint =
                    did_you_mean(name, names, "name a [[security.key]] whose `nodes` include this node");
                Err(Error::new(format!("{place}: this node has no key `{name}` {purpose}")).hint(hint))
            }
            None if names.is_empty() && encrypts => {
                Err(Error::new(format!("{place}: this node has no key {purpose}")).hint(
                    "create one with `longwire key new --shared FILE`, and add a [[security.key]] with the algorithm `aes256-gcm`",
                ))
            }
            None if names.is_empty() => Err(Error::new(format!("{place}: this node has no key {purpose}"))
                .hint("create one with `longwire key new`, and set `security.private-key`")),
            None => Ok(()),
        }
    }

    /// Nodes that sign or encrypt with a key.
    fn nodes_of(&self, key: &KeySettings) -> Result<Vec<Eid>, Error> {
        if key.nodes.is_empty() {
            return Ok(vec![self.node_id()?]);
        }
        let node = |text: &String| {
            longwire_proto::bp::agent::parse_node(text).ok_or_else(|| {
                Error::new(format!("[[security.key]] `{}`: `{text}` is not a node ID", key.name))
                    .hint("a node ID looks like dtn://alice/ or ipn:7.0")
            })
        };
        key.nodes.iter().map(node).collect()
    }

    fn key_nodes(&self) -> Result<Vec<Eid>, Error> {
        let nodes = self.security.key.iter().map(|key| self.nodes_of(key)).collect::<Result<Vec<_>, _>>()?;
        Ok(nodes.into_iter().flatten().collect())
    }

    /// Returns keys and rules, with the keys read from their files; without the public keys that were noted.
    ///
    /// # Errors
    /// Fails if a file cannot be read, can be read by others, or has the wrong contents.
    pub fn security(&self) -> Result<Security, Error> {
        let settings = &self.security;
        let mut security = Security::default();
        if !settings.is_on() {
            return Ok(security);
        }
        security.keys.pin_at_first_use(settings.first_use);
        let node = self.node_id()?;
        let mut has_own = false;
        if let Some(path) = &settings.private_key {
            let text = read_key(path)?;
            let seed = text.strip_prefix(PRIVATE_KEY).and_then(|rest| from_hex(rest.trim()));
            let key = seed.and_then(|seed| Key::new(node.clone(), PRIVATE, Algorithm::Ed25519, &seed).ok());
            let key = key.ok_or_else(|| {
                Error::new(format!("`security.private-key`: {} has no private key", path.display()))
                    .hint("create one with `longwire key new FILE`")
            })?;
            security.keys.add(key);
            has_own = true;
        }
        for key in &settings.key {
            let text = read_key(&key.file)?;
            let bytes = from_hex(text.trim());
            let time = |at: &Option<Datetime>| at.as_ref().and_then(dtn_ms).map(DtnTime);
            for of in self.nodes_of(key)? {
                has_own |= of == node && !key.algorithm.encrypts();
                let made = bytes
                    .as_deref()
                    .and_then(|bytes| Key::new(of, &key.name, key.algorithm.algorithm(), bytes).ok());
                let made = made.ok_or_else(|| {
                    Error::new(format!("the key file {} has no shared key", key.file.display())).hint(format!(
                        "it must have {} in hexadecimal digits; `longwire key new --shared FILE` makes one of 32 bytes",
                        key.algorithm.lengths()
                    ))
                })?;
                security.keys.add(made.valid(time(&key.valid_from), time(&key.valid_until)));
            }
        }
        for rule in &settings.policy {
            add_rule(&mut security, rule);
        }
        let all = || Endpoints { source: "*".into(), destination: "*".into() };
        if has_own {
            security.sign.push(SignRule { endpoints: all(), key: Some(KeyName::Any) });
        }
        let check =
            SignatureCheck { required: false, on_the_way: false, signers: Vec::new(), passes_wrong: false };
        security.check.push(CheckRule { endpoints: all(), check: Some(Arc::new(check)) });
        Ok(security)
    }

    /// Fingerprint of this node's private key.
    ///
    /// # Errors
    /// As [`security`](Self::security).
    pub fn own_fingerprint(&self) -> Result<Option<Fingerprint>, Error> {
        let security = self.security()?;
        let own = security.keys.iter().find_map(Key::public_key);
        Ok(own.map(|key| key.fingerprint()))
    }

    /// Link on an amateur radio band without which a rule that encrypts has no way to its destinations: all links that lead
    /// there are on such bands. `None` as well if that cannot be told, as of nodes that call or are learned.
    fn amateur_link_of(&self, rule: &PolicySettings) -> Option<&str> {
        if rule.action != Some(PolicyAction::Encrypt) {
            return None;
        }
        let leads_to_peer = |link: &&LinkSettings| {
            let peer = link.peer.as_ref().and_then(|peer| longwire_proto::bp::agent::parse_node(peer));
            peer.is_some_and(|peer| overlap(&rule.destination, &format!("{peer}*")))
        };
        let mut vias: Vec<&str> = self.link.iter().filter(leads_to_peer).map(|link| &link.name[..]).collect();
        let routes = self.route.iter().filter(|route| overlap(&rule.destination, &route.to));
        vias.extend(routes.map(|route| &route.via[..]));
        if vias.is_empty() && self.listen.is_empty() {
            vias = self.link.iter().map(|link| &link.name[..]).collect();
        }
        let is_amateur = |via: &&str| {
            let named = |link: &&LinkSettings| link.name == **via || link.peer.as_deref() == Some(*via);
            let mut links = self.link.iter().filter(named).peekable();
            links.peek().is_some() && links.all(|link| self.is_amateur(link))
        };
        vias.first().filter(|_| vias.iter().all(is_amateur)).copied()
    }

    pub(super) fn explain_security(&self, line: &mut impl FnMut(String)) {
        let settings = &self.security;
        if !settings.is_on() {
            return;
        }
        match self.own_fingerprint() {
            Ok(Some(fingerprint)) => {
                line(format!("Signs its bundles with its private key; the fingerprint is {fingerprint}."));
            }
            Ok(None) => {}
            Err(error) => line(format!("WARNING: {}.", error.what)),
        }
        for key in &settings.key {
            let nodes = self.nodes_of(key).unwrap_or_default();
            let nodes: Vec<String> = nodes.iter().map(Eid::to_string).collect();
            let time =
                |word: &str, at: &Option<Datetime>| at.map_or(String::new(), |at| format!(" {word} {at}"));
            let what = if key.algorithm.encrypts() { "encryption by" } else { "signatures of" };
            line(format!(
                "Shared key `{}`: {what} {}{}{}.",
                key.name,
                nodes.join(", "),
                time("from", &key.valid_from),
                time("until", &key.valid_until)
            ));
        }
        let limited = settings.key.iter().any(|key| key.valid_from.or(key.valid_until).is_some());
        if limited && self.clock == super::ClockSource::None {
            line("WARNING: a node without a clock cannot use keys that are valid for a limited time.".into());
        }
        for rule in &settings.policy {
            line(explain_rule(rule));
            if let Some(link) = self.amateur_link_of(rule) {
                line(format!(
                    "WARNING: encrypted bundles to {} have no way but the link `{link}`, which is amateur radio, where encryption is not \
                     allowed: they wait until they expire.",
                    rule.destination
                ));
            }
        }
        line("Other signatures of bundles for this node are verified if the key is known; a wrong one deletes the bundle, and a \
              missing one is shown if a key of the source is known.".into());
        line(match settings.first_use {
            true => format!(
                "The first public key of a node is noted in {}, and is then the only one that is accepted of it.",
                self.known_keys().display()
            ),
            false => format!("Only public keys in {} are accepted.", self.known_keys().display()),
        });
    }
}

/// True if some endpoint matches both patterns.
fn overlap(one: &str, other: &str) -> bool {
    match (one.strip_suffix('*'), other.strip_suffix('*')) {
        (None, None) => one == other,
        (Some(prefix), None) => other.starts_with(prefix),
        (None, Some(prefix)) => one.starts_with(prefix),
        (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
    }
}

fn add_rule(security: &mut Security, rule: &PolicySettings) {
    let endpoints = Endpoints { source: rule.source.clone(), destination: rule.destination.clone() };
    let check = |required| {
        Some(Arc::new(SignatureCheck {
            required,
            on_the_way: rule.on_the_way,
            signers: rule.signers.clone(),
            passes_wrong: rule.on_failure == OnFailure::Pass,
        }))
    };
    let key = rule.key.clone().map_or(KeyName::Any, KeyName::Named);
    match rule.action {
        None => {}
        Some(PolicyAction::Sign) => security.sign.push(SignRule { endpoints, key: Some(key) }),
        Some(PolicyAction::DoNotSign) => security.sign.push(SignRule { endpoints, key: None }),
        Some(PolicyAction::Require) => security.check.push(CheckRule { endpoints, check: check(true) }),
        Some(PolicyAction::Verify) => security.check.push(CheckRule { endpoints, check: check(false) }),
        Some(PolicyAction::Ignore) => security.check.push(CheckRule { endpoints, check: None }),
        Some(PolicyAction::Encrypt) => security.encrypt.push(EncryptRule { endpoints, key: Some(key) }),
        Some(PolicyAction::DoNotEncrypt) => security.encrypt.push(EncryptRule { endpoints, key: None }),
        Some(PolicyAction::RequireEncryption) => {
            security.encrypted.push(EncryptedRule { endpoints, required: true });
        }
        Some(PolicyAction::AcceptPlaintext) => {
            security.encrypted.push(EncryptedRule { endpoints, required: false });
        }
    }
}

fn explain_rule(rule: &PolicySettings) -> String {
    let any = |pattern: &str| if pattern == "*" { "anyone".to_owned() } else { pattern.to_owned() };
    let between = format!("from {} to {}", any(&rule.source), any(&rule.destination));
    let signers = match &rule.signers[..] {
        [] => "their source".to_owned(),
        signers => format!("their source or {}", signers.join(", ")),
    };
    let place =
        if rule.on_the_way { "here and, unless they are fragments, on the way" } else { "at this node" };
    match rule.action {
        None => String::new(),
        Some(PolicyAction::Sign) => {
            let key = rule.key.as_ref().map_or(String::new(), |key| format!(" with the key `{key}`"));
            format!("Bundles of this node {between} are signed{key}; without a valid key they are not sent.")
        }
        Some(PolicyAction::DoNotSign) => format!("Bundles of this node {between} are not signed."),
        Some(PolicyAction::Require) => {
            format!("Bundles {between} are deleted {place} unless they have a valid signature of {signers}.")
        }
        Some(PolicyAction::Verify) => {
            let then = match rule.on_failure {
                OnFailure::Delete => "a wrong one deletes the bundle",
                OnFailure::Pass => "a wrong one is shown",
            };
            format!("Signatures of bundles {between} are verified {place}; {then}.")
        }
        Some(PolicyAction::Ignore) => format!("Signatures of bundles {between} are not verified."),
        Some(PolicyAction::Encrypt) => {
            let key = rule.key.as_ref().map_or(String::new(), |key| format!(" with the key `{key}`"));
            format!(
                "Bundles of this node {between} are encrypted{key}; without a valid key they are not sent, and never over links on \
                 amateur radio bands."
            )
        }
        Some(PolicyAction::DoNotEncrypt) => format!("Bundles of this node {between} are not encrypted."),
        Some(PolicyAction::RequireEncryption) => {
            format!("Bundles for this node {between} are refused unless their payload is encrypted.")
        }
        Some(PolicyAction::AcceptPlaintext) => {
            format!("Bundles for this node {between} may be in plaintext.")
        }
    }
}

/// Creates a file with a new key, which only its user can access. Returns the fingerprint of a private key; `None` for a
/// shared one.
///
/// # Errors
/// Fails if the file exists or cannot be written, or if the system has no random numbers.
pub fn new_key(path: &Path, is_shared: bool) -> Result<Option<Fingerprint>, Error> {
    let failed = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "choose another name: keys are never replaced",
            _ => "choose a folder to which you can write",
        };
        Error::new(format!("cannot create the key {}: {error}", path.display())).hint(hint)
    };
    let mut bytes = [0; 32];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Error::new("the system has no random numbers").hint("try again later"))?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = if is_shared { format!("{hex}\n") } else { format!("{PRIVATE_KEY} {hex}\n") };
    let mut options = private_files::file();
    let mut file = private_files::make(options.create_new(true).write(true), path).map_err(failed)?;
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        let _ = std::fs::remove_file(path);
        return Err(failed(error));
    }
    let key = Key::new(Eid::Null, PRIVATE, Algorithm::Ed25519, &bytes).ok();
    Ok(key.and_then(|key| key.public_key()).map(|key| key.fingerprint()).filter(|_| !is_shared))
}

/// Reads the file of a key, which others must not be able to read.
fn read_key(path: &Path) -> Result<String, Error> {
    let failed = |error: std::io::Error| {
        Error::new(format!("cannot read the key {}: {error}", path.display()))
            .hint("paths are relative to the configuration file; create keys with `longwire key new`")
    };
    // A named pipe would block without it.
    let mut options = std::fs::File::options();
    let file = options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(failed(std::io::Error::other("it is not a file")));
    }
    if about.permissions().mode() & 0o077 != 0 {
        return Err(Error::new(format!("other users can access the key {}", path.display()))
            .hint(format!("chmod 600 {}", path.display())));
    }
    if about.len() > FILE_BYTES_MAX {
        return Err(Error::new(format!("the key {} is too long", path.display()))
            .hint("create keys with `longwire key new`"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let whole = digits.len().is_multiple_of(2);
    whole.then(|| digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}
