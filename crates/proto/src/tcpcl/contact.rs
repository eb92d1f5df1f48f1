//! Common beginning of the contact headers of both versions: the magic string and the version number (RFC 9174 4.2, RFC
//! 7242 4.1).

use crate::codec::DecodeError;

/// Magic string at the beginning of every contact header.
pub const MAGIC: [u8; 4] = *b"dtn!";

/// Returns the version number of the contact header at the beginning of `input`. Fails at the first wrong byte of the
/// magic string.
pub fn sniff(input: &[u8]) -> Result<u8, DecodeError> {
    let length = input.len().min(MAGIC.len());
    if input[..length] != MAGIC[..length] {
        return Err(DecodeError::invalid("the magic of a contact header", "RFC 9174 4.3"));
    }
    input.get(MAGIC.len()).copied().ok_or(DecodeError::Incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_known_from_the_first_wrong_byte() {
        assert_eq!(sniff(b""), Err(DecodeError::Incomplete));
        assert_eq!(sniff(b"dtn!"), Err(DecodeError::Incomplete));
        assert_eq!(sniff(b"dtn!\x07"), Ok(7));
        let wrong = Err(DecodeError::invalid("the magic of a contact header", "RFC 9174 4.3"));
        assert_eq!(sniff(b"G"), wrong);
        assert_eq!(sniff(b"dtnx\x04"), wrong);
    }
}
