//! Verification of complete bundles that a crash left without a seal.

use crate::service::RecordId;
use crate::time::Instant;
use bytes::{Bytes, BytesMut};

use super::Agent;
use super::head::BundleEnd;
use super::held::BundleState;
use super::store::ReadPurpose;

/// Verification of a bundle's CRC.
#[derive(Debug)]
pub(super) struct Verifying {
    closing: BundleEnd,
    /// Bytes read from the beginning of the payload.
    at: u64,
    tail: BytesMut,
}

impl Agent {
    /// Begins the verification of a bundle without a seal.
    pub(super) fn verify(&mut self, record: RecordId) {
        let held = &self.holdings[&record];
        let closing = BundleEnd::of(&held.head);
        self.startup.verifying.insert(record, Verifying { closing, at: 0, tail: BytesMut::new() });
        self.verify_next(record);
    }

    pub(super) fn verify_next(&mut self, record: RecordId) {
        let held = &self.holdings[&record];
        let at = held.payload_at() + self.startup.verifying[&record].at;
        let left = held.notes_at() - at;
        let length = left.min(self.config.piece_bytes_max as u64) as u32;
        self.store.read(record, at, length, ReadPurpose::Verify);
    }

    /// Handles the next bytes of a bundle that is being verified.
    pub(super) fn verify_data(&mut self, now: Instant, record: RecordId, mut data: Bytes) {
        let (Some(verifying), Some(held)) =
            (self.startup.verifying.get_mut(&record), self.holdings.get_mut(&record))
        else {
            self.startup.verifying.remove(&record);
            return;
        };
        if data.is_empty() {
            return self.storage_lost(now, record);
        }
        let payload_left = held.payload_bytes().saturating_sub(verifying.at);
        verifying.at += data.len() as u64;
        let payload = data.split_to(data.len().min(usize::try_from(payload_left).unwrap_or(usize::MAX)));
        verifying.closing.update(&payload);
        verifying.tail.extend_from_slice(&data);
        if held.payload_at() + verifying.at < held.notes_at() {
            return self.verify_next(record);
        }
        let verifying = self.startup.verifying.remove(&record).expect("it was just found");
        let held = self.holdings.get_mut(&record).expect("it was just found");
        let mut tail = verifying.tail.freeze();
        let policy = self.startup.stored_policy();
        if held.head.read_tail(&verifying.closing, &mut tail, &policy).is_err() {
            self.counters.refused_damaged += 1;
            self.drop_bundle(record);
            return;
        }
        let held = self.holdings.get_mut(&record).expect("it was just found");
        if held.stored == held.notes_at() {
            self.seal(record);
        } else {
            // A torn seal follows the bundle: it is verified again at the next start.
            held.closed = true;
            held.state = BundleState::Sealing;
            self.holdings.settle_later(record);
        }
    }
}
