//! Answers of the node's own services that wait in its store for a link. Anybody can ask for one in the name of any node, and no quota of
//! a neighbour counts them: without a limit a stranger fills the store with answers to nodes that do not exist.
//!
//! Limits: [`ANSWERS_MAX`] answers, [`BYTES_MAX`] bytes of payload, of this start; the oldest ones beyond are deleted, because nobody waits
//! for an answer that others have overtaken by so many. Answers that were sent count, too: a router that makes copies keeps the first one.

use crate::surfaces::client::AppClient;
use crate::surfaces::message::Request;
use longwire_proto::service::BundleName;
use std::collections::BTreeMap;

const ANSWERS_MAX: usize = 1024;
const BYTES_MAX: u64 = 64 << 20;

/// Answers of a service by the number of their send, which grows.
#[derive(Debug, Default)]
pub(super) struct HeldAnswers {
    answers: BTreeMap<u64, (BundleName, u64)>,
    bytes: u64,
}

impl HeldAnswers {
    /// Adds an answer that is durable, and deletes those that are too many with it. Returns false if the node has stopped.
    pub(super) async fn keep(&mut self, client: &AppClient, send: u64, name: BundleName, bytes: u64) -> bool {
        for beyond in self.add(send, name, bytes) {
            if !client.request(Request::Delete(beyond)).await {
                return false;
            }
        }
        true
    }

    /// Adds an answer. Returns the names of those that must be deleted for it.
    fn add(&mut self, send: u64, name: BundleName, bytes: u64) -> Vec<BundleName> {
        self.answers.insert(send, (name, bytes));
        self.bytes += bytes;
        let mut beyond = Vec::new();
        while (self.answers.len() > ANSWERS_MAX || self.bytes > BYTES_MAX)
            && let Some((_, (name, bytes))) = self.answers.pop_first()
        {
            self.bytes -= bytes;
            beyond.push(name);
        }
        beyond
    }

    /// Forgets an answer that has failed.
    pub(super) fn remove(&mut self, send: u64) {
        if let Some((_, bytes)) = self.answers.remove(&send) {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::service::CreationTimestamp;

    fn name(number: u64) -> BundleName {
        BundleName { source: "dtn://alice/echo".to_owned(), created: CreationTimestamp::from((number, 0)) }
    }

    #[test]
    fn the_oldest_answers_beyond_number_and_bytes_are_deleted() {
        let mut held = HeldAnswers::default();
        let most = ANSWERS_MAX as u64;
        for send in 0..most {
            assert_eq!(held.add(send, name(send), 100), []);
        }
        held.remove(3);
        assert_eq!(held.add(most, name(most), 100), []);
        assert_eq!(held.add(most + 1, name(most + 1), 100), [name(0)]);
        // All others give way to one that needs all bytes.
        let beyond = held.add(most + 2, name(most + 2), BYTES_MAX);
        assert_eq!(beyond.len(), ANSWERS_MAX);
        assert_eq!((beyond[0].clone(), beyond[1].clone(), beyond[2].clone()), (name(1), name(2), name(4)));
        held.remove(most + 2);
        assert_eq!(held.bytes, 0);
    }
}
