//! Failures of TLS.

use super::day;
use std::fmt;
use std::io;

/// Reason why a session is not secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// TLS is required but the peer does not offer it (RFC 9174 7.4: or an attacker in between removed the offer).
    Plain,
    /// The peer's certificate is not signed by an authority in `tls.trust`.
    Untrusted,
    /// The peer's certificate expired at this time, Unix seconds.
    Expired(i64),
    /// The peer's certificate is not valid before this time, Unix seconds.
    NotYet(i64),
    /// This node has no valid time.
    NoClock,
    /// The key of the peer's certificate is not for bundles.
    Purpose,
    /// The key of the peer's certificate is not allowed to sign.
    KeyUsage,
    /// The peer's certificate is malformed or unacceptable for another reason.
    Certificate(String),
    /// The peer sent no certificate.
    NoCertificate,
    /// The certificate proves neither the host name to which this node connected nor the address.
    Network,
    /// The certificate proves other node IDs than the one that the peer claims or that is expected.
    NodeId {
        /// Node IDs that the certificate proves.
        proven: Vec<String>,
    },
    /// The peer aborted TLS with this alert.
    Refused(String),
    /// The connection was lost during the handshake.
    Broken,
    /// The handshake timed out, or the link was closed.
    Unfinished,
    /// TLS failed for another reason.
    Failed(String),
}

impl TlsFailure {
    /// Returns the kind of failure, for counters.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            TlsFailure::Plain => "plain",
            TlsFailure::Untrusted => "untrusted",
            TlsFailure::Expired(_) => "expired",
            TlsFailure::NotYet(_) => "not_yet_valid",
            TlsFailure::NoClock => "no_clock",
            TlsFailure::Purpose => "wrong_purpose",
            TlsFailure::KeyUsage => "wrong_key_usage",
            TlsFailure::Certificate(_) => "bad_certificate",
            TlsFailure::NoCertificate => "no_certificate",
            TlsFailure::Network => "wrong_name",
            TlsFailure::NodeId { .. } => "wrong_node_id",
            TlsFailure::Refused(_) => "refused",
            TlsFailure::Broken => "broken",
            TlsFailure::Unfinished => "unfinished",
            TlsFailure::Failed(_) => "failed",
        }
    }

    /// Returns the TLS failure that caused an error of a connection, if any.
    pub(crate) fn of(error: &io::Error) -> Option<TlsFailure> {
        let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        Some(match inner {
            rustls::Error::AlertReceived(alert) => TlsFailure::Refused(spaced(&format!("{alert:?}"))),
            rustls::Error::NoCertificatesPresented => TlsFailure::NoCertificate,
            other => TlsFailure::Failed(other.to_string()),
        })
    }
}

/// Converts `BadCertificate` to `bad certificate`.
fn spaced(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase()
            && !out.is_empty()
            && !out.ends_with(|last: char| last.is_ascii_uppercase())
        {
            out.push(' ');
        }
        out.push(letter);
    }
    out.to_lowercase()
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsFailure::Plain => f.write_str("TLS is required but the peer does not offer it"),
            TlsFailure::Untrusted => {
                f.write_str("the peer's certificate is not signed by an authority in `tls.trust`")
            }
            TlsFailure::Expired(at) => write!(f, "the peer's certificate expired on {}", day(*at)),
            TlsFailure::NotYet(at) => {
                write!(f, "the peer's certificate is not valid before {} (check the clock)", day(*at))
            }
            TlsFailure::NoClock => {
                f.write_str("this node has no valid time, so it cannot check certificates")
            }
            TlsFailure::Purpose => {
                f.write_str("the key purposes of the peer's certificate do not include bundle security")
            }
            TlsFailure::KeyUsage => f.write_str("the key of the peer's certificate is not allowed to sign"),
            TlsFailure::Certificate(what) => write!(f, "the peer's certificate is not acceptable: {what}"),
            TlsFailure::NoCertificate => f.write_str("the peer sent no certificate"),
            TlsFailure::Network => {
                f.write_str("the peer's certificate does not match its host name or address")
            }
            TlsFailure::NodeId { proven } if proven.is_empty() => {
                f.write_str("the peer's certificate contains no node ID")
            }
            TlsFailure::NodeId { proven } => write!(
                f,
                "the peer's certificate proves {}, which is not the claimed or expected node ID",
                proven.join(", ")
            ),
            TlsFailure::Refused(alert) => write!(f, "the peer aborted TLS: {alert}"),
            TlsFailure::Broken => f.write_str("connection lost during the TLS handshake"),
            TlsFailure::Unfinished => f.write_str("TLS handshake timed out or cancelled"),
            TlsFailure::Failed(what) => write!(f, "TLS failed: {what}"),
        }
    }
}
