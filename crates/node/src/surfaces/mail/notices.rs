//! Notices for senders: delivery status notifications (RFC 3464) in a multipart/report (RFC 6522), with a LF at the end of each line.

use super::envelope::Outcome;
use super::pending::PendingMessage;
use crate::clock::unix_s;
use std::fmt::Write;

/// Fields of a header that notices repeat.
const FIELDS: [&str; 5] = ["date:", "from:", "message-id:", "subject:", "to:"];
/// Maximum length of a field that notices repeat.
const FIELD_BYTES_MAX: usize = 800;

/// Returns the fields of a message's header that notices repeat, each as it is written, as ASCII text.
pub(super) fn header_of(message: &[u8]) -> String {
    let mut header = String::new();
    let mut field = String::new();
    for line in message.split(|byte| *byte == b'\n') {
        let is_continued = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        if !is_continued {
            keep(&mut header, &core::mem::take(&mut field));
        }
        if line.is_empty() {
            break;
        }
        if field.len() + line.len() <= FIELD_BYTES_MAX {
            let printable =
                |byte: &u8| if matches!(byte, b' '..=b'~' | b'\t') { char::from(*byte) } else { '?' };
            field.extend(line.iter().map(printable));
            field.push('\n');
        }
    }
    header
}

/// Adds a field if notices repeat it and it is not there yet.
fn keep(header: &mut String, field: &str) {
    let name = field.split_inclusive(':').next().unwrap_or_default().to_ascii_lowercase();
    if FIELDS.contains(&&*name) && value(header, &name).is_none() {
        header.push_str(field);
    }
}

/// Returns the value of a field on one line.
fn value(header: &str, name: &str) -> Option<String> {
    let mut lines = header.lines();
    let is_it = |line: &&str| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let mut found = lines.find(is_it)?[name.len()..].trim().to_owned();
    for line in lines.take_while(|line| line.starts_with([' ', '\t'])) {
        found.push(' ');
        found.push_str(line.trim());
    }
    Some(found)
}

/// Parameters of a notice.
#[derive(Debug)]
pub(super) struct Notice<'a> {
    pub(super) message: &'a PendingMessage,
    pub(super) outcomes: &'a [Outcome],
    /// Node that knows them.
    pub(super) reporter: &'a str,
    /// Domain of this node.
    pub(super) domain: &'a str,
    /// Distinguishes the notice from others about the message.
    pub(super) name: &'a str,
    pub(super) dtn_ms: Option<u64>,
}

impl Notice<'_> {
    /// Returns the message.
    pub(super) fn text(&self) -> String {
        let Notice { message, outcomes, reporter, domain, name, dtn_ms } = self;
        let is_success = outcomes.iter().all(Outcome::is_delivered);
        let subject = value(&message.header, "subject:").unwrap_or_default();
        let verdict = if is_success { "Delivered" } else { "Not delivered" };
        let boundary = format!("=_{name}");
        let mut out = String::new();
        let _ = write!(
            out,
            "Return-Path: <>\nFrom: Mail of {} <postmaster@{domain}>\nTo: <{}>\nSubject: {verdict}: {subject}\nDate: {}\n\
             Message-ID: <{name}@{domain}>\nAuto-Submitted: auto-replied\n",
            message.bundle.source,
            message.sender,
            date(dtn_ms.unwrap_or(message.bundle.created.time.0)),
        );
        if let Some(id) = value(&message.header, "message-id:") {
            let _ = writeln!(out, "In-Reply-To: {id}");
        }
        let _ = write!(
            out,
            "MIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status;\n boundary=\"{boundary}\"\n\n\
             --{boundary}\nContent-Type: text/plain; charset=us-ascii\n\n"
        );
        out += match is_success {
            true => "Your message was delivered.\n\n",
            false => "Your message was not delivered to all of its recipients.\n\n",
        };
        for outcome in *outcomes {
            let words = match outcome.is_delivered() {
                true => "it is in the mailbox",
                false => &*outcome.reason,
            };
            let _ = writeln!(out, "  {}: {words}", outcome.address);
        }
        let _ = write!(
            out,
            "\nThis was reported by {reporter}.\n\n--{boundary}\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; {domain}\n"
        );
        if let Some(id) = &message.envelope_id {
            let _ = writeln!(out, "Original-Envelope-Id: {id}");
        }
        let _ = writeln!(out, "Arrival-Date: {}", date(message.bundle.created.time.0));
        for outcome in *outcomes {
            let action = if outcome.is_delivered() { "delivered" } else { "failed" };
            let _ = write!(
                out,
                "\nFinal-Recipient: rfc822; {}\nAction: {action}\nStatus: {}\nRemote-MTA: dns; {}\n",
                outcome.address,
                outcome.status,
                reporter.trim_start_matches("dtn://").trim_end_matches('/'),
            );
            if !outcome.is_delivered() {
                let _ = writeln!(out, "Diagnostic-Code: smtp; {} {}", outcome.status, outcome.reason);
            }
        }
        let header = &message.header;
        let _ =
            write!(out, "\n--{boundary}\nContent-Type: text/rfc822-headers\n\n{header}\n--{boundary}--\n");
        out
    }
}

/// Formats a DTN time as the date of a message (RFC 5322 3.3).
pub(super) fn date(dtn_ms: u64) -> String {
    let unix = i64::try_from(unix_s(dtn_ms)).unwrap_or(0);
    let at = time::OffsetDateTime::from_unix_timestamp(unix).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    format!(
        "{}, {} {} {:04} {:02}:{:02}:{:02} +0000",
        &weekday[..3],
        at.day(),
        &month[..3],
        at.year(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::service::BundleName;
    use std::collections::BTreeMap;

    fn message() -> PendingMessage {
        let text = "From: Alice <alice@alice>\nX-Other: 1\nSubject: =?utf-8?q?M=C3=BCnchen?=\n and more\nTo: bob@bob\n\
                    Message-ID: <1@alice>\nSubject: again\n\nTo: body\n";
        PendingMessage {
            bundle: BundleName { source: "dtn://alice/".into(), created: (848_579_400_250, 7).into() },
            node: "dtn://bob/".into(),
            sender: "alice@alice".into(),
            envelope_id: Some("abc".into()),
            recipients: Vec::new(),
            written: BTreeMap::new(),
            header: header_of(text.as_bytes()),
            forwarded: false,
            expires_dtn_ms: None,
        }
    }

    fn outcome(status: &str, reason: &str) -> Outcome {
        Outcome { address: "bob@bob".into(), status: status.into(), reason: reason.into() }
    }

    #[test]
    fn a_header_is_shortened_to_what_identifies_the_message() {
        let expected = "From: Alice <alice@alice>\nSubject: =?utf-8?q?M=C3=BCnchen?=\n and more\nTo: bob@bob\n\
                        Message-ID: <1@alice>\n";
        assert_eq!(message().header, expected);
        assert_eq!(value(expected, "subject:").as_deref(), Some("=?utf-8?q?M=C3=BCnchen?= and more"));
        let long = format!("Subject: {}\nTo: \u{e4}\n", "x".repeat(100_000));
        assert_eq!(header_of(long.as_bytes()), "To: ??\n");
        assert!(header_of(&b"To: x\n y\n".repeat(10_000)).len() < 1000);
        assert_eq!((header_of(b""), header_of(b"\xff\n\n")), (String::new(), String::new()));
    }

    #[test]
    fn a_notice_is_a_delivery_status_notification() {
        let message = message();
        let text = |outcomes: &[Outcome]| {
            let reporter = "dtn://bob/";
            let dtn_ms = Some(848_579_460_000);
            Notice { message: &message, outcomes, reporter, domain: "alice", name: "7.n", dtn_ms }.text()
        };
        let delivered = text(&[outcome("2.1.5", "")]);
        assert!(
            delivered.starts_with(
                "Return-Path: <>\nFrom: Mail of dtn://alice/ <postmaster@alice>\nTo: <alice@alice>\n\
                 Subject: Delivered: =?utf-8?q?M=C3=BCnchen?= and more\nDate: Sat, 21 Nov 2026 12:31:00 +0000\n\
                 Message-ID: <7.n@alice>\nAuto-Submitted: auto-replied\nIn-Reply-To: <1@alice>\n"
            ),
            "{delivered}"
        );
        let status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; alice\nOriginal-Envelope-Id: abc\n\
                      Arrival-Date: Sat, 21 Nov 2026 12:30:00 +0000\n\nFinal-Recipient: rfc822; bob@bob\n\
                      Action: delivered\nStatus: 2.1.5\nRemote-MTA: dns; bob\n\n--=_7.n\n";
        assert!(delivered.contains(status), "{delivered}");
        let failed = text(&[outcome("2.1.5", ""), outcome("5.1.1", "no such user")]);
        assert!(
            failed.contains("Subject: Not delivered: ") && failed.contains("Action: failed\n"),
            "{failed}"
        );
        assert!(failed.contains("Diagnostic-Code: smtp; 5.1.1 no such user\n"), "{failed}");
        assert_eq!(failed.matches("--=_7.n\n").count(), 3, "{failed}");
    }
}
