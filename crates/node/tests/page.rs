//! The web page of the node over HTTP: what is served, to whom, and with which restrictions.

mod common;

use common::web::{self, Answer, ask, get};
use common::{config, start};
use longwire_node::Node;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Maximum size of the whole page, bytes: ten minutes at 4,000 bit/s.
const PAGE_BYTES_MAX: usize = 300_000;
const TOKEN: &str = "authorization: Bearer 0123456789abcdef\r\n";

fn node(more: &str) -> (Node, SocketAddr) {
    let text = format!(
        "node = 'dtn://moon/'\n[http]\nlisten = '127.0.0.1:0'\n{more}\n[storage]\nkind = 'memory'\n[agent.limits]\nstore-bytes-max = 1000000\n"
    );
    let node = start(config(&text));
    let at = node.http_address().expect("it has an HTTP interface");
    (node, at)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("page")
}

/// Names and texts of all files of the page.
fn files() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).expect("the folder of the page");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("text"))
    };
    let mut files: Vec<_> = entries.map(read).collect();
    files.sort();
    files
}

fn path_of(name: &str) -> String {
    if name == "index.html" { "/".into() } else { format!("/page/{name}") }
}

#[track_caller]
fn is_restricted(answer: &Answer) {
    let policy = answer.header("content-security-policy").expect("a policy");
    assert_eq!(
        policy,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
         form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
}

#[test]
fn all_files_are_served_with_their_types_and_once_only() {
    let (_node, at) = node("");
    let mut bytes = 0;
    for (name, text) in files() {
        let answer = get(at, &path_of(&name));
        assert_eq!(answer.status, 200, "{name}");
        assert!(answer.body == text.as_bytes(), "{name} is as in the folder");
        is_restricted(&answer);
        let kind = match name.rsplit_once('.').expect("a type").1 {
            "html" => "text/html; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{name}: no type is known for {other}"),
        };
        assert_eq!(answer.header("content-type"), Some(kind));
        // A file that a browser has already is not sent again.
        let tag = answer.header("etag").expect("an entity tag").to_owned();
        for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".into()] {
            let again = ask(at, "GET", &path_of(&name), &format!("if-none-match: {known}\r\n"), b"");
            assert_eq!((again.status, again.body.len()), (304, 0), "{name} with {known}");
            assert_eq!(again.header("etag"), Some(tag.as_str()));
            is_restricted(&again);
        }
        let other = ask(at, "GET", &path_of(&name), "if-none-match: \"other\"\r\n", b"");
        assert_eq!(other.status, 200, "{name}");
        bytes += answer.body.len();
    }
    assert!(bytes < PAGE_BYTES_MAX, "the page has {bytes} bytes");
    println!("the page has {bytes} bytes");
}

/// The content security policy forbids all of this, too; here it does not even stand in the files.
#[test]
fn no_file_loads_anything_from_elsewhere_or_makes_markup_from_data() {
    for (name, text) in files() {
        // The name of a vocabulary is no address that is loaded.
        let text = text.replace("\"http://www.w3.org/2000/svg\"", "");
        for forbidden in [
            "http://",
            "https://",
            "ws://",
            "wss://",
            "src=\"//",
            "@import",
            "url(",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "javascript:",
            "DOMParser",
            "srcdoc",
            "serviceWorker",
            "sendBeacon",
            "WebSocket",
            "RTCPeerConnection",
        ] {
            assert!(!text.contains(forbidden), "{name} has {forbidden}");
        }
        let lines = text.lines().count();
        assert!(lines < 800, "{name} has {lines} lines");
    }
    let document = std::fs::read_to_string(folder().join("index.html")).expect("text");
    assert!(!document.contains("style=") && !document.contains("<style"), "no style within the document");
    assert!(!document.contains("<script>"), "no script within the document");
    let handler = |word: &str| word.starts_with("on") && word.contains("=\"");
    assert!(!document.split_whitespace().any(handler), "no handler within the document");
    // All modules are asked for at once, rather than one after the other as they import each other.
    for (name, _) in files().iter().filter(|(name, _)| name.ends_with(".js")) {
        assert!(document.contains(&format!("\"/page/{name}\"")), "{name} is loaded at once");
    }
    for script in document.split("<script").skip(1) {
        let (head, rest) = script.split_once('>').expect("an end");
        assert!(head.contains("src=\"/page/") && rest.starts_with("</script>"), "{script}");
    }
}

#[test]
fn the_token_protects_data_and_the_page_itself_asks_for_it() {
    let (_node, at) = node("token = '0123456789abcdef'");
    for (name, _) in files() {
        assert_eq!(get(at, &path_of(&name)).status, 200, "{name}");
        assert_eq!(ask(at, "GET", &path_of(&name), TOKEN, b"").status, 200, "{name}");
    }
    let wrong = "authorization: Bearer 0123456789abcdeF\r\n";
    for path in
        ["/status", "/bundles", "/links", "/routes", "/events", "/metrics", "/openapi.json", "/registrations"]
    {
        for headers in ["", wrong] {
            let answer = ask(at, "GET", path, headers, b"");
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{path}");
        }
    }
    for method in ["POST", "DELETE", "PUT"] {
        assert_eq!(ask(at, method, "/", "", b"").status, 401, "{method}");
        assert_eq!(ask(at, method, "/", TOKEN, b"").status, 405, "{method}");
    }
    let status = ask(at, "GET", "/status", TOKEN, b"");
    assert_eq!(status.status, 200);
    for (name, value) in [("x-content-type-options", "nosniff"), ("cache-control", "no-store")] {
        assert_eq!(status.header(name), Some(value), "{name}");
    }
}

#[test]
fn no_path_leads_to_anything_but_the_files_of_the_page() {
    let (_node, at) = node("");
    for path in [
        "/page",
        "/page/",
        "//",
        "//page/main.js",
        "/page//main.js",
        "/page/../main.js",
        "/../",
        "/../Cargo.toml",
        "/page/../../Cargo.toml",
        "/page/%2e%2e/Cargo.toml",
        "/%2e%2e/",
        "/page/..%2fCargo.toml",
        "/page/main.js/",
        "/page/main.js%00",
        "/page/MAIN.JS",
        "/page/index.html",
        "/index.html",
        "/favicon.ico",
        "/page/\\..\\main.js",
        "/page/..;/status",
    ] {
        let answer = get(at, path);
        // The HTTP library itself refuses some of them.
        if answer.status == 400 {
            continue;
        }
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert_eq!(answer.json()["error"], "nothing at this path", "{path}");
    }
    for method in ["POST", "DELETE", "PUT"] {
        assert_eq!(ask(at, method, "/page/main.js", "", b"").status, 405, "{method}");
    }
    let allowed = ask(at, "POST", "/", "", b"");
    assert_eq!(allowed.header("allow"), Some("GET,HEAD"), "{}", allowed.text());
    let (status, head) = head_of(at, "/page/main.js");
    assert!(status == 200 && head.contains("text/javascript"), "{head}");
    let length = std::fs::metadata(folder().join("main.js")).expect("a file").len();
    assert!(head.contains(&format!("content-length: {length}\r\n")), "{head}");
}

fn head_of(at: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = web::connect(at);
    let request = format!("HEAD {path} HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it reads");
    web::read_head(&mut std::io::BufReader::new(stream))
}

#[test]
fn pages_of_other_sites_get_nothing() {
    for more in ["", "token = '0123456789abcdef'"] {
        let (_node, at) = node(more);
        for path in ["/", "/page/main.js", "/status"] {
            for headers in [
                "origin: http://evil.example\r\n",
                "origin: null\r\n",
                "sec-fetch-site: cross-site\r\n",
                "sec-fetch-site: same-site\r\n",
            ] {
                let answer = ask(at, "GET", path, &format!("{headers}{TOKEN}"), b"");
                assert_eq!(answer.status, 403, "{path} with {headers}");
            }
        }
        assert_eq!(ask(at, "GET", "/", "sec-fetch-site: none\r\n", b"").status, 200);
        // A person may open the page from a link in a wiki; nothing else, and not in a frame.
        for (path, mode, dest, status) in [
            ("/", "navigate", "document", 200),
            ("/", "navigate", "iframe", 403),
            ("/", "no-cors", "document", 403),
            ("/page/main.js", "navigate", "document", 403),
            ("/status", "navigate", "document", 403),
        ] {
            let fetch = format!(
                "sec-fetch-site: cross-site\r\nsec-fetch-mode: {mode}\r\nsec-fetch-dest: {dest}\r\n{TOKEN}"
            );
            assert_eq!(ask(at, "GET", path, &fetch, b"").status, status, "{path} {mode} {dest}");
        }
        assert_eq!(ask(at, "GET", "/page/main.js", "sec-fetch-site: same-origin\r\n", b"").status, 200);
    }
    // Without a token, a name that an attacker maps to this address gets nothing either.
    let (_node, at) = node("");
    let request = b"GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert_eq!(web::say(at, request).status, 403);
}

#[test]
fn an_upload_that_does_not_fit_is_refused_with_a_hint() {
    let (_node, at) = node("");
    let answer = ask(at, "POST", "/bundles?to=dtn://mars/files&name=big.bin", "", &vec![1; 2_000_000]);
    assert!(matches!(answer.status, 413 | 507), "{}", answer.text());
    let problem = answer.json();
    assert!(problem["error"].as_str().is_some_and(|what| what.starts_with("it was not sent")), "{problem}");
    assert!(problem["hint"].is_string(), "{problem}");
    assert_eq!(get(at, "/status").json()["bundles"], 0, "and nothing of it is kept");
}
