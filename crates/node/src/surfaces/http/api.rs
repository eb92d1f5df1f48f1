//! Table of operations: it routes requests, and `/openapi.json` is generated from it, so the two cannot differ. Parameters and
//! answers are types, which also contain their descriptions (OpenAPI 3.1, whose schemas are JSON Schema 2020-12).

use super::answer::{Answer, RequestFailure, json};
use super::{HttpState, operations, page};
use crate::surfaces::operations::{Method, OPERATIONS, Operation, Place};
use crate::view::Problem;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json as object};
use std::collections::BTreeSet;
use std::future::{Future, ready};
use std::sync::Arc;

/// Maximum length of a JSON request body, bytes.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024;

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// Parameters of a request.
#[derive(Debug)]
pub(super) struct Parameters<Q = NoParameters> {
    /// Name in the path; empty if the path has none.
    pub(super) named: String,
    /// Query, or the JSON document of a POST.
    pub(super) query: Q,
}

/// Parameters of an operation without any.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// Content types of an operation whose answer or request body is not JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainBody {
    /// Content type of the request body; `None` without a body.
    pub(super) takes: Option<&'static str>,
    /// Content type of the answer; `None` for JSON.
    pub(super) gives: Option<&'static str>,
    /// Status code of the answer.
    pub(super) status: u16,
}

/// The routes, and the descriptions collected from them.
pub(super) struct Api {
    router: Router<Arc<HttpState>>,
    paths: Map<String, Value>,
    given: SchemaGenerator,
    taken: SchemaGenerator,
    /// IDs of the operations that have a function.
    bound: BTreeSet<&'static str>,
}

/// Builds the router of all paths.
pub(super) fn router(shared: Arc<HttpState>) -> Router {
    let mut api = Api::new();
    operations::enter(&mut api);
    let all: BTreeSet<&str> = OPERATIONS.iter().filter_map(|row| row.http).map(|place| place.id).collect();
    assert_eq!(api.bound, all, "each operation over HTTP has a function");
    let document = Bytes::from(api.document().to_string());
    let text = move || ready(([(header::CONTENT_TYPE, "application/json")], document.clone()));
    let refusal = |status, what: &'static str, hint: &'static str| {
        move || ready(RequestFailure::new(status, what, Some(hint)))
    };
    page::enter(api.router)
        .route("/openapi.json", on(MethodFilter::GET, text))
        .fallback(refusal(StatusCode::NOT_FOUND, "nothing at this path", "see /openapi.json for all paths"))
        .method_not_allowed_fallback(refusal(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed on this path",
            "see /openapi.json for the methods",
        ))
        .with_state(shared)
}

impl Api {
    fn new() -> Self {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings
        };
        Api {
            router: Router::new(),
            paths: Map::new(),
            given: settings().for_serialize().into_generator(),
            taken: settings().for_deserialize().into_generator(),
            bound: BTreeSet::new(),
        }
    }

    /// Adds an operation with JSON parameters and a JSON answer.
    pub(super) fn operation<Q, A, F, R>(&mut self, row: &Operation, carry_out: F)
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        A: Serialize + JsonSchema,
        F: Fn(Arc<HttpState>, Parameters<Q>) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Answer<A>> + Send,
    {
        let answer = content("application/json", self.given.subschema_for::<A>().to_value());
        let place = self.place(row);
        let in_body = place.method == Method::Post;
        let body = (in_body && has_fields::<Q>())
            .then(|| content("application/json", self.taken.subschema_for::<Q>().to_value()));
        let query = (!in_body).then(|| fields::<Q>());
        self.describe(place, row.about, responses("200", answer), body, query);
        self.route(place, move |shared, mut head, body| {
            let carry_out = carry_out.clone();
            async move {
                let named = named(&mut head).await;
                let query = if in_body { document(&shared, body).await? } else { query_of(&head)? };
                let answer = carry_out(shared, Parameters { named, query }).await?;
                Answer::Ok(json(StatusCode::OK, &answer))
            }
        });
    }

    /// Adds an operation whose request body or answer is not JSON: it gets the header and the body of the request as they are.
    pub(super) fn stream<Q, A, F, R>(&mut self, row: &Operation, plain: PlainBody, carry_out: F)
    where
        Q: DeserializeOwned + JsonSchema + Send + 'static,
        A: JsonSchema,
        F: Fn(Arc<HttpState>, Parameters<Q>, Parts, Body) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Answer<Response>> + Send,
    {
        let any = || object!({"type": "string"});
        let described = self.given.subschema_for::<A>();
        let answer = match plain.gives {
            Some(kind) => content(kind, any()),
            None => content("application/json", described.to_value()),
        };
        let answers = responses(&plain.status.to_string(), answer);
        let body = plain.takes.map(|kind| content(kind, any()));
        let place = self.place(row);
        self.describe(place, row.about, answers, body, Some(fields::<Q>()));
        self.route(place, move |shared, mut head, body| {
            let carry_out = carry_out.clone();
            async move {
                let asked = Parameters { named: named(&mut head).await, query: query_of(&head)? };
                carry_out(shared, asked, head, body).await
            }
        });
    }

    /// Returns the place of an operation that gets its function.
    fn place(&mut self, row: &Operation) -> Place {
        let place = row.http.expect("it is an operation over HTTP");
        assert!(self.bound.insert(place.id), "`{}` has two functions", place.id);
        place
    }

    fn route<F, R>(&mut self, place: Place, carry_out: F)
    where
        F: Fn(Arc<HttpState>, Parts, Body) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Answer<Response>> + Send + 'static,
    {
        let handler = move |State(shared): State<Arc<HttpState>>, request: Request| {
            let (head, body) = request.into_parts();
            carry_out(shared, head, body)
        };
        let router = std::mem::take(&mut self.router);
        self.router = router.route(place.path, on(filter(place.method), handler));
    }

    fn describe(
        &mut self,
        Place { method, path, id }: Place,
        words: &str,
        responses: Value,
        body: Option<Value>,
        query: Option<Value>,
    ) {
        let mut parameters = Vec::new();
        if let Some((_, name)) = path.split_once('{') {
            let name = name.split('}').next().unwrap_or_default().trim_start_matches('*');
            let schema = object!({"type": "string"});
            parameters.push(object!({"name": name, "in": "path", "required": true, "schema": schema}));
        }
        parameters.extend(query.iter().flat_map(in_query));
        let mut operation = object!({"operationId": id, "summary": words, "responses": responses});
        if let Some(content) = body {
            operation["requestBody"] = object!({"required": true, "content": content});
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        let path = self.paths.entry(path.replace("{*", "{")).or_insert_with(|| object!({}));
        path[format!("{method:?}").to_lowercase()] = operation;
    }

    fn document(&mut self) -> Value {
        let place = Place { method: Method::Get, path: "/openapi.json", id: "describe" };
        let answer = content("application/json", object!({"type": "object"}));
        self.describe(place, "This document", responses("200", answer), None, None);
        self.given.subschema_for::<Problem>();
        let mut schemas = self.taken.take_definitions(true);
        schemas.extend(self.given.take_definitions(true));
        object!({
            "openapi": "3.1.0",
            "info": {
                "title": "Longwire node",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Operations for applications and operators. Names are in snake_case and end with their unit. An error is an object with `error` and, where possible, `hint`.",
                "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "security": [{}, {"token": []}],
            "paths": self.paths,
            "components": {
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
                "schemas": schemas,
            },
        })
    }
}

fn content(kind: &str, schema: Value) -> Value {
    object!({kind: {"schema": schema}})
}

fn responses(status: &str, content: Value) -> Value {
    let problem = object!({"$ref": "#/components/schemas/Problem"});
    object!({
        status: {"description": "Done", "content": content},
        "default": {
            "description": "Error",
            "content": {"application/json": {"schema": problem}},
        },
    })
}

/// Schema of a query, without references.
fn fields<Q: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.inline_subschemas = true;
    settings.into_generator().into_root_schema_for::<Q>().to_value()
}

fn has_fields<Q: JsonSchema>() -> bool {
    fields::<Q>()["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

/// Parameters of a query with this schema.
fn in_query(schema: &Value) -> Vec<Value> {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|required| required.iter().any(|field| field == name))
    };
    let all = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, field): (&String, &Value)| {
        let mut field = field.clone();
        let words = field.as_object_mut().and_then(|field| field.remove("description"));
        object!({
            "name": name,
            "in": "query",
            "required": required(name),
            "description": words.unwrap_or_default(),
            "schema": field,
        })
    };
    all.map(parameter).collect()
}

async fn named(head: &mut Parts) -> String {
    match Path::<String>::from_request_parts(head, &()).await {
        Ok(Path(named)) => named,
        Err(_) => String::new(),
    }
}

fn query_of<Q: DeserializeOwned>(head: &Parts) -> Answer<Q> {
    let read = Query::<Q>::try_from_uri(&head.uri);
    read.map(|Query(query)| query).map_err(|error| invalid(&error.body_text()))
}

async fn document<Q: DeserializeOwned>(shared: &HttpState, body: Body) -> Answer<Q> {
    let patience = &shared.counted.patience;
    let whole = tokio::time::timeout(patience.time(), axum::body::to_bytes(body, DOCUMENT_BYTES_MAX)).await;
    let whole = whole.map_err(|_| {
        patience.count();
        let what = "request body timed out; nothing was done";
        RequestFailure::new(StatusCode::REQUEST_TIMEOUT, what, Some("retry the request"))
    })?;
    let text = whole.map_err(|_| {
        let what = format!("incomplete request, or longer than {DOCUMENT_BYTES_MAX} bytes");
        RequestFailure::new(StatusCode::PAYLOAD_TOO_LARGE, what, None)
    })?;
    let text = if text.is_empty() { Bytes::from_static(b"{}") } else { text };
    serde_json::from_slice(&text).map_err(|error| invalid(&error.to_string()))
}

fn invalid(what: &str) -> RequestFailure {
    let what = format!("invalid request: {what}");
    RequestFailure::new(StatusCode::BAD_REQUEST, what, Some("see /openapi.json for the parameters"))
}
