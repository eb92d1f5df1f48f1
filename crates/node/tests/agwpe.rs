//! A node with a simulated AGWPE server: faults of the server are reported, and the node recovers without a restart.

mod common;

use common::{App, config, reserved, start};
use longwire_proto::agwpe::{Frame, HEADER_BYTES, Kind, Ports};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    /// A web server listens on the port.
    Web,
    /// The server has this many radio ports.
    Has(u8),
    Over,
}

/// A simulated server. Stops on drop.
struct Played {
    at: SocketAddr,
    server: Arc<Mutex<Server>>,
    line: Arc<Mutex<Option<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Played {
    fn start() -> Played {
        let listener = TcpListener::bind(reserved()).expect("it is its own");
        let at = listener.local_addr().expect("an address");
        let (server, line) = (Arc::new(Mutex::new(Server::Web)), Arc::new(Mutex::new(None)));
        let (now, open) = (server.clone(), line.clone());
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let is = *now.lock().unwrap();
                if is == Server::Over {
                    return;
                }
                *open.lock().unwrap() = stream.try_clone().ok();
                serve(stream, is);
            }
        });
        Played { at, server, line, thread: Some(thread) }
    }

    /// Changes the behaviour and disconnects the client.
    fn becomes(&self, server: Server) {
        *self.server.lock().unwrap() = server;
        if let Some(line) = self.line.lock().unwrap().take() {
            let _ = line.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.becomes(Server::Over);
        // Wakes the thread that waits in `accept`.
        drop(TcpStream::connect(self.at));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves until the connection ends.
fn serve(mut line: TcpStream, server: Server) {
    let mut header = [0; HEADER_BYTES];
    while line.read_exact(&mut header).is_ok() {
        let asked = Frame::decode(&mut header.to_vec().into()).expect("a frame without data");
        let answer = match server {
            Server::Has(ports) if asked.kind == Kind::Ports => {
                let mut data = bytes::BytesMut::new();
                Ports((0..ports).collect()).encode(&mut data);
                Frame::new(Kind::Ports).with(data).to_bytes()
            }
            Server::Web => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".into(),
            _ => continue,
        };
        let _ = line.write_all(&answer);
    }
}

#[test]
fn what_is_wrong_with_a_server_is_said_until_it_is_mended() {
    let played = Played::start();
    let node = start(config(&format!(
        "node = 'dtn://alice/'\n[storage]\nkind = 'memory'\n[[tnc]]\nname = 'vhf'\naddress = 'agwpe:{}'\n\
         callsign = 'AL1CE'\nreconnect-min = '10 ms'\nreconnect-max = '50 ms'\n[tnc.agwpe]\nport = 1\n",
        played.at
    )));
    let mut app = App::new(&node);
    let mut is = |why: &str| app.wait_status(|status| status["tncs"][0]["why_down"] == why);
    let status = is("not an AGWPE server");
    assert_eq!(status["tncs"][0]["address"], format!("agwpe:{}", played.at));
    played.becomes(Server::Has(1));
    is("no such AGWPE port");
    played.becomes(Server::Has(2));
    let status = app.wait_status(|status| status["tncs"][0]["up"] == true);
    assert_eq!(status["tncs"][0]["counters"]["connections"], 1, "what is of no use does not count");
    assert!(status["tncs"][0]["why_down"].is_null());
    played.becomes(Server::Has(2));
    app.wait_status(|status| status["tncs"][0]["counters"]["connections"] == 2);
    drop(played);
    app.wait_status(|status| status["tncs"][0]["why_down"] == "connection refused");
}
