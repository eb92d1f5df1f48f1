//! Files over a bundle agent: one bundle per file.
//!
//! The source passes each file to the agent in pieces, as far as there is room. The destination registers, reads every
//! delivery from the agent's storage in pieces, compares it, and emits `Taken`. A relay runs the same engine, which
//! only sets the time, the routes and the links of its agent.

use super::{FileTask, TaskIndication, TaskRequest, TryFailure};
use bytes::Bytes;
use longwire_proto::engine::{Engine, no_timers};
use longwire_proto::service::{
    AppIndication, AppRequest, Bpa, BpaIndication, BpaRequest, DeliveryId, SendId, SendOptions,
};
use longwire_proto::time::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Length of one read of a delivery, bytes.
const READ_BYTES: u32 = 256 * 1024;

/// Maximum length of a piece passed down, bytes.
const PIECE_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug)]
struct Reading {
    length: u64,
    at: u64,
    /// Bytes requested so far; a read may be answered in pieces.
    asked: u64,
    /// Expected files that match the data so far.
    candidates: Vec<usize>,
}

/// Workload: sender and receiver in one, each inactive until requested.
#[derive(Debug, Default)]
pub struct FilesOverBundles {
    destination: String,
    options: SendOptions,
    files: Vec<Bytes>,
    /// File being passed down, and the position in it.
    current: usize,
    handed: u64,
    opened: bool,
    room: u64,
    expected: Vec<Bytes>,
    done: Vec<bool>,
    reading: BTreeMap<DeliveryId, Reading>,
    down: VecDeque<BpaRequest>,
    up: VecDeque<TaskIndication>,
}

impl FilesOverBundles {
    /// Creates a workload that first sends `setup` to the agent (clock, routes, registrations, links), and then files
    /// to the endpoint `destination` when requested.
    pub fn new(setup: Vec<BpaRequest>, destination: String, options: SendOptions) -> Self {
        FilesOverBundles { destination, options, down: setup.into(), ..FilesOverBundles::default() }
    }

    /// Opens the next file, or passes down the next piece of the open one.
    fn send(&mut self) -> Option<AppRequest> {
        let file = self.files.get(self.current)?;
        let length = file.len() as u64;
        let send = SendId(self.current as u64);
        if !self.opened {
            self.opened = true;
            let (destination, options) = (self.destination.clone(), self.options.clone());
            return Some(AppRequest::Send { send, destination, length, options });
        }
        if self.handed == length {
            self.next_file();
            return self.send();
        }
        let size = self.room.min(PIECE_BYTES_MAX).min(length - self.handed);
        if size == 0 {
            return None;
        }
        let data = file.slice(self.handed as usize..(self.handed + size) as usize);
        self.handed += size;
        self.room -= size;
        Some(AppRequest::Piece { send, data })
    }

    fn next_file(&mut self) {
        self.current += 1;
        self.handed = 0;
        self.opened = false;
    }

    fn delivered(&mut self, delivery: DeliveryId, length: u64) {
        if self.reading.contains_key(&delivery) {
            return;
        }
        let fits = |&file: &usize| self.expected[file].len() as u64 == length;
        let candidates = (0..self.expected.len()).filter(fits).collect();
        self.reading.insert(delivery, Reading { length, at: 0, asked: 0, candidates });
        self.read_on(delivery);
    }

    /// Requests the next part of a delivery when the previous part has arrived, or ends it.
    fn read_on(&mut self, delivery: DeliveryId) {
        let Some(reading) = self.reading.get_mut(&delivery) else { return };
        if reading.at < reading.asked {
            // The remainder of the answer is still to come.
            return;
        }
        if reading.at < reading.length {
            reading.asked = reading.length.min(reading.at + u64::from(READ_BYTES));
            self.down.push_back(AppRequest::Read { delivery, offset: reading.at, length: READ_BYTES }.into());
            return;
        }
        let intact = !reading.candidates.is_empty();
        let fresh = reading.candidates.iter().copied().find(|&file| !self.done[file]);
        let other = (0..self.done.len()).find(|&file| !self.done[file]);
        let file = fresh.or(reading.candidates.first().copied()).or(other);
        self.down.push_back(AppRequest::Taken { delivery }.into());
        let Some(file) = file else { return };
        if !core::mem::replace(&mut self.done[file], true) {
            self.up.push_back(TaskIndication::Done { file, intact });
        }
    }

    fn data(&mut self, delivery: DeliveryId, offset: u64, data: &Bytes) {
        let Some(reading) = self.reading.get_mut(&delivery) else { return };
        if offset != reading.at || data.is_empty() {
            return;
        }
        let (from, to) = (offset as usize, offset as usize + data.len());
        let expected = &self.expected;
        reading.candidates.retain(|&file| expected[file].get(from..to) == Some(&data[..]));
        reading.at = to as u64;
        self.read_on(delivery);
    }
}

impl Engine for FilesOverBundles {
    type Above = FileTask;
    type Below = Bpa;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, request: TaskRequest) {
        match request {
            TaskRequest::Start { files } => self.files.extend(files),
            TaskRequest::Expect { files } => {
                self.done.extend(files.iter().map(|_| false));
                self.expected.extend(files);
            }
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: BpaIndication) {
        let BpaIndication::App(indication) = indication else { return };
        match indication {
            AppIndication::Room(room) => self.room = room,
            AppIndication::Failed { send, reason } => {
                let file = send.0 as usize;
                let why = TryFailure::Bundle(reason);
                self.up.push_back(TaskIndication::Failed { file, why, for_good: true });
                if file == self.current && self.opened {
                    self.next_file();
                }
            }
            AppIndication::Delivered { delivery, length, .. } => self.delivered(delivery, length),
            AppIndication::Data { delivery, offset, data } => self.data(delivery, offset, &data),
            AppIndication::Gone { delivery, .. } => {
                self.reading.remove(&delivery);
            }
            AppIndication::Accepted { .. }
            | AppIndication::Sent { .. }
            | AppIndication::Progress { .. }
            | AppIndication::Report { .. } => {}
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<TaskIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<BpaRequest> {
        self.down.pop_front().or_else(|| self.send().map(BpaRequest::App))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::engine::drain;
    use longwire_proto::service::{BundleName, ManagementRequest};

    const NOW: Instant = Instant::ZERO;

    /// Returns the requests of an engine in order; its indications go to `heard`.
    fn quiet(engine: &mut FilesOverBundles, heard: &mut Vec<TaskIndication>) -> Vec<BpaRequest> {
        let mut down = Vec::new();
        drain(engine, NOW, |up| heard.push(up), |request| down.push(request));
        down
    }

    #[test]
    fn the_source_says_its_setup_first_and_hands_pieces_down_only_against_room() {
        let setup = vec![ManagementRequest::SetClock { dtn_ms: Some(5), steady: None }.into()];
        let mut source = FilesOverBundles::new(setup.clone(), "dtn://rx/in".into(), SendOptions::default());
        let mut heard = Vec::new();
        let files = vec![Bytes::from(vec![1; 1000]), Bytes::new()];
        source.handle_request(NOW, TaskRequest::Start { files });
        let down = quiet(&mut source, &mut heard);
        assert_eq!(down[0], setup[0]);
        assert!(matches!(down[1], BpaRequest::App(AppRequest::Send { send: SendId(0), length: 1000, .. })));
        assert_eq!(down.len(), 2, "there is no room for a piece yet");
        source.handle_indication(NOW, AppIndication::Room(600).into());
        let down = quiet(&mut source, &mut heard);
        assert!(matches!(&down[..], [BpaRequest::App(AppRequest::Piece { data, .. })] if data.len() == 600));
        source.handle_indication(NOW, AppIndication::Room(600).into());
        let down = quiet(&mut source, &mut heard);
        assert!(matches!(&down[0], BpaRequest::App(AppRequest::Piece { data, .. }) if data.len() == 400));
        assert!(matches!(down[1], BpaRequest::App(AppRequest::Send { send: SendId(1), length: 0, .. })));
    }

    /// Delivers `content`, each read answered in pieces of at most 300 bytes, and returns the indications of the
    /// destination. Every byte is requested once.
    fn deliver(engine: &mut FilesOverBundles, delivery: DeliveryId, content: &Bytes) -> Vec<TaskIndication> {
        let mut heard = Vec::new();
        let begin = AppIndication::Delivered {
            delivery,
            name: BundleName { source: "dtn://tx/".into(), created: (1, delivery.0).into() },
            destination: "dtn://rx/in".into(),
            length: content.len() as u64,
            signature: None,
        };
        engine.handle_indication(NOW, begin.clone().into());
        engine.handle_indication(NOW, begin.into());
        let (mut taken, mut asked) = (false, 0);
        loop {
            let down = quiet(engine, &mut heard);
            if down.is_empty() {
                break;
            }
            for request in down {
                match request {
                    BpaRequest::App(AppRequest::Read { delivery, offset, length }) => {
                        assert_eq!(offset, asked, "every byte is asked for once");
                        let (from, to) =
                            (offset as usize, content.len().min((offset + u64::from(length)) as usize));
                        asked = to as u64;
                        for at in (from..to).step_by(300) {
                            let (offset, data) = (at as u64, content.slice(at..to.min(at + 300)));
                            let said = AppIndication::Data { delivery, offset, data };
                            engine.handle_indication(NOW, said.into());
                        }
                    }
                    BpaRequest::App(AppRequest::Taken { .. }) => taken = true,
                    other => panic!("a destination never says {other:?}"),
                }
            }
        }
        assert!(taken, "every delivery is taken");
        engine.handle_indication(NOW, AppIndication::Gone { delivery, taken: true }.into());
        heard
    }

    #[test]
    fn the_destination_tells_files_apart_by_their_bytes_whatever_order_they_come_in() {
        let (a, b) = (Bytes::from(vec![1; 700]), Bytes::from(vec![2; 700]));
        let mut engine = FilesOverBundles::new(Vec::new(), String::new(), SendOptions::default());
        engine.handle_request(NOW, TaskRequest::Expect { files: vec![a.clone(), b.clone()] });
        assert_eq!(deliver(&mut engine, DeliveryId(1), &b), [TaskIndication::Done { file: 1, intact: true }]);
        assert!(deliver(&mut engine, DeliveryId(2), &b).is_empty(), "it is there already");
        let mut wrong = a.to_vec();
        wrong[650] ^= 1;
        let told = deliver(&mut engine, DeliveryId(3), &wrong.into());
        assert_eq!(told, [TaskIndication::Done { file: 0, intact: false }]);
    }

    #[test]
    fn a_read_that_is_answered_in_pieces_is_not_asked_for_again() {
        let content = Bytes::from(vec![7; 2 * READ_BYTES as usize + 100]);
        let mut engine = FilesOverBundles::new(Vec::new(), String::new(), SendOptions::default());
        engine.handle_request(NOW, TaskRequest::Expect { files: vec![content.clone()] });
        assert_eq!(
            deliver(&mut engine, DeliveryId(1), &content),
            [TaskIndication::Done { file: 0, intact: true }]
        );
    }
}
