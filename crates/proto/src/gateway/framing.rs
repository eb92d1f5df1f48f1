//! Datagrams in a flow of bytes from which parts may be missing.
//!
//! ```text
//!   COBS code of a datagram .. | 0 | COBS code of the next one .. | 0 | ..
//! ```
//!
//! Consistent overhead byte stuffing (Cheshire and Baker, 1999) writes a datagram without zeros, one octet longer for each 254 begun, so
//! that a zero ends it. After a gap everything up to the next zero is dropped: a datagram arrives whole or not at all.

use bytes::{BufMut, Bytes, BytesMut};

/// Longest run without zeros that one code stands for.
const RUN: usize = 254;

/// Appends a datagram and the zero that ends it.
pub(super) fn write(datagram: &[u8], out: &mut BytesMut) {
    out.reserve(length(datagram.len()));
    let parts = datagram.split(|byte| *byte == 0);
    for part in parts {
        let mut runs = part.chunks(RUN).peekable();
        if runs.peek().is_none() {
            out.put_u8(1);
        }
        while let Some(run) = runs.next() {
            out.put_u8(run.len() as u8 + 1);
            out.put_slice(run);
            // The code of a full run stands for no zero: one that follows needs a code of its own.
            if run.len() == RUN && runs.peek().is_none() {
                out.put_u8(1);
            }
        }
    }
    out.put_u8(0);
}

/// Maximum length of the code of a datagram, with the zero at its end.
pub(super) const fn length(datagram: usize) -> usize {
    datagram + datagram / RUN + 3
}

/// Reads datagrams.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Beginning of a code.
    code: BytesMut,
    /// The rest of a code is dropped.
    skips: bool,
}

impl Reader {
    /// Takes the next bytes of the flow and returns the datagrams that are complete now. Codes that are too long are dropped.
    pub(super) fn read(&mut self, bytes: &[u8], datagram_bytes_max: usize) -> Vec<Bytes> {
        let mut found = Vec::new();
        for (at, part) in bytes.split(|byte| *byte == 0).enumerate() {
            if at > 0 {
                let skips = core::mem::take(&mut self.skips);
                found.extend(decode(&self.code).filter(|_| !skips));
                self.code.clear();
            }
            if self.code.len() + part.len() >= length(datagram_bytes_max) {
                self.gap();
            }
            if !self.skips {
                self.code.extend_from_slice(part);
            }
        }
        found
    }

    /// Bytes are missing before the next ones.
    pub(super) fn gap(&mut self) {
        self.skips = true;
        self.code.clear();
    }
}

/// Reads a code; `None` if it is none.
fn decode(mut code: &[u8]) -> Option<Bytes> {
    let mut out = BytesMut::with_capacity(code.len());
    loop {
        let (&first, rest) = code.split_first()?;
        let run = usize::from(first) - 1;
        out.put_slice(rest.get(..run)?);
        code = &rest[run..];
        if code.is_empty() {
            return Some(out.freeze());
        }
        if run < RUN {
            out.put_u8(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn datagrams_of_any_bytes_are_read_however_the_flow_is_cut() {
        let mut rng = Rng::new(1);
        let lengths = [0, 1, 2, 253, 254, 255, 508, 509, 1000];
        let mut datagrams: Vec<Vec<u8>> = lengths.iter().map(|length| vec![7; *length]).collect();
        datagrams.extend(lengths.iter().map(|length| vec![0; *length]));
        datagrams.extend((0..40).map(|_| (0..rng.below(600)).map(|_| rng.below(3) as u8).collect()));
        let mut flow = BytesMut::new();
        for datagram in &datagrams {
            let before = flow.len();
            write(datagram, &mut flow);
            assert!(flow.len() - before <= length(datagram.len()), "{}", datagram.len());
        }
        for part in [1, 2, 100, flow.len()] {
            let mut reader = Reader::default();
            let read: Vec<Bytes> = flow.chunks(part).flat_map(|part| reader.read(part, 1000)).collect();
            assert_eq!(read, datagrams, "in parts of {part}");
        }
    }

    #[test]
    fn a_gap_costs_the_datagrams_that_it_touches() {
        let datagrams: Vec<Vec<u8>> = (1..=30_u8).map(|value| vec![value; 20]).collect();
        let mut flow = BytesMut::new();
        datagrams.iter().for_each(|datagram| write(datagram, &mut flow));
        for (from, to) in [(0, 1), (5, 6), (21, 22), (22, 23), (3, 100), (600, 660)] {
            let mut reader = Reader::default();
            let mut read = reader.read(&flow[..from], 100);
            reader.gap();
            read.extend(reader.read(&flow[to..], 100));
            let whole: Vec<&Vec<u8>> = datagrams
                .iter()
                .filter(|datagram| read.contains(&Bytes::copy_from_slice(datagram)))
                .collect();
            assert_eq!(whole.len(), read.len(), "each is one that was sent: {from}..{to}");
            // A datagram takes 22 octets; the one after a gap is lost as well if the gap takes the zero before it.
            let touched = (to - 1) / 22 - from / 22 + 1 + usize::from(to % 22 == 0);
            assert!(read.len() >= 30 - touched, "{} of 30 after {from}..{to}", read.len());
        }
    }

    #[test]
    fn a_code_without_end_is_bounded() {
        let mut reader = Reader::default();
        for _ in 0..1000 {
            assert!(reader.read(&[9; 1000], 2000).is_empty());
            assert!(reader.code.len() < length(2000));
        }
        let mut flow = BytesMut::from(&[0][..]);
        write(b"next", &mut flow);
        assert_eq!(reader.read(&flow, 2000), [Bytes::from_static(b"next")]);
    }
}
