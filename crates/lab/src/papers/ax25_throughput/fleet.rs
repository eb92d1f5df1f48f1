//! Controllers and firmware.

use crate::controllers::{Side, Transfer};
use longwire_proto::time::Duration;
use longwire_sim::{ControllerConfig, Firmware};

/// Controller as in Tables 1 and 2.
#[derive(Debug, PartialEq)]
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) clock_mhz: f64,
    pub(super) processor: &'static str,
    /// Memory, KiB; the smaller of the sizes sold.
    pub(super) ram_kib: u32,
    /// Highest rate of the serial line, bit/s.
    pub(super) serial_bps: u32,
    /// Highest rate between controllers, bit/s.
    pub(super) wireless_bps: u64,
    /// Original firmware.
    pub(super) delivered: &'static str,
}

const fn machine(
    name: &'static str,
    clock_mhz: f64,
    processor: &'static str,
    ram_kib: u32,
    (serial_bps, wireless_bps): (u32, u64),
    delivered: &'static str,
) -> Machine {
    Machine { name, clock_mhz, processor, ram_kib, serial_bps, wireless_bps, delivered }
}

/// All controllers except the PTC-II, whose firmware the paper does not describe. A TNC2 with 16 KB is assumed to have
/// 32, because it is one of the controllers in which all Z80 firmware was exchanged.
pub(super) const MACHINES: [Machine; 14] = [
    machine("TNC2", 2.4576, "Z80", 32, (9600, 1200), "MFJ"),
    machine("TNC2D", 4.9152, "Z80", 32, (19_200, 1200), "MFJ"),
    machine("TNC2H", 9.8304, "Z80", 32, (38_400, 9600), "MFJ"),
    machine("Spirit-2 Std.", 9.8304, "Z80", 32, (57_600, 57_600), "Spirit"),
    machine("Spirit-2 H.S.", 19.6608, "Z80", 32, (57_600, 57_600), "Spirit"),
    machine("KPC-9612+", 16.0, "68HC11", 128, (38_400, 38_400), "Kantronics"),
    machine("PK-96", 12.288, "Z180", 128, (38_400, 38_400), "TimeWave"),
    machine("KAM-XL", 9.8304, "68HC902", 512, (38_400, 9600), "Kantronics"),
    machine("DSP-232", 3.6864, "68340", 256, (19_200, 9600), "TimeWave"),
    machine("TNC3S", 14.7456, "68302", 64, (115_200, 614_400), "TF of TNC3"),
    machine("TNC31S", 14.7456, "68302", 128, (115_200, 614_400), "TF of TNC3"),
    machine("TNC4e", 19.6608, "68EN302", 4096, (115_200, 1_228_800), "TF of TNC3"),
    machine("TNC7multi", 58.9824, "LPC2106", 64, (115_200, 115_200), "TF of TNC3"),
    machine("DLC7", 49.152, "S3C4530", 32_768, (115_200, 1_536_000), "TF of TNC3"),
];

/// Work per clock cycle relative to a Z80, from Dhrystone 1.1 results per MHz. The published list has 91 per second for
/// a Z80 at 2.5 MHz, and 360, 625, 837 and 835 for a 68000 at 6, 7.7, 10 and 12.5 MHz; an ARM7TDMI has 0.9 times 1757
/// per MHz. A Z180 counts as a Z80, the other 68000s as a 68000; no result is known for a 68HC11 or a 68HC902.
pub(super) const SPEEDS: [(&str, f64); 9] = [
    ("Z80", 1.0),
    ("Z180", 1.0),
    ("68HC11", 1.0),
    ("68HC902", 1.0),
    ("68302", 2.0),
    ("68340", 2.0),
    ("68EN302", 2.0),
    ("LPC2106", 43.0),
    ("S3C4530", 43.0),
];

/// Firmware: its constants and properties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Program {
    pub(super) name: &'static str,
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

const PLAIN: Program = Program {
    name: "",
    octet_kilocycles: 0.0,
    turn_megacycles: 0.0,
    memory_bytes: None,
    polls: true,
    waits: true,
    grows: false,
};

/// The five firmware versions that were exchanged. [`super::calibrate`] has the origin of their constants.
pub(super) const EXCHANGED: [Program; 5] = [
    Program {
        name: "MFJ",
        octet_kilocycles: 20.0,
        turn_megacycles: 3.0,
        memory_bytes: Some(2048),
        waits: false,
        ..PLAIN
    },
    Program {
        name: "Spirit",
        octet_kilocycles: 22.0,
        turn_megacycles: 2.25,
        memory_bytes: Some(2048),
        waits: false,
        ..PLAIN
    },
    Program { name: "TF 2.1", octet_kilocycles: 71.0, turn_megacycles: 3.25, ..PLAIN },
    Program { name: "TF 2.3", octet_kilocycles: 36.0, turn_megacycles: 3.25, ..PLAIN },
    Program { name: "TF 2.7", octet_kilocycles: 22.0, turn_megacycles: 4.5, ..PLAIN },
];

/// Firmware without constants of its own: that of Kantronics and TimeWave is based on MFJ, and that of TNC3 and its
/// successors is a TF.
pub(super) const DERIVED: [&str; 3] = ["Kantronics", "TimeWave", "TF of TNC3"];

/// Returns the firmware with this name.
pub(super) fn program(name: &str) -> Program {
    let exchanged = |name: &str| EXCHANGED.into_iter().find(|program| program.name == name);
    match name {
        "Kantronics" => Program { name: "Kantronics", grows: true, ..program("TimeWave") },
        "TimeWave" => Program {
            name: "TimeWave",
            memory_bytes: None,
            waits: true,
            ..exchanged("MFJ").expect("it is one of them")
        },
        "TF of TNC3" => {
            Program { name: "TF of TNC3", polls: false, ..exchanged("TF 2.7").expect("it is one of them") }
        }
        _ => exchanged(name).unwrap_or_else(|| panic!("no firmware is called {name}")),
    }
}

/// Returns the firmware whose constants this one uses.
pub(super) fn constants_of(name: &'static str) -> &'static str {
    match name {
        "Kantronics" | "TimeWave" => "MFJ",
        "TF of TNC3" => "TF 2.7",
        own => own,
    }
}

impl Program {
    /// Returns the firmware with other constants: thousands of cycles per octet, millions per turnaround.
    pub(super) fn with_constants(self, (octet_kilocycles, turn_megacycles): (f64, f64)) -> Program {
        Program { octet_kilocycles, turn_megacycles, ..self }
    }
}

/// Returns the controller with this name.
pub(super) fn find(name: &str) -> &'static Machine {
    let found = MACHINES.iter().find(|machine| machine.name == name);
    found.unwrap_or_else(|| panic!("no controller is called {name}"))
}

impl Machine {
    pub(super) fn megacycles_per_s(&self) -> f64 {
        let speed = SPEEDS.iter().find(|(processor, _)| *processor == self.processor);
        self.clock_mhz * speed.expect("every processor has one").1
    }

    /// Returns the controller as one end of a transfer.
    fn side(&self, program: &Program, case: &Case, serial_bps: u32) -> Side {
        let firmware = Firmware {
            octet_kilocycles: program.octet_kilocycles,
            turn_megacycles: program.turn_megacycles,
            acknowledge_delay: program.waits.then(|| case.t2()),
            window_grows: program.grows,
        };
        let memory_bytes = program.memory_bytes.unwrap_or(1024 * self.ram_kib);
        let megacycles_per_s = self.megacycles_per_s();
        Side {
            controller: ControllerConfig { serial_bps, megacycles_per_s, memory_bytes, firmware },
            polls: program.polls,
        }
    }
}

/// Rates between the controllers, bit/s.
pub(super) const SLOW_BPS: u64 = 1200;
pub(super) const FAST_BPS: u64 = 9600;
pub(super) const FASTEST_BPS: u64 = 38_400;
/// Controllers in which firmware was exchanged, the slower first, at 1200 bit/s and at 9600 bit/s.
pub(super) const SLOW: [&str; 2] = ["TNC2", "TNC2D"];
pub(super) const FAST: [&str; 2] = ["Spirit-2 Std.", "Spirit-2 H.S."];
/// Peer in comparisons of firmware: TNC3 or TNC7 according to the paper.
pub(super) const PARTNER: &str = "TNC7multi";
/// Key-up delay (T103).
pub(super) const TX_DELAY: Duration = Duration::from_millis(300);
/// Slot time (T102).
pub(super) const SLOT_TIME: Duration = Duration::from_millis(100);

/// Role of a controller in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Both ends are of the same kind (section 3.1).
    Both,
    /// Sender, with a TNC7 as peer (section 3.2).
    Sender,
    /// Receiver, with a TNC7 as peer.
    Recipient,
}

impl Role {
    pub(super) fn word(self) -> &'static str {
        match self {
            Role::Both => "both",
            Role::Sender => "sender",
            Role::Recipient => "receiver",
        }
    }
}

/// Simulated transfer.
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
    pub(super) fn delivered(machine: &'static str, rate_bps: u64) -> Case {
        let program = find(machine).delivered;
        Case { role: Role::Both, machine, program, rate_bps, window: 7, information_bytes: 256, file_kib: 8 }
    }

    /// The same between one controller with this firmware and a TNC7, at the rate of its configuration.
    pub(super) fn exchanged(role: Role, program: &'static str, machine: &'static str) -> Case {
        let rate_bps = if SLOW.contains(&machine) { SLOW_BPS } else { FAST_BPS };
        Case { role, program, ..Case::delivered(machine, rate_bps) }
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

    pub(super) fn with_information(self, information_bytes: u32) -> Case {
        Case { information_bytes, ..self }
    }

    fn t2(&self) -> Duration {
        Duration::from_secs_f64(Case::t2_s(self.rate_bps as f64, self.information_bytes))
    }

    /// Computes T2: time of the longest frame plus 200 ms.
    pub(super) fn t2_s(rate_bps: f64, information_bytes: u32) -> f64 {
        f64::from(160 + 8 * information_bytes) * 63.0 / 62.0 / rate_bps + 0.2
    }

    /// Returns the transfer with constants other than those of the table.
    pub(super) fn with_program(&self, program: &Program) -> Transfer {
        let own = find(self.machine);
        let (serial_bps, partner) = match (self.role, self.rate_bps) {
            (Role::Both, SLOW_BPS) => (19_200, own.side(program, self, 19_200)),
            (Role::Both, _) => (own.serial_bps, own.side(program, self, own.serial_bps)),
            (_, rate_bps) => {
                let serial_bps = if rate_bps == SLOW_BPS { 9600 } else { 57_600 };
                let partner = find(PARTNER);
                (serial_bps, partner.side(&self::program(partner.delivered), self, serial_bps))
            }
        };
        let side = own.side(program, self, serial_bps);
        let (sender, recipient) = match self.role {
            Role::Recipient => (partner, side),
            Role::Both | Role::Sender => (side, partner),
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
        self.with_program(&program(self.program))
    }
}
