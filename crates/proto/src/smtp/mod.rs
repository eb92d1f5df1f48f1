//! Submission of mail: the server side of SMTP (RFC 5321, RFC 6409), over a stream.
//!
//! Implemented: EHLO, HELO, MAIL, RCPT, DATA, RSET, NOOP, VRFY, HELP, QUIT, and the extensions PIPELINING (RFC 2920), SIZE
//! (RFC 1870), 8BITMIME (RFC 6152), ENHANCEDSTATUSCODES (RFC 2034) and DSN (RFC 3461) with NOTIFY and ENVID; RET and ORCPT are
//! read and not used, because notifications contain only header lines. Not implemented: STARTTLS and AUTH, as the server is meant for
//! programs on the same machine; SMTPUTF8, CHUNKING; EXPN.
//!
//! ```text
//!             Connected: 220       EHLO, HELO         MAIL: Sender?  yes      RCPT: Recipient?  yes
//!   Silent ----------------> Commands ------> Commands ---------> message ---------------> message with recipients
//!                                                ^                   | RSET, EHLO: Abandoned       | DATA: 354
//!                                                |<------------------'                             v
//!                                                '------- answer ------- Complete? <---------- Content
//! ```
//!
//! A request of HTTP ends the session: otherwise a web page could make a browser on the machine send mail, in the body of a form.
//!
//! While a question is open, input waits, so that the answers are the same however the input is split. A line ends in CR LF and
//! nothing else. A bare CR or LF in a command ends the session; in a message it makes the server refuse the message after its end, which
//! is only CR LF `.` CR LF: no two programs can read different messages from the same bytes. Lines of a message have no maximum
//! length; those of commands are limited to [`LINE_BYTES_MAX`]. Lengths are in bytes.

mod address;
mod command;
mod config;
mod content;
mod server;
#[cfg(test)]
mod tests;

pub use address::parse_address;
pub use command::{Command, CommandFault, LINE_BYTES_MAX};
pub use config::Config;
pub use content::put_content;
pub use server::Server;
