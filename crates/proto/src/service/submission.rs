//! Messages of a mail program to the mail service of its node.

use crate::engine::Service;
use bytes::Bytes;
use core::fmt;

/// The service of a mail submission protocol: a mail program gives messages to the user of the service, one after the other.
///
/// `Sender`, `Recipient` and `Complete` are questions. The provider does nothing until the open question has its answer, so that
/// at most one is open.
///
/// | side | what breaks the contract |
/// |---|---|
/// | user | an answer without a question |
/// | provider | a question while another one is open |
/// | provider | a recipient, content or the end of a message without an accepted sender |
/// | provider | anything after Ended |
#[derive(Debug)]
pub enum Submission {}

impl Service for Submission {
    type Request = SubmissionRequest;
    type Indication = SubmissionIndication;
}

/// Address of a mailbox. Both parts are as they were received; a domain has no upper and lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailAddress {
    /// Part before the `@`, without quotes: any ASCII text without control characters, at most 64 bytes.
    pub local: String,
    /// Part after the `@`; empty only for `postmaster` of this node.
    pub domain: String,
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&byte);
        let is_dotted = !self.local.split('.').any(str::is_empty);
        if is_dotted && self.local.bytes().all(is_plain) {
            f.write_str(&self.local)?;
        } else {
            f.write_str("\"")?;
            for letter in self.local.chars() {
                if matches!(letter, '"' | '\\') {
                    f.write_str("\\")?;
                }
                write!(f, "{letter}")?;
            }
            f.write_str("\"")?;
        }
        if self.domain.is_empty() { Ok(()) } else { write!(f, "@{}", self.domain) }
    }
}

/// Events of which the sender of a message is notified (RFC 3461 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// The sender leaves it to the service.
    #[default]
    Default,
    /// None.
    Never,
    /// Those that are true.
    Of {
        /// Delivery to the mailbox.
        success: bool,
        /// Final failure.
        failure: bool,
    },
}

/// Answer to a question: the text for the mail program, or the reason why not.
pub type SubmissionAnswer = Result<String, MailRefusal>;

/// Reason for a refusal, which a mail program shows to its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailRefusal {
    /// Reply code: 4yz if it may succeed later, 5yz if it never does (RFC 5321 4.2.1).
    pub code: u16,
    /// Enhanced status code (RFC 3463 2), such as `5.1.1`.
    pub status: &'static str,
    /// Reason, in a sentence.
    pub text: String,
}

/// Requests of [`Submission`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmissionRequest {
    /// Answers the open question.
    Answer(SubmissionAnswer),
}

/// Indications of [`Submission`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmissionIndication {
    /// Question: may a message from this address follow?
    Sender {
        /// Address; `None` for a notification, which must not be answered by another one.
        address: Option<MailAddress>,
        /// Length of the message that the mail program has declared, bytes.
        bytes: Option<u64>,
        /// Identifier that notifications repeat.
        envelope_id: Option<String>,
    },
    /// Question: may it go to this address?
    Recipient {
        /// Address.
        address: MailAddress,
        /// Notifications that the sender wants.
        notify: Notify,
    },
    /// Next bytes of the message.
    Content(Bytes),
    /// Question: is the message accepted? After a positive answer it must not be lost.
    Complete,
    /// The message was abandoned.
    Abandoned,
    /// The session is over; an open question needs no answer. Terminal.
    Ended,
}
