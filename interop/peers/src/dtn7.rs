//! dtn7-rs: its daemon as a process, and its application over its HTTP interface.

use crate::peer::{Caller, Peer, until};
use crate::{DEADLINE, Place, installed, port, reserved};
use bytes::Bytes;
use longwire_proto::bp::{Bundle, DecodePolicy};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// Running daemon.
#[derive(Debug)]
pub struct Dtn7 {
    /// Process, killed on drop.
    _process: Child,
    _place: Place,
    web: u16,
    /// Address at which it listens for TCPCL.
    pub address: SocketAddr,
}

impl Dtn7 {
    /// Starts a daemon, which connects to our node at this address if it is the caller.
    pub async fn start(caller: Caller, ours: SocketAddr) -> Dtn7 {
        let place = Place::new("dtn7");
        let (web, address) = (port(), reserved());
        let log = std::fs::File::create(place.0.join("log")).expect("a log file");
        let mut command = Command::new(installed("dtn7/bin/dtnd"));
        command
            .args(["--nodeid", "dtn7", "--endpoint", "inbox", "--disable_nd", "--ipv4"])
            .args(["--interval", "0", "--janitor", "300ms", "--peer-timeout", "1h", "--db", "mem"])
            .args(["--routing", "epidemic", "--web-port", &web.to_string()])
            .args(["--cla", &format!("tcp:port={}:bind={}", address.port(), address.ip())])
            .arg("--workdir")
            .arg(&place.0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .kill_on_drop(true);
        if caller == Caller::They {
            command.args(["--static-peer", &format!("tcp://{ours}/longwire")]);
        }
        let process = command.spawn().expect("dtnd is installed: `./test interop` does it");
        let dtn7 = Dtn7 { _process: process, _place: place, web, address };
        let up = until(DEADLINE, || async {
            http(web, "GET", "/status/nodeid", &[]).await.is_ok() && TcpStream::connect(address).await.is_ok()
        });
        assert!(up.await, "dtnd does not listen");
        dtn7
    }
}

/// Sends a request on a separate connection. Returns the body of the response; fails if its status is not 200.
async fn http(port: u16, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| format!("no HTTP: {error}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(words)?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.map_err(words)?;
    stream.write_all(body).await.map_err(words)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(words)?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or("no HTTP answer")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    if !head.starts_with("HTTP/1.1 200") {
        return Err(head.lines().next().unwrap_or_default().to_owned());
    }
    Ok(answer.split_off(end + 4))
}

impl Peer for Dtn7 {
    fn inbox(&self) -> String {
        "dtn://dtn7/inbox".into()
    }

    async fn send(&mut self, to: &str, payload: Bytes) -> Result<(), String> {
        http(self.web, "POST", &format!("/send?dst={to}&lifetime=1h"), &payload).await.map(drop)
    }

    async fn receive(&mut self, within: Duration) -> Result<Bytes, String> {
        let web = self.web;
        let asking = async {
            loop {
                match http(web, "GET", "/endpoint?inbox", &[]).await {
                    Ok(answer) if answer == b"Nothing to receive" => {}
                    Ok(bundle) => return Ok(bundle),
                    Err(error) => return Err(error),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let bundle = tokio::time::timeout(within, asking).await.map_err(|_| "nothing came".to_owned())??;
        let policy = DecodePolicy { accept_primary_without_crc: true, ..DecodePolicy::STRICT };
        let bundle = Bundle::from_bytes(&bundle.into(), &policy).map_err(|error| error.to_string())?;
        Ok(bundle.payload)
    }
}
