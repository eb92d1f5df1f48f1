//! What goes wrong with TLS.

use super::day;
use std::fmt;
use std::io;

/// Why a session is not secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// TLS is required, and the peer offers none (RFC 9174 7.4: or somebody between took the offer away).
    Plain,
    /// No authority of `tls.trust` stands behind the peer's certificate.
    Untrusted,
    /// The peer's certificate expired, Unix seconds.
    Expired(i64),
    /// The peer's certificate is not valid yet, by this node's clock; Unix seconds.
    NotYet(i64),
    /// This node does not know the time.
    NoClock,
    /// The key of the peer's certificate is not for bundles.
    Purpose,
    /// The key of the peer's certificate is not for signing.
    KeyUsage,
    /// The peer's certificate is malformed or not acceptable otherwise.
    Certificate(String),
    /// The peer showed no certificate.
    NoCertificate,
    /// The certificate proves neither the name that was called nor the address.
    Network,
    /// The certificate proves other node ids than the one the peer calls itself by, or that it is expected to have.
    NodeId {
        /// What it proves.
        proven: Vec<String>,
    },
    /// The peer refused, with this alert.
    Refused(String),
    /// The connection broke in the handshake.
    Broken,
    /// The handshake took too long, or the link was cut.
    Unfinished,
    /// TLS failed otherwise.
    Failed(String),
}

impl TlsFailure {
    /// What it is counted as.
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

    /// What an error of a connection has to do with TLS, if anything.
    pub(crate) fn of(error: &io::Error) -> Option<TlsFailure> {
        let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        Some(match inner {
            rustls::Error::AlertReceived(alert) => TlsFailure::Refused(spaced(&format!("{alert:?}"))),
            rustls::Error::NoCertificatesPresented => TlsFailure::NoCertificate,
            other => TlsFailure::Failed(other.to_string()),
        })
    }
}

/// `BadCertificate` as words.
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
            TlsFailure::Plain => f.write_str("TLS is required, and the peer offers none"),
            TlsFailure::Untrusted => {
                f.write_str("no authority in `tls.trust` stands behind the peer's certificate")
            }
            TlsFailure::Expired(at) => write!(f, "the peer's certificate expired on {}", day(*at)),
            TlsFailure::NotYet(at) => {
                write!(f, "by this node's clock the peer's certificate is not valid before {}", day(*at))
            }
            TlsFailure::NoClock => {
                f.write_str("this node does not know the time, so no certificate can be judged")
            }
            TlsFailure::Purpose => {
                f.write_str("the key purposes of the peer's certificate do not include bundle security")
            }
            TlsFailure::KeyUsage => f.write_str("the key of the peer's certificate is not for signing"),
            TlsFailure::Certificate(what) => write!(f, "the peer's certificate is not acceptable: {what}"),
            TlsFailure::NoCertificate => f.write_str("the peer showed no certificate"),
            TlsFailure::Network => {
                f.write_str("the peer's certificate does not prove the name or address it was reached by")
            }
            TlsFailure::NodeId { proven } if proven.is_empty() => {
                f.write_str("the peer's certificate proves no node id")
            }
            TlsFailure::NodeId { proven } => write!(
                f,
                "the peer's certificate proves {}, and that is not who it says it is, or not who is expected",
                proven.join(", ")
            ),
            TlsFailure::Refused(alert) => write!(f, "the peer broke TLS off: {alert}"),
            TlsFailure::Broken => f.write_str("the connection broke in the TLS handshake"),
            TlsFailure::Unfinished => f.write_str("the TLS handshake was given up unfinished"),
            TlsFailure::Failed(what) => write!(f, "TLS failed: {what}"),
        }
    }
}
