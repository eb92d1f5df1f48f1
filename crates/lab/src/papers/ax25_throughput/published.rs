//! Statements of the text, which has no tables of its plots.

use super::fleet::{Case, EXCHANGED, FAST, FAST_BPS, FASTEST_BPS, Role, SLOW};

/// Statements about theory: rate and throughput (bit/s) at the largest window, wording and place.
pub(super) const THEORY: [(f64, f64, &str, &str); 3] = [
    (1200.0, 1000.0, "about 1000 bps", "section 3.2, slower configuration"),
    (9600.0, 5900.0, "about 5.9 kbps", "section 3.1, Fig. 5"),
    (9600.0, 6000.0, "about 6000 bps", "section 3.2, faster configuration"),
];

/// Measured throughput at the largest window and 256 information octets.
pub(super) struct Measured {
    pub(super) rate_bps: u64,
    pub(super) who: &'static str,
    pub(super) role: Role,
    /// Lowest and highest throughput, bit/s.
    pub(super) effective_bps: (f64, f64),
    /// True if the statement is about the best of the cases, not about each.
    pub(super) best: bool,
    pub(super) place: &'static str,
    pub(super) cases: Vec<Case>,
}

impl Measured {
    pub(super) fn middle_bps(&self) -> f64 {
        (self.effective_bps.0 + self.effective_bps.1) / 2.0
    }
}

/// Returns the statements about throughput.
pub(super) fn measured() -> Vec<Measured> {
    let all = |role, machines: [&'static str; 2]| -> Vec<Case> {
        let of = |machine| EXCHANGED.map(|program| Case::exchanged(role, program.name, machine));
        machines.into_iter().flat_map(of).collect()
    };
    let tapr = |machine| ["MFJ", "Spirit"].map(|program| Case::exchanged(Role::Sender, program, machine));
    let both = |machines: &[&'static str], rate_bps| -> Vec<Case> {
        machines.iter().map(|machine| Case::delivered(machine, rate_bps)).collect()
    };
    let row = |who, (from, to): (f64, f64), place, cases: Vec<Case>| Measured {
        rate_bps: cases[0].rate_bps,
        who,
        role: cases[0].role,
        effective_bps: (from, to),
        best: false,
        place,
        cases,
    };
    vec![
        row("MFJ and Spirit, 2.5 MHz", (750.0, 800.0), "Fig. 10", tapr(SLOW[0]).into()),
        row("MFJ and Spirit, 4.9 MHz", (800.0, 900.0), "Fig. 10", tapr(SLOW[1]).into()),
        row("all firmware versions", (900.0, 1000.0), "Fig. 11", all(Role::Recipient, SLOW)),
        row(
            "TNC2D, the slowest (at most 1200 bit/s in its table)",
            (1500.0, 1500.0),
            "Fig. 5",
            both(&["TNC2D"], FAST_BPS),
        ),
        row("DLC7, the fastest", (5500.0, 5500.0), "Fig. 5", both(&["DLC7"], FAST_BPS)),
        Measured {
            best: true,
            ..row("the best of all firmware versions", (4000.0, 4000.0), "Fig. 12", all(Role::Sender, FAST))
        },
        row("all firmware versions", (4100.0, 5200.0), "Fig. 13", all(Role::Recipient, FAST)),
        row(
            "Spirit-2 and KPC-9612+",
            (5000.0, 5000.0),
            "Fig. 6",
            both(&["Spirit-2 Std.", "Spirit-2 H.S.", "KPC-9612+"], FASTEST_BPS),
        ),
        row("TNC3", (8000.0, 8000.0), "Fig. 6", both(&["TNC3S"], FASTEST_BPS)),
        row("TNC7", (10_000.0, 10_000.0), "Fig. 6", both(&["TNC7multi"], FASTEST_BPS)),
        row("DLC7", (11_000.0, 11_000.0), "Fig. 6", both(&["DLC7"], FASTEST_BPS)),
    ]
}

/// Statement about the windows used, at k = 7 and 256 information octets.
pub(super) struct Used {
    pub(super) who: &'static str,
    pub(super) clock: &'static str,
    pub(super) words: &'static str,
    pub(super) claim: Claim,
    pub(super) case: Case,
}

/// Claim about a mean window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Claim {
    /// Lower and upper end, frames.
    About(f64, f64),
    /// Larger than this number of frames, the value of another case.
    LargerThan(f64),
}

/// Returns the statements about windows.
pub(super) fn used() -> Vec<Used> {
    let of = |who, machine: &'static str, words, claim| {
        let clock = match machine {
            "TNC2" => "2.5",
            "TNC2D" => "4.9",
            "Spirit-2 Std." => "10",
            _ => "20",
        };
        Used { who, clock, words, claim, case: Case::exchanged(Role::Sender, who, machine) }
    };
    let delivered = |who, machine, clock, words| Used {
        who,
        clock,
        words,
        claim: Claim::About(7.0, 7.0),
        case: Case::delivered(machine, FAST_BPS),
    };
    let exactly = |frames| Claim::About(frames, frames);
    // TF 2.1 at 1200 bit/s.
    let (one, two) = (1.0, 2.0);
    let mut rows = Vec::new();
    for who in ["MFJ", "Spirit"] {
        for machine in SLOW {
            rows.push(of(who, machine, "4, or 3 and 5 alternating", exactly(4.0)));
        }
    }
    rows.push(of("TF 2.1", SLOW[0], "1 or 2", Claim::About(one, two)));
    rows.push(of("TF 2.3", SLOW[0], "1 or 2", Claim::About(one, two)));
    rows.push(of("TF 2.3", SLOW[1], "about 6", exactly(6.0)));
    rows.push(of("TF 2.7", SLOW[0], "about 6", exactly(6.0)));
    rows.push(of("TF 2.7", SLOW[1], "almost 7", exactly(6.9)));
    for who in ["MFJ", "Spirit"] {
        for machine in FAST {
            rows.push(of(who, machine, "4, not so often; smaller ones occur", exactly(4.0)));
        }
    }
    for machine in FAST {
        rows.push(of("TF 2.1", machine, "larger than at 1200 bit/s", Claim::LargerThan(two)));
    }
    for machine in FAST {
        rows.push(of("TF 2.3", machine, "3", exactly(3.0)));
    }
    rows.push(of("TF 2.7", FAST[0], "about 4", exactly(4.0)));
    rows.push(of("TF 2.7", FAST[1], "almost 7", exactly(6.9)));
    rows.push(delivered("KPC-9612+", "KPC-9612+", "16", "7 mostly"));
    rows.push(delivered("TNC3", "TNC3S", "14.7", "7"));
    rows.push(delivered("TNC7", "TNC7multi", "59", "7"));
    rows
}
