//! The web page of the node: static files in the program itself, without data of the node.
//!
//! The files are served without the token, because the page asks for it; all data come from the operations, which need it. The
//! content security policy (CSP level 3) allows scripts, styles and requests of this interface only, and no code within the
//! document. Browsers revalidate each file with its entity tag (RFC 9110 8.8.3), so the page is always that of the running program.

use super::HttpState;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use longwire_proto::codec::crc::crc32c;
use std::sync::Arc;

/// Sources of everything that the page may load or contact (CSP level 3).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
                      form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file of the page: its path, its content type and its bytes.
struct File(&'static str, &'static str, &'static [u8]);

macro_rules! files {
    ($($path:literal $kind:ident $name:literal;)*) => {
        static FILES: &[File] = &[$(File($path, $kind, include_bytes!(concat!("../../../page/", $name)))),*];
    };
}

files! {
    "/" HTML "index.html";
    "/page/style.css" CSS "style.css";
    "/page/icon.svg" SVG "icon.svg";
    "/page/api.js" SCRIPT "api.js";
    "/page/channel.js" SCRIPT "channel.js";
    "/page/dialog.js" SCRIPT "dialog.js";
    "/page/dom.js" SCRIPT "dom.js";
    "/page/events.js" SCRIPT "events.js";
    "/page/files.js" SCRIPT "files.js";
    "/page/format.js" SCRIPT "format.js";
    "/page/ics309.js" SCRIPT "ics309.js";
    "/page/kept.js" SCRIPT "kept.js";
    "/page/links.js" SCRIPT "links.js";
    "/page/log.js" SCRIPT "log.js";
    "/page/main.js" SCRIPT "main.js";
    "/page/messages.js" SCRIPT "messages.js";
    "/page/nodes.js" SCRIPT "nodes.js";
    "/page/photo.js" SCRIPT "photo.js";
    "/page/queue.js" SCRIPT "queue.js";
    "/page/received.js" SCRIPT "received.js";
    "/page/receiving.js" SCRIPT "receiving.js";
    "/page/sent.js" SCRIPT "sent.js";
    "/page/state.js" SCRIPT "state.js";
    "/page/stations.js" SCRIPT "stations.js";
    "/page/virtual_list.js" SCRIPT "virtual_list.js";
}

/// True for a request that gets a file of the page, or is told that it has it already.
pub(super) fn is_of_page(method: &Method, path: &str) -> bool {
    (method == Method::GET || method == Method::HEAD) && FILES.iter().any(|File(known, ..)| *known == path)
}

/// Adds the files to the routes.
pub(super) fn enter(mut router: Router<Arc<HttpState>>) -> Router<Arc<HttpState>> {
    for File(path, kind, bytes) in FILES {
        let tag = format!("\"{:08x}-{:x}\"", crc32c(bytes), bytes.len());
        let serve = move |headers: HeaderMap| std::future::ready(answer(&headers, kind, bytes, &tag));
        router = router.route(path, on(MethodFilter::GET, serve));
    }
    router
}

fn answer(asked: &HeaderMap, kind: &'static str, bytes: &'static [u8], tag: &str) -> Response {
    let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|value| {
        let value = value.trim();
        value == "*" || value.strip_prefix("W/").unwrap_or(value) == tag
    });
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(header::CONTENT_TYPE, kind)], Bytes::from_static(bytes)).into_response(),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    for (name, value) in [
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_file_of_the_folder_is_served() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let name = |File(path, ..): &File| match *path {
            "/" => "index.html".to_owned(),
            path => path.strip_prefix("/page/").unwrap().to_owned(),
        };
        assert_eq!(FILES.iter().map(name).collect::<BTreeSet<_>>(), there);
    }

    #[test]
    fn only_reading_a_file_of_the_page_needs_no_token() {
        assert!(is_of_page(&Method::GET, "/") && is_of_page(&Method::HEAD, "/page/style.css"));
        for (method, path) in [
            (Method::POST, "/"),
            (Method::DELETE, "/page/style.css"),
            (Method::GET, "/status"),
            (Method::GET, "/page"),
            (Method::GET, "/page/"),
            (Method::GET, "/page/../status"),
            (Method::GET, "//"),
            (Method::GET, ""),
        ] {
            assert!(!is_of_page(&method, path), "{method} {path}");
        }
    }
}
