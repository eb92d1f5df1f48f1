//! The checksums of the specifications at hand, computed by a crate with the processor's own instructions.

use crc_fast::{CrcAlgorithm, Digest, checksum};

/// CRC-16/X-25 (RFC 9171 4.2.1 type 1; the FCS of HDLC and AX.25).
pub fn crc16_x25(bytes: &[u8]) -> u16 {
    checksum(CrcAlgorithm::Crc16IbmSdlc, bytes) as u16
}

/// CRC-32C, Castagnoli (RFC 9171 4.2.1 type 2).
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// CRC-32 as in Ethernet, PPP and zlib.
pub fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// A checksum over bytes that come in pieces.
#[derive(Clone, Debug)]
pub struct Running(Digest);

impl Running {
    /// CRC-16/X-25.
    pub fn crc16_x25() -> Self {
        Running(Digest::new(CrcAlgorithm::Crc16IbmSdlc))
    }

    /// CRC-32C.
    pub fn crc32c() -> Self {
        Running(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum so far.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values_of_the_catalogue() {
        assert_eq!(crc16_x25(b"123456789"), 0x906e);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn in_pieces_is_as_in_one() {
        let mut running = Running::crc32c();
        running.update(b"1234");
        running.update(b"56789");
        assert_eq!(running.value(), 0xe306_9283);
        let mut running = Running::crc16_x25();
        running.update(b"12345678");
        running.update(b"9");
        assert_eq!(running.value(), 0x906e);
    }
}
