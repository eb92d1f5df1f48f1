//! The checksums of the implemented specifications, computed by a crate with the processor's own instructions.

use crc_fast::{CrcAlgorithm, Digest, checksum};

/// Returns the CRC-16/X-25 of the bytes (RFC 9171 4.2.1 type 1; the FCS of HDLC and AX.25).
pub fn crc16_x25(bytes: &[u8]) -> u16 {
    checksum(CrcAlgorithm::Crc16IbmSdlc, bytes) as u16
}

/// Returns the CRC-16/ARC of the bytes: the polynomial of SMACK with initial value and final XOR 0. Over data and its
/// own checksum, low octet first, it is 0.
pub fn crc16_arc(bytes: &[u8]) -> u16 {
    checksum(CrcAlgorithm::Crc16Arc, bytes) as u16
}

/// Returns the CRC-32C (Castagnoli) of the bytes (RFC 9171 4.2.1 type 2).
pub fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// Returns the CRC-32 of the bytes, as in Ethernet, PPP and zlib.
pub fn crc32(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// Extends the [`crc16_x25`] of some bytes by `zeros` zero bytes after them.
pub fn crc16_x25_over_zeros(crc: u16, zeros: usize) -> u16 {
    const TABLE: [u32; 256] = table(0x8408);
    !over_zeros(u32::from(!crc), zeros, &TABLE) as u16
}

/// Extends the [`crc32c`] of some bytes by `zeros` zero bytes after them.
pub fn crc32c_over_zeros(crc: u32, zeros: usize) -> u32 {
    const TABLE: [u32; 256] = table(0x82f6_3b78);
    !over_zeros(!crc, zeros, &TABLE)
}

fn over_zeros(register: u32, zeros: usize, table: &[u32; 256]) -> u32 {
    (0..zeros).fold(register, |register, _| table[(register & 0xff) as usize] ^ register >> 8)
}

/// Computes the table of a reversed polynomial: the change of the register for each value of the byte shifted out.
const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            register = register >> 1 ^ if register & 1 == 1 { polynomial } else { 0 };
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
}

/// A checksum over bytes that come in pieces.
#[derive(Clone, Debug)]
pub struct Running(Digest);

impl Running {
    /// Starts a CRC-16/X-25.
    pub fn crc16_x25() -> Self {
        Running(Digest::new(CrcAlgorithm::Crc16IbmSdlc))
    }

    /// Starts a CRC-32C.
    pub fn crc32c() -> Self {
        Running(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum of the bytes so far.
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
        assert_eq!(crc16_arc(b"123456789"), 0xbb3d);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn over_zeros_is_as_in_one() {
        let data = b"123456789\0\0\0\0\0";
        for zeros in 0..=5 {
            let whole = &data[..9 + zeros];
            assert_eq!(crc16_x25_over_zeros(crc16_x25(b"123456789"), zeros), crc16_x25(whole));
            assert_eq!(crc32c_over_zeros(crc32c(b"123456789"), zeros), crc32c(whole));
        }
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
