//! Bundles in both directions with every peer, with connections opened by either side; the result is the page in the
//! documentation.

use bytes::Bytes;
use longwire_interop_peers::dtn7::Dtn7;
use longwire_interop_peers::hardy::Hardy;
use longwire_interop_peers::ours::Ours;
use longwire_interop_peers::peer::{Caller, Peer};
use longwire_interop_peers::pyd3tn::Pyd3tn;
use longwire_interop_peers::table::{Row, SIZES, expected, with_rows};
use longwire_interop_peers::{DEADLINE, Place, reserved};
use longwire_node::tls::issue::{Authority, CertificateRequest};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/interoperation.md");
/// Peers in the order of the page.
const PEERS: [&str; 5] = [
    "Hardy: `hardy-bpa` 0.2, `hardy-tcpclv4` 0.4, TCPCL 4",
    "Hardy, the same, with TLS",
    "dtn7-rs: `dtn7` 0.21, TCPCL 4",
    "µD3TN's `pyd3tn` 0.15, TCPCL 3",
    "µD3TN's `pyd3tn`, the same, bundles of version 6",
];
const NOTES: &str = include_str!("../src/notes.md");
/// Time limit for a bundle that is known not to arrive.
const IMPATIENCE: Duration = Duration::from_secs(3);
const BOTH: [Caller; 2] = [Caller::We, Caller::They];

/// Fast reconnection; otherwise the defaults.
const TCPCL: &str = "[tcpcl]\nreconnect-min = '20 ms'\nreconnect-max = '200 ms'\n";

fn payload(length: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; length];
    longwire_proto::rng::Rng::new(seed).fill(&mut bytes);
    bytes.into()
}

/// One session with a peer, for the rows of every length in both directions.
struct Run<'a> {
    old_page: &'a str,
    peer: &'static str,
    caller: Caller,
    our_inbox: &'static str,
    /// Directions in order: true if our node sends. The peer sends first, because some peers connect only when they
    /// have data to send.
    ways: &'static [bool],
}

impl Run<'_> {
    async fn both_ways(&self, ours: &mut Ours, peer: &mut impl Peer) -> Vec<Row> {
        let mut rows = Vec::new();
        for &we_send in self.ways {
            let arrived = [false; SIZES.len()];
            let mut row = Row { peer: self.peer, caller: self.caller, we_send, arrived };
            let before = expected(self.old_page, &row).unwrap_or([true; SIZES.len()]);
            for (at, (name, length)) in SIZES.into_iter().enumerate() {
                let patience = if before[at] { DEADLINE } else { IMPATIENCE };
                let sent = payload(length, at as u64);
                let outcome = self.one(ours, peer, we_send, &sent, patience).await;
                println!("{} {:?} calls, we send: {we_send}, {name}: {outcome:?}", self.peer, self.caller);
                row.arrived[at] = outcome.is_ok();
                if before[at] && outcome.is_err() {
                    println!("our node is: {:#}", ours.status().await);
                }
            }
            rows.push(row);
        }
        rows
    }

    async fn one(
        &self,
        ours: &mut Ours,
        peer: &mut impl Peer,
        we_send: bool,
        sent: &Bytes,
        patience: Duration,
    ) -> Result<(), String> {
        let received = if we_send {
            ours.send(&peer.inbox(), sent.clone()).await;
            peer.receive(patience).await?
        } else {
            peer.send(self.our_inbox, sent.clone()).await?;
            ours.receive(patience).await?
        };
        if received == sent { Ok(()) } else { Err(format!("{} other bytes came", received.len())) }
    }
}

fn now() -> i64 {
    (longwire_node::system_dtn_ms().expect("the clock is set") / 1000) as i64 + 946_684_800
}

/// Creates certificates for both sides, from one authority.
fn certificates(folder: &Path) {
    let (authority, _) = Authority::new("interop", now()).expect("an authority");
    std::fs::create_dir(folder.join("trust")).expect("a folder");
    std::fs::write(folder.join("trust/ca.pem"), authority.certificate()).expect("it is written");
    for (name, node) in [("ours", "ipn:1.0"), ("peer", "ipn:2.0")] {
        let wish = CertificateRequest {
            names: vec!["localhost".into()],
            ..CertificateRequest::for_node(node, now(), 10)
        };
        let minted = authority.sign(&wish).expect("a certificate");
        std::fs::write(folder.join(format!("{name}.pem")), &minted.certificate).expect("it is written");
        std::fs::write(folder.join(format!("{name}.key")), &minted.key).expect("it is written");
    }
}

async fn with_hardy(old_page: &str, caller: Caller, tls: bool) -> Vec<Row> {
    let place = Place::new("hardy");
    let mut settings = TCPCL.to_owned();
    if tls {
        certificates(&place.0);
        let at = place.0.display();
        // Hardy presents no certificate when it opens the connection.
        let policy = match caller {
            Caller::We => "node-id = 'require'",
            Caller::They => "node-id = 'ignore'\nanonymous-callers = true",
        };
        settings += &format!(
            "tls = 'require'\n[tls]\ncertificate = '{at}/ours.pem'\nkey = '{at}/ours.key'\ntrust = ['{at}/trust/ca.pem']\n\
             [tls.policy]\n{policy}\n"
        );
    }
    let tls_folder = tls.then_some(place.0.as_path());
    let mut hardy = Hardy::start(caller, tls_folder).await;
    let link = match caller {
        Caller::We => format!("[[link]]\nname = 'peer'\naddress = 'localhost:{}'\n", hardy.port),
        Caller::They => String::new(),
    };
    let mut ours =
        Ours::start(&format!("node = 'ipn:1.0'\nlisten = ['127.0.0.1:0']\n{settings}{link}")).await;
    if caller == Caller::They {
        hardy.call(ours.address()).await.expect("it gets through");
    }
    assert!(ours.wait_up(DEADLINE).await, "no session: {:#}", ours.status().await["links"]);
    let peer = PEERS[usize::from(tls)];
    let run = Run { old_page, peer, caller, our_inbox: "ipn:1.5", ways: &[false, true] };
    let rows = run.both_ways(&mut ours, &mut hardy).await;
    hardy.stop().await;
    rows
}

async fn with_dtn7(old_page: &str, caller: Caller) -> Vec<Row> {
    // Beside a peer that listens, our node is configured once the peer has an address.
    let our_address = reserved();
    let mut dtn7 = Dtn7::start(caller, our_address).await;
    let link = match caller {
        Caller::We => format!("[[link]]\nname = 'peer'\naddress = '{}'\n", dtn7.address),
        Caller::They => String::new(),
    };
    // Settings for the deviations of dtn7-rs: see the notes on the page.
    let manners = "reactive-fragmentation = false\ntransfer-mtu-min = 1000000000\n\
                   [[peer]]\nnode = 'dtn://dtn7/'\naccept = ['primary-without-crc']\n";
    let text = format!("node = 'dtn://longwire/'\nlisten = ['{our_address}']\n{TCPCL}{manners}{link}");
    let mut ours = Ours::start(&text).await;
    let run =
        Run { old_page, peer: PEERS[2], caller, our_inbox: "dtn://longwire/inbox", ways: &[false, true] };
    run.both_ways(&mut ours, &mut dtn7).await
}

async fn with_pyd3tn(old_page: &str, caller: Caller, version: u8) -> Vec<Row> {
    let start = |link: String| async move {
        Ours::start(&format!("node = 'dtn://longwire/'\nlisten = ['127.0.0.1:0']\n{TCPCL}{link}")).await
    };
    let (mut ours, mut pyd3tn);
    match caller {
        Caller::We => {
            pyd3tn = Pyd3tn::start(None, version).await;
            let address = pyd3tn.address;
            let link =
                format!("[[link]]\nname = 'peer'\naddress = '{address}'\n[link.tcpcl]\nversions = '3'\n");
            ours = start(link).await;
        }
        Caller::They => {
            ours = start(String::new()).await;
            pyd3tn = Pyd3tn::start(Some(ours.address()), version).await;
        }
    }
    assert!(ours.wait_up(DEADLINE).await, "no session: {:#}", ours.status().await["links"]);
    // pyd3tn writes version 6 and does not read it.
    let (peer, ways): (_, &[bool]) =
        if version == 7 { (PEERS[3], &[false, true]) } else { (PEERS[4], &[false]) };
    let run = Run { old_page, peer, caller, our_inbox: "dtn://longwire/inbox", ways };
    run.both_ways(&mut ours, &mut pyd3tn).await
}

/// Compares the results of a peer with the page, or writes them to it.
fn settle(rows: &[Row]) {
    // The peers are tested concurrently and write the same page.
    static WRITING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = WRITING.lock();
    let old_page = std::fs::read_to_string(PAGE).unwrap_or_default();
    let new_page = with_rows(&old_page, &PEERS, rows, NOTES);
    if std::env::var_os("LONGWIRE_WRITE").is_some() {
        std::fs::write(PAGE, &new_page).expect("the page can be written");
    } else {
        assert!(old_page == new_page, "docs/interoperation.md differs from these runs:\n{new_page}");
    }
}

fn old_page() -> String {
    std::fs::read_to_string(PAGE).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardy() {
    for tls in [false, true] {
        let mut rows = Vec::new();
        for caller in BOTH {
            rows.extend(with_hardy(&old_page(), caller, tls).await);
        }
        settle(&rows);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dtn7() {
    let mut rows = Vec::new();
    for caller in BOTH {
        rows.extend(with_dtn7(&old_page(), caller).await);
    }
    settle(&rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pyd3tn() {
    for version in [7, 6] {
        let mut rows = Vec::new();
        for caller in BOTH {
            rows.extend(with_pyd3tn(&old_page(), caller, version).await);
        }
        settle(&rows);
    }
}
