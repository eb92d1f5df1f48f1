//! `[http]`: the interface for programs, browsers and Prometheus.

use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Characters of a token at the least: it is all that stands between the network and the node.
const TOKEN_LENGTH_MIN: usize = 16;

/// The HTTP interface.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpSettings {
    /// Where it listens, `host:port`, such as `127.0.0.1:4580`. Any address but loopback needs a token. Default: none, it is
    /// off.
    pub listen: Option<String>,
    /// What every request has to carry, as `Authorization: Bearer TOKEN`; at least 16 characters. Default: none. RFC 6750
    /// 2.1.
    pub token: Option<String>,
    /// A file with the token in it, instead; its path is meant beside this configuration. Default: none.
    pub token_file: Option<PathBuf>,
    /// Names under which browsers may reach it beside `localhost` and its own address, without port. Default: none.
    pub hosts: Vec<String>,
    /// Connections at a time; more are turned away. Default 64.
    pub connections_max: usize,
    /// Bytes of a request before its body. Default 16,384, at least 8,192.
    pub header_bytes_max: usize,
    /// How long it waits for a peer that neither reads nor writes. Default 30 s.
    pub patience: Duration,
    /// Events that are kept for those who read slowly; what is over they miss, and are told so. Default 4,096.
    pub events_max: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        HttpSettings {
            listen: None,
            token: None,
            token_file: None,
            hosts: Vec::new(),
            connections_max: 64,
            header_bytes_max: 16 * 1024,
            patience: Duration::from_secs(30),
            events_max: 4096,
        }
    }
}

/// A token is not for logs.
impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http")
            .field("listen", &self.listen)
            .field("token", &self.token.as_ref().map(|_| ".."))
            .field("token_file", &self.token_file)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

impl HttpSettings {
    /// Paths are meant in this folder.
    pub(super) fn beside(&mut self, folder: &Path) {
        if let Some(path) = &mut self.token_file {
            *path = folder.join(&path);
        }
    }

    /// Whether it makes sense.
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(token) = &self.token {
            check_token(token)?;
        }
        if self.token.is_some() && self.token_file.is_some() {
            return Err(Error::new("`http.token` and `http.token-file` are both said").hint("leave one out"));
        }
        if self.header_bytes_max < 8192 {
            return Err(
                Error::new("`http.header-bytes-max` is less than 8,192").hint("leave it out: it is 16,384")
            );
        }
        if self.connections_max == 0 || self.events_max == 0 || self.patience.is_zero() {
            return Err(Error::new(
                "`http.connections-max`, `http.events-max` and `http.patience` are more than zero",
            )
            .hint("leave them out"));
        }
        let Some(listen) = &self.listen else { return Ok(()) };
        let Some(first) = self.addresses()?.first().copied() else {
            return Err(Error::new(format!("http: `{listen}` has no address")));
        };
        if !self.needs_no_token()? && self.token.is_none() && self.token_file.is_none() {
            let what = format!("http would listen on {first}, where others can reach it, without a token");
            return Err(Error::new(what).hint(
                "say `http.token` or `http.token-file`, or listen on 127.0.0.1 and reach it through ssh -L",
            ));
        }
        Ok(())
    }

    /// Where to listen.
    ///
    /// # Errors
    /// It is no address.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let Some(listen) = &self.listen else { return Ok(Vec::new()) };
        let found = listen.to_socket_addrs().map_err(|error| {
            Error::new(format!("http: `{listen}` is no address: {error}"))
                .hint("write host:port, such as 127.0.0.1:4580")
        })?;
        Ok(found.collect())
    }

    /// True if only this machine reaches it.
    pub(crate) fn needs_no_token(&self) -> Result<bool, Error> {
        Ok(self.addresses()?.iter().all(|address| is_loopback(address.ip())))
    }

    /// The token, from wherever it stands.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub(crate) fn token(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.token_file else { return Ok(self.token.clone()) };
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(format!("cannot read the token {}: {error}", path.display()))
                .hint("`http.token-file` names a file that the node's user may read")
        })?;
        let token = text.trim().to_owned();
        check_token(&token)?;
        Ok(Some(token))
    }

    /// In words.
    pub(super) fn explain(&self) -> String {
        match &self.listen {
            None => "It has no HTTP interface: `http.listen` is not said.".into(),
            Some(listen) if self.token.is_none() && self.token_file.is_none() => {
                format!(
                    "Programs and browsers on this machine reach it at http://{listen}/, all users of it without a token."
                )
            }
            Some(listen) => format!("Whoever has its token reaches it at http://{listen}/."),
        }
    }
}

fn check_token(token: &str) -> Result<(), Error> {
    let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() >= TOKEN_LENGTH_MIN && plain {
        return Ok(());
    }
    let what =
        format!("the token of http has to have at least {TOKEN_LENGTH_MIN} characters, without spaces");
    Err(Error::new(what).hint("`openssl rand -hex 32` makes a good one"))
}

/// True if an address is reached from this machine only.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        }
    }
}
