//! Certificate, key and trusted authorities of a node, read from their files.

use super::TlsSettings;
use super::certificate::Claims;
use longwire_settings::error::Error;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor};
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::sync::Arc;

/// Hint for missing or unsuitable files.
const HINT: &str = "create certificates with `longwire certificate`, which prints these settings";

/// Certificate and key of a node, and the authorities that it trusts.
#[derive(Debug)]
pub struct Credentials {
    pub(crate) provider: Arc<CryptoProvider>,
    pub(crate) key: Arc<CertifiedKey>,
    pub(crate) anchors: Vec<TrustAnchor<'static>>,
    claims: Claims,
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails if a file is not configured, cannot be read, or has the wrong contents, or if the key belongs to another
    /// certificate.
    pub fn load(settings: &TlsSettings) -> Result<Credentials, Error> {
        let missing = |what: &str| Error::new(format!("TLS is on, but `tls.{what}` is not set")).hint(HINT);
        let certificate = settings.certificate.as_deref().ok_or_else(|| missing("certificate"))?;
        let key = settings.key.as_deref().ok_or_else(|| missing("key"))?;
        if settings.trust.is_empty() {
            return Err(missing("trust"));
        }
        let chain = certificates("certificate", certificate)?;
        let claims = claims(certificate, &chain[0])?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("key", key, &error))?;
        let provider = Arc::new(default_provider());
        let pair = CertifiedKey::from_der(chain, private, &provider).map_err(|error| {
            let (key, certificate) = (key.display(), certificate.display());
            Error::new(format!("the key {key} does not match the certificate {certificate}: {error}"))
                .hint(HINT)
        })?;
        let mut anchors = Vec::new();
        for path in &settings.trust {
            for authority in certificates("trust", path)? {
                let anchor = webpki::anchor_from_trusted_cert(&authority).map_err(|error| {
                    Error::new(format!(
                        "`tls.trust`: {} is not a certificate authority: {error}",
                        path.display()
                    ))
                    .hint(HINT)
                })?;
                anchors.push(anchor.to_owned());
            }
        }
        Ok(Credentials { provider, key: Arc::new(pair), anchors, claims })
    }

    /// Returns the claims of the node's own certificate.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }
}

fn certificates(key: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(key, path, &error))?;
    if found.is_empty() {
        return Err(unreadable(key, path, &pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn claims(path: &Path, certificate: &CertificateDer<'_>) -> Result<Claims, Error> {
    Claims::read(certificate).map_err(|error| {
        Error::new(format!("`tls.certificate`: no certificate in {}: {error}", path.display())).hint(HINT)
    })
}

fn unreadable(key: &str, path: &Path, error: &pem::Error) -> Error {
    let path = path.display();
    match error {
        pem::Error::Io(error) => Error::new(format!("`tls.{key}`: cannot read {path}: {error}"))
            .hint(format!("paths are relative to the configuration file; {HINT}")),
        pem::Error::NoItemsFound => Error::new(format!("`tls.{key}`: nothing usable in {path}"))
            .hint(format!("it must be a PEM file; {HINT}")),
        other => Error::new(format!("`tls.{key}`: {path} is not a PEM file: {other}")).hint(HINT),
    }
}
