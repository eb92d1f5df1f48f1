//! Beyond the paper: the adaptive mode beside all fixed ones with data that are there at once, a bit-error rate that changes, and
//! short contacts.

use super::path::{Protocol, Setup};
use super::trials::{ADAPTIVE, Cases, DELAY, RATES, RELIABLE, RUNS_FEW, TCP_LINUX, at, config, protocol};
use longwire_proto::aerotp::Config;
use longwire_proto::service::TransportService;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{Delay, ErrorChange, Errors, LineConfig, Window};

/// Strengths of the fixed modes with FEC.
const STRENGTHS: [u8; 5] = [1, 2, 4, 8, 16];
/// Data of the long runs, bytes.
pub(super) const LONG_BYTES: u64 = 20_000_000;
/// Bit-error rates one after the other, and the time of each.
pub(super) const CHANGES: [f64; 8] = [1e-6, 1e-4, 1e-5, 5e-5, 0.0, 2.5e-5, 1e-4, 1e-6];
const EVERY: Duration = Duration::from_secs(3);
/// Contacts, and the one-way delay in them.
const CONTACTS_S: [(u64, u64); 3] = [(1, 11), (31, 41), (61, 71)];
pub(super) const CONTACT_DELAY: Duration = Duration::from_millis(100);
/// End of the first contact.
pub(super) const CONTACT_END: Instant = Instant::from_secs(11);

/// Fixed modes that deliver everything: names in records and their protocols.
pub(super) fn fixed() -> Vec<(String, Protocol)> {
    let mack = |strength: u8| {
        let config = Config { fec_strength: strength, ..config(DELAY) };
        let words = 255 - 2 * usize::from(strength);
        let name = format!("AeroTP, NACK + MACK, RS(255,{words})");
        (name, Protocol::AeroTp(TransportService::NackMack, config))
    };
    let reliable = (RELIABLE.to_owned(), protocol(RELIABLE, DELAY));
    [reliable].into_iter().chain(STRENGTHS.map(mack)).collect()
}

/// Data of so many megabytes that are there at once.
pub(super) fn add(cases: &mut Cases<'_>) {
    let adaptive = || (ADAPTIVE.to_owned(), protocol(ADAPTIVE, DELAY));
    let modes = || fixed().into_iter().chain([adaptive()]);
    for ber in RATES {
        for (name, protocol) in modes() {
            let setup = Setup::new(protocol, 1_000_000, None, ber);
            cases.add(&name, at(ber).with("at_once_mb", 1u32), setup, u32::MAX);
        }
    }
    for (name, protocol) in modes() {
        let setup = Setup::new(protocol.clone(), LONG_BYTES, None, 1e-4);
        cases.add(&name, at(1e-4).with("at_once_mb", 20u32), setup, RUNS_FEW);
        let mut setup = Setup::new(protocol, LONG_BYTES, None, CHANGES[0]);
        for line in [&mut setup.forward, &mut setup.backward] {
            line.error_changes = changes();
        }
        cases.add(&name, crate::record::Params::new().with("changing_mb", 20u32), setup, RUNS_FEW);
    }
    contacts(cases);
}

fn changes() -> Vec<ErrorChange> {
    let later = CHANGES.iter().cycle().enumerate().skip(1).take(200);
    later
        .map(|(at, ber)| ErrorChange { at: Instant::ZERO + EVERY * at as u32, errors: Errors::Ber(*ber) })
        .collect()
}

/// Modes in short contacts, with their bit-error rates.
pub(super) fn in_contacts() -> Vec<(String, Protocol, f64)> {
    let delay = CONTACT_DELAY;
    let coded = Config { fec_strength: 8, ..config(delay) };
    let coded = Protocol::AeroTp(TransportService::NackMack, coded);
    vec![
        (ADAPTIVE.into(), protocol(ADAPTIVE, delay), 0.0),
        (ADAPTIVE.into(), protocol(ADAPTIVE, delay), 1e-5),
        ("AeroTP, NACK + MACK, RS(255,239)".into(), coded, 1e-5),
        (TCP_LINUX.into(), protocol(TCP_LINUX, delay), 0.0),
        (TCP_LINUX.into(), protocol(TCP_LINUX, delay), 1e-5),
    ]
}

fn contacts(cases: &mut Cases<'_>) {
    let window =
        |(from, to): (u64, u64)| Window { from: Instant::from_secs(from), to: Instant::from_secs(to) };
    for (name, protocol, ber) in in_contacts() {
        let mut setup = Setup::new(protocol, LONG_BYTES / 2, None, ber);
        for line in [&mut setup.forward, &mut setup.backward] {
            *line = LineConfig {
                delay: Delay::Constant(CONTACT_DELAY),
                contacts: CONTACTS_S.map(window).to_vec(),
                announced: true,
                ..line.clone()
            };
        }
        setup.until = Some(CONTACT_END + CONTACT_DELAY);
        cases.add(&name, at(ber).with("contact_s", 10u32), setup, RUNS_FEW);
    }
}
