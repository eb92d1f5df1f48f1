//! Access control.
//!
//! With a token, any client that sends it has access (RFC 6750 2.1); it is compared in constant time. Without one the interface
//! listens on loopback, and every page in a browser on this machine could reach it; so the `Host` of a request has to be this machine
//! (a name that an attacker's name server maps to it is a different one), and where a browser sends the origin of a request
//! (`Origin`, `Sec-Fetch-Site`), that has to be a page of this interface. Programs other than browsers send neither.
//!
//! | | with a token | without |
//! |---|---|---|
//! | `Authorization: Bearer` | must be the token, except for the files of the web page | is ignored |
//! | `Host` | any | `localhost`, a loopback address, a name in `http.hosts`; any port |
//! | `Origin` | missing, or scheme and host of this interface | the same |
//! | `Sec-Fetch-Site` | missing, `same-origin` or `none`; any if a person opens the web page | the same |

use super::answer::{Answer, RequestFailure};
use super::{HttpCounters, count};
use crate::config;
use axum::http::{HeaderMap, Method, StatusCode, header, request};
use longwire_settings::error::Error;
use std::net::{IpAddr, SocketAddr};
use subtle::ConstantTimeEq;

pub(super) struct Guard {
    token: Option<String>,
    address: SocketAddr,
    hosts: Vec<String>,
}

/// Result of a check that has found no reason to refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The client may use all operations.
    Granted,
    /// The client may read public files, and has shown no token.
    PublicOnly,
}

impl Guard {
    pub(super) fn new(config: &config::HttpSettings, address: SocketAddr) -> Result<Self, Error> {
        let token = config.token()?;
        if token.is_none() && !config::is_loopback(address.ip()) {
            let what = format!("http.listen = {address} is reachable from other machines and needs a token");
            return Err(Error::new(what).hint("set `http.token` or `http.token-file`"));
        }
        Ok(Guard { token, address, hosts: config.hosts.clone() })
    }

    /// Checks a request. `is_public` is true for files that anybody may read.
    pub(super) fn check(
        &self,
        head: &request::Parts,
        is_public: bool,
        counted: &HttpCounters,
    ) -> Answer<Access> {
        let host = host(head).unwrap_or_default();
        let mut access = Access::Granted;
        match &self.token {
            Some(token) if !has_token(&head.headers, token) && is_public => access = Access::PublicOnly,
            Some(token) if !has_token(&head.headers, token) => {
                count(&counted.counts.refused_token);
                let hint = Some(
                    "send `Authorization: Bearer TOKEN` with the value of `http.token` or `http.token-file`",
                );
                return Err(RequestFailure::new(StatusCode::UNAUTHORIZED, "missing or wrong token", hint));
            }
            None if !self.is_here(host) => {
                count(&counted.counts.refused_host);
                let what = format!("unknown host `{host}`");
                let hint = Some("use localhost or 127.0.0.1, or add the name to `http.hosts`");
                return Err(RequestFailure::new(StatusCode::FORBIDDEN, what, hint));
            }
            _ => {}
        }
        // The page itself, which a person may open from a link on any other page; it has no data, and no other page can frame it.
        let is_opened =
            is_public && head.method == Method::GET && head.uri.path() == "/" && is_navigation(&head.headers);
        if !is_opened && !self.same_origin(&head.headers, host) {
            count(&counted.counts.refused_origin);
            let hint = Some("requests from pages of other sites are not allowed");
            return Err(RequestFailure::new(StatusCode::FORBIDDEN, "cross-origin request refused", hint));
        }
        Ok(access)
    }

    /// True for names of this machine.
    fn is_here(&self, host: &str) -> bool {
        let name = without_port(host);
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => config::is_loopback(address) || address == self.address.ip(),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
            }
        }
    }

    fn same_origin(&self, headers: &HeaderMap, host: &str) -> bool {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let site = text("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
        let origin = text("origin").is_none_or(|origin| {
            let from = origin.split_once("://").map_or("", |(_, from)| from);
            // Through a proxy, the origin has the name of the proxy.
            let known = self.hosts.iter().any(|known| known.eq_ignore_ascii_case(without_port(from)));
            !from.is_empty() && (from.eq_ignore_ascii_case(host) || known)
        });
        site && origin
    }
}

/// Host name in a request: the only means by which a browser distinguishes the names of an address.
fn host(head: &request::Parts) -> Option<&str> {
    let mut all = head.headers.get_all(header::HOST).iter();
    let first = all.next()?.to_str().ok()?;
    match head.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => all.next().is_none().then_some(first),
    }
}

/// True if a person opens a document in a browser, rather than a page its parts (Fetch Metadata 2).
fn is_navigation(headers: &HeaderMap) -> bool {
    let says =
        |name: &str, value: &str| headers.get(name).is_some_and(|said| said.as_bytes() == value.as_bytes());
    says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // An IPv6 address without a port ends in a bracket.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let said = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, said) = said.split_once(' ').unwrap_or_default();
    let same = said.trim().as_bytes().ct_eq(token.as_bytes());
    scheme.eq_ignore_ascii_case("bearer") && bool::from(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surfaces::counter_changes::CounterChanges;
    use crate::tell::Tell;
    use axum::http::Request;

    fn guard(token: Option<&str>) -> Guard {
        let address = "127.0.0.1:4580".parse().expect("an address");
        Guard { token: token.map(str::to_owned), address, hosts: vec!["moon.example".into()] }
    }

    fn status(guard: &Guard, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri("/status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let (tell, _) = tokio::sync::mpsc::unbounded_channel::<CounterChanges>();
        let counted = HttpCounters::new(
            std::time::Duration::from_secs(1),
            CounterChanges::new(Tell::to(&tell, |said| said)),
        );
        match guard.check(&head, false, &counted) {
            Ok(_) => 200,
            Err(failure) => failure.status.as_u16(),
        }
    }

    #[test]
    fn without_a_token_only_this_machine_may_and_browsers_only_from_here() {
        let open = guard(None);
        for host in [
            "127.0.0.1:4580",
            "localhost:4580",
            "LOCALHOST",
            "[::1]:4580",
            "[::1]",
            "127.0.0.2",
            "moon.example:80",
        ] {
            assert_eq!(status(&open, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:4580",
            "localhost.evil.example",
            "10.0.0.1",
            "127.0.0.1.evil.example",
        ] {
            assert_eq!(status(&open, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(&open, &[]), 403, "HTTP/1.0 without a host");
        assert_eq!(status(&open, &[("host", "localhost"), ("host", "evil.example")]), 403, "two of them");
        let here = ("host", "localhost:4580");
        for (name, value, expected) in [
            ("origin", "http://localhost:4580", 200),
            ("origin", "http://localhost:8080", 403),
            ("origin", "http://evil.example", 403),
            ("origin", "null", 403),
            ("sec-fetch-site", "same-origin", 200),
            ("sec-fetch-site", "none", 200),
            ("sec-fetch-site", "same-site", 403),
            ("sec-fetch-site", "cross-site", 403),
        ] {
            assert_eq!(status(&open, &[here, (name, value)]), expected, "{name}: {value}");
        }
    }

    #[test]
    fn with_a_token_it_is_the_token_that_counts() {
        let closed = guard(Some("0123456789abcdef"));
        let host = ("host", "node.example");
        assert_eq!(status(&closed, &[host]), 401);
        for (said, expected) in [
            ("Bearer 0123456789abcdef", 200),
            ("bearer 0123456789abcdef", 200),
            ("Bearer 0123456789abcdeF", 401),
            ("Bearer 0123456789abcde", 401),
            ("Bearer 0123456789abcdef0", 401),
            ("Bearer ", 401),
            ("Basic 0123456789abcdef", 401),
            ("0123456789abcdef", 401),
        ] {
            assert_eq!(status(&closed, &[host, ("authorization", said)]), expected, "{said}");
        }
        let right = ("authorization", "Bearer 0123456789abcdef");
        assert_eq!(status(&closed, &[host, right, ("origin", "http://evil.example")]), 403);
    }
}
