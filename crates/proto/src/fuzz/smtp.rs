//! Commands of mail programs.

use crate::rng::Rng;
use crate::service::{MailAddress, Notify};
use crate::smtp::{Command, parse_address};
use bytes::Bytes;

/// Checks that a command which is decoded is encoded and decoded again to the same.
pub(super) fn check_command(bytes: &Bytes) -> bool {
    let Ok(command) = Command::decode(bytes) else { return false };
    let text = command.to_string();
    assert_eq!(Command::decode(text.as_bytes()), Ok(command), "{text}");
    true
}

pub(super) fn valid_command(mut rng: Rng) -> Bytes {
    command(&mut rng).to_string().into()
}

/// Returns a legal command.
pub(super) fn command(rng: &mut Rng) -> Command {
    match rng.below(16) {
        0 => Command::Hello { extended: rng.chance(0.8) },
        1..=4 => Command::Mail {
            sender: rng.chance(0.8).then(|| address(rng)),
            bytes: rng.chance(0.5).then(|| rng.below(1 << 20)),
            envelope_id: rng.chance(0.2).then(|| "a+b= c".into()),
        },
        5..=9 => Command::Recipient { recipient: address(rng), notify: notify(rng) },
        10 | 11 => Command::Data,
        12 => Command::Reset,
        13 => Command::Nothing,
        14 => Command::Verify,
        _ => Command::Help,
    }
}

fn notify(rng: &mut Rng) -> Notify {
    match rng.below(3) {
        0 => Notify::Default,
        1 => Notify::Never,
        _ => Notify::Of { success: rng.chance(0.5), failure: rng.chance(0.5) },
    }
}

fn address(rng: &mut Rng) -> MailAddress {
    let all = ["bob@alice", "carol@alice.dtn", "\"a b>\\\"c\"@7.ipn", "\"../x\"@node_1", "o.k+tag@DL1XYZ-1"];
    parse_address(all[rng.below(all.len() as u64) as usize]).unwrap_or_else(|| panic!("an address"))
}
