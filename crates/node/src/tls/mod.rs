//! TLS for TCPCL version 4: RFC 9174 4.4 (session security), 3.4 (what certificate authorities know of), 7.3 to 7.9.
//!
//! The engine negotiates it in the contact headers and asks for it (`Secure`); here it comes about, in mid-stream, and what
//! the peer's certificate proves goes back up (`Secured`). Whoever called is the TLS client.
//!
//! ```text
//!   contact headers --> handshake ---------------> network name, address ---> SESS_INIT, node id ---> session
//!                          | path, validity,              | 4.4.4.2               | 4.4.4.3 (the engine's)
//!                          | purposes: 4.4.4.1            v                       v
//!                          v                         SESS_TERM, Contact Failure (RFC 9174 6.1)
//!                     alert bad_certificate, close
//! ```
//!
//! Implemented: TLS 1.2 and 1.3; certificates required of both sides; certification paths up to the authorities of
//! `tls.trust` and to no others; NODE-ID (otherName id-on-bundleEID), DNS-ID and IPADDR-ID; key usage and the key purpose
//! id-kp-bundleSecurity; the server's name in the ClientHello where the address has one; a closure alert before the
//! connection closes, and none needed from the peer (RFC 9174 4.4).
//!
//! Not implemented: asking an OCSP responder (RFC 9174 4.4.4.1: only where local policy wants it; delay-tolerant links
//! rarely reach one), resumption (optional: every session is authenticated anew), certificates chosen by the name that the
//! caller asks for (RFC 9174 3.4: optional), DANE, and uses of TLS without certificates (RFC 9174 7.12).
//!
//! Units: Unix seconds for validity, as certificates have them.

pub mod certificate;
pub mod certificate_folder;
mod credentials;
mod failure;
mod handshake;
pub mod issue;
mod tls_log;
mod verify;

pub use credentials::Credentials;
pub use failure::TlsFailure;
pub(crate) use handshake::{Handshake, peer_address};
pub(crate) use tls_log::TlsLog;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The node's certificate, and whom it trusts. Whether TLS is used is the sessions' own setting: `tls` in `[tcpcl]`, for
/// callers and all links, and in a link's own `[link.tcpcl]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsSettings {
    /// The node's certificate, a PEM file; behind it those between it and its authority. `longwire certificate` makes
    /// one. RFC 9174 4.4.2.
    pub certificate: Option<PathBuf>,
    /// Its private key, a PEM file.
    pub key: Option<PathBuf>,
    /// The authorities whose certificates are trusted: PEM files. No others are.
    pub trust: Vec<PathBuf>,
    /// What a peer's certificate has to prove. A link has keys of its own in `[link.tls]`.
    pub policy: CertificatePolicy,
}

/// What a peer's certificate has to prove (RFC 9174 4.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CertificatePolicy {
    /// The node id that the peer calls itself by (NODE-ID). Default: require. RFC 9174 4.4.4.3.
    pub node_id: Rule,
    /// The host name that was called (DNS-ID) or the address of the other side (IPADDR-ID). Default: ignore. RFC 9174
    /// 4.4.4.2.
    pub network: Rule,
    /// That its key is meant for bundles (id-kp-bundleSecurity among the key purposes). Default: if-present. RFC 9174
    /// 4.4.2.
    pub purpose: Rule,
    /// Let in callers that show no certificate at all, where nothing else here asks for one: against RFC 9174 4.4.3, for
    /// peers that cannot. Default: no.
    pub anonymous_callers: bool,
}

impl Default for CertificatePolicy {
    fn default() -> Self {
        CertificatePolicy {
            node_id: Rule::Require,
            network: Rule::Ignore,
            purpose: Rule::IfPresent,
            anonymous_callers: false,
        }
    }
}

/// What becomes of one kind of claim in a certificate: it may match, not match, or be absent (RFC 9174 4.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It has to match.
    Require,
    /// It has to match where there is one.
    IfPresent,
    /// It is not looked at.
    Ignore,
}

impl Rule {
    /// Whether it allows what was found: none, or whether it matches.
    pub(crate) const fn allows(self, found: Option<bool>) -> bool {
        match (self, found) {
            (Rule::Ignore, _) | (_, Some(true)) | (Rule::IfPresent, None) => true,
            (Rule::Require, None) | (_, Some(false)) => false,
        }
    }
}

impl TlsSettings {
    /// Paths are meant in this folder.
    pub(crate) fn beside(&mut self, folder: &std::path::Path) {
        for path in self.certificate.iter_mut().chain(&mut self.key).chain(&mut self.trust) {
            *path = folder.join(&*path);
        }
    }
}

/// A day, for people.
pub(crate) fn day(unix_s: i64) -> String {
    time::OffsetDateTime::from_unix_timestamp(unix_s)
        .map_or_else(|_| format!("second {unix_s}"), |at| at.date().to_string())
}

#[cfg(test)]
mod tests;
