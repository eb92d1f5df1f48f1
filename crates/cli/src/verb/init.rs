//! `longwire init`.

mod discovery;
mod file;
mod network;

use crate::failure::{CommandFailure, CommandResult};
use crate::node_connection::print;
use crate::output::talk;
use clap::Args;
use file::{Peer, Plan, Reach, Tnc};
use longwire_lab::format::shell_word;
use longwire_node::Config;
use longwire_node::tnc::{TransmissionReport, identify};
use longwire_proto::ax25::Callsign;
use longwire_proto::controller::ChannelParameters;
use longwire_settings::error::Error;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Rate of a channel if nothing else is said, bit/s.
const RATE_BPS: u32 = 1200;
/// Peers that are asked for at most.
const PEERS_MAX: usize = 100;
/// Text of the identification that tests a transmitter.
const TEST_TEXT: &str = "Longwire test";
/// Time for the test of a transmitter: a channel may be busy for long.
const TEST_MAX: Duration = Duration::from_secs(30);

/// Write the configuration of a node: asks for what it needs, and finds TNCs
///
/// Asks for the name of the node, looks for TNCs (serial ports, KISS and AGWPE over TCP on this machine, and KISS over TCP announced on
/// the local network), asks for callsigns, neighbours and users of mail, and writes a commented configuration, which it checks as a node
/// does. It transmits only if it is told to. Options answer questions in advance; without a terminal, nothing is asked, and TNCs are
/// looked for on this machine only.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Configuration file to write
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    config: PathBuf,
    /// Node ID, or its name or number alone: dtn://alice/, alice, ipn:7.0, 7
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// TNC: host:port for KISS, agwpe:host:port, a serial device such as /dev/ttyUSB0, or `none` [default: the one that is found]
    #[arg(long, value_name = "TNC")]
    tnc: Option<String>,
    /// Callsign of this station, with its SSID: DL1XYZ-7
    #[arg(long, value_name = "CALLSIGN")]
    callsign: Option<String>,
    /// Rate of the radio channel, bit/s [default: 1200]
    #[arg(long, value_name = "BPS")]
    rate: Option<String>,
    /// Neighbour and how it is reached, one or more times: bob=DL2ABC-1 by radio, bob=192.0.2.7:4556 over TCP
    #[arg(long = "peer", value_name = "NODE=REACH")]
    peers: Vec<String>,
    /// Address on which the node accepts connections over TCP, such as 0.0.0.0:4556, or `none`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of the web page, or `none`; an address beyond this machine needs a token (docs/page.md)
    #[arg(long, value_name = "ADDRESS", default_value = file::PAGE)]
    page: String,
    /// Users who get mail at this node, with commas between them, or `none` (docs/mail.md)
    #[arg(long, value_name = "USERS")]
    mail: Option<String>,
    /// Transmit a short identification with this callsign over the TNC, and say what the TNC reports
    #[arg(long)]
    test_ptt: bool,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(crate) fn run(&self) -> CommandResult {
        if self.config.exists() && !self.force {
            let what = format!("{} exists already", self.config.display());
            return Err(CommandFailure::usage(
                what,
                "choose another file with --config, or replace it with --force",
            ));
        }
        let asks = io::stdin().is_terminal();
        let plan = self.plan(asks)?;
        let text = plan.text();
        // A configuration that a node would refuse is not written.
        let folder = self.config.parent().filter(|folder| !folder.as_os_str().is_empty());
        Config::parse(&text, &self.config.display().to_string(), folder.unwrap_or(Path::new(".")))?;
        write(&self.config, &text, self.force)?;
        print(&self.next_steps(&plan))?;
        match &plan.tnc {
            Some(tnc) if self.test_ptt || asks && agrees(tnc)? => test_transmitter(tnc),
            _ => Ok(()),
        }
    }

    fn plan(&self, asks: bool) -> CommandResult<Plan> {
        let node =
            answer(asks, &self.node, "Name of this node (such as alice), or its number", None, node_id)?;
        let tnc = self.tnc(asks)?;
        let listen = match (&self.listen, tnc.is_some()) {
            (Some(none), _) if none == "none" => None,
            (Some(address), _) => Some(address.clone()),
            // With a radio, nobody calls over the network unless it is said.
            (None, true) => None,
            (None, false) => Some("[::]:4556".to_owned()),
        };
        let read = |text: &str| peer(text, tnc.as_ref());
        let mut peers =
            self.peers.iter().map(|text| read(text).map_err(usage)).collect::<CommandResult<Vec<_>>>()?;
        if asks && self.peers.is_empty() {
            let example = if tnc.is_some() { "bob=DL2ABC-1" } else { "bob=192.0.2.7:4556" };
            let question = format!("Neighbour and how it is reached (such as {example}); empty for no more");
            while peers.len() < PEERS_MAX {
                let text = ask(&question)?;
                if text.is_empty() {
                    break;
                }
                match read(&text) {
                    Ok(peer) => peers.push(peer),
                    Err(error) => talk(format_args!("{error}")),
                }
            }
        }
        if self.test_ptt && tnc.is_none() {
            return Err(CommandFailure::usage("there is no TNC to test", "give one with --tnc"));
        }
        let page = (self.page != "none").then(|| self.page.clone());
        let mail = self.mail(asks)?;
        Ok(Plan { node, tnc, listen, page, peers, mail })
    }

    /// Users of mail, of whom there are none if nobody is asked.
    fn mail(&self, asks: bool) -> CommandResult<Vec<String>> {
        if self.mail.is_none() && !asks {
            return Ok(Vec::new());
        }
        let question =
            "Users who get mail at this node, with commas between them (such as ann,tom); empty for none";
        answer(asks, &self.mail, question, None, users)
    }

    /// Finds the TNC, and asks for the callsign.
    fn tnc(&self, asks: bool) -> CommandResult<Option<Tnc>> {
        let place = match &self.tnc {
            Some(none) if none == "none" => return Ok(None),
            Some(place) => place.clone(),
            // Without a terminal, what is found is used only with a callsign for it.
            None if !asks && self.callsign.is_none() => return Ok(None),
            None => match choose(asks, &discovery::tncs(asks))? {
                Some(place) => place,
                None => return Ok(None),
            },
        };
        check_place(&place).map_err(usage)?;
        let callsign = answer(
            asks,
            &self.callsign,
            "Callsign of this station, with its SSID (such as DL1XYZ-7)",
            None,
            callsign,
        )?;
        let rate_bps = match (&self.rate, asks) {
            (None, false) => RATE_BPS,
            (given, _) => {
                answer(asks, given, "Rate of the radio channel, bit/s (empty for 1200)", Some("1200"), rate)?
            }
        };
        Ok(Some(Tnc { place, callsign, rate_bps }))
    }

    fn next_steps(&self, plan: &Plan) -> String {
        let file = shell_word(&self.config.display().to_string());
        let page = plan.page.as_ref().map(|page| format!("; its page is http://{page}/")).unwrap_or_default();
        let mut steps = format!(
            "{} is written and checked. Next:\n- run the node{page}\n    longwire node --config {file}\n",
            self.config.display()
        );
        if let Some(peer) = plan.peers.first() {
            steps += &format!(
                "- send a file\n    longwire send FILE --to {} --config {file}\n",
                inbox(&peer.node)
            );
        }
        steps
            + &format!(
                "- receive files that others send to {}\n    longwire recv inbox --config {file}",
                inbox(&plan.node)
            )
    }
}

/// Endpoint at which a node receives files.
fn inbox(node: &str) -> String {
    match node.strip_suffix(".0") {
        Some(number) => format!("{number}.1"),
        None => format!("{node}files"),
    }
}

fn usage(error: Error) -> CommandFailure {
    CommandFailure::Usage(error)
}

/// Returns an answer: that of an option, or of the user, who is asked again after a mistake.
fn answer<T>(
    asks: bool,
    given: &Option<String>,
    question: &str,
    default: Option<&str>,
    read: impl Fn(&str) -> Result<T, Error>,
) -> CommandResult<T> {
    if let Some(given) = given {
        return read(given).map_err(usage);
    }
    if !asks {
        let what = format!("an answer is missing: {question}");
        return Err(CommandFailure::usage(
            what,
            "give it as an option (see --help), or run the command in a terminal",
        ));
    }
    loop {
        let said = ask(question)?;
        match read(if said.is_empty() { default.unwrap_or("") } else { &said }) {
            Ok(value) => return Ok(value),
            Err(error) => talk(format_args!("{error}")),
        }
    }
}

/// Asks a question on stderr, and returns the answer without spaces around it.
fn ask(question: &str) -> CommandResult<String> {
    eprint_question(question);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    match read {
        // The end of the input is not an answer.
        Ok(0) | Err(_) => Err(CommandFailure::Interrupted),
        Ok(_) => Ok(line.trim().to_owned()),
    }
}

fn eprint_question(question: &str) {
    let mut out = io::stderr().lock();
    // A terminal that cannot be written to cannot be asked either; reading then ends.
    let _ = write!(out, "{question}: ").and_then(|()| out.flush());
}

/// Returns the TNC to use: the only one that is found, or the one that the user chooses.
fn choose(asks: bool, found: &[discovery::Found]) -> CommandResult<Option<String>> {
    match (found, asks) {
        ([], false) => Ok(None),
        ([one], false) => Ok(Some(one.place.clone())),
        (_, false) => {
            let all: Vec<&str> = found.iter().map(|found| found.place.as_str()).collect();
            let what = format!("there are several TNCs: {}", all.join(", "));
            Err(CommandFailure::usage(what, "choose one with --tnc, or --tnc none"))
        }
        (_, true) => {
            match found {
                [] => talk(format_args!(
                    "No TNC found: no serial port, nothing listens on ports 8000 to 8002, and none is announced on the \
                     local network."
                )),
                _ => talk(format_args!("Found:")),
            }
            for (found, number) in found.iter().zip(1..) {
                talk(format_args!("  {number}. {} ({})", found.place, found.what));
            }
            let question = "TNC: a number of the list, host:port, agwpe:host:port or a serial device; empty for no radio";
            loop {
                let said = ask(question)?;
                let number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                match number.map(|at| found.get(at)) {
                    Some(Some(found)) => return Ok(Some(found.place.clone())),
                    Some(None) => talk(format_args!("the list has {} entries", found.len())),
                    None if said.is_empty() || said == "none" => return Ok(None),
                    None => match check_place(&said) {
                        Ok(()) => return Ok(Some(said)),
                        Err(error) => talk(format_args!("{error}")),
                    },
                }
            }
        }
    }
}

/// Checks the place of a TNC.
fn check_place(place: &str) -> Result<(), Error> {
    let checked = place.parse::<longwire_node::tnc::TncAddress>();
    checked.map(drop).map_err(|hint| Error::new(format!("`{place}` is not the place of a TNC")).hint(hint))
}

/// Reads a node ID, or the name or the number of a node.
fn node_id(text: &str) -> Result<String, Error> {
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let node = match (text.parse::<u64>(), text) {
        (Ok(number), _) => format!("ipn:{number}.0"),
        (Err(_), name) if is_name(name) => format!("dtn://{}/", name.to_ascii_lowercase()),
        (Err(_), other) => other.to_owned(),
    };
    let is_node =
        node.parse::<longwire_proto::bp::Eid>().is_ok_and(|eid| !eid.is_null() && eid.node_id() == eid);
    match is_node {
        true => Ok(node),
        false => Err(Error::new(format!("`{text}` is not the name of a node"))
            .hint("use letters and digits (alice), a number (7), or a node ID: dtn://alice/, ipn:7.0")),
    }
}

fn callsign(text: &str) -> Result<String, Error> {
    let wrong =
        |why: String| Error::new(format!("`{text}` is not a callsign: {why}")).hint("such as DL1XYZ-7");
    let callsign = Callsign::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match callsign.is_placeholder() {
        true => Err(wrong("it is an example; every transmission must identify its operator".to_owned())),
        false => Ok(callsign.to_string()),
    }
}

/// Reads the names of users; the configuration as a whole is checked later.
fn users(text: &str) -> Result<Vec<String>, Error> {
    if text.is_empty() || text == "none" {
        return Ok(Vec::new());
    }
    let users: Vec<String> = text.split(',').map(|user| user.trim().to_owned()).collect();
    let is_plain = |user: &String| {
        !user.is_empty() && user.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match users.iter().all(is_plain) {
        true => Ok(users),
        false => Err(Error::new(format!("`{text}` are not names of users"))
            .hint("letters, digits, hyphens, underscores and dots, with commas between the names: ann,tom")),
    }
}

/// Asks whether the transmitter may be keyed; anything but a yes is a no.
fn agrees(tnc: &Tnc) -> CommandResult<bool> {
    let question = format!(
        "Transmit a short identification of {} over {} now, to test the radio? yes or no (empty for no)",
        tnc.callsign, tnc.place
    );
    Ok(matches!(ask(&question)?.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Transmits an identification, and says what the TNC reports.
fn test_transmitter(tnc: &Tnc) -> CommandResult {
    let place =
        tnc.place.parse().map_err(|hint| usage(Error::new("the TNC has no valid place").hint(hint)))?;
    let own = Callsign::from_str(&tnc.callsign).map_err(|error| usage(Error::new(error.to_string())))?;
    // The channel of the configuration that was written.
    let channel = ChannelParameters {
        rate_bps: tnc.rate_bps,
        tx_delay: file::TX_DELAY,
        ..longwire_node::config::TncSettings::default().channel
    };
    talk(format_args!("Transmitting an identification of {} over {} ..", tnc.callsign, tnc.place));
    match identify(own, TEST_TEXT, &place, channel, TEST_MAX) {
        Ok(TransmissionReport::Transmitted) => {
            talk(format_args!(
                "The TNC reports that the frame has left. The transmitter must have been keyed."
            ));
            Ok(())
        }
        Ok(TransmissionReport::Waits) => Err(CommandFailure::failed(
            "the frame still waits in the TNC for a clear channel; the configuration was written",
            "check the squelch or the carrier detection of the TNC; the frame may leave later",
        )),
        Ok(TransmissionReport::Nothing) => {
            talk(format_args!(
                "The TNC has taken the frame and reports nothing. If the transmitter was not keyed, check the PTT of the TNC."
            ));
            Ok(())
        }
        Err(error) => Err(CommandFailure::failed(
            format!("nothing was transmitted over {}: {error}; the configuration was written", tnc.place),
            "check that the TNC is on and its program runs, then repeat with --test-ptt --force",
        )),
    }
}

fn rate(text: &str) -> Result<u32, Error> {
    let rate = text.parse::<u32>().ok().filter(|rate| (300..=10_000_000).contains(rate));
    rate.ok_or_else(|| Error::new(format!("`{text}` is not a rate in bit/s")).hint("1200 and 9600 are usual"))
}

/// Reads `NODE=REACH`.
fn peer(text: &str, tnc: Option<&Tnc>) -> Result<Peer, Error> {
    let Some((node, reach)) = text.split_once('=') else {
        return Err(Error::new(format!("`{text}` does not say how the neighbour is reached"))
            .hint("write bob=DL2ABC-1 for a radio, bob=192.0.2.7:4556 for a network"));
    };
    let (node, reach) = (node_id(node.trim())?, reach.trim());
    if reach.contains(':') {
        return Ok(Peer { node, reach: Reach::Tcp(reach.to_owned()) });
    }
    let Some(tnc) = tnc else {
        return Err(Error::new(format!("`{reach}` is a callsign, but this node has no TNC"))
            .hint("give the TNC with --tnc, or an address with a port, such as 192.0.2.7:4556"));
    };
    let callsign = callsign(reach)?;
    match callsign == tnc.callsign {
        true => Err(Error::new(format!("{callsign} is the callsign of this station"))
            .hint("each station on a channel needs its own callsign or SSID")),
        false => Ok(Peer { node, reach: Reach::Radio(callsign) }),
    }
}

/// Writes a new file, or replaces one. Only its owner may read it: a token may be added to it later. An earlier file is there until
/// the new one is complete.
fn write(path: &Path, text: &str, replaces: bool) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        match replaces {
            true => file.persist(path),
            false => file.persist_noclobber(path),
        }
        .map_err(|error| error.error)
    });
    written.map(drop).map_err(|error| {
        Error::new(format!("cannot write {}: {error}", path.display()))
            .hint("choose another file with --config")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_names_numbers_or_node_ids() {
        for (text, node) in [
            ("alice", "dtn://alice/"),
            ("Alice-2", "dtn://alice-2/"),
            ("7", "ipn:7.0"),
            ("007", "ipn:7.0"),
            ("ipn:7.0", "ipn:7.0"),
            ("dtn://a/", "dtn://a/"),
        ] {
            assert_eq!(node_id(text).expect(text), node);
        }
        for text in ["", "a b", "dtn://alice/files", "ipn:7.1", "dtn:none", "a\"b"] {
            assert!(node_id(text).is_err(), "{text}");
        }
    }

    #[test]
    fn examples_of_callsigns_are_refused() {
        assert_eq!(callsign("dl1xyz-7").expect("a callsign"), "DL1XYZ-7");
        for text in ["", "N0CALL-1", "TOOLONGCALL", "DL1XYZ-16"] {
            assert!(callsign(text).is_err(), "{text}");
        }
    }

    #[test]
    fn peers_are_reached_by_radio_or_network() {
        let tnc = Tnc { place: "127.0.0.1:8001".into(), callsign: "DL1XYZ-7".into(), rate_bps: 1200 };
        let radio = peer("bob=dl2abc-1", Some(&tnc)).expect("a peer");
        assert_eq!((radio.node.as_str(), radio.reach), ("dtn://bob/", Reach::Radio("DL2ABC-1".into())));
        let network = peer("8=192.0.2.7:4556", None).expect("a peer");
        assert_eq!((network.node.as_str(), network.reach), ("ipn:8.0", Reach::Tcp("192.0.2.7:4556".into())));
        for (text, tnc) in
            [("bob", Some(&tnc)), ("bob=DL2ABC", None), ("bob=DL1XYZ-7", Some(&tnc)), ("=x:1", None)]
        {
            assert!(peer(text, tnc).is_err(), "{text}");
        }
    }
}
