//! Rules of [`Submission`].

use super::{CheckedService, ContractBreach};
use crate::service::{Submission, SubmissionIndication, SubmissionRequest};

/// State of a session, and of its message.
#[derive(Debug, Default)]
pub struct SubmissionAccount {
    /// True while a question is open.
    is_asked: bool,
    /// The open question is about the sender.
    about_sender: bool,
    /// The open question is about the whole message.
    about_message: bool,
    has_message: bool,
    has_ended: bool,
}

impl CheckedService for Submission {
    type Account = SubmissionAccount;

    fn request(account: &mut SubmissionAccount, request: &SubmissionRequest) -> Result<(), ContractBreach> {
        let SubmissionRequest::Answer(answer) = request;
        if !core::mem::take(&mut account.is_asked) {
            return Err(ContractBreach("an answer without a question".into()));
        }
        account.has_message |= account.about_sender && answer.is_ok();
        account.has_message &= !account.about_message;
        Ok(())
    }

    fn indication(
        account: &mut SubmissionAccount,
        indication: &SubmissionIndication,
    ) -> Result<(), ContractBreach> {
        let breach = |what: &str| Err(ContractBreach(format!("{indication:?} {what}")));
        if account.has_ended {
            return breach("after the end");
        }
        if account.is_asked && !matches!(indication, SubmissionIndication::Ended) {
            return breach("while a question is open");
        }
        let is_new = matches!(indication, SubmissionIndication::Sender { .. });
        if is_new == account.has_message && !matches!(indication, SubmissionIndication::Ended) {
            return breach(if is_new { "while there is a message" } else { "without a message" });
        }
        account.about_sender = is_new;
        account.about_message = matches!(indication, SubmissionIndication::Complete);
        match indication {
            SubmissionIndication::Sender { .. }
            | SubmissionIndication::Recipient { .. }
            | SubmissionIndication::Complete => account.is_asked = true,
            SubmissionIndication::Abandoned => account.has_message = false,
            SubmissionIndication::Ended => account.has_ended = true,
            SubmissionIndication::Content(bytes) if bytes.is_empty() => return breach("without a byte"),
            SubmissionIndication::Content(_) => {}
        }
        Ok(())
    }

    fn owed(_: &SubmissionAccount) -> Vec<String> {
        Vec::new()
    }
}
