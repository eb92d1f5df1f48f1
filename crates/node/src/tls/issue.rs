//! Creation of certificates: a local authority, and the certificates that it signs (RFC 9174 4.4.2).
//!
//! The certificates have a NODE-ID, key usage digitalSignature, the key purposes bundleSecurity, serverAuth and clientAuth,
//! and both key identifiers; keys use the curve P-256.

use super::certificate::{BUNDLE_EID, BUNDLE_SECURITY};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use std::net::IpAddr;
use time::{Duration, OffsetDateTime};

/// subjectAltName (RFC 5280 4.2.1.6).
const SUBJECT_ALT_NAME: &[u64] = &[2, 5, 29, 17];
/// Lifetime of an authority, days.
const AUTHORITY_DAYS: i64 = 20 * 365;

/// Authority: its certificate, which nodes trust, and its private key.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// Contents of a certificate to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// Node IDs.
    pub node_ids: Vec<String>,
    /// Host names.
    pub names: Vec<String>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
    /// Key purposes, as object identifiers.
    pub purposes: Vec<Vec<u64>>,
    /// Beginning of the validity, Unix seconds.
    pub not_before: i64,
    /// End of the validity, Unix seconds.
    pub not_after: i64,
}

/// Certificate and key in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// Certificate.
    pub certificate: String,
    /// Private key.
    pub key: String,
}

impl CertificateRequest {
    /// Creates a request for a node, valid for `days` from now, and from one day before now because clocks differ.
    pub fn for_node(node_id: &str, unix_s: i64, days: u32) -> CertificateRequest {
        let day = 86_400;
        let tls = |last: u64| vec![1, 3, 6, 1, 5, 5, 7, 3, last];
        CertificateRequest {
            node_ids: vec![node_id.to_owned()],
            names: Vec::new(),
            addresses: Vec::new(),
            // Many TLS libraries require the last two.
            purposes: vec![BUNDLE_SECURITY.to_vec(), tls(1), tls(2)],
            not_before: unix_s - day,
            not_after: unix_s.saturating_add(i64::from(days) * day),
        }
    }
}

impl Authority {
    /// Creates an authority.
    ///
    /// # Errors
    /// Fails if the system provides no random numbers or a certificate cannot represent the time.
    pub fn new(name: &str, unix_s: i64) -> Result<(Authority, IssuedCertificate), Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.not_before = at(unix_s - 86_400)?;
        params.not_after = at(unix_s)? + Duration::days(AUTHORITY_DAYS);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.pem();
        let minted = IssuedCertificate { certificate: certificate.clone(), key: key.serialize_pem() };
        Ok((Authority { issuer: Issuer::new(params, key), certificate }, minted))
    }

    /// Reads an authority from its files.
    ///
    /// # Errors
    /// Fails if the files contain no authority.
    pub fn read(files: &IssuedCertificate) -> Result<Authority, Error> {
        let key = KeyPair::from_pem(&files.key)?;
        let issuer = Issuer::from_ca_cert_pem(&files.certificate, key)?;
        Ok(Authority { issuer, certificate: files.certificate.clone() })
    }

    /// Returns the certificate of the authority in PEM format.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Signs a certificate with the requested contents for a new key.
    ///
    /// # Errors
    /// Fails if a certificate cannot represent a name or time.
    pub fn sign(&self, wish: &CertificateRequest) -> Result<IssuedCertificate, Error> {
        let key = KeyPair::generate()?;
        let certificate: Certificate = params(wish)?.signed_by(&key, &self.issuer)?;
        Ok(IssuedCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn params(wish: &CertificateRequest) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name =
        named(wish.node_ids.first().or(wish.names.first()).map_or("", String::as_str));
    params.not_before = at(wish.not_before)?;
    params.not_after = at(wish.not_after)?;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = wish.purposes.iter().cloned().map(ExtendedKeyUsagePurpose::Other).collect();
    params.use_authority_key_identifier_extension = true;
    let names = alternative_names(wish)?;
    if !names.is_empty() {
        let names = CustomExtension::from_oid_content(SUBJECT_ALT_NAME, der(0x30, &names));
        params.custom_extensions = vec![names];
    }
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut out = DistinguishedName::new();
    out.push(DnType::CommonName, name);
    out
}

fn at(unix_s: i64) -> Result<OffsetDateTime, Error> {
    OffsetDateTime::from_unix_timestamp(unix_s).map_err(|_| Error::Time)
}

/// Encodes the GeneralNames (RFC 5280 4.2.1.6); rcgen cannot represent the IA5String of a bundleEID.
fn alternative_names(wish: &CertificateRequest) -> Result<Vec<u8>, Error> {
    let ascii = |text: &str| {
        let bad = || Error::CouldNotParseCertificate;
        if text.is_ascii() { Ok(text.as_bytes().to_vec()) } else { Err(bad()) }
    };
    let mut out = Vec::new();
    for node_id in &wish.node_ids {
        let value = der(0xa0, &der(0x16, &ascii(node_id)?));
        out.extend(der(0xa0, &[object_identifier(BUNDLE_EID), value].concat()));
    }
    for name in &wish.names {
        out.extend(der(0x82, &ascii(name)?));
    }
    for address in &wish.addresses {
        let bytes = match address {
            IpAddr::V4(four) => four.octets().to_vec(),
            IpAddr::V6(six) => six.octets().to_vec(),
        };
        out.extend(der(0x87, &bytes));
    }
    Ok(out)
}

/// Encodes a tag, a length and a value (X.690 8.1).
fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let mut out = vec![tag];
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        out.push(0x80 | bytes.len() as u8);
        out.extend(bytes);
    }
    out.extend_from_slice(value);
    out
}

/// Encodes an object identifier whose arcs are all below 128, except the first two, which share a byte (X.690 8.19).
fn object_identifier(arcs: &[u64]) -> Vec<u8> {
    let rest = arcs[2..].iter().map(|arc| *arc as u8);
    let value: Vec<u8> = std::iter::once((arcs[0] * 40 + arcs[1]) as u8).chain(rest).collect();
    der(0x06, &value)
}
