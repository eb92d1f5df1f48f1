//! Operations that are answered at once. Each one is a request of the control socket: the engines' task has one function for it,
//! whichever interface it comes from.

use super::answer::RequestFailure;
use super::api::{Api, Method, NoParameters, ParameterSource, PlainBody};
use super::{HttpState, event_stream, mailbox, metrics, pinging, sending};
use crate::surfaces::message::{Reply, Request};
use crate::view::{
    self, Accepted, Done, EventRecord, Filter, Link, Links, Page, Route, Routes, State, Status,
};
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum bundles in one answer, and the default.
const PAGE_MAX: usize = 1000;
const BYTES: &str = "application/octet-stream";
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Answer<A> = Result<A, RequestFailure>;

/// Adds all operations.
pub(super) fn enter(api: &mut Api) {
    use Method::{Delete, Get, Post};
    api.operation(Get, "/status", ("status", "State and counters of the node"), status);
    api.operation(Get, "/links", ("links", "All links"), links);
    api.operation(Post, "/links", ("add_link", "Adds and opens a link until the node restarts"), add_link);
    api.operation(Get, "/links/{name}", ("link", "One link"), link);
    let words = "Removes a link and the routes over it until the node restarts";
    api.operation(Delete, "/links/{name}", ("remove_link", words), remove_link);
    let words = "Closes a link; bundles wait until it is opened again";
    api.operation(Post, "/links/{name}/cut", ("cut_link", words), cut_link);
    api.operation(Post, "/links/{name}/heal", ("heal_link", "Opens a link that was closed"), heal_link);
    api.operation(Get, "/routes", ("routes", "All static routes"), routes);
    let words = "Adds a route, or changes its cost, until the node restarts";
    api.operation(Post, "/routes", ("add_route", words), add_route);
    api.operation(
        Delete,
        "/routes",
        ("remove_route", "Removes a route until the node restarts"),
        remove_route,
    );
    let words = "Bundles in the store and why each is still there, in pages";
    api.operation(Get, "/bundles", ("bundles", words), bundles);
    let words = "One bundle and its fragments in detail";
    api.operation(Get, "/bundles/{*id}", ("bundle", words), bundle);
    let words = "Deletes a bundle and all its fragments on this node";
    api.operation(Delete, "/bundles/{*id}", ("cancel_bundle", words), cancel);
    let plain = PlainBody { takes: Some(BYTES), gives: None, status: 201 };
    let words = "Sends a bundle; the request body is its payload, of any size";
    api.stream::<_, Accepted, _, _>(Post, "/bundles", ("send", words), plain, sending::send);
    let words = "Registers an endpoint for as long as it is used";
    api.operation(Post, "/registrations", ("register", words), mailbox::register);
    let words = "Endpoints registered over HTTP";
    api.operation(Get, "/registrations", ("registrations", words), mailbox::registrations);
    let words = "Removes a registration; deliveries not accepted wait for the next one";
    api.operation(Delete, "/registrations/{*endpoint}", ("unregister", words), mailbox::unregister);
    let words = "Deliveries for an endpoint that were not accepted";
    api.operation(Get, "/deliveries", ("deliveries", words), mailbox::list);
    let plain = PlainBody { takes: None, gives: Some(BYTES), status: 200 };
    let words = "Payload of a delivery, or a part of it (Range); does not accept the delivery";
    api.stream::<_, (), _, _>(Get, "/deliveries/{id}", ("download", words), plain, mailbox::download);
    let words = "Accepts a delivery: the client has stored it, and the node deletes its copy";
    api.operation(Delete, "/deliveries/{id}", ("take", words), mailbox::take);
    let words = "Measures the round-trip time to an echo service with small bundles";
    api.operation(Post, "/ping", ("ping", words), pinging::ping);
    let words = "Confirms the clock after a jump: lifetimes follow it, and expired bundles are deleted";
    api.operation(Post, "/clock/trust", ("trust_clock", words), trust_clock);
    let words = "Reloads the configuration: links and routes change at once";
    api.operation(Post, "/reload", ("reload", words), reload);
    let plain = PlainBody { takes: None, gives: Some("text/event-stream"), status: 200 };
    let words = "Stream of server-sent events; the data of each is an event record";
    api.stream::<_, EventRecord, _, _>(Get, "/events", ("events", words), plain, event_stream::watch);
    let plain = PlainBody { takes: None, gives: Some(METRICS), status: 200 };
    let words = "Metrics for Prometheus";
    api.stream::<NoParameters, (), _, _>(Get, "/metrics", ("metrics", words), plain, measured);
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

async fn status(shared: Arc<HttpState>, _: ParameterSource<NoParameters>) -> Answer<Status> {
    shared.status().await
}

async fn links(shared: Arc<HttpState>, _: ParameterSource<NoParameters>) -> Answer<Links> {
    Ok(Links { links: shared.links().await? })
}

async fn link(shared: Arc<HttpState>, asked: ParameterSource<NoParameters>) -> Answer<Link> {
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

async fn add_link(shared: Arc<HttpState>, asked: ParameterSource<NewLink>) -> Answer<Link> {
    let NewLink { name, address } = asked.query;
    shared.ask(Request::AddLink { name: name.clone(), address }).await?;
    link(shared, ParameterSource { named: name, query: NoParameters {} }).await
}

async fn remove_link(shared: Arc<HttpState>, asked: ParameterSource<NoParameters>) -> Answer<Done> {
    let words = format!("removed link `{}`", asked.named);
    shared.done(Request::RemoveLink { name: asked.named }, words).await.map_err(RequestFailure::missing)
}

async fn cut_link(shared: Arc<HttpState>, asked: ParameterSource<NoParameters>) -> Answer<Link> {
    let request = Request::CutLink { name: asked.named.clone() };
    shared.ask(request).await.map_err(RequestFailure::missing)?;
    link(shared, asked).await
}

async fn heal_link(shared: Arc<HttpState>, asked: ParameterSource<NoParameters>) -> Answer<Link> {
    let request = Request::OpenLink { name: asked.named.clone() };
    shared.ask(request).await.map_err(RequestFailure::missing)?;
    link(shared, asked).await
}

async fn routes(shared: Arc<HttpState>, _: ParameterSource<NoParameters>) -> Answer<Routes> {
    match shared.ask(Request::Routes).await? {
        Reply::Routes { routes } => Ok(Routes { routes }),
        _ => Err(RequestFailure::gone()),
    }
}

async fn add_route(shared: Arc<HttpState>, asked: ParameterSource<Route>) -> Answer<Done> {
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

async fn remove_route(shared: Arc<HttpState>, asked: ParameterSource<RouteToRemove>) -> Answer<Done> {
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

async fn bundles(shared: Arc<HttpState>, asked: ParameterSource<BundlesQuery>) -> Answer<Page> {
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

fn bundle_named(id: &str) -> Answer<(String, (u64, u64))> {
    view::parse_bundle_id(id).ok_or_else(|| {
        let what = format!("`{id}` does not name a bundle");
        RequestFailure::new(
            StatusCode::BAD_REQUEST,
            what,
            Some("it looks like dtn://alice/@842000000000-256"),
        )
    })
}

async fn bundle(shared: Arc<HttpState>, asked: ParameterSource<NoParameters>) -> Answer<Page> {
    let (source, created) = bundle_named(&asked.named)?;
    match shared.ask(Request::Bundle { source, created }).await.map_err(RequestFailure::missing)? {
        Reply::Bundles { page } => Ok(page),
        _ => Err(RequestFailure::gone()),
    }
}

async fn cancel(shared: Arc<HttpState>, asked: ParameterSource<NoParameters>) -> Answer<Done> {
    let (source, created) = bundle_named(&asked.named)?;
    let words = format!("deleted {}", asked.named);
    shared.done(Request::Delete { source, created }, words).await.map_err(RequestFailure::missing)
}

async fn trust_clock(shared: Arc<HttpState>, _: ParameterSource<NoParameters>) -> Answer<Done> {
    shared.done(Request::TrustClock, "clock confirmed; lifetimes follow it".into()).await
}

async fn reload(shared: Arc<HttpState>, _: ParameterSource<NoParameters>) -> Answer<Done> {
    shared.done(Request::Reload, "configuration reloaded".into()).await
}

async fn measured(
    shared: Arc<HttpState>,
    _: ParameterSource<NoParameters>,
    _: Parts,
    _: Body,
) -> Answer<Response> {
    let text = metrics::text(shared.status().await?);
    Ok(([(header::CONTENT_TYPE, METRICS)], text).into_response())
}
