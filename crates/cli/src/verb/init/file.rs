//! The configuration that is written.

use std::fmt::Write;
use std::time::Duration;

/// Default address of the page of a node.
pub(super) const PAGE: &str = "127.0.0.1:4580";

/// Time from key-up to the first frame.
pub(super) const TX_DELAY: Duration = Duration::from_millis(300);
/// User in the lines about mail that are commented out.
const EXAMPLE_USER: &str = "ann";

/// Answers from which a configuration follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Node ID.
    pub(super) node: String,
    pub(super) tnc: Option<Tnc>,
    /// Address for connections over TCP.
    pub(super) listen: Option<String>,
    /// Address of the web page.
    pub(super) page: Option<String>,
    pub(super) peers: Vec<Peer>,
    /// Users of mail; none if mail is off.
    pub(super) mail: Vec<String>,
}

/// TNC of this station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tnc {
    /// `host:port`, `agwpe:host:port`, or a serial device.
    pub(super) place: String,
    pub(super) callsign: String,
    pub(super) rate_bps: u32,
}

/// Neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// Node ID.
    pub(super) node: String,
    pub(super) reach: Reach,
}

/// Way to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Over the TNC, by its callsign.
    Radio(String),
    /// Over TCP, by its address.
    Tcp(String),
}

impl Plan {
    /// Text of the configuration.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "# Configuration of a node. `longwire node --check` explains it; `--check --all` lists every setting.\n\
             node = {}\n",
            quoted(&self.node)
        );
        if let Some(listen) = &self.listen {
            let _ = write!(
                text,
                "# Connections over TCP. From other machines only known peers are accepted.\nlisten = [{}]\n",
                quoted(listen)
            );
        }
        text += "\n[storage]\n# Accepted bundles are kept here.\npath = \"store\"\n";
        if let Some(page) = &self.page {
            let _ = write!(
                text,
                "\n[http]\n# Web page and interface for programs. For a phone, see docs/page.md.\nlisten = {}\n",
                quoted(page)
            );
        }
        text += "\n[agent.reports]\n# Senders that ask for it are told when a bundle has been delivered.\ndelivery = true\n";
        text += &self.mail_text();
        if let Some(tnc) = &self.tnc {
            text += &tnc.text();
            let welcome =
                format!("{} carries messages of Longwire. Operator: {}. 73", self.node, tnc.callsign);
            let _ = write!(
                text,
                "\n[ax25cl]\n# An operator who calls this station from a terminal reads this.\nwelcome = {}\n",
                quoted(&welcome)
            );
        }
        for (peer, number) in self.peers.iter().zip(1..) {
            text += &peer.text(number);
        }
        text
    }

    /// Mail for the users; without any, lines that are commented out.
    fn mail_text(&self) -> String {
        let settings = |users: &[String]| {
            let users: Vec<String> = users.iter().map(|user| quoted(user)).collect();
            format!(
                "[mail]\nfolder = \"mail\"\nusers = [{}]\nlisten = \"127.0.0.1:2525\"\n",
                users.join(", ")
            )
        };
        let about = "# Mail: a Maildir for each user, and a port for mail programs of this machine. See docs/mail.md.";
        match &self.mail[..] {
            [] => {
                let lines = settings(&[EXAMPLE_USER.to_owned()]);
                let lines = lines.lines().map(|line| format!("# {line}\n")).collect::<String>();
                format!("\n{about}\n# Remove the \"# \" of these lines to turn it on.\n{lines}")
            }
            users => format!("\n{about}\n{}", settings(users)),
        }
    }
}

impl Tnc {
    fn text(&self) -> String {
        let (key, value) = match self.place.starts_with('/') {
            true => ("serial", &self.place),
            false => ("address", &self.place),
        };
        format!(
            "\n[[tnc]]\nname = \"radio\"\n{key} = {}\ncallsign = {}\n\n[tnc.channel]\n# Rate on the air, bit/s; TXDELAY, the time from \
             key-up to the first frame.\nrate-bps = {}\ntx-delay = \"{} ms\"\n",
            quoted(value),
            quoted(&self.callsign),
            self.rate_bps,
            TX_DELAY.as_millis()
        )
    }
}

impl Peer {
    fn text(&self, number: usize) -> String {
        let known = self.node.strip_prefix("dtn://").and_then(|name| name.strip_suffix('/'));
        let numbered = self.node.strip_prefix("ipn:").and_then(|name| name.strip_suffix(".0"));
        let name = match (known, numbered) {
            (Some(name), _) => format!("{name}-{number}"),
            (None, Some(of)) => format!("node-{of}-{number}"),
            (None, None) => format!("peer-{number}"),
        };
        let over = match &self.reach {
            Reach::Radio(callsign) => {
                format!(
                    "kind = \"ax25cl\"\ntnc = \"radio\"\ncallsign = {}\namateur = true\n",
                    quoted(callsign)
                )
            }
            Reach::Tcp(address) => format!("address = {}\n", quoted(address)),
        };
        format!("\n[[link]]\nname = {}\npeer = {}\n{over}", quoted(&name), quoted(&self.node))
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_node::Config;
    use std::path::Path;

    #[test]
    fn every_plan_is_a_valid_configuration() {
        let peer = |node: &str, reach| Peer { node: node.to_owned(), reach };
        for node in ["dtn://alice/", "ipn:7.0"] {
            for place in [None, Some("127.0.0.1:8001"), Some("agwpe:127.0.0.1:8000"), Some("/dev/ttyUSB0")] {
                let tnc = place.map(|place| Tnc {
                    place: place.into(),
                    callsign: "DL1XYZ-7".into(),
                    rate_bps: 9600,
                });
                let mut peers = vec![
                    peer("dtn://bob/", Reach::Tcp("192.0.2.7:4556".into())),
                    peer("dtn://bob/", Reach::Tcp("[2001:db8::7]:4556".into())),
                    peer("ipn:9.0", Reach::Tcp("localhost:4557".into())),
                ];
                if tnc.is_some() {
                    peers.push(peer("dtn://carol/", Reach::Radio("DL2ABC-1".into())));
                }
                let (listen, page) = (Some("[::]:4556".into()), Some(PAGE.into()));
                let plan = Plan { node: node.to_owned(), tnc, listen, page, peers, mail: Vec::new() };
                let config = Config::parse(&plan.text(), "test", Path::new("/nowhere"));
                let config = config.unwrap_or_else(|error| panic!("{error}\n{}", plan.text()));
                assert_eq!(config.link.len(), plan.peers.len());
                assert_eq!(config.tnc.len(), usize::from(plan.tnc.is_some()));
                assert!(config.mail.users.is_empty());
                with_mail(&plan);
            }
        }
    }

    /// Mail is on with users, or when the lines about it are no longer commented out, and the same either way.
    fn with_mail(plan: &Plan) {
        let parse = |text: &str| {
            let config = Config::parse(text, "test", Path::new("/nowhere"));
            config.unwrap_or_else(|error| panic!("{error}\n{text}"))
        };
        let text = plan.text();
        let (before, lines) = text.split_once("to turn it on.\n").expect("mail is commented out");
        let is_comment = |line: &&str| line.starts_with("# ");
        let (on, after): (Vec<&str>, Vec<&str>) = {
            let on: Vec<&str> = lines.lines().take_while(is_comment).collect();
            let after = lines.lines().skip(on.len()).collect();
            (on, after)
        };
        let on: Vec<&str> = on.iter().map(|line| &line[2..]).collect();
        let uncommented = parse(&format!("{before}\n{}\n{}\n", on.join("\n"), after.join("\n")));
        let accepted = parse(&Plan { mail: vec![EXAMPLE_USER.to_owned()], ..plan.clone() }.text());
        assert_eq!(uncommented.mail, accepted.mail);
        assert_eq!(accepted.mail.users, [EXAMPLE_USER]);
        assert_eq!(accepted.mail.folder.as_deref(), Some(Path::new("/nowhere/mail")));
    }
}
