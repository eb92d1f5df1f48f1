//! Answers: JSON, or what went wrong.

use crate::view::Problem;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestFailure {
    pub(super) status: StatusCode,
    pub(super) problem: Problem,
}

impl RequestFailure {
    pub(super) fn new(status: StatusCode, what: impl Into<String>, hint: Option<&str>) -> Self {
        RequestFailure { status, problem: Problem { error: what.into(), hint: hint.map(str::to_owned) } }
    }

    /// The request makes no sense, or the node does not do it.
    pub(super) fn bad(what: String, hint: Option<String>) -> Self {
        RequestFailure { status: StatusCode::BAD_REQUEST, problem: Problem { error: what, hint } }
    }

    /// The node is ending.
    pub(super) fn gone() -> Self {
        let hint = Some("what it had accepted is safe in its store; ask again when it is up");
        RequestFailure::new(StatusCode::SERVICE_UNAVAILABLE, "the node is ending", hint)
    }

    /// What was asked for by name is not there.
    pub(super) fn missing(self) -> Self {
        let status = if self.status == StatusCode::BAD_REQUEST { StatusCode::NOT_FOUND } else { self.status };
        RequestFailure { status, ..self }
    }
}

impl IntoResponse for RequestFailure {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &self.problem);
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A JSON document.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => {
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = status;
            let kind = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        Err(error) => {
            let mut response = Response::new(Body::from(error.to_string()));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}
