//! `[mail]`: mail for users of this node, and a port for their mail programs.

use super::http::is_loopback;
use super::{Config, no_endpoint};
use longwire_proto::bp::Eid;
use longwire_proto::service::{MailAddress, Priority};
use longwire_proto::settings;
use longwire_proto::smtp::parse_address;
use longwire_settings::duration::short;
use longwire_settings::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum of `mail.message-bytes-max`: messages are in memory until they are stored.
const MESSAGE_BYTES_LIMIT: u64 = 256 << 20;
/// Maximum length of the name of a user.
const USER_BYTES_MAX: usize = 64;

settings! {
    /// Mail for users of this node, and a port for their mail programs. docs/mail.md.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct MailSettings {
        /// Folder with a Maildir for each user, which is created if necessary. Default: none, mail is off.
        pub folder: Option<PathBuf>,
        /// Users of this node: the part of their addresses before the `@`. Default: none.
        pub users: Vec<String>,
        /// User who also gets the mail for names that are no users. Default: none, the sender gets a failure notice.
        pub default_user: Option<String>,
        /// Address at which mail programs of this machine submit mail over SMTP, such as `127.0.0.1:2525`; only loopback. Default: none,
        /// mail is only received. RFC 6409.
        pub listen: Option<String>,
        /// Further domains and the nodes that they stand for, such as `"club.example" = "dtn://carol/"`. `alice` and `alice.dtn`
        /// always stand for `dtn://alice/`, and `7.ipn` for `ipn:7.0`. Default: none.
        pub domains: BTreeMap<String, String>,
        /// Lifetime of messages on their way. Default 3 days.
        pub lifetime: Duration = Duration::from_secs(3 * 86_400),
        /// Priority of messages. Default normal.
        pub priority: Priority = Priority::Normal,
        /// Requests a receipt for every message, not only for those whose sender asks for one. Default: false.
        pub receipts: bool,
        /// Maximum time that a message may need on the link over which it leaves, if the rate of the link is known: with key-ups and
        /// answers, without losses and other traffic. A longer message is refused; `0 s` for no limit. Default 15 min.
        pub air_time_max: Duration = Duration::from_secs(900),
        /// Maximum length of a message, bytes, submitted and received. Default 10 MiB.
        pub message_bytes_max: u64 = 10 << 20,
        /// Maximum concurrent connections of mail programs; further ones are refused. Default 8.
        pub connections_max: usize = 8,
        /// Time after which a silent mail program is disconnected. Default 5 min. RFC 5321 4.5.3.2.7.
        pub patience: Duration = Duration::from_secs(300),
    }
}

impl MailSettings {
    /// Makes relative paths relative to this folder.
    pub(super) fn beside(&mut self, folder: &Path) {
        if let Some(path) = self.folder.as_mut().filter(|path| !path.as_os_str().is_empty()) {
            *path = folder.join(&*path);
        }
    }

    /// Returns the addresses on which to listen.
    ///
    /// # Errors
    /// Fails if `listen` is not a valid address.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let Some(listen) = &self.listen else { return Ok(Vec::new()) };
        let found = listen.to_socket_addrs().map_err(|error| {
            Error::new(format!("mail: `{listen}` is not a valid address: {error}"))
                .hint("use host:port, such as 127.0.0.1:2525")
        })?;
        Ok(found.collect())
    }

    /// Returns the user for a name, in the spelling of the configuration.
    pub(crate) fn user(&self, name: &str) -> Option<&str> {
        self.users.iter().find(|user| user.eq_ignore_ascii_case(name)).map(String::as_str)
    }

    fn check(&self, config: &Config) -> Result<(), Error> {
        let Some(folder) = &self.folder else {
            let is_on = self.listen.is_some() || !self.users.is_empty();
            return match is_on {
                true => Err(Error::new("`mail.folder` is missing")
                    .hint("set it to a folder for the Maildirs of the users, for example folder = \"mail\"")),
                false => Ok(()),
            };
        };
        if folder.as_os_str().is_empty() {
            return Err(Error::new("`mail.folder` is empty").hint("set it, for example folder = \"mail\""));
        }
        if self.users.is_empty() {
            return Err(
                Error::new("[mail] has no `users`").hint("name them, for example users = [\"alice\"]")
            );
        }
        for (at, user) in self.users.iter().enumerate() {
            check_user(user)?;
            if self.users[..at].iter().any(|other| other.eq_ignore_ascii_case(user)) {
                return Err(Error::new(format!("mail: `{user}` is twice in `users`")).hint("remove one"));
            }
        }
        if let Some(user) = self.default_user.as_ref().filter(|user| self.user(user).is_none()) {
            return Err(
                Error::new(format!("mail: `default-user` {user} is not in `users`")).hint("name one of them")
            );
        }
        for (domain, node) in &self.domains {
            let address = MailAddress { local: "x".into(), domain: domain.clone() };
            if parse_address(&address.to_string()).is_none() {
                return Err(Error::new(format!("mail: `{domain}` is not a valid domain"))
                    .hint("use letters, digits, hyphens and dots"));
            }
            let is_node = node.parse::<Eid>().is_ok_and(|eid| eid.is_node_id());
            if !is_node {
                return Err(Error::new(format!("mail: domain {domain}: `{node}` is not a valid node ID"))
                    .hint("a node ID looks like dtn://carol/ or ipn:7.0"));
            }
        }
        self.check_limits()?;
        let endpoint = config.mail_endpoint()?;
        if config.receive.iter().any(|receive| receive.endpoint == endpoint) {
            return Err(Error::new(format!(
                "[[receive]] uses the endpoint `{endpoint}`, which is that of mail"
            ))
            .hint("use another endpoint"));
        }
        let addresses = self.addresses()?;
        match addresses.iter().find(|address| !is_loopback(address.ip())) {
            Some(address) => {
                let what = format!("mail: other machines can reach {address}, and the port has no passwords");
                Err(Error::new(what).hint("listen on 127.0.0.1, and use `ssh -L` from other machines"))
            }
            None => Ok(()),
        }
    }

    fn check_limits(&self) -> Result<(), Error> {
        if self.message_bytes_max == 0 || self.message_bytes_max > MESSAGE_BYTES_LIMIT {
            return Err(Error::new("`mail.message-bytes-max` must be from 1 to 268,435,456")
                .hint("remove it; the default is 10,485,760"));
        }
        super::check_connections("mail", self.connections_max)?;
        if self.connections_max == 0 || self.patience.is_zero() || self.lifetime.is_zero() {
            return Err(Error::new(
                "`mail.connections-max`, `mail.patience` and `mail.lifetime` must be greater than zero",
            )
            .hint("remove them to use the defaults"));
        }
        Ok(())
    }
}

/// Checks that the name of a user can be the name of a folder, and stands in an address without quotes.
fn check_user(user: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = (1..=USER_BYTES_MAX).contains(&user.len()) && user.bytes().all(is_plain);
    if fits && !user.starts_with('.') && parse_address(&format!("{user}@x")).is_some() {
        return Ok(());
    }
    Err(Error::new(format!("mail: `{user}` is not a valid name of a user"))
        .hint("use letters, digits, hyphens, underscores, and dots between them"))
}

impl Config {
    pub(super) fn check_mail(&self) -> Result<(), Error> {
        self.mail.check(self)
    }

    /// Returns the service of mail at this node: `mail`, or 25 of an `ipn` node.
    ///
    /// # Errors
    /// Fails if the node ID is invalid.
    pub(crate) fn mail_endpoint(&self) -> Result<&'static str, Error> {
        let node = self.node_id()?.to_string();
        Ok(mail_service(&node))
    }

    /// Describes mail for an operator.
    pub(super) fn explain_mail(&self, line: &mut impl FnMut(String)) {
        let mail = &self.mail;
        let Some(folder) = &mail.folder else { return };
        let others = match &mail.default_user {
            Some(user) => format!("mail for other names goes to {user}"),
            None => "mail for other names is returned".to_owned(),
        };
        line(format!(
            "Mail for {} is written to Maildirs in {}; {others}.",
            mail.users.join(", "),
            folder.display()
        ));
        match &mail.listen {
            None => line("Accepts no mail from mail programs (`mail.listen` is not set).".into()),
            Some(listen) => {
                let limit = match mail.air_time_max.is_zero() {
                    true => String::new(),
                    false => format!(" A message may need at most {} on its link.", short(mail.air_time_max)),
                };
                line(format!(
                    "Mail programs: SMTP at {listen}, open to all users of this machine without a password.{limit}"
                ));
            }
        }
    }
}

/// Returns the service of mail of a node.
pub(crate) fn mail_service(node: &str) -> &'static str {
    if node.starts_with("ipn:") { "25" } else { "mail" }
}

/// Returns the endpoint of mail of a node.
///
/// # Errors
/// Fails if the node ID is invalid.
pub(crate) fn mail_endpoint_of(node: &str) -> Result<String, Error> {
    match node.parse::<Eid>() {
        Ok(eid) if eid.is_node_id() => {
            Ok(match node.strip_suffix(".0").filter(|node| node.starts_with("ipn:")) {
                Some(node) => format!("{node}.{}", mail_service(node)),
                None => format!("{node}{}", mail_service(node)),
            })
        }
        _ => Err(no_endpoint(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, Error> {
        Config::parse(&format!("node = 'dtn://alice/'\n{text}"), "node.toml", Path::new("/nowhere/etc"))
    }

    #[test]
    fn mail_needs_a_folder_users_and_a_port_of_its_own_machine() {
        let config = parse("[mail]\nfolder = 'mail'\nusers = ['alice', 'Bob.x']\nlisten = '127.0.0.1:2525'")
            .expect("it fits");
        assert_eq!(config.mail.folder.as_deref(), Some(Path::new("/nowhere/etc/mail")));
        assert_eq!((config.mail.user("ALICE"), config.mail.user("bob.X")), (Some("alice"), Some("Bob.x")));
        for (text, said) in [
            ("users = ['a']", "`mail.folder` is missing"),
            ("listen = '127.0.0.1:2525'", "`mail.folder` is missing"),
            ("folder = 'mail'", "has no `users`"),
            ("folder = 'mail'\nusers = ['../x']", "is not a valid name of a user"),
            ("folder = 'mail'\nusers = ['.ssh']", "is not a valid name of a user"),
            ("folder = 'mail'\nusers = ['a', 'A']", "twice"),
            ("folder = 'mail'\nusers = ['a']\ndefault-user = 'b'", "not in `users`"),
            ("folder = 'mail'\nusers = ['a']\nlisten = '0.0.0.0:25'", "other machines can reach"),
            ("folder = 'mail'\nusers = ['a']\nlisten = '127.0.0.1'", "is not a valid address"),
            ("folder = 'mail'\nusers = ['a']\ndomains = { 'a b' = 'dtn://c/' }", "is not a valid domain"),
            ("folder = 'mail'\nusers = ['a']\ndomains = { 'b' = 'dtn://c/x' }", "is not a valid node ID"),
            ("folder = 'mail'\nusers = ['a']\nmessage-bytes-max = 0", "must be from 1"),
            ("folder = 'store'\nusers = ['a']", "is in the store"),
            ("folder = '.'\nusers = ['a']", "is or contains the store"),
            ("folder = 'mail'\nusers = ['a']\n[[receive]]\nfolder = 'in'\nendpoint = 'mail'", "that of mail"),
            ("folder = 'in'\nusers = ['a']\n[[receive]]\nfolder = 'in'\nendpoint = 'x'", "is used twice"),
        ] {
            let error = parse(&format!("[mail]\n{text}")).expect_err(text).to_string();
            assert!(error.contains(said) && error.contains("hint: "), "{text}: {error}");
        }
    }

    #[test]
    fn a_node_has_one_endpoint_for_mail() {
        assert_eq!(mail_endpoint_of("dtn://alice/").ok().as_deref(), Some("dtn://alice/mail"));
        assert_eq!(mail_endpoint_of("ipn:7.0").ok().as_deref(), Some("ipn:7.25"));
        assert!(mail_endpoint_of("dtn://alice/x").is_err());
    }
}
