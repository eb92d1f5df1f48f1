//! TLS for TCPCL version 4: RFC 9174 4.4 (session security), 3.4 (certificate authorities), 7.3 to 7.9.
//!
//! The engine negotiates TLS in the contact headers and requests it (`Secure`); this module performs the handshake on the
//! open stream and reports what the peer's certificate proves (`Secured`). The side that opened the connection is the TLS
//! client.
//!
//! ```text
//!   contact headers --> handshake ---------------> network name, address ---> SESS_INIT, node id ---> session
//!                          | path, validity,              | 4.4.4.2               | 4.4.4.3 (the engine's)
//!                          | purposes: 4.4.4.1            v                       v
//!                          v                         SESS_TERM, Contact Failure (RFC 9174 6.1)
//!                     alert bad_certificate, close
//! ```
//!
//! Implemented: TLS 1.2 and 1.3; certificates required of both sides; certification paths to the authorities of `tls.trust`
//! and to no others; NODE-ID (otherName id-on-bundleEID), DNS-ID and IPADDR-ID; key usage and the key purpose
//! id-kp-bundleSecurity; the server's name in the ClientHello if the address has one; a closure alert before the connection
//! closes, which is not required of the peer (RFC 9174 4.4).
//!
//! Not implemented: OCSP (RFC 9174 4.4.4.1: only if local policy requires it; delay-tolerant links rarely reach a
//! responder), resumption (optional: every session is authenticated again), selection of a certificate by the name that the
//! client requests (RFC 9174 3.4: optional), DANE, and TLS without certificates (RFC 9174 7.12).
//!
//! Units: Unix seconds for validity, as in certificates.

pub mod certificate;
pub mod certificate_folder;
mod credentials;
mod failure;
pub mod issue;
pub(crate) mod verify;

pub use credentials::Credentials;
pub use failure::TlsFailure;

use longwire_proto::settings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Certificate of the node and trusted authorities. Whether sessions use TLS is set by `tls` in `[tcpcl]`, for incoming
/// connections and all links, and in `[link.tcpcl]` for single links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsSettings {
    /// Certificate of the node, a PEM file, followed by the intermediate certificates. `longwire certificate` creates one.
    /// RFC 9174 4.4.2.
    pub certificate: Option<PathBuf>,
    /// Private key of the certificate, a PEM file.
    pub key: Option<PathBuf>,
    /// Certificates of the trusted authorities: PEM files. No others are trusted.
    pub trust: Vec<PathBuf>,
    /// Requirements for peers' certificates. A link can override them in `[link.tls]`.
    pub policy: CertificatePolicy,
}

settings! {
    /// Requirements for a peer's certificate (RFC 9174 4.4.5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct CertificatePolicy {
        /// The node ID that the peer claims (NODE-ID). Default: require. RFC 9174 4.4.4.3.
        pub node_id: Rule = Rule::Require,
        /// The host name to which this node connected (DNS-ID) or the address of the peer (IPADDR-ID). Default: ignore. RFC 9174
        /// 4.4.4.2.
        pub network: Rule = Rule::Ignore,
        /// The purpose of the key: bundles (id-kp-bundleSecurity among the key purposes). Default: if-present. RFC 9174 4.4.2.
        pub purpose: Rule = Rule::IfPresent,
        /// Accepts incoming connections without a certificate if no other rule requires one: contrary to RFC 9174 4.4.3, for
        /// peers that cannot send one. Default: false.
        pub anonymous_callers: bool,
    }
}

/// Rule for one kind of claim in a certificate, which can match, not match, or be absent (RFC 9174 4.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The claim must match.
    Require,
    /// The claim must match if it is present.
    IfPresent,
    /// The claim is not checked.
    Ignore,
}

impl Rule {
    /// Returns true if the rule allows the result: `None` if the claim is absent, otherwise whether it matches.
    pub(crate) const fn allows(self, found: Option<bool>) -> bool {
        match (self, found) {
            (Rule::Ignore, _) | (_, Some(true)) | (Rule::IfPresent, None) => true,
            (Rule::Require, None) | (_, Some(false)) => false,
        }
    }
}

impl TlsSettings {
    /// Makes relative paths relative to this folder.
    pub(crate) fn beside(&mut self, folder: &std::path::Path) {
        for path in self.certificate.iter_mut().chain(&mut self.key).chain(&mut self.trust) {
            *path = folder.join(&*path);
        }
    }
}

pub(crate) fn day(unix_s: i64) -> String {
    time::OffsetDateTime::from_unix_timestamp(unix_s)
        .map_or_else(|_| format!("second {unix_s}"), |at| at.date().to_string())
}

#[cfg(test)]
mod tests;
