//! Failures of TLS.

use super::day;
use std::io;

/// Reason why a session is not secured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// TLS is required but the peer does not offer it (RFC 9174 7.4: or an attacker in between removed the offer).
    #[error("TLS is required but the peer does not offer it")]
    Plain,
    /// The peer's certificate is not signed by an authority in `tls.trust`.
    #[error("the peer's certificate is not signed by an authority in `tls.trust`")]
    Untrusted,
    /// The peer's certificate expired at this time, Unix seconds.
    #[error("the peer's certificate expired on {}", day(*.0))]
    Expired(i64),
    /// The peer's certificate is not valid before this time, Unix seconds.
    #[error("the peer's certificate is not valid before {} (check the clock)", day(*.0))]
    NotYet(i64),
    /// This node has no valid time.
    #[error("this node has no valid time, so it cannot check certificates")]
    NoClock,
    /// The key of the peer's certificate is not for bundles.
    #[error("the key purposes of the peer's certificate do not include bundle security")]
    Purpose,
    /// The key of the peer's certificate is not allowed to sign.
    #[error("the key of the peer's certificate is not allowed to sign")]
    KeyUsage,
    /// The peer's certificate is malformed or unacceptable for another reason.
    #[error("the peer's certificate is not acceptable: {0}")]
    Certificate(String),
    /// The peer sent no certificate.
    #[error("the peer sent no certificate")]
    NoCertificate,
    /// The certificate proves neither the host name to which this node connected nor the address.
    #[error("the peer's certificate does not match its host name or address")]
    Network,
    /// The certificate proves other node IDs than the one that the peer claims or that is expected.
    #[error("{}", wrong_node_id(.proven))]
    NodeId {
        /// Node IDs that the certificate proves.
        proven: Vec<String>,
    },
    /// The peer aborted TLS with this alert.
    #[error("the peer aborted TLS: {0}")]
    Refused(String),
    /// The connection was lost during the handshake.
    #[error("connection lost during the TLS handshake")]
    Broken,
    /// The handshake timed out, or the link was closed.
    #[error("TLS handshake timed out or cancelled")]
    Unfinished,
    /// TLS failed for another reason.
    #[error("TLS failed: {0}")]
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

fn wrong_node_id(proven: &[String]) -> String {
    match proven {
        [] => "the peer's certificate contains no node ID".to_owned(),
        all => format!(
            "the peer's certificate proves {}, which is not the claimed or expected node ID",
            all.join(", ")
        ),
    }
}
