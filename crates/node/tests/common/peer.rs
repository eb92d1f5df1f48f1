//! A peer that can send anything: raw bytes over TCP, with the messages and bundles of a well-behaved peer as a starting point.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::DEADLINE;
use bytes::{Bytes, BytesMut};
use longwire_proto::bp::{
    AdminRecord, Block, BlockFlags, BlockType, Bundle, BundleFlags, CrcType, CreationTimestamp, DtnTime, Eid,
    Head, PrimaryBlock, ReasonCode, StatusItem, StatusReport, v6,
};
use longwire_proto::codec::{DecodeError, sdnv};
use longwire_proto::tcpcl::v4::wire::{END, Item, Message, START, SessInit, TRANSFER_LENGTH, XferSegment};
use rustix::net;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Contact header of version 4 (RFC 9174 4.2).
pub(crate) const CONTACT_4: &[u8] = b"dtn!\x04\x00";

/// A connection.
pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) fn call(to: SocketAddr) -> io::Result<Peer> {
        let stream = TcpStream::connect_timeout(&to, DEADLINE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Peer(stream))
    }

    /// Connects from this address of this machine.
    pub(crate) fn call_from(from: Ipv4Addr, to: SocketAddr) -> io::Result<Peer> {
        let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None)?;
        net::bind(&socket, &SocketAddr::from((from, 0)))?;
        net::connect(&socket, &to)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Peer(stream))
    }

    /// Connects and establishes a session of version 4.
    pub(crate) fn up_4(to: SocketAddr, node_id: &str) -> io::Result<Peer> {
        Peer::call(to)?.open_4(&sess_init(node_id))
    }

    /// The same from this address of this machine.
    pub(crate) fn up_4_from(from: Ipv4Addr, to: SocketAddr, node_id: &str) -> io::Result<Peer> {
        Peer::call_from(from, to)?.open_4(&sess_init(node_id))
    }

    /// Connects and establishes a session with this keep-alive interval, seconds.
    pub(crate) fn up_4_alive(to: SocketAddr, node_id: &str, keepalive: u16) -> io::Result<Peer> {
        Peer::call(to)?.open_4(&sess_init_alive(node_id, keepalive))
    }

    /// Establishes a session of version 4 over an open connection.
    pub(crate) fn greet_4(self, node_id: &str) -> io::Result<Peer> {
        self.open_4(&sess_init(node_id))
    }

    fn open_4(self, sess_init: &[u8]) -> io::Result<Peer> {
        let mut peer = self;
        peer.say(CONTACT_4)?;
        peer.say(sess_init)?;
        // The node's contact header and its SESS_INIT, which ends without extension items.
        peer.hear(6 + 1 + 2 + 8 + 8)?;
        let length = peer.hear(2)?;
        peer.hear(usize::from(u16::from_be_bytes([length[0], length[1]])) + 4)
            .and_then(|rest| peer.hear(items_length(&rest)))?;
        Ok(peer)
    }

    /// Connects and establishes a session of version 3 with all options on.
    pub(crate) fn up_3(to: SocketAddr, node_id: &str) -> io::Result<Peer> {
        let mut peer = Peer::call(to)?;
        peer.say(&contact_3(node_id))?;
        // The node's contact header: magic, version, flags, keep-alive, then its node ID, whose length fits into one byte.
        let length = peer.hear(9)?[8];
        peer.hear(usize::from(length))?;
        Ok(peer)
    }

    /// A session of version 4 with an unknown peer.
    pub(crate) fn stranger_4(to: SocketAddr) -> io::Result<Peer> {
        Peer::up_4(to, &stranger())
    }

    /// The same in version 3.
    pub(crate) fn stranger_3(to: SocketAddr) -> io::Result<Peer> {
        Peer::up_3(to, &stranger())
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Reads this many bytes.
    pub(crate) fn hear(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.0.set_read_timeout(Some(DEADLINE))?;
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads until the node closes the connection; fails after `patience`.
    pub(crate) fn hear_all(&mut self, patience: Duration) -> Vec<u8> {
        let until = Instant::now() + patience;
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.0.set_read_timeout(Some(left)).expect("a time-out");
            match self.0.read(&mut buffer) {
                Ok(0) => return all,
                Ok(some) => all.extend_from_slice(&buffer[..some]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    panic!("the node does not end the connection; it said {all:?}")
                }
                // A reset.
                Err(_) => return all,
            }
        }
    }

    /// Reads and discards everything, so that the node can always write.
    pub(crate) fn deafen(&self) {
        let mut stream = self.0.try_clone().expect("a descriptor");
        stream.set_read_timeout(None).expect("a time-out");
        std::thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    }

    /// Sends many transfers over this session, and waits for their answers as a peer should.
    pub(crate) fn sender(self) -> Sender {
        Sender {
            peer: self,
            next: 0,
            unsaid: Vec::new(),
            unanswered: BTreeSet::new(),
            heard: BytesMut::new(),
        }
    }

    pub(crate) fn hang_up(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Maximum unanswered transfers of a sender: a node ends a session with very many.
const UNANSWERED_MAX: usize = 256;

/// Result of [`Peer::sender`].
pub(crate) struct Sender {
    peer: Peer,
    /// Number of the next transfer.
    next: u64,
    /// Bytes that are not sent yet.
    unsaid: Vec<u8>,
    unanswered: BTreeSet<u64>,
    heard: BytesMut,
}

impl Sender {
    /// Sends bundles with a block each that the node does not use, of this many bytes, and waits for all answers.
    pub(crate) fn send_long_heads(&mut self, count: u64, bytes: usize) {
        for id in 0..count {
            let mut head = head("dtn://mallory/", "dtn://nowhere/x", id, 0);
            let mut block = unknown_block(2, BlockFlags::NONE);
            block.data = vec![id as u8; bytes].into();
            head.blocks.push(block);
            self.send(&Bundle::new(head, Bytes::new()).to_bytes());
        }
        self.finish();
    }

    /// Sends a whole transfer, buffered. Waits for answers if too many are outstanding.
    #[track_caller]
    pub(crate) fn send(&mut self, data: &[u8]) {
        self.unsaid.extend_from_slice(&transfer(self.next, data));
        self.unanswered.insert(self.next);
        self.next += 1;
        if self.unanswered.len() >= UNANSWERED_MAX {
            self.answered_to(UNANSWERED_MAX / 2);
        }
    }

    /// Waits until all transfers are answered.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        self.answered_to(0);
    }

    /// Sends the buffered bytes, and waits until at most this many transfers are unanswered.
    #[track_caller]
    fn answered_to(&mut self, most: usize) {
        self.peer.say(&self.unsaid).expect("the node goes on hearing");
        self.unsaid.clear();
        self.peer.0.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        let mut buffer = [0; 4096];
        while self.unanswered.len() > most {
            let missing = || format!("of {} transfers {} have no answer", self.next, self.unanswered.len());
            match self.peer.0.read(&mut buffer) {
                Ok(0) => panic!("the node ends the session: {}", missing()),
                Ok(count) => self.heard.extend_from_slice(&buffer[..count]),
                Err(error) => panic!("{error}: {}", missing()),
            }
            self.take_answers();
        }
    }

    #[track_caller]
    fn take_answers(&mut self) {
        let mut rest = self.heard.split().freeze();
        loop {
            let before = rest.clone();
            match Message::decode(&mut rest) {
                Ok(Message::XferAck { flags, id, .. }) if flags & END != 0 => self.answered(id),
                Ok(Message::XferRefuse { id, .. }) => self.answered(id),
                Ok(Message::KeepAlive) => {}
                Err(DecodeError::Incomplete) => {
                    self.heard = BytesMut::from(&before[..]);
                    return;
                }
                other => panic!("no answer to whole transfers: {other:?}"),
            }
        }
    }

    #[track_caller]
    fn answered(&mut self, id: u64) {
        assert!(self.unanswered.remove(&id), "transfer {id} waits for no answer");
    }
}

/// A node ID that is unique in this process.
pub(crate) fn stranger() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("dtn://stranger-{}/", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn items_length(rest: &[u8]) -> usize {
    let last: [u8; 4] = rest[rest.len() - 4..].try_into().expect("four bytes");
    u32::from_be_bytes(last) as usize
}

/// SESS_INIT of this node, without keep-alives.
pub(crate) fn sess_init(node_id: &str) -> Vec<u8> {
    sess_init_alive(node_id, 0)
}

/// The same with a keep-alive interval of this many seconds.
fn sess_init_alive(node_id: &str, keepalive: u16) -> Vec<u8> {
    encoded(&Message::SessInit(SessInit {
        keepalive,
        segment_mru: 1 << 20,
        transfer_mru: 1 << 40,
        node_id: node_id.to_owned(),
        items: Bytes::new(),
    }))
}

pub(crate) fn encoded(message: &Message) -> Vec<u8> {
    let mut out = BytesMut::new();
    message.encode(&mut out);
    out.to_vec()
}

/// Header of a segment, with any extension items.
pub(crate) fn segment_header(flags: u8, id: u64, items: Bytes, length: u64) -> Vec<u8> {
    encoded(&Message::XferSegment(XferSegment { flags, id, items, length }))
}

/// Transfer Length extension (RFC 9174 5.2.5.1).
pub(crate) fn transfer_length(total: u64) -> Bytes {
    let mut out = BytesMut::new();
    let value = Bytes::copy_from_slice(&total.to_be_bytes());
    Item { critical: true, kind: TRANSFER_LENGTH, value }.encode(&mut out);
    out.freeze()
}

/// A whole transfer of version 4 in one segment.
pub(crate) fn transfer(id: u64, data: &[u8]) -> Vec<u8> {
    let mut out = segment_header(START | END, id, Bytes::new(), data.len() as u64);
    out.extend_from_slice(data);
    out
}

/// Contact header of version 3 (RFC 7242 4.1): all options on, no keep-alives.
pub(crate) fn contact_3(node_id: &str) -> Vec<u8> {
    let mut out = b"dtn!\x03\x0f\x00\x00".to_vec();
    out.extend(sdnv_of(node_id.len() as u64));
    out.extend_from_slice(node_id.as_bytes());
    out
}

/// A whole transfer of version 3 in one segment.
pub(crate) fn transfer_3(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x13];
    out.extend(sdnv_of(data.len() as u64));
    out.extend_from_slice(data);
    out
}

pub(crate) fn sdnv_of(value: u64) -> Vec<u8> {
    let mut out = BytesMut::new();
    sdnv::encode(value, &mut out);
    out.to_vec()
}

pub(crate) fn eid(text: &str) -> Eid {
    text.parse().expect("an endpoint")
}

pub(crate) fn now_dtn_ms() -> u64 {
    longwire_node::system_dtn_ms().expect("this machine's clock is set")
}

/// Header of a bundle with a lifetime of one hour; its sequence number distinguishes it from others.
pub(crate) fn head(source: &str, destination: &str, sequence: u64, length: u64) -> Head {
    let timestamp = CreationTimestamp { time: DtnTime(now_dtn_ms()), sequence };
    Head::new(PrimaryBlock::new(eid(destination), eid(source), timestamp, 3_600_000), length)
}

pub(crate) fn bundle(source: &str, destination: &str, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let head = head(source, destination, sequence, payload.len() as u64);
    Bundle::new(head, Bytes::copy_from_slice(payload)).to_bytes().to_vec()
}

/// A report of this node on the delivery of a bundle of `dtn://alice/`, genuine or forged.
pub(crate) fn receipt(by: &str, created: CreationTimestamp, number: u64) -> Vec<u8> {
    let report = AdminRecord::StatusReport(StatusReport {
        received: StatusItem::NotAsserted,
        forwarded: StatusItem::NotAsserted,
        delivered: StatusItem::Asserted,
        deleted: StatusItem::NotAsserted,
        further: Vec::new(),
        reason: ReasonCode::NoAdditionalInformation,
        source: eid("dtn://alice/"),
        timestamp: created,
        fragment: None,
    })
    .to_bytes();
    let mut head = head(by, "dtn://alice/", number, report.len() as u64);
    head.primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
    Bundle::new(head, report).to_bytes().to_vec()
}

/// A custody signal (RFC 5050 6.1.2) that another node has accepted custody of a bundle of `dtn://alice/`, genuine or forged.
pub(crate) fn release(created: CreationTimestamp, number: u64) -> Vec<u8> {
    let subject = v6::admin::Subject {
        source: eid("dtn://alice/"),
        created_s: created.time.0 / 1000,
        sequence: created.sequence,
        fragment: None,
    };
    let (reason, time) = (v6::CustodyReason::NoAdditionalInformation, v6::Time::from_millis(now_dtn_ms()));
    let signal = v6::CustodySignal { succeeded: true, reason, time, subject };
    let payload = v6::AdminRecord::CustodySignal(signal).to_bytes();
    let mut primary = v6::PrimaryBlock::new(eid("dtn://alice/"), eid("dtn://bob/"), Eid::Null, true);
    primary.flags = v6::BundleFlags::ADMINISTRATIVE_RECORD | v6::BundleFlags::SINGLETON;
    (primary.created_s, primary.sequence) = (now_dtn_ms() / 1000, number);
    primary.lifetime_s = 3600;
    v6::Bundle::new(v6::Head::new(primary, payload.len() as u64), payload).to_bytes().to_vec()
}

/// A block of an unknown type.
pub(crate) fn unknown_block(number: u64, flags: BlockFlags) -> Block {
    let data = Bytes::from_static(b"who knows");
    Block { block_type: BlockType::Unknown(77), number, flags, crc: CrcType::Crc16, data }
}
