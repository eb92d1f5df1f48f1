//! Connections of the HTTP interface: their number, timeouts and requests.

use super::guard::Access;
use super::{HttpState, api, count, page};
use crate::write_timeout::WriteTimeoutStream;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Maximum header lines of a request.
const HEADERS_MAX: usize = 64;
/// Pause before accepting again after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections_max: usize,
    pub(super) header_bytes_max: usize,
}

/// Accepts connections until it is dropped.
pub(super) async fn accept(listener: TcpListener, limits: Limits, shared: Arc<HttpState>) {
    let places = Arc::new(Semaphore::new(limits.connections_max));
    let service = Server { router: api::router(shared.clone()), shared: shared.clone(), number: 0 };
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let place = places.clone().try_acquire_owned().ok();
        if place.is_none() && shared.waiting.one_gives_way() {
            count(&shared.counted.counts.gave_way);
        } else if place.is_none() {
            turn_away(&stream, &shared);
            continue;
        }
        count(&shared.counted.counts.connections);
        shared.counted.counter_changes.changed();
        let (service, places) = (service.clone(), places.clone());
        tokio::spawn(async move {
            let place = match place {
                Some(place) => Ok(place),
                // The place is free as soon as the replaced connection has ended.
                None => places.acquire_owned().await,
            };
            let (number, give_way) = service.shared.waiting.enter(from.ip());
            let shared = service.shared.clone();
            tokio::select! {
                () = serve(stream, limits, Server { number, ..service }) => {}
                Ok(()) = give_way => {}
            }
            shared.waiting.leave(number);
            drop(place);
            // The reason for its end may have been counted.
            shared.counted.counter_changes.changed();
        });
    }
}

fn turn_away(stream: &TcpStream, shared: &HttpState) {
    count(&shared.counted.counts.refused_connections);
    shared.counted.counter_changes.changed();
    // Only what fits into the empty socket buffer: the node does not wait for the client.
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\nretry-after: 5\r\n\r\n",
    );
}

#[derive(Clone)]
struct Server {
    router: axum::Router,
    shared: Arc<HttpState>,
    /// Number of the connection among those not yet authenticated.
    number: u64,
}

async fn serve(stream: TcpStream, limits: Limits, service: Server) {
    // Answers are written in one piece.
    let _ = stream.set_nodelay(true);
    let counted = service.shared.counted.clone();
    let wire = WriteTimeoutStream::new(stream, counted.patience.clone());
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(counted.patience.time())
        .max_buf_size(limits.header_bytes_max)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(wire), service_fn(move |request| carry_out(service.clone(), request)))
        .await;
    if let Err(error) = served {
        if error.is_timeout() {
            counted.patience.count();
        } else if error.is_parse_too_large() {
            count(&counted.counts.refused_too_long);
        } else if error.is_parse() {
            count(&counted.counts.refused_malformed);
        }
    }
}

async fn carry_out(service: Server, request: Request<Incoming>) -> Result<Response, Infallible> {
    let Server { router, shared, number } = service;
    count(&shared.counted.counts.requests);
    let (head, body) = request.into_parts();
    let is_of_page = page::is_of_page(&head.method, head.uri.path());
    let checked = shared.guard.check(&head, is_of_page, &shared.counted);
    shared.counted.counter_changes.changed();
    match checked {
        Ok(Access::Granted) => shared.waiting.leave(number),
        Ok(Access::PublicOnly) => {}
        Err(failure) => return Ok(failure.into_response()),
    }
    let request = Request::from_parts(head, Body::new(body));
    hyper::service::Service::call(&TowerToHyperService::new(router), request).await
}
