//! The crates `hardy-bpa` and `hardy-tcpclv4`: a node in this process.

use crate::peer::{Caller, Peer};
use bytes::Bytes;
use hardy_async::sync::spin::Once;
use hardy_bpa::async_trait;
use hardy_bpa::bpa::{Bpa, BpaRegistration};
use hardy_bpa::services::{Application, ApplicationSink, Result as ServiceResult, StatusNotify};
use hardy_bpv7::eid::{Eid, NodeId, Service};
use hardy_tcpclv4::Cla;
use hardy_tcpclv4::config::{Config, SessionConfig, TlsConfig};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Node number of the peer.
pub const NODE: u32 = 2;

/// Running node.
pub struct Hardy {
    bpa: Bpa,
    cla: Arc<Cla>,
    inbox: Arc<Inbox>,
    received: mpsc::UnboundedReceiver<Bytes>,
    /// Port on which it listens.
    pub port: u16,
}

impl core::fmt::Debug for Hardy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hardy").field("port", &self.port).finish_non_exhaustive()
    }
}

/// Application of the node.
struct Inbox {
    sink: Once<Box<dyn ApplicationSink>>,
    received: mpsc::UnboundedSender<Bytes>,
}

#[async_trait]
impl Application for Inbox {
    async fn on_register(&self, _source: &Eid, sink: Box<dyn ApplicationSink>) {
        self.sink.call_once(|| sink);
    }

    async fn on_unregister(&self) {}

    async fn on_receive(
        &self,
        _source: Eid,
        _expiry: time::OffsetDateTime,
        _ack_requested: bool,
        payload: Bytes,
    ) -> ServiceResult<()> {
        let _ = self.received.send(payload);
        Ok(())
    }

    async fn on_status_notify(
        &self,
        _bundle_id: &hardy_bpv7::bundle::Id,
        _from: &Eid,
        _kind: StatusNotify,
        _reason: hardy_bpv7::status_report::ReasonCode,
        _timestamp: Option<time::OffsetDateTime>,
    ) {
    }
}

impl Hardy {
    /// Starts a node. With a folder that contains `peer.pem`, `peer.key` and `trust/ca.pem`, it requires TLS.
    pub async fn start(caller: Caller, tls: Option<&Path>) -> Hardy {
        // Fails if an earlier node in this process has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let port = crate::port();
        let node: NodeId = format!("ipn:{NODE}.0").parse().expect("a node id");
        let bpa = Bpa::builder().node_ids([node].as_slice().try_into().expect("one node id"));
        let bpa = bpa.build().await.expect("it can be built");
        bpa.start(false);
        let tls = tls.map(|folder| TlsConfig {
            cert_file: Some(folder.join("peer.pem")),
            private_key_file: Some(folder.join("peer.key")),
            ca_certs: Some(folder.join("trust")),
            server_name: Some("localhost".into()),
            ..TlsConfig::default()
        });
        let session_defaults = SessionConfig { require_tls: tls.is_some(), ..SessionConfig::default() };
        let address = (caller == Caller::We).then(|| SocketAddr::from(([127, 0, 0, 1], port)));
        let config = Config { address, session_defaults, tls, ..Config::default() };
        let cla = Arc::new(Cla::new(&config).expect("its settings make sense"));
        bpa.register_cla("tcp".into(), cla.clone(), None).await.expect("it registers");
        let (sender, received) = mpsc::unbounded_channel();
        let inbox = Arc::new(Inbox { sink: Once::new(), received: sender });
        bpa.register_application(Service::Ipn(5), inbox.clone()).await.expect("the service is free");
        Hardy { bpa, cla, inbox, received, port }
    }

    /// Connects to our node.
    pub async fn call(&self, address: SocketAddr) -> Result<(), String> {
        self.cla.connect(&address).await.map_err(|error| error.to_string())
    }

    /// Stops the node.
    pub async fn stop(self) {
        self.bpa.shutdown().await;
    }
}

impl Peer for Hardy {
    fn inbox(&self) -> String {
        format!("ipn:{NODE}.5")
    }

    async fn send(&mut self, to: &str, payload: Bytes) -> Result<(), String> {
        let sink = self.inbox.sink.get().expect("it is registered");
        let to = to.parse().map_err(|error| format!("{error}"))?;
        let sent = sink.send(to, payload, Duration::from_secs(3600), None).await;
        sent.map(drop).map_err(|error| error.to_string())
    }

    async fn receive(&mut self, within: Duration) -> Result<Bytes, String> {
        let received = tokio::time::timeout(within, self.received.recv()).await;
        received.ok().flatten().ok_or_else(|| "nothing came".to_owned())
    }
}
