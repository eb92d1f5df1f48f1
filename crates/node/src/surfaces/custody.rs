//! The service `near-reliable` of a gateway: data of TCP connections as bundles.
//!
//! ```text
//!   program --TCP-- near side: (waits in a file) --> bundle in the store ==> .. ==> bundle in the store --> far side --TCP-- program
//!           <-- end of the connection ------- accepted                    taken <-- end of the connection --
//! ```
//!
//! A connection is one bundle, whose payload are the bytes that the program has sent up to the end of its sending direction. It has no
//! head: the endpoint, `gateway/PORT` of the far node, tells what it is.
//!
//! - **Custody.** The near side ends a connection in good order only after the bundle is durable in the store. In every other case, also
//!   when the process is killed, the program sees a reset, and the node has taken over nothing. A program that is killed or disconnected
//!   between the two cannot know, and may send twice.
//! - **Delivery.** The far side writes the bytes of a bundle to one connection, in order, ends its direction, and waits until the program
//!   has ended its own and the system of the program has acknowledged everything. Only then it takes the bundle from the store. A
//!   program may end its direction before it has read anything, which confirms no more than that its system has the bytes. If anything
//!   fails before, the connection is reset, and all of it is delivered again over a new one: a program that counts only connections
//!   which were ended in good order gets each bundle once. One exception remains: the process is killed after the end and before the
//!   store has noted it.
//! - Connections are independent of each other and may be delivered in another order. What the program at the far side answers is
//!   read and dropped.
//!
//! Each gateway has a thread of its own, and uses the node as any application does.

mod far;
mod near;

use super::client::{AppClient, ClientFactory};
use crate::config::Config;
use crate::config::gateway::{GatewaySide, custody_endpoint, service_word};
use crate::view;
use longwire_proto::bp::Eid;
use longwire_proto::service::ProgramKind;
use longwire_settings::error::Error;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

/// Status of all gateways that take custody.
pub(crate) type SharedStatus = Arc<Mutex<Vec<view::Gateway>>>;

/// Status of one of them.
#[derive(Clone, Debug)]
struct GatewayStatus {
    shown: SharedStatus,
    index: usize,
}

impl GatewayStatus {
    fn new(shown: &SharedStatus, gateway: view::Gateway) -> Self {
        let mut all = shown.lock().expect("no thread panics with it");
        all.push(gateway);
        GatewayStatus { shown: shown.clone(), index: all.len() - 1 }
    }

    fn change<T>(&self, change: impl FnOnce(&mut view::Gateway) -> T) -> T {
        change(&mut self.shown.lock().expect("no thread panics with it")[self.index])
    }

    fn count(&self, counter: &str, number: u64) {
        self.change(|shown| *shown.counters.entry(counter.to_owned()).or_default() += number);
    }

    /// Sets the current problem, or none.
    fn trouble(&self, what: Option<String>) {
        self.change(|shown| shown.trouble = what);
    }
}

/// Starts the threads of all gateways that take custody. `listener` returns the socket of the gateway with an index.
///
/// # Errors
/// Fails if the system gives no thread or no event loop.
pub(crate) fn start(
    config: &Config,
    node: &Eid,
    client_factory: &ClientFactory,
    mut listener: impl FnMut(usize) -> Option<TcpListener>,
) -> Result<SharedStatus, Error> {
    let shown = SharedStatus::default();
    for (index, gateway) in config.gateway.iter().enumerate() {
        let name = gateway.name();
        match gateway.side() {
            Some(GatewaySide::Near(_)) if gateway.takes_custody() => {
                let Some(listener) = listener(index) else { continue };
                let link = config.link.iter().find(|link| link.name == gateway.link);
                let peer = link.and_then(|link| link.peer.as_ref()).and_then(|peer| peer.parse::<Eid>().ok());
                // The configuration was checked before.
                let Some(peer) = peer else { continue };
                let view = view::Gateway {
                    name,
                    link: Some(gateway.link.clone()),
                    service: Some(service_word(gateway.service())),
                    ..view::Gateway::default()
                };
                let status = GatewayStatus::new(&shown, view);
                let to = custody_endpoint(&peer, gateway.to_port);
                // Beside the store, on the disk that has room for them.
                let folder = config.storage.path.parent().map(PathBuf::from).unwrap_or_default();
                let near = near::NearSide::new(gateway.clone(), to, folder, client_factory.clone(), status);
                run(move || near.serve(listener))?;
            }
            Some(GatewaySide::Far(address)) if gateway.kind() == ProgramKind::Stream => {
                let status = GatewayStatus::new(&shown, view::Gateway { name, ..view::Gateway::default() });
                let endpoint = custody_endpoint(node, gateway.port);
                let (address, idle) = (address.to_owned(), gateway.idle());
                let client = client_factory.client();
                run(move || far::serve(endpoint, address, idle, client, status))?;
            }
            _ => {}
        }
    }
    Ok(shown)
}

fn run<F: Future<Output = ()>>(serve: impl FnOnce() -> F + Send + 'static) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::new(format!("cannot start a thread: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // The thread ends with the node: it need not be joined.
    thread::Builder::new()
        .name("gateway".into())
        .spawn(move || runtime.block_on(async { serve().await }))
        .map_err(failed)?;
    Ok(())
}
