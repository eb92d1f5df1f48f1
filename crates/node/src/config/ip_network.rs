//! Networks of IP addresses, as in `44.0.0.0/9`.

use longwire_settings::error::Error;
use std::net::IpAddr;
use std::str::FromStr;

/// Network: an address, and the number of its bits that all addresses of the network have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpNetwork {
    address: IpAddr,
    bits: u8,
}

impl IpNetwork {
    /// Returns true if the address is in the network. Addresses of IPv4 that are written as IPv6 count as IPv4.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl FromStr for IpNetwork {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (address, bits) = text.split_once('/').unzip();
        let address = address.unwrap_or(text).parse::<IpAddr>().ok();
        let most = if address.is_some_and(|address| address.is_ipv6()) { 128 } else { 32 };
        let bits = bits.map_or(Some(most), |bits| bits.parse::<u8>().ok()).filter(|bits| *bits <= most);
        match address.zip(bits) {
            Some((address, bits)) => Ok(IpNetwork { address, bits }),
            None => Err(Error::new(format!("`amateur-networks`: `{text}` is not a network"))
                .hint("for example \"44.0.0.0/9\", or a single address")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_bits() {
        let is_in = |network: &str, address: &str| {
            let network: IpNetwork = network.parse().expect("a network");
            network.contains(address.parse().expect("an address"))
        };
        assert!(is_in("44.0.0.0/9", "44.127.3.4") && is_in("44.0.0.0/9", "::ffff:44.1.2.3"));
        assert!(!is_in("44.0.0.0/9", "44.128.0.1") && !is_in("44.0.0.0/9", "2001:db8::1"));
        assert!(is_in("0.0.0.0/0", "10.1.1.1") && is_in("2001:db8::/32", "2001:db8:7::1"));
        assert!(is_in("10.0.0.7", "10.0.0.7") && !is_in("10.0.0.7", "10.0.0.6"));
        for text in ["", "44.0.0.0/33", "44.0/8", "ampr.org", "44.0.0.0/-1"] {
            assert!(text.parse::<IpNetwork>().is_err(), "{text}");
        }
    }
}
