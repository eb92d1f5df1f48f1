//! `[http]`: the interface for programs, browsers and Prometheus.

use longwire_proto::settings;
use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Minimum length of a token, characters: the token alone protects the node from the network.
const TOKEN_LENGTH_MIN: usize = 16;

settings! {
    /// Settings of the HTTP interface.
    #[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct HttpSettings {
        /// Address on which to listen, `host:port`, such as `127.0.0.1:4580`. Every address except loopback needs a token.
        /// Default: none, HTTP is off.
        pub listen: Option<String>,
        /// Token that every request must carry as `Authorization: Bearer TOKEN`; at least 16 characters. Default: none. RFC 6750
        /// 2.1.
        pub token: Option<String>,
        /// File that contains the token, instead of `token`; its path is relative to the configuration file. Default: none.
        pub token_file: Option<PathBuf>,
        /// Further host names, without port, under which browsers may reach the interface, in addition to `localhost` and its
        /// own address. Default: none.
        pub hosts: Vec<String>,
        /// Maximum concurrent connections; further ones are refused. Default 64.
        pub connections_max: usize = 64,
        /// Maximum size of a request before its body, bytes. Default 16,384, at least 8,192.
        pub header_bytes_max: usize = 16 * 1024,
        /// Time to wait for a client that neither reads nor writes. Default 30 s.
        pub patience: Duration = Duration::from_secs(30),
        /// Events kept for slow readers; a reader that falls further behind misses events and is informed. Default 4,096.
        pub events_max: usize = 4096,
    }
}

/// Hides the token, which must not be logged.
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
    /// Makes relative paths relative to this folder.
    pub(super) fn beside(&mut self, folder: &Path) {
        if let Some(path) = &mut self.token_file {
            *path = folder.join(&path);
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(token) = &self.token {
            check_token(token)?;
        }
        if self.token.is_some() && self.token_file.is_some() {
            return Err(Error::new("`http.token` and `http.token-file` are both set").hint("remove one"));
        }
        if self.header_bytes_max < 8192 {
            return Err(Error::new("`http.header-bytes-max` is less than 8,192")
                .hint("remove it; the default is 16,384"));
        }
        super::check_connections("http", self.connections_max)?;
        if self.connections_max == 0 || self.events_max == 0 || self.patience.is_zero() {
            return Err(Error::new(
                "`http.connections-max`, `http.events-max` and `http.patience` must be greater than zero",
            )
            .hint("remove them to use the defaults"));
        }
        let Some(listen) = &self.listen else { return Ok(()) };
        let addresses = self.addresses()?;
        let Some(first) = addresses.first() else {
            return Err(Error::new(format!("http: `{listen}` resolves to no address")));
        };
        let others_reach_it = addresses.iter().any(|address| !is_loopback(address.ip()));
        if others_reach_it && self.token.is_none() && self.token_file.is_none() {
            let what = format!("http: listening on {first}, which others can reach, needs a token");
            return Err(Error::new(what)
                .hint("set `http.token` or `http.token-file`, or listen on 127.0.0.1 and use `ssh -L`"));
        }
        Ok(())
    }

    /// Returns the addresses on which to listen.
    ///
    /// # Errors
    /// Fails if `listen` is not a valid address.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let Some(listen) = &self.listen else { return Ok(Vec::new()) };
        let found = listen.to_socket_addrs().map_err(|error| {
            Error::new(format!("http: `{listen}` is not a valid address: {error}"))
                .hint("use host:port, such as 127.0.0.1:4580")
        })?;
        Ok(found.collect())
    }

    /// Returns the token, from the configuration or its file.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub(crate) fn token(&self) -> Result<Option<String>, Error> {
        let Some(path) = &self.token_file else { return Ok(self.token.clone()) };
        let text = longwire_settings::file::read_regular_text(path).map_err(|error| {
            Error::new(format!("cannot read the token {}: {error}", path.display()))
                .hint("set `http.token-file` to a file that the user of the node can read")
        })?;
        let token = text.trim().to_owned();
        check_token(&token)?;
        Ok(Some(token))
    }

    /// Describes the interface for an operator.
    pub(super) fn explain(&self) -> String {
        match &self.listen {
            None => "HTTP is off (`http.listen` is not set).".into(),
            Some(listen) if self.token.is_none() && self.token_file.is_none() => {
                format!("HTTP: http://{listen}/, open to all users of this machine without a token.")
            }
            Some(listen) => format!("HTTP: http://{listen}/, for clients with the token."),
        }
    }
}

fn check_token(token: &str) -> Result<(), Error> {
    let plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() >= TOKEN_LENGTH_MIN && plain {
        return Ok(());
    }
    let what = format!("the HTTP token must have at least {TOKEN_LENGTH_MIN} characters and no spaces");
    Err(Error::new(what).hint("create one with `openssl rand -hex 32`"))
}

/// Returns true if only this machine can reach the address.
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
        }
    }
}
