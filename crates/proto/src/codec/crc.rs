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
    const TABLE: [u32; 256] = table(CASTAGNOLI);
    !over_zeros(!crc, zeros, &TABLE)
}

/// Returns the part of a [`crc32c`] that some of its bytes contribute: from their own checksum, and the number of bytes after
/// them. The contributions of all parts make the checksum of the whole by XOR, in any order.
pub fn crc32c_part(crc: u32, bytes_after: u64) -> u32 {
    multiply(power_of_bytes(bytes_after), crc)
}

/// Reversed polynomial of CRC-32C.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// Returns the product of two polynomials modulo that of CRC-32C. The first coefficient is the most significant bit.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 1 << 31);
    while bit > 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = b >> 1 ^ if b & 1 == 1 { CASTAGNOLI } else { 0 };
        bit >>= 1;
    }
    product
}

/// Returns x to the power of 8 times `bytes`.
fn power_of_bytes(bytes: u64) -> u32 {
    /// x to the powers 8, 16, 32 ..
    const POWERS: [u32; 64] = {
        let mut powers = [1 << 23; 64];
        let mut index = 1;
        while index < 64 {
            powers[index] = multiply(powers[index - 1], powers[index - 1]);
            index += 1;
        }
        powers
    };
    let used = (0..64).filter(|index| bytes >> index & 1 == 1);
    used.fold(1 << 31, |product, index| multiply(POWERS[index as usize], product))
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
    fn parts_in_any_order_are_as_in_one() {
        let bytes: Vec<u8> = (0..=255).cycle().take(70_001).collect();
        for cuts in [[0, 0, 70_001], [1, 9, 4096], [3, 65_536, 70_000]] {
            let edges = [0, cuts[0], cuts[1], cuts[2], bytes.len()];
            let parts = edges
                .windows(2)
                .map(|edge| crc32c_part(crc32c(&bytes[edge[0]..edge[1]]), (bytes.len() - edge[1]) as u64));
            assert_eq!(parts.rev().fold(0, |sum, part| sum ^ part), crc32c(&bytes), "{cuts:?}");
        }
        let zeros = crc32c_over_zeros(crc32c(b"1"), 1000);
        assert_eq!(crc32c_part(crc32c(b"1"), 1000) ^ crc32c(&[0; 1000]), zeros);
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
