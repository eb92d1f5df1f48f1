//! The TLS handshake on an open stream (RFC 9174 4.4.3), and what it proves about the peer (RFC 9174 4.4.4).

use super::quick_ack::QuickAck;
use super::stream::ByteStream;
use crate::tls::certificate::Claims;
use crate::tls::verify::Verifier;
use crate::tls::{CertificatePolicy, Credentials, Rule, TlsFailure};
use crate::view::Proven;
use crate::write_timeout::WriteTimeoutStream;
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, DnsName, IpAddr, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, CommonState, ProtocolVersion, ServerConfig};
use std::any::Any;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use webpki::EndEntityCert;

/// Time for a refused peer to read the alert, and number of its further bytes to discard: closing a connection with unread
/// bytes would discard the alert.
const LINGER_MAX: (Duration, u64) = (Duration::from_secs(1), 64 * 1024);

#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) policy: CertificatePolicy,
    /// True if this side opened the connection.
    pub(crate) client: bool,
    /// Host to which this node connected: a name or an address.
    pub(crate) host: Option<String>,
    /// Name that the peer must prove.
    pub(crate) name: Option<String>,
    /// Time by the node's clock, Unix seconds.
    pub(crate) unix_s: Option<u64>,
}

/// Result of a successful handshake.
pub(crate) struct SecuredConnection {
    pub(crate) wire: Box<dyn ByteStream>,
    pub(crate) proven: Proven,
    /// Node IDs that the engine may trust.
    pub(crate) identities: Vec<String>,
    /// True if the peer's name and address meet the policy.
    pub(crate) trusted: bool,
}

impl Handshake {
    /// Performs the handshake. On a failure the peer receives an alert.
    pub(crate) async fn run(self, wire: Box<dyn ByteStream>) -> Result<SecuredConnection, TlsFailure> {
        let address = peer_address(&*wire);
        let verifier = Arc::new(Verifier {
            credentials: self.credentials.clone(),
            policy: self.policy,
            unix_s: self.unix_s,
            trouble: OnceLock::new(),
        });
        let unusable = |error: rustls::Error| TlsFailure::Failed(error.to_string());
        let secured = if self.client {
            let config = Arc::new(self.client_config(&verifier).map_err(unusable)?);
            let connecting = TlsConnector::from(config).connect(self.server_name(), wire);
            connecting.into_fallible().await.map(|stream| {
                let facts = facts(stream.get_ref().1);
                let wire: Box<dyn ByteStream> = Box::new(stream);
                (wire, facts)
            })
        } else {
            let config = Arc::new(self.server_config(&verifier).map_err(unusable)?);
            TlsAcceptor::from(config).accept(wire).into_fallible().await.map(|stream| {
                let facts = facts(stream.get_ref().1);
                let wire: Box<dyn ByteStream> = Box::new(stream);
                (wire, facts)
            })
        };
        match secured {
            Ok((wire, facts)) => self.conclude(wire, facts, address),
            Err((error, wire)) => {
                linger(wire).await;
                Err(verifier.trouble.get().cloned().unwrap_or_else(|| trouble(&error)))
            }
        }
    }

    fn client_config(&self, verifier: &Arc<Verifier>) -> Result<ClientConfig, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(self.credentials.provider.clone())
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(self.credentials.key.clone())));
        config.resumption = Resumption::disabled();
        // SNI contains host names only, not addresses (RFC 9174 4.4.3).
        config.enable_sni = matches!(self.server_name(), ServerName::DnsName(_));
        Ok(config)
    }

    fn server_config(&self, verifier: &Arc<Verifier>) -> Result<ServerConfig, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(self.credentials.provider.clone())
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_client_cert_verifier(verifier.clone())
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(self.credentials.key.clone())));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// Returns the name for the ClientHello, if the host has one.
    fn server_name(&self) -> ServerName<'static> {
        let named = self.name.as_ref().or(self.host.as_ref());
        named
            .and_then(|name| ServerName::try_from(name.clone()).ok())
            .unwrap_or(ServerName::IpAddress(std::net::IpAddr::from([0, 0, 0, 0]).into()))
    }

    fn conclude(
        &self,
        wire: Box<dyn ByteStream>,
        facts: ConnectionFacts,
        address: Option<std::net::IpAddr>,
    ) -> Result<SecuredConnection, TlsFailure> {
        let Some(certificate) = facts.certificate else {
            return self.conclude_anonymous(wire, facts.version, facts.cipher);
        };
        let claims =
            Claims::read(&certificate).map_err(|error| TlsFailure::Certificate(error.to_string()))?;
        let entity = EndEntityCert::try_from(&certificate)
            .map_err(|error| TlsFailure::Certificate(error.to_string()))?;
        let host = self.name.as_ref().or(self.host.as_ref());
        let found = network(&entity, &claims, host.map(String::as_str), address);
        let named = self.name.as_ref().is_none_or(|name| proves_name(&entity, name));
        let trusted = named && self.policy.network.allows(found.as_ref().map(|proven| proven.is_some()));
        let believed = self.policy.node_id != Rule::Ignore;
        let identities = if believed { claims.node_ids.clone() } else { Vec::new() };
        let proven = Proven {
            version: facts.version.to_owned(),
            cipher: facts.cipher,
            node_ids: claims.node_ids,
            network: found.flatten(),
            not_after_unix_s: Some(claims.not_after),
        };
        Ok(SecuredConnection { wire, proven, identities, trusted })
    }

    /// Concludes a handshake with a client that sent no certificate: every claim is absent.
    fn conclude_anonymous(
        &self,
        wire: Box<dyn ByteStream>,
        version: &str,
        cipher: String,
    ) -> Result<SecuredConnection, TlsFailure> {
        if self.client || !self.policy.anonymous_callers {
            return Err(TlsFailure::NoCertificate);
        }
        let proven = Proven { version: version.to_owned(), cipher, ..Proven::default() };
        let trusted = self.name.is_none() && self.policy.network.allows(None);
        Ok(SecuredConnection { wire, proven, identities: Vec::new(), trusted })
    }
}

/// Facts about a TLS connection.
struct ConnectionFacts {
    version: &'static str,
    cipher: String,
    certificate: Option<CertificateDer<'static>>,
}

fn facts(connection: &CommonState) -> ConnectionFacts {
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    };
    let cipher = connection.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
    let chain = connection.peer_certificates().and_then(<[_]>::first);
    ConnectionFacts {
        version,
        cipher: cipher.unwrap_or_default(),
        certificate: chain.map(|certificate| certificate.clone().into_owned()),
    }
}

/// Compares the names and addresses of a certificate with those of the connection (RFC 9174 4.4.4.2). Returns `None` if the
/// certificate has none of the kind, otherwise the one that matches, if any.
fn network(
    entity: &EndEntityCert<'_>,
    claims: &Claims,
    host: Option<&str>,
    address: Option<std::net::IpAddr>,
) -> Option<Option<String>> {
    let name = host.filter(|host| host.parse::<std::net::IpAddr>().is_err());
    let by_name = name.filter(|_| !claims.names.is_empty());
    let by_address = address.filter(|_| !claims.addresses.is_empty());
    if by_name.is_none() && by_address.is_none() {
        return None;
    }
    let proven = by_name.filter(|name| proves_name(entity, name)).map(str::to_owned);
    Some(proven.or_else(|| by_address.filter(|ip| proves_address(entity, *ip)).map(|ip| ip.to_string())))
}

fn proves_name(entity: &EndEntityCert<'_>, name: &str) -> bool {
    match name.parse::<std::net::IpAddr>() {
        Ok(ip) => proves_address(entity, ip),
        Err(_) => DnsName::try_from(name)
            .is_ok_and(|name| entity.verify_is_valid_for_subject_name(&ServerName::DnsName(name)).is_ok()),
    }
}

fn proves_address(entity: &EndEntityCert<'_>, ip: std::net::IpAddr) -> bool {
    // An IPv4 address on an IPv6 socket is the same address.
    let ip = IpAddr::from(ip.to_canonical());
    entity.verify_is_valid_for_subject_name(&ServerName::IpAddress(ip)).is_ok()
}

/// Returns the address of the peer; `None` unless the connection uses TCP.
pub(crate) fn peer_address(wire: &dyn ByteStream) -> Option<std::net::IpAddr> {
    let wire: &dyn Any = wire;
    // The pump has wrapped the stream in its write timeout.
    let wire = wire
        .downcast_ref::<WriteTimeoutStream<Box<dyn ByteStream>>>()
        .map_or(wire, |patient| &**patient.inner());
    wire.downcast_ref::<QuickAck>()?.stream().peer_addr().ok().map(|address| address.ip())
}

fn trouble(error: &io::Error) -> TlsFailure {
    TlsFailure::of(error).unwrap_or_else(|| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            TlsFailure::Broken
        }
        _ => TlsFailure::Failed(error.to_string()),
    })
}

/// Gives the peer time to read why it is refused.
async fn linger(mut wire: Box<dyn ByteStream>) {
    let (patience, bytes) = LINGER_MAX;
    let listening = async {
        wire.shutdown().await?;
        tokio::io::copy(&mut (&mut wire).take(bytes), &mut tokio::io::sink()).await
    };
    // The connection ends in any case.
    let _ = tokio::time::timeout(patience, listening).await;
}
