//! Claims of a certificate (RFC 9174 4.4.1, 4.4.2).

use longwire_proto::bp::Eid;
use std::net::IpAddr;
use x509_parser::asn1_rs::{FromDer, Ia5String, TaggedExplicit};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{ExtendedKeyUsage, GeneralName};

/// id-on-bundleEID: the kind of name that is an endpoint ID (RFC 9174 8.10).
pub const BUNDLE_EID: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 8, 11];
/// id-kp-bundleSecurity: the key purpose for bundles (RFC 9174 8.11).
pub const BUNDLE_SECURITY: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 35];
/// Maximum names kept per certificate, which has at most 64 KiB in a handshake.
const NAMES_MAX: usize = 256;

/// Claims of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Distinguished name of the subject; proves nothing here.
    pub subject: String,
    /// Distinguished name of the issuer.
    pub issuer: String,
    /// Node IDs (NODE-ID).
    pub node_ids: Vec<String>,
    /// Host names (DNS-ID).
    pub names: Vec<String>,
    /// Addresses (IPADDR-ID).
    pub addresses: Vec<IpAddr>,
    /// True if bundle security is among the key purposes; `None` without key purposes.
    pub for_bundles: Option<bool>,
    /// True if the key may sign; `None` without a key usage extension.
    pub may_sign: Option<bool>,
    /// Beginning of the validity, Unix seconds.
    pub not_before: i64,
    /// End of the validity, Unix seconds.
    pub not_after: i64,
}

impl Claims {
    /// Parses a certificate, without verifying it.
    ///
    /// # Errors
    /// Fails if the data is not an X.509 certificate.
    pub fn read(der: &[u8]) -> Result<Claims, X509Error> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| match error {
            x509_parser::nom::Err::Error(error) | x509_parser::nom::Err::Failure(error) => error,
            x509_parser::nom::Err::Incomplete(_) => X509Error::InvalidCertificate,
        })?;
        let mut claims = Claims {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            for_bundles: certificate.extended_key_usage()?.map(|usage| is_for_bundles(usage.value)),
            may_sign: certificate.key_usage()?.map(|usage| usage.value.digital_signature()),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
            ..Claims::default()
        };
        if let Some(names) = certificate.subject_alternative_name()? {
            for name in names.value.general_names.iter().take(NAMES_MAX) {
                claims.add(name);
            }
        }
        Ok(claims)
    }

    fn add(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::OtherName(kind, value) => {
                let is_endpoint = kind.iter().is_some_and(|arcs| arcs.eq(BUNDLE_EID.iter().copied()));
                self.node_ids.extend(Some(value).filter(|_| is_endpoint).and_then(|value| node_id(value)));
            }
            GeneralName::DNSName(name) => self.names.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                self.addresses.extend(address);
            }
            _ => {}
        }
    }
}

/// Returns the value of a bundleEID if it is a node ID: another endpoint of a node is not a NODE-ID (RFC 9174 4.4.2.1).
fn node_id(value: &[u8]) -> Option<String> {
    let (rest, text) = TaggedExplicit::<Ia5String<'_>, _, 0>::from_der(value)
        .map_err(|_: x509_parser::nom::Err<x509_parser::asn1_rs::Error>| ())
        .ok()?;
    let eid = rest.is_empty().then(|| text.into_inner().string().parse::<Eid>().ok())??;
    (eid.is_node_id() && !eid.is_null()).then(|| eid.to_string())
}

fn is_for_bundles(usage: &ExtendedKeyUsage<'_>) -> bool {
    let is = |arcs: &x509_parser::oid_registry::Oid<'_>| {
        arcs.iter().is_some_and(|arcs| arcs.eq(BUNDLE_SECURITY.iter().copied()))
    };
    usage.any || usage.other.iter().any(is)
}
