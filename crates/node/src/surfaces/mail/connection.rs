//! The sockets of mail programs, around the engine of SMTP.

use super::submission::Submitted;
use super::{MailService, NodeGone};
use bytes::BytesMut;
use longwire_proto::engine::{Engine, drain};
use longwire_proto::service::{
    CloseReason, StreamIndication, StreamRequest, SubmissionIndication, SubmissionRequest,
};
use longwire_proto::smtp::{Config, Server};
use longwire_proto::time::Instant;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Maximum bytes received and not handled.
const WINDOW_BYTES: u64 = 64 * 1024;
/// Room for each read, bytes.
const READ_BYTES: usize = 16 * 1024;
/// Bytes of replies that the engine may write at a time.
const ROOM_BYTES: u64 = 16 * 1024;
/// Maximum time to end a connection that is refused.
const REFUSAL: Duration = Duration::from_secs(5);

/// Accepts connections until the node stops.
pub(super) async fn accept(service: Arc<MailService>, listener: std::net::TcpListener) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut node = service.client_factory.client();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            reply = node.reply() => match reply {
                Some(_) => continue,
                None => return,
            },
        };
        match accepted {
            Ok((stream, _)) => {
                let connections_max = service.settings.connections_max as u64;
                let has_room = service.change(|shown| {
                    let has_room = shown.open < connections_max;
                    shown.open += u64::from(has_room);
                    has_room
                });
                if has_room {
                    tokio::spawn(handle(service.clone(), stream));
                } else {
                    service.count("connections_refused");
                    tokio::spawn(refuse(stream));
                }
            }
            // Probably out of file descriptors: other connections must close first.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn refuse(mut stream: TcpStream) {
    let words = b"421 4.3.2 Too many connections; try again later\r\n";
    let _ = timeout(REFUSAL, stream.write_all(words)).await;
}

async fn handle(service: Arc<MailService>, stream: TcpStream) {
    // A node that stops resets the connection, and the mail program tries again.
    let _ = Connection::new(&service, stream).serve(&service).await;
    service.change(|shown| shown.open -= 1);
}

struct Connection {
    stream: TcpStream,
    server: Server,
    origin: tokio::time::Instant,
    patience: Duration,
    submitted: Submitted,
    unreleased: u64,
    /// The mail program has ended its sending direction.
    peer_closed: bool,
    closed: bool,
}

impl Connection {
    fn new(service: &Arc<MailService>, stream: TcpStream) -> Self {
        let settings = &service.settings;
        let config = Config {
            host: service.domains.own_domain(),
            message_bytes_max: settings.message_bytes_max,
            patience: settings.patience,
            ..Config::default()
        };
        Connection {
            stream,
            server: Server::new(config),
            origin: tokio::time::Instant::now(),
            patience: settings.patience,
            submitted: Submitted::new(service.clone()),
            unreleased: 0,
            peer_closed: false,
            closed: false,
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    fn indicate(&mut self, indication: StreamIndication) {
        let now = self.now();
        self.server.handle_indication(now, indication);
    }

    /// Serves the mail program until the connection ends.
    async fn serve(mut self, service: &MailService) -> Result<(), NodeGone> {
        self.indicate(StreamIndication::Connected);
        self.indicate(StreamIndication::Room(ROOM_BYTES));
        let mut input = BytesMut::new();
        loop {
            self.pass_on(service).await?;
            if self.server.finished() {
                return Ok(());
            }
            let deadline = self.server.poll_timeout();
            let wake = deadline.map(|at| self.origin + at.saturating_since(Instant::ZERO));
            let is_open = self.unreleased < WINDOW_BYTES && !self.peer_closed;
            // The buffer would grow by 64 bytes otherwise.
            input.reserve(READ_BYTES);
            tokio::select! {
                read = self.stream.read_buf(&mut input), if is_open => match read {
                    Ok(0) if self.closed => self.indicate(StreamIndication::Closed(CloseReason::Finished)),
                    Ok(0) => {
                        self.peer_closed = true;
                        self.indicate(StreamIndication::PeerClosed);
                    }
                    Ok(length) => {
                        self.unreleased += length as u64;
                        let bytes = input.split().freeze();
                        self.indicate(StreamIndication::Data(bytes));
                    }
                    Err(_) => self.indicate(StreamIndication::Closed(CloseReason::Reset)),
                },
                () = tokio::time::sleep_until(wake.unwrap_or(self.origin)), if wake.is_some() => {
                    let now = self.now();
                    self.server.handle_timeout(now);
                }
            }
        }
    }

    /// Passes on everything that the engine emits, until it emits nothing.
    async fn pass_on(&mut self, service: &MailService) -> Result<(), NodeGone> {
        loop {
            let (mut up, mut down) = (Vec::new(), Vec::new());
            let now = self.now();
            drain(&mut self.server, now, |said| up.push(said), |said| down.push(said));
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
            for request in down {
                self.carry_out(request).await;
            }
            for indication in up {
                if let Some(answer) = self.hear(service, indication).await? {
                    let now = self.now();
                    self.server.handle_request(now, SubmissionRequest::Answer(answer));
                }
            }
        }
    }

    async fn carry_out(&mut self, request: StreamRequest) {
        match request {
            StreamRequest::Write(bytes) => {
                let written = timeout(self.patience, self.stream.write_all(&bytes)).await;
                let next = match written {
                    Ok(Ok(())) => StreamIndication::Room(ROOM_BYTES),
                    _ => StreamIndication::Closed(CloseReason::Stalled),
                };
                self.indicate(next);
            }
            StreamRequest::Release(bytes) => self.unreleased -= bytes,
            StreamRequest::Close => {
                self.closed = true;
                let ended = self.stream.shutdown().await.is_err() || self.peer_closed;
                if ended {
                    self.indicate(StreamIndication::Closed(CloseReason::Finished));
                }
            }
            StreamRequest::Abort => self.indicate(StreamIndication::Closed(CloseReason::Aborted)),
            StreamRequest::Connect | StreamRequest::Secure { .. } => {}
        }
    }

    async fn hear(
        &mut self,
        service: &MailService,
        indication: SubmissionIndication,
    ) -> Result<Option<longwire_proto::service::SubmissionAnswer>, NodeGone> {
        let answer = match indication {
            SubmissionIndication::Sender { address, bytes, envelope_id } => {
                self.submitted.sender(address, bytes, envelope_id)
            }
            SubmissionIndication::Recipient { address, notify } => {
                self.submitted.recipient(address, notify).await?
            }
            SubmissionIndication::Content(bytes) => {
                self.submitted.content(&bytes);
                return Ok(None);
            }
            SubmissionIndication::Complete => self.submitted.complete().await?,
            SubmissionIndication::Abandoned | SubmissionIndication::Ended => {
                self.submitted.abandon();
                return Ok(None);
            }
        };
        if let Err(refusal) = &answer {
            service.count("submissions_refused");
            tracing::debug!(target: "mail", "refused: {} {} {}", refusal.code, refusal.status, refusal.text);
        }
        Ok(Some(answer))
    }
}
