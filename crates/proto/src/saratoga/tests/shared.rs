//! Several peers at an endpoint on which any may send.

use super::scene::config;
use crate::engine::Engine;
use crate::saratoga::wire::{Outcome, Packet, Request, RequestKind, Status, Width};
use crate::saratoga::{Config, Endpoint};
use crate::service::{
    DatagramsIndication, DatagramsRequest, FileProperties, FilesIndication, FilesRequest, PeerId,
};
use crate::time::Instant;
use bytes::Bytes;

/// Endpoint without a configured peer, and its user, who has a file of 100 kB for everyone.
struct Shared {
    end: Endpoint,
    now: Instant,
    /// Packets that have left.
    sent: Vec<(u32, Packet)>,
}

impl Shared {
    fn new(config: Config) -> Self {
        let mut shared = Shared { end: Endpoint::listening(config), now: Instant::ZERO, sent: Vec::new() };
        shared.tell(DatagramsIndication::Joined { bytes_max: 65_507, peer: None, group: None });
        shared
    }

    fn tell(&mut self, indication: DatagramsIndication) {
        self.end.handle_indication(self.now, indication);
        loop {
            if let Some(said) = self.end.poll_indication(self.now) {
                self.answer(said);
            } else if let Some(request) = self.end.poll_request(self.now) {
                let DatagramsRequest::Datagram { to, mut bytes, .. } = request else { continue };
                let packet = Packet::decode(&mut bytes).expect("an endpoint sends valid packets");
                self.sent.push((to.0, packet));
            } else {
                return;
            }
        }
    }

    fn answer(&mut self, said: FilesIndication) {
        let request = match said {
            FilesIndication::Wanted { file, path, .. } => {
                let properties = FileProperties { path, length: 100_000, ..FileProperties::default() };
                FilesRequest::Provide { file, properties, available: 100_000 }
            }
            FilesIndication::Read { file, offset, length } => {
                FilesRequest::Content { file, offset, data: vec![0; length as usize].into() }
            }
            _ => return,
        };
        self.end.handle_request(self.now, request);
    }

    fn hear(&mut self, from: u32, packet: impl Into<Packet>) {
        let (from, bytes) = (PeerId(from), packet.into().to_bytes());
        self.tell(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
    }

    /// Lets this number of packets leave, and returns them.
    fn room(&mut self, count: u64) -> Vec<(u32, Packet)> {
        self.sent.clear();
        self.tell(DatagramsIndication::Room(count));
        self.sent.clone()
    }
}

fn request(kind: RequestKind, session: u32) -> Request {
    let abilities = super::super::leaving::abilities();
    Request { abilities, kind, session, path: "a".to_owned(), auth: Bytes::new() }
}

fn peers(sent: &[(u32, Packet)]) -> Vec<u32> {
    sent.iter().map(|(peer, _)| *peer).collect()
}

#[test]
fn a_peer_with_many_questions_does_not_delay_the_answers_to_others() {
    let mut shared = Shared::new(config());
    for session in 0..5_000 {
        shared.hear(1, request(RequestKind::Nothing, session));
    }
    assert_eq!(shared.end.counters().dropped, 5_000 - 1_024);
    // Two peers share the answers.
    for session in 0..1_000 {
        shared.hear(2, request(RequestKind::Nothing, session));
    }
    assert_eq!(shared.end.counters().dropped, 5_000 - 1_024 + 1_000);
    // The STATUS of a file takes its turn with them.
    shared.hear(3, request(RequestKind::Put, 1));
    let sent = shared.room(6);
    assert_eq!(peers(&sent), [1, 2, 3, 1, 2, 1]);
    let [_, (_, Packet::Status(answer)), (_, Packet::Status(status)), ..] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert!(!answer.lacks_metadata && status.lacks_metadata, "{sent:?}");
}

#[test]
fn many_peers_with_a_question_each_have_no_more_answers_than_one() {
    let mut shared = Shared::new(config());
    for peer in 1..=5_000 {
        shared.hear(peer, request(RequestKind::Nothing, 7));
    }
    assert_eq!(shared.end.counters().dropped, 5_000 - 1_024);
    assert_eq!(peers(&shared.room(10_000)), (1..=1_024).collect::<Vec<_>>());
}

#[test]
fn a_peer_that_reports_holes_does_not_delay_the_files_of_others() {
    let mut shared = Shared::new(config());
    for (peer, session) in [(1, 1), (1, 2), (2, 1)] {
        shared.hear(peer, request(RequestKind::Get, session));
    }
    // All of the three files.
    shared.room(1_000);
    shared.room(0);
    let report = |session| Status {
        width: Width::Bits32,
        in_response_to: 100_000,
        holes: vec![(0, 49_999)],
        ..Status::with_outcome(session, Outcome::Success)
    };
    for (peer, session) in [(1, 1), (1, 2), (2, 1)] {
        shared.hear(peer, report(session));
    }
    shared.hear(4, request(RequestKind::Get, 1));
    let sent = shared.room(40);
    let of = |peer: u32, session: u32| {
        let data = sent.iter().filter_map(|(to, packet)| match packet {
            Packet::Data(data) if *to == peer => Some(data.session),
            _ => None,
        });
        data.filter(|other| *other == session).count()
    };
    let counts = [of(1, 1), of(1, 2), of(2, 1), of(4, 1)];
    // A third for each peer, and one METADATA packet.
    assert!((6..=7).contains(&counts[0]) && (6..=7).contains(&counts[1]), "{counts:?}");
    assert!((12..=14).contains(&counts[2]) && (12..=14).contains(&counts[3]), "{counts:?}");
}
