//! Lines that are cut, datagrams that are lost, strangers that break every rule.

use crate::peer::{CONTACT_4, Peer, bundle, segment_header, sess_init, transfer, transfer_3};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::tcpcl::v4::wire::START;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Carries connections to a node, and can cut them.
pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    connections: Arc<Mutex<Vec<[TcpStream; 2]>>>,
}

impl Line {
    pub(crate) fn new(to: SocketAddr) -> Line {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let connections = Arc::<Mutex<Vec<[TcpStream; 2]>>>::default();
        let open = Arc::clone(&connections);
        std::thread::spawn(move || {
            for here in listener.incoming().map_while(Result::ok) {
                // Between a kill and the next start nobody is there.
                let Ok(there) = TcpStream::connect(to) else { continue };
                let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
                for (from, into) in [(copy(&here), copy(&there)), (copy(&there), copy(&here))] {
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut &from, &mut &into);
                        end(&[from, into]);
                    });
                }
                let mut open = open.lock().expect("no thread panics with it");
                open.retain(|[here, _]| here.peer_addr().is_ok());
                open.push([here, there]);
            }
        });
        Line { address, connections }
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        let all = std::mem::take(&mut *self.connections.lock().expect("no thread panics with it"));
        all.iter().for_each(end);
    }
}

fn end(both: &[TcpStream; 2]) {
    for stream in both {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Carries datagrams to a node and back, and loses some.
pub(crate) struct Datagrams {
    pub(crate) address: SocketAddr,
    lost_percent: Arc<AtomicU32>,
}

impl Datagrams {
    pub(crate) fn new(to: SocketAddr, seed: u64) -> Datagrams {
        let near = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = near.local_addr().expect("it has one");
        let lost_percent = Arc::new(AtomicU32::new(0));
        // The last sender, whose port is another one after its restart.
        let sender = Arc::new(Mutex::new(None));
        let [near_too, far_too] = [&near, &far].map(|socket| socket.try_clone().expect("a descriptor"));
        let (lost, last) = (Arc::clone(&lost_percent), Arc::clone(&sender));
        let mut rng = Rng::new(seed);
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            // A refusal by the receiver of the last datagram is no end.
            loop {
                let Ok((length, from)) = near.recv_from(&mut buffer) else { continue };
                *last.lock().expect("no thread panics with it") = Some(from);
                if rng.below(100) >= u64::from(lost.load(Ordering::Relaxed)) {
                    let _ = far.send_to(&buffer[..length], to);
                }
            }
        });
        let lost = Arc::clone(&lost_percent);
        let mut rng = Rng::new(!seed);
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            loop {
                let Ok(length) = far_too.recv(&mut buffer) else { continue };
                let sender = *sender.lock().expect("no thread panics with it");
                if let Some(sender) = sender
                    && rng.below(100) >= u64::from(lost.load(Ordering::Relaxed))
                {
                    let _ = near_too.send_to(&buffer[..length], sender);
                }
            }
        });
        Datagrams { address, lost_percent }
    }

    pub(crate) fn lose_percent(&self, percent: u32) {
        self.lost_percent.store(percent, Ordering::Relaxed);
    }
}

/// Peers that mean no good.
pub(crate) struct Strangers<'a> {
    pub(crate) rng: &'a mut Rng,
}

impl Strangers<'_> {
    /// Connects to these nodes in many ways, and leaves.
    pub(crate) fn bother(&mut self, nodes: [SocketAddr; 2]) {
        let mut open = Vec::new();
        for number in 0..60 {
            let to = nodes[number % 2];
            let Ok(mut peer) = Peer::call(to) else { continue };
            let mut garbage = vec![0; 1 + self.rng.below(500) as usize];
            self.rng.fill(&mut garbage);
            // A connection that the node has closed by then is a good answer, too.
            let _ = match self.rng.below(6) {
                0 => peer.say(CONTACT_4),
                1 => peer.say(&garbage),
                2 => peer.say(&[CONTACT_4, &sess_init("dtn://mallory/"), &garbage].concat()),
                3 => peer.say(&[CONTACT_4, &sess_init("dtn://relay/")].concat()),
                4 => peer.say(
                    &[
                        CONTACT_4,
                        &sess_init("dtn://mallory/"),
                        &segment_header(START, 1, Bytes::new(), 1 << 40),
                    ]
                    .concat(),
                ),
                _ => Ok(()),
            };
            open.push(peer);
        }
        // One of them sends a bundle that is as good as any, and half of another.
        if let Ok(mut peer) = Peer::stranger_4(nodes[1]) {
            let number = self.rng.next_u64();
            let data = bundle("dtn://mallory/", "ipn:7.5", number, &[1; 5000]);
            let _ = peer.say(&transfer(1, &data));
            let _ = peer.say(&transfer(2, &data)[..2000]);
            open.push(peer);
        }
        if let Ok(mut peer) = Peer::stranger_3(nodes[1]) {
            let data = bundle("dtn://mallory/", "ipn:7.5", self.rng.next_u64(), &[1; 5000]);
            let _ = peer.say(&transfer_3(&data));
            open.push(peer);
        }
    }
}
