//! Answers: JSON documents and errors.

use crate::view::Problem;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

pub(super) type Answer<A> = Result<A, RequestFailure>;

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestFailure {
    pub(super) status: StatusCode,
    pub(super) problem: Problem,
}

impl RequestFailure {
    pub(super) fn new(status: StatusCode, what: impl Into<String>, hint: Option<&str>) -> Self {
        RequestFailure { status, problem: Problem { error: what.into(), hint: hint.map(str::to_owned) } }
    }

    /// The request is invalid, or the node refuses it.
    pub(super) fn bad(what: String, hint: Option<String>) -> Self {
        RequestFailure { status: StatusCode::BAD_REQUEST, problem: Problem { error: what, hint } }
    }

    /// The node cannot carry out the request yet.
    pub(super) fn later(what: String, hint: Option<String>) -> Self {
        RequestFailure { status: StatusCode::SERVICE_UNAVAILABLE, problem: Problem { error: what, hint } }
    }

    /// The node is shutting down.
    pub(super) fn gone() -> Self {
        let hint = Some("everything accepted is in the store; try again when the node is up");
        RequestFailure::new(StatusCode::SERVICE_UNAVAILABLE, "the node is shutting down", hint)
    }

    /// Turns a bad request into Not Found: no object has the requested name.
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

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let text = serde_json::to_vec(value).expect("answers are documents");
    // Browsers must neither guess another content type nor keep what is true only now.
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, text).into_response()
}
