//! The mail server between a user who answers as the script says and a mail program that sends anything.

use super::{Script, ScriptedSide, play, stream};
use crate::fuzz::smtp::command;
use crate::service::{MailRefusal, SubmissionIndication, SubmissionRequest};
use crate::smtp::{Config, Server, put_content};
use crate::time::Duration;
use bytes::{Bytes, BytesMut};

/// User of the server: true while a question is open.
#[derive(Debug, Default)]
struct User(bool);

impl ScriptedSide<SubmissionIndication, SubmissionRequest> for User {
    fn hear(&mut self, indication: SubmissionIndication) {
        let asks = matches!(
            indication,
            SubmissionIndication::Sender { .. }
                | SubmissionIndication::Recipient { .. }
                | SubmissionIndication::Complete
        );
        self.0 = asks || (self.0 && !matches!(indication, SubmissionIndication::Ended));
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<SubmissionRequest> {
        core::mem::take(&mut self.0).then(|| {
            let refusal = MailRefusal { code: 550, status: "5.1.1", text: "No \u{e4} such user".repeat(40) };
            let is_fine = script.below(8) > 0;
            SubmissionRequest::Answer(if is_fine { Ok("OK".into()) } else { Err(refusal) })
        })
    }
}

fn speech(greeted: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let mut out = BytesMut::new();
    if greeted.replace(1).is_none() {
        out.extend_from_slice(b"EHLO there\r\n");
    }
    match script.below(8) {
        0 => out.extend_from_slice(&script.bytes(200)),
        1 | 2 => put_content(&script.bytes(200), &mut out),
        _ => {
            let mut rng = script.rng();
            for _ in 0..=rng.below(4) {
                out.extend_from_slice(format!("{}\r\n", command(&mut rng)).as_bytes());
            }
        }
    }
    if script.below(8) == 0 {
        out.truncate(usize::from(script.byte()));
    }
    out.freeze()
}

pub(super) fn server(script: &mut Script<'_>) -> u64 {
    let config = Config {
        message_bytes_max: 1 << script.below(16),
        recipients_max: 1 + script.below(4) as usize,
        commands_max: 1 + script.below(200) as u32,
        refusals_max: script.below(20) as u32,
        patience: Duration::from_millis(1 << script.below(20)),
        ..Config::default()
    };
    let mut provider = stream::Provider::new(true, speech);
    play("server", Server::new(config), &mut User::default(), &mut provider, script)
}
