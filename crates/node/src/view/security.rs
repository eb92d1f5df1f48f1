//! Signatures of bundles and keys, as shown to operators.

use longwire_proto::service;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of the verification of a bundle's signature at this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// True if the signature is valid, and its signer may sign the bundle.
    pub valid: bool,
    /// Node that signed; null without a readable signature.
    pub signer: Option<String>,
    /// Name of the shared key, or fingerprint of the public key; null if no key fits.
    pub key: Option<String>,
    /// Reason why the signature proves nothing, as an identifier: `missing`, `version_6`, `wrong_key_or_altered`, `no_key`, `too_many_keys`, `expired_key`,
    /// `premature_key`, `no_clock`, `changed_key`, `other_signer`, `payload_alone`, `unsupported`, `invalid`; null if it is
    /// valid.
    pub failure: Option<String>,
}

impl From<&service::Signature> for Signature {
    fn from(signature: &service::Signature) -> Self {
        Signature {
            valid: signature.failure.is_none(),
            signer: signature.signer.clone(),
            key: signature.key.clone(),
            failure: signature.failure.map(|failure| failure.name().to_owned()),
        }
    }
}

impl Signature {
    /// Outcome as text.
    pub fn words(&self) -> String {
        let signer = self.signer.as_deref().unwrap_or("an unknown node");
        let key = self.key.as_ref().map(|key| format!(", key {key}")).unwrap_or_default();
        match &self.failure {
            None => format!("valid, by {signer}{key}"),
            Some(failure) => format!("proves nothing, by {signer}{key}: {}", failure.replace('_', " ")),
        }
    }
}

/// Bundle security of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Security {
    /// Fingerprint of the node's private key; null without one.
    pub fingerprint: Option<String>,
    /// Number of nodes of which a public key is known.
    pub known_keys: u64,
    /// Nodes with a known key for which another key, or none, was used since the start of this node; at most 64.
    pub contested: Vec<String>,
    /// Signatures that prove nothing and bundles that cannot be decrypted, by node and reason, latest first; at most 64.
    pub failures: Vec<SignatureTrouble>,
    /// Error of the file with the known keys, as text; null if it is up to date.
    pub trouble: Option<String>,
}

/// Signatures of a node that prove nothing, or bundles of it that cannot be decrypted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignatureTrouble {
    /// Node that signed, or the source of the bundle if that cannot be read.
    pub node: String,
    /// Reason, as an identifier.
    pub reason: String,
    /// Reason, as text.
    pub why: String,
    /// Number of bundles.
    pub count: u64,
    /// Number of them that were deleted.
    pub deleted: u64,
    /// ID of the latest bundle.
    pub latest: String,
    /// Seconds since the latest bundle.
    pub last_s: f64,
}

/// Public keys that a node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Keys {
    /// Fingerprint of the node's private key; null without one.
    pub own: Option<String>,
    /// Keys of other nodes.
    pub known: Vec<KnownKey>,
}

/// Public key of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnownKey {
    /// Node ID.
    pub node: String,
    /// Fingerprint of the key.
    pub fingerprint: String,
    /// True if another key, or none, was used for the node since the start of this node.
    pub contested: bool,
}
