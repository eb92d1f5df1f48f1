//! The Python package `pyd3tn`: a process with a script around its TCPCL 3 and its bundles.

use crate::peer::Peer;
use crate::{DEADLINE, Place, installed, reserved};
use bytes::Bytes;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Payload length above which bundles have no CRC, because the package computes it in Python.
const CHECKED_BYTES_MAX: usize = 4096;

/// Running script.
#[derive(Debug)]
pub struct Pyd3tn {
    /// Process, killed on drop.
    _process: Child,
    commands: ChildStdin,
    words: Lines<BufReader<ChildStdout>>,
    place: Place,
    /// Version of the bundles that it writes.
    version: u8,
    /// Address at which it listens, if it does.
    pub address: SocketAddr,
}

impl Pyd3tn {
    /// Starts the script, which connects to our node at this address if there is one, and listens otherwise.
    pub async fn start(ours: Option<SocketAddr>, version: u8) -> Pyd3tn {
        let place = Place::new("pyd3tn");
        let (role, ready, address) = match ours {
            None => ("serve", "listening", reserved()),
            Some(ours) => ("call", "up", ours),
        };
        let mut process = Command::new(installed("pyd3tn/bin/python"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/pyd3tn_peer.py"))
            .args([role, &address.ip().to_string(), &address.port().to_string(), "dtn://pyd3tn/"])
            .arg(&place.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Tracebacks of the script.
            .stderr(std::fs::File::create(place.0.join("log")).expect("a log file"))
            .kill_on_drop(true)
            .spawn()
            .expect("the environment is installed: `./test interop` does it");
        let commands = process.stdin.take().expect("it was asked for");
        let words = BufReader::new(process.stdout.take().expect("it was asked for")).lines();
        let mut pyd3tn = Pyd3tn { _process: process, commands, words, place, version, address };
        pyd3tn.hear(ready, DEADLINE).await.expect("it starts");
        pyd3tn
    }

    /// Waits for this message of the script.
    async fn hear(&mut self, what: &str, within: Duration) -> Result<Value, String> {
        let hearing = async {
            loop {
                let line = self.words.next_line().await.map_err(|error| error.to_string())?;
                let said: Value =
                    serde_json::from_str(&line.ok_or("it has ended")?).map_err(|e| e.to_string())?;
                if !said[what].is_null() {
                    return Ok(said[what].clone());
                }
                if let Some(error) = said["error"].as_str() {
                    return Err(error.to_owned());
                }
            }
        };
        tokio::time::timeout(within, hearing).await.map_err(|_| "nothing came".to_owned())?
    }
}

impl Peer for Pyd3tn {
    fn inbox(&self) -> String {
        "dtn://pyd3tn/inbox".into()
    }

    async fn send(&mut self, to: &str, payload: Bytes) -> Result<(), String> {
        let file = self.place.0.join("send");
        tokio::fs::write(&file, &payload).await.map_err(|error| error.to_string())?;
        let crc = payload.len() <= CHECKED_BYTES_MAX;
        let command = json!({"send": file, "to": to, "from": "dtn://pyd3tn/inbox", "crc": crc, "version": self.version});
        self.commands.write_all(format!("{command}\n").as_bytes()).await.map_err(|error| error.to_string())
    }

    async fn receive(&mut self, within: Duration) -> Result<Bytes, String> {
        let file = self.hear("received", within).await?;
        let file = file.as_str().ok_or("no file")?;
        tokio::fs::read(file).await.map(Bytes::from).map_err(|error| error.to_string())
    }
}
