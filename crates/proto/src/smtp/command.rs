//! Commands of a mail program (RFC 5321 4.1.1).

use super::address::{Path, take_path};
use crate::service::{MailAddress, Notify};
use core::fmt;

/// Maximum length of a command line, with CR LF: that of RFC 5321 4.5.3.1.4 and of the extensions, and some more.
pub const LINE_BYTES_MAX: usize = 1024;
/// Maximum length of an envelope identifier (RFC 3461 4.4).
const ENVELOPE_ID_BYTES_MAX: usize = 100;

/// Command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// EHLO, or HELO if `extended` is false.
    Hello {
        /// True for EHLO.
        extended: bool,
    },
    /// MAIL.
    Mail {
        /// Sender; `None` for `<>`.
        sender: Option<MailAddress>,
        /// SIZE.
        bytes: Option<u64>,
        /// ENVID, decoded.
        envelope_id: Option<String>,
    },
    /// RCPT.
    Recipient {
        /// Recipient.
        recipient: MailAddress,
        /// NOTIFY.
        notify: Notify,
    },
    /// DATA.
    Data,
    /// RSET.
    Reset,
    /// NOOP.
    Nothing,
    /// QUIT.
    Quit,
    /// VRFY.
    Verify,
    /// HELP.
    Help,
}

/// Reason why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFault {
    /// Unknown command.
    Unknown,
    /// Known command that the server does not have.
    Absent,
    /// Request of a web browser: a page must not make one send mail.
    OtherProtocol,
    /// Something in it other than ASCII text.
    Characters,
    /// Invalid address.
    Address,
    /// Invalid argument or value of a parameter.
    Argument,
    /// Unknown parameter.
    Parameter,
}

impl CommandFault {
    /// Reply: its code, enhanced status code and text.
    pub(super) fn reply(self) -> (u16, &'static str, &'static str) {
        match self {
            CommandFault::Unknown => (500, "5.5.1", "Unknown command"),
            CommandFault::Absent => (502, "5.5.1", "This server does not have this command"),
            CommandFault::OtherProtocol => (421, "4.7.0", "This is no web server; closing the connection"),
            CommandFault::Characters => (500, "5.5.2", "Commands are ASCII text"),
            CommandFault::Address => (501, "5.1.3", "Not a valid address; it looks like <bob@alice>"),
            CommandFault::Argument => (501, "5.5.4", "Invalid argument"),
            CommandFault::Parameter => (555, "5.5.4", "Unknown parameter"),
        }
    }
}

impl Command {
    /// Decodes a line without its CR LF.
    ///
    /// # Errors
    /// Fails if it is no command of this server.
    pub fn decode(line: &[u8]) -> Result<Command, CommandFault> {
        let is_text = line.iter().all(|byte| matches!(byte, b' '..=b'~'));
        let text = core::str::from_utf8(line).ok().filter(|_| is_text).ok_or(CommandFault::Characters)?;
        let text = text.trim_end_matches(' ');
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let alone = |command| if rest.is_empty() { Ok(command) } else { Err(CommandFault::Argument) };
        match &*verb.to_ascii_uppercase() {
            "EHLO" => hello(rest, true),
            "HELO" => hello(rest, false),
            "MAIL" => mail(rest),
            "RCPT" => recipient(rest),
            "DATA" => alone(Command::Data),
            "RSET" => alone(Command::Reset),
            "NOOP" => Ok(Command::Nothing),
            "QUIT" => alone(Command::Quit),
            "VRFY" if rest.is_empty() => Err(CommandFault::Argument),
            "VRFY" => Ok(Command::Verify),
            "HELP" => Ok(Command::Help),
            "AUTH" | "BDAT" | "ETRN" | "EXPN" | "STARTTLS" | "TURN" => Err(CommandFault::Absent),
            "CONNECT" | "DELETE" | "GET" | "HEAD" | "HOST:" | "OPTIONS" | "PATCH" | "POST" | "PUT"
            | "TRACE" => Err(CommandFault::OtherProtocol),
            _ => Err(CommandFault::Unknown),
        }
    }
}

/// A line that decodes to the same command.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Hello { extended: true } => f.write_str("EHLO client"),
            Command::Hello { extended: false } => f.write_str("HELO client"),
            Command::Mail { sender, bytes, envelope_id } => {
                f.write_str("MAIL FROM:<")?;
                sender.iter().try_for_each(|sender| write!(f, "{sender}"))?;
                f.write_str(">")?;
                bytes.iter().try_for_each(|bytes| write!(f, " SIZE={bytes}"))?;
                envelope_id.iter().try_for_each(|id| write!(f, " ENVID={}", encoded(id)))
            }
            Command::Recipient { recipient, notify } => {
                write!(f, "RCPT TO:<{recipient}>")?;
                match notify {
                    Notify::Default => Ok(()),
                    Notify::Never => f.write_str(" NOTIFY=NEVER"),
                    Notify::Of { success: true, failure: true } => f.write_str(" NOTIFY=SUCCESS,FAILURE"),
                    Notify::Of { success: true, failure: false } => f.write_str(" NOTIFY=SUCCESS"),
                    Notify::Of { success: false, failure: true } => f.write_str(" NOTIFY=FAILURE"),
                    Notify::Of { .. } => f.write_str(" NOTIFY=DELAY"),
                }
            }
            Command::Data => f.write_str("DATA"),
            Command::Reset => f.write_str("RSET"),
            Command::Nothing => f.write_str("NOOP"),
            Command::Quit => f.write_str("QUIT"),
            Command::Verify => f.write_str("VRFY somebody"),
            Command::Help => f.write_str("HELP"),
        }
    }
}

fn hello(rest: &str, extended: bool) -> Result<Command, CommandFault> {
    if rest.is_empty() { Err(CommandFault::Argument) } else { Ok(Command::Hello { extended }) }
}

/// Parameters of a command: their names in upper case, and their values.
type Parameters<'a> = Vec<(String, &'a str)>;

/// Reads `FROM:<address> NAME=VALUE ..`. A space after the colon is a common fault, and is accepted.
fn path_and_parameters<'a>(rest: &'a str, word: &str) -> Result<(Path, Parameters<'a>), CommandFault> {
    let (keyword, rest) = rest.split_once(':').ok_or(CommandFault::Argument)?;
    if !keyword.eq_ignore_ascii_case(word) {
        return Err(CommandFault::Argument);
    }
    let (path, rest) = take_path(rest.trim_start_matches(' ')).ok_or(CommandFault::Address)?;
    if !rest.is_empty() && !rest.starts_with(' ') {
        return Err(CommandFault::Address);
    }
    let mut parameters = Parameters::new();
    for parameter in rest.split(' ').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = name.to_ascii_uppercase();
        if parameters.iter().any(|(other, _)| *other == name) {
            return Err(CommandFault::Argument);
        }
        parameters.push((name, value));
    }
    Ok((path, parameters))
}

fn mail(rest: &str) -> Result<Command, CommandFault> {
    let (path, parameters) = path_and_parameters(rest, "FROM")?;
    let (mut bytes, mut envelope_id) = (None, None);
    for (name, value) in parameters {
        match &*name {
            "SIZE" if !value.is_empty() && value.len() <= 20 && value.bytes().all(|b| b.is_ascii_digit()) => {
                bytes = Some(value.parse().unwrap_or(u64::MAX));
            }
            "BODY" if value.eq_ignore_ascii_case("7BIT") || value.eq_ignore_ascii_case("8BITMIME") => {}
            "RET" if value.eq_ignore_ascii_case("FULL") || value.eq_ignore_ascii_case("HDRS") => {}
            "ENVID" if !value.is_empty() && value.len() <= ENVELOPE_ID_BYTES_MAX => {
                envelope_id = Some(decoded(value).ok_or(CommandFault::Argument)?);
            }
            "SIZE" | "BODY" | "RET" | "ENVID" => return Err(CommandFault::Argument),
            _ => return Err(CommandFault::Parameter),
        }
    }
    let sender = match path {
        Path::Null => None,
        Path::Mailbox(address) if address.domain.is_empty() => return Err(CommandFault::Address),
        Path::Mailbox(address) => Some(address),
    };
    Ok(Command::Mail { sender, bytes, envelope_id })
}

fn recipient(rest: &str) -> Result<Command, CommandFault> {
    let (path, parameters) = path_and_parameters(rest, "TO")?;
    let mut notify = Notify::Default;
    for (name, value) in parameters {
        match &*name {
            "NOTIFY" => notify = notifications(value).ok_or(CommandFault::Argument)?,
            "ORCPT" if value.contains(';') => {}
            "ORCPT" => return Err(CommandFault::Argument),
            _ => return Err(CommandFault::Parameter),
        }
    }
    match path {
        Path::Null => Err(CommandFault::Address),
        Path::Mailbox(recipient) => Ok(Command::Recipient { recipient, notify }),
    }
}

fn notifications(value: &str) -> Option<Notify> {
    if value.eq_ignore_ascii_case("NEVER") {
        return Some(Notify::Never);
    }
    let (mut success, mut failure) = (false, false);
    for word in value.split(',') {
        match &*word.to_ascii_uppercase() {
            "SUCCESS" => success = true,
            "FAILURE" => failure = true,
            "DELAY" => {}
            _ => return None,
        }
    }
    Some(Notify::Of { success, failure })
}

/// Decodes xtext (RFC 3461 4) into printable ASCII.
fn decoded(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[1..];
        let byte = match letter {
            '+' => {
                let (code, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(code, 16).ok()?
            }
            letter => u8::try_from(letter).ok()?,
        };
        if !matches!(byte, b' '..=b'~') {
            return None;
        }
        out.push(char::from(byte));
    }
    Some(out)
}

/// Encodes printable ASCII as xtext.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'+' | b'=' | b' ' => format!("+{byte:02X}"),
        byte => char::from(byte).to_string(),
    };
    text.bytes().map(one).collect()
}
