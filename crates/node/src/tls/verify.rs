//! Verification of a peer's certificate in the handshake: RFC 9174 4.4.4.1.

use super::certificate::Claims;
use super::{CertificatePolicy, Credentials, TlsFailure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeIdIter};

/// Verifies the certificate of one peer once, for either side.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) policy: CertificatePolicy,
    /// Time by the node's clock, Unix seconds.
    pub(crate) unix_s: Option<u64>,
    /// Exact failure; the alert has less detail.
    pub(crate) trouble: OnceLock<TlsFailure>,
}

/// This module's policy checks the purposes of the end entity; RFC 5280 gives those of authorities no meaning.
struct AnyPurpose;

impl ExtendedKeyUsageValidator for AnyPurpose {
    fn validate(&self, mut purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        purposes.try_for_each(|purpose| purpose.map(drop))
    }
}

impl Verifier {
    fn judge(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Result<(), TlsFailure> {
        let unix_s = self.unix_s.ok_or(TlsFailure::NoClock)?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(unix_s));
        let claims = Claims::read(certificate).map_err(|error| TlsFailure::Certificate(error.to_string()))?;
        let path = EndEntityCert::try_from(certificate).and_then(|entity| {
            let algorithms = self.credentials.provider.signature_verification_algorithms.all;
            let anchors = &self.credentials.anchors;
            entity.verify_for_usage(algorithms, anchors, others, now, AnyPurpose, None, None).map(drop)
        });
        path.map_err(|error| match error {
            webpki::Error::CertExpired { not_after, .. } => TlsFailure::Expired(seconds(not_after)),
            webpki::Error::CertNotValidYet { not_before, .. } => TlsFailure::NotYet(seconds(not_before)),
            webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
                TlsFailure::Untrusted
            }
            other => TlsFailure::Certificate(other.to_string()),
        })?;
        if !self.policy.purpose.allows(claims.for_bundles) {
            return Err(TlsFailure::Purpose);
        }
        if claims.may_sign == Some(false) {
            return Err(TlsFailure::KeyUsage);
        }
        Ok(())
    }

    /// Every refusal becomes a bad_certificate alert to the peer (RFC 9174 4.4.4.1), to which rustls maps this error.
    fn verdict(&self, certificate: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        self.judge(certificate, others).map_err(|trouble| {
            let _ = self.trouble.set(trouble);
            Error::InvalidCertificate(CertificateError::BadEncoding)
        })
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.credentials.provider.signature_verification_algorithms
    }
}

fn seconds(time: UnixTime) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// The methods that the traits for servers and for clients have in common.
macro_rules! verify_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls12_signature(message, cert, dss, self.algorithms())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, cert, dss, self.algorithms())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms().supported_schemes()
        }
    };
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verdict(end_entity, intermediates).map(|()| ServerCertVerified::assertion())
    }

    verify_signatures!();
}

impl ClientCertVerifier for Verifier {
    fn client_auth_mandatory(&self) -> bool {
        !self.policy.anonymous_callers
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // A client has one certificate, so hints for a choice are useless.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verdict(end_entity, intermediates).map(|()| ClientCertVerified::assertion())
    }

    verify_signatures!();
}
