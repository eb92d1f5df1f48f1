//! Operations that are answered at once. Each one is a request of the control socket: the engines' task has one function for it,
//! whichever interface it comes from.

use super::answer::{Answer, RequestFailure};
use super::api::{Api, NoParameters, Parameters, PlainBody};
use super::{HttpState, event_stream, mailbox, metrics, pinging, sending};
use crate::surfaces::message::{Reply, Request};
use crate::surfaces::operations as rows;
use crate::view::{
    Accepted, Done, EventRecord, Filter, Heard, Keys, Link, Links, Page, Route, Routes, State, Status,
    Transmissions,
};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use longwire_proto::service::BundleName;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum bundles in one answer, and the default.
const PAGE_MAX: usize = 1000;
const BYTES: &str = "application/octet-stream";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Adds all operations.
pub(super) fn enter(api: &mut Api) {
    api.operation(&rows::STATUS, status);
    api.operation(&rows::LINKS, links);
    api.operation(&rows::ADD_LINK, add_link);
    api.operation(&rows::LINK, link);
    api.operation(&rows::REMOVE_LINK, remove_link);
    api.operation(&rows::CUT_LINK, cut_link);
    api.operation(&rows::OPEN_LINK, heal_link);
    api.operation(&rows::HEARD, heard);
    api.operation(&rows::INHIBIT, inhibit);
    api.operation(&rows::PERMIT, permit);
    api.operation(&rows::ROUTES, routes);
    api.operation(&rows::ADD_ROUTE, add_route);
    api.operation(&rows::REMOVE_ROUTE, remove_route);
    api.operation(&rows::TRANSMISSIONS, transmissions);
    api.operation(&rows::BUNDLES, bundles);
    api.operation(&rows::BUNDLE, bundle);
    api.operation(&rows::DELETE, cancel);
    let plain = PlainBody { takes: Some(BYTES), gives: None, status: 201 };
    api.stream::<_, Accepted, _, _>(&rows::SEND, plain, sending::send);
    api.operation(&rows::REGISTER, mailbox::register);
    api.operation(&rows::REGISTRATIONS, mailbox::registrations);
    api.operation(&rows::UNREGISTER, mailbox::unregister);
    api.operation(&rows::DELIVERIES, mailbox::list);
    let plain = PlainBody { takes: None, gives: Some(BYTES), status: 200 };
    api.stream::<_, (), _, _>(&rows::READ, plain, mailbox::download);
    api.operation(&rows::TAKEN, mailbox::take);
    api.operation(&rows::PING, pinging::ping);
    api.operation(&rows::TRUST_CLOCK, trust_clock);
    api.operation(&rows::KEYS, keys);
    api.operation(&rows::TRUST_KEY, trust_key);
    api.operation(&rows::FORGET_KEY, forget_key);
    api.operation(&rows::RELOAD, reload);
    let plain = PlainBody { takes: None, gives: Some("text/event-stream"), status: 200 };
    api.stream::<_, EventRecord, _, _>(&rows::WATCH, plain, event_stream::watch);
    let plain = PlainBody { takes: None, gives: Some(METRICS), status: 200 };
    api.stream::<NoParameters, (), _, _>(&rows::METRICS, plain, measured);
}

impl HttpState {
    /// State of the node.
    pub(super) async fn status(&self) -> Answer<Status> {
        match self.ask(Request::Status).await? {
            Reply::Status { status } => Ok(*status),
            _ => Err(RequestFailure::gone()),
        }
    }

    async fn links(&self) -> Answer<Vec<Link>> {
        match self.ask(Request::Links).await? {
            Reply::Links { links } => Ok(links),
            _ => Err(RequestFailure::gone()),
        }
    }

    /// Sends a request that has no result but success.
    async fn done(&self, request: Request, words: String) -> Answer<Done> {
        self.ask(request).await.map(|_| Done { done: words })
    }
}

async fn status(shared: Arc<HttpState>, _: Parameters) -> Answer<Status> {
    shared.status().await
}

async fn links(shared: Arc<HttpState>, _: Parameters) -> Answer<Links> {
    Ok(Links { links: shared.links().await? })
}

async fn link(shared: Arc<HttpState>, asked: Parameters) -> Answer<Link> {
    let found = shared.links().await?.into_iter().find(|link| link.name == asked.named);
    found.ok_or_else(|| {
        let what = format!("no such link: `{}`", asked.named);
        RequestFailure::new(StatusCode::NOT_FOUND, what, Some("list links with /links"))
    })
}

/// Link to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewLink {
    /// Name of the link.
    name: String,
    /// Address of the peer: host and port.
    address: String,
}

async fn add_link(shared: Arc<HttpState>, asked: Parameters<NewLink>) -> Answer<Link> {
    let NewLink { name, address } = asked.query;
    shared.ask(Request::AddLink { name: name.clone(), address }).await?;
    link(shared, Parameters { named: name, query: NoParameters {} }).await
}

async fn remove_link(shared: Arc<HttpState>, asked: Parameters) -> Answer<Done> {
    let words = format!("removed link `{}`", asked.named);
    shared.done(Request::RemoveLink { name: asked.named }, words).await.map_err(RequestFailure::missing)
}

async fn cut_link(shared: Arc<HttpState>, asked: Parameters) -> Answer<Link> {
    let request = Request::CutLink { name: asked.named.clone() };
    shared.ask(request).await.map_err(RequestFailure::missing)?;
    link(shared, asked).await
}

async fn heal_link(shared: Arc<HttpState>, asked: Parameters) -> Answer<Link> {
    let request = Request::OpenLink { name: asked.named.clone() };
    shared.ask(request).await.map_err(RequestFailure::missing)?;
    link(shared, asked).await
}

async fn heard(shared: Arc<HttpState>, _: Parameters) -> Answer<Heard> {
    match shared.ask(Request::Heard).await? {
        Reply::Heard { stations } => Ok(Heard { stations }),
        _ => Err(RequestFailure::gone()),
    }
}

async fn inhibit(shared: Arc<HttpState>, asked: Parameters) -> Answer<Done> {
    let words = format!("inhibited transmission over TNC `{}`", asked.named);
    shared.done(Request::Inhibit { name: asked.named }, words).await.map_err(RequestFailure::missing)
}

async fn permit(shared: Arc<HttpState>, asked: Parameters) -> Answer<Done> {
    let words = format!("permitted transmission over TNC `{}`", asked.named);
    shared.done(Request::Permit { name: asked.named }, words).await.map_err(RequestFailure::missing)
}

async fn routes(shared: Arc<HttpState>, _: Parameters) -> Answer<Routes> {
    match shared.ask(Request::Routes).await? {
        Reply::Routes { routes } => Ok(Routes { routes }),
        _ => Err(RequestFailure::gone()),
    }
}

async fn transmissions(shared: Arc<HttpState>, _: Parameters) -> Answer<Transmissions> {
    match shared.ask(Request::Transmissions).await? {
        Reply::Transmissions { transmissions } => Ok(Transmissions { transmissions }),
        _ => Err(RequestFailure::gone()),
    }
}

async fn add_route(shared: Arc<HttpState>, asked: Parameters<Route>) -> Answer<Done> {
    let Route { to, via, .. } = &asked.query;
    let words = format!("added the route to {to} via {via}");
    shared.done(Request::AddRoute { route: asked.query }, words).await
}

/// Route to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RouteToRemove {
    /// Destination endpoints.
    to: String,
    /// Name of the link, or node ID of the next hop.
    via: String,
}

async fn remove_route(shared: Arc<HttpState>, asked: Parameters<RouteToRemove>) -> Answer<Done> {
    let RouteToRemove { to, via } = asked.query;
    let words = format!("removed the route to {to} via {via}");
    shared.done(Request::RemoveRoute { to, via }, words).await.map_err(RequestFailure::missing)
}

/// Selection of bundles.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BundlesQuery {
    /// Maximum number of results; default and maximum 1,000.
    limit: Option<usize>,
    /// Position to continue from: `next` of the previous page.
    after: Option<String>,
    /// Source; a trailing `*` matches anything.
    source: Option<String>,
    /// Destination; a trailing `*` matches anything.
    destination: Option<String>,
    /// State of the bundle.
    state: Option<State>,
}

async fn bundles(shared: Arc<HttpState>, asked: Parameters<BundlesQuery>) -> Answer<Page> {
    let BundlesQuery { limit, mut after, source, destination, state } = asked.query;
    let limit = limit.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
    let filter = Filter { source, destination, state };
    let mut all = Page::default();
    // The node examines a limited number per pass of the event loop; other events are handled in between.
    loop {
        let limit_left = limit - all.bundles.len();
        let request = Request::Bundles { limit: limit_left, after, filter: filter.clone() };
        let Reply::Bundles { page } = shared.ask(request).await? else { return Err(RequestFailure::gone()) };
        all.bundles.extend(page.bundles);
        (all.total, all.next) = (page.total, page.next.clone());
        if all.next.is_none() || all.bundles.len() >= limit {
            return Ok(all);
        }
        after = page.next;
    }
}

fn bundle_named(id: &str) -> Answer<BundleName> {
    id.parse().map_err(|_| {
        let what = format!("`{id}` does not name a bundle");
        RequestFailure::new(
            StatusCode::BAD_REQUEST,
            what,
            Some("it looks like dtn://alice/@842000000000-256"),
        )
    })
}

async fn bundle(shared: Arc<HttpState>, asked: Parameters) -> Answer<Page> {
    let name = bundle_named(&asked.named)?;
    match shared.ask(Request::Bundle(name)).await.map_err(RequestFailure::missing)? {
        Reply::Bundles { page } => Ok(page),
        _ => Err(RequestFailure::gone()),
    }
}

async fn cancel(shared: Arc<HttpState>, asked: Parameters) -> Answer<Done> {
    let name = bundle_named(&asked.named)?;
    let words = format!("deleted {}", asked.named);
    shared.done(Request::Delete(name), words).await.map_err(RequestFailure::missing)
}

async fn keys(shared: Arc<HttpState>, _: Parameters) -> Answer<Keys> {
    match shared.ask(Request::Keys).await? {
        Reply::Keys { keys } => Ok(keys),
        _ => Err(RequestFailure::gone()),
    }
}

/// Public key to accept.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// Node ID.
    node: String,
    /// Fingerprint of the key: 32 hexadecimal digits, with or without dashes.
    fingerprint: String,
}

async fn trust_key(shared: Arc<HttpState>, asked: Parameters<NewKey>) -> Answer<Done> {
    let NewKey { node, fingerprint } = asked.query;
    let words = format!("{node} has the key {fingerprint}");
    shared.done(Request::TrustKey { node, fingerprint }, words).await
}

async fn forget_key(shared: Arc<HttpState>, asked: Parameters) -> Answer<Done> {
    let words = format!("forgot the key of {}", asked.named);
    shared.done(Request::ForgetKey { node: asked.named }, words).await.map_err(RequestFailure::missing)
}

async fn trust_clock(shared: Arc<HttpState>, _: Parameters) -> Answer<Done> {
    shared.done(Request::TrustClock, "clock confirmed; lifetimes follow it".into()).await
}

async fn reload(shared: Arc<HttpState>, _: Parameters) -> Answer<Done> {
    shared.done(Request::Reload, "configuration reloaded".into()).await
}

async fn measured(shared: Arc<HttpState>, _: Parameters, _: Parts, _: Body) -> Answer<Response> {
    let text = metrics::text(shared.status().await?);
    Ok(([(header::CONTENT_TYPE, METRICS)], text).into_response())
}
