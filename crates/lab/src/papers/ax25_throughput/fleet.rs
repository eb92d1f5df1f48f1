//! Controllers, firmware, and transfers between them.

use crate::claim;
use crate::controllers::{Side, Transfer};
use longwire_proto::time::Duration;
use longwire_sim::{ControllerConfig, Firmware};
use serde::Deserialize;
use std::sync::LazyLock;

/// Controller as in Tables 1 and 2, whose processors are only shown.
#[derive(Debug, Deserialize)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) clock_mhz: f64,
    /// Work per clock cycle relative to a Z80; `text.toml` has its origin.
    pub(super) work_per_cycle: f64,
    /// Memory, KiB; the smaller of the sizes sold.
    pub(super) ram_kib: u32,
    /// Highest rate of the serial line, bit/s.
    pub(super) serial_bps: u32,
    /// Highest rate between controllers, bit/s.
    pub(super) wireless_bps: u64,
    /// Original firmware.
    pub(super) delivered: String,
}

/// All controllers except the PTC-II, whose firmware the paper does not describe. A TNC2 with 16 KB is assumed to have
/// 32, because it is one of the controllers in which all Z80 firmware was exchanged.
pub(super) static MACHINES: LazyLock<Vec<Machine>> = LazyLock::new(|| claim::rows(CONTROLLERS));
pub(super) const CONTROLLERS: &str = include_str!("controllers.csv");

/// Firmware: its constants and properties.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) name: String,
    /// Firmware whose constants it has. That of Kantronics and TimeWave is based on MFJ, that of TNC3 and its successors
    /// on TF.
    pub(super) constants_of: String,
    /// First constant: building frames from host data, thousands of Z80 cycles per octet.
    pub(super) octet_kilocycles: f64,
    /// Second constant: turnaround, millions of Z80 cycles.
    pub(super) turn_megacycles: f64,
    /// Memory limit for host data, octets; `None` if only the memory of the controller limits it.
    pub(super) memory_bytes: Option<u32>,
    /// True if the last frame of each transmission has the P bit set.
    pub(super) polls: bool,
    /// True if it waits for T2 before an acknowledgement without P.
    pub(super) waits: bool,
    /// True if the window starts with one frame and grows.
    pub(super) grows: bool,
}

/// All firmware, first the five versions that were exchanged. [`super::calibrate`] has the origin of their constants.
pub(super) static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| claim::rows(FIRMWARE));
pub(super) const FIRMWARE: &str = include_str!("firmware.csv");

/// Both constants of a firmware: thousands of cycles per octet, millions per turnaround.
pub(super) type Constants = (f64, f64);

impl Program {
    pub(super) fn constants(&self) -> Constants {
        (self.octet_kilocycles, self.turn_megacycles)
    }
}

/// Returns the controller with this name.
pub(super) fn find(name: &str) -> &'static Machine {
    let found = MACHINES.iter().find(|machine| machine.name == name);
    found.unwrap_or_else(|| panic!("no controller is called {name}"))
}

/// Returns the firmware with this name.
pub(super) fn program(name: &str) -> &'static Program {
    let found = PROGRAMS.iter().find(|program| program.name == name);
    found.unwrap_or_else(|| panic!("no firmware is called {name}"))
}

/// Lowest rate between the controllers, bit/s.
pub(super) const SLOW_BPS: u64 = 1200;
/// Controllers in which firmware was exchanged, the slower first, at 1200 bit/s and at 9600 bit/s.
pub(super) const SLOW: [&str; 2] = ["TNC2", "TNC2D"];
pub(super) const FAST: [&str; 2] = ["Spirit-2 Std.", "Spirit-2 H.S."];
/// Peer in comparisons of firmware: TNC3 or TNC7 according to the paper.
const PARTNER: &str = "TNC7multi";
/// Key-up delay (T103).
const TX_DELAY: Duration = Duration::from_millis(300);
/// Slot time (T102).
const SLOT_TIME: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Both ends are of the same kind (section 3.1).
    Both,
    /// Sender, with a TNC7 as peer (section 3.2).
    Sender,
    /// Receiver, with a TNC7 as peer.
    Receiver,
}

impl Role {
    pub(super) fn of(word: &str) -> Role {
        let all = [Role::Both, Role::Sender, Role::Receiver];
        all.into_iter().find(|role| role.word() == word).unwrap_or_else(|| panic!("no role is called {word}"))
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Role::Both => "both",
            Role::Sender => "sender",
            Role::Receiver => "receiver",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) role: Role,
    pub(super) machine: &'static str,
    pub(super) program: &'static str,
    pub(super) rate_bps: u64,
    /// Window (k).
    pub(super) window: u8,
    /// Information octets of a frame (N1).
    pub(super) information_bytes: u32,
    pub(super) file_kib: u32,
}

impl Case {
    /// Transfer of 8 KB with the largest window and frames of 256 octets, between two controllers with original
    /// firmware.
    pub(super) fn delivered(machine: &str, rate_bps: u64) -> Case {
        let Machine { name, delivered, .. } = find(machine);
        let (role, information_bytes) = (Role::Both, 256);
        Case { role, machine: name, program: delivered, rate_bps, window: 7, information_bytes, file_kib: 8 }
    }

    /// The same between one controller with this firmware and a TNC7, at the rate of its configuration.
    pub(super) fn exchanged(role: Role, name: &str, machine: &str) -> Case {
        let rate_bps = if SLOW.contains(&machine) { SLOW_BPS } else { 9600 };
        Case { role, program: &program(name).name, ..Case::delivered(machine, rate_bps) }
    }

    pub(super) fn with_window(self, window: u8) -> Case {
        Case { window, ..self }
    }

    /// Returns the case with the long file on which windows are counted.
    pub(super) fn long(self) -> Case {
        Case { file_kib: 64, ..self }
    }

    pub(super) fn is_long(&self) -> bool {
        self.file_kib > 8
    }

    /// Computes T2: time of the longest frame plus 200 ms.
    pub(super) fn t2_s(&self) -> f64 {
        f64::from(160 + 8 * self.information_bytes) * 63.0 / 62.0 / self.rate_bps as f64 + 0.2
    }

    /// Returns the transfer with constants other than those of the table.
    pub(super) fn transfer_with(&self, constants: Constants) -> Transfer {
        let serial_bps = match (self.role, self.rate_bps) {
            (Role::Both, SLOW_BPS) => 19_200,
            (Role::Both, _) => find(self.machine).serial_bps,
            (_, SLOW_BPS) => 9600,
            _ => 57_600,
        };
        let side = |machine: &Machine, program: &Program, (octet_kilocycles, turn_megacycles): Constants| {
            let acknowledge_delay = program.waits.then(|| Duration::from_secs_f64(self.t2_s()));
            let window_grows = program.grows;
            let firmware = Firmware { octet_kilocycles, turn_megacycles, acknowledge_delay, window_grows };
            let megacycles_per_s = machine.clock_mhz * machine.work_per_cycle;
            let memory_bytes = program.memory_bytes.unwrap_or(1024 * machine.ram_kib);
            let controller = ControllerConfig { serial_bps, megacycles_per_s, memory_bytes, firmware };
            Side { controller, polls: program.polls }
        };
        let (own, partner) = (find(self.machine), find(PARTNER));
        let of_partner = program(&partner.delivered);
        let partner = side(partner, of_partner, of_partner.constants());
        let side = side(own, program(self.program), constants);
        let (sender, recipient) = match self.role {
            Role::Both => (side, side),
            Role::Sender => (side, partner),
            Role::Receiver => (partner, side),
        };
        Transfer {
            rate_bps: self.rate_bps,
            window: self.window,
            information_bytes: self.information_bytes,
            file_bytes: 1024 * u64::from(self.file_kib),
            tx_delay: TX_DELAY,
            slot_time: SLOT_TIME,
            sender,
            recipient,
        }
    }

    pub(super) fn transfer(&self) -> Transfer {
        self.transfer_with(program(self.program).constants())
    }
}
