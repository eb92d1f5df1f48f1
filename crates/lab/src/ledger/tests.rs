//! Every entry has the counter of its name.

use super::*;

#[test]
fn each_entry_is_what_it_is_called() {
    let airtime = Airtime {
        payload: 1,
        header: 2,
        repeated: 4,
        acknowledgement: 8,
        control: 16,
        repair: 32,
        framing: 64,
        stuffing: 128,
        keying: 256,
        access: 512,
        outage: 1024,
        idle: 2048,
    };
    let ledger = Ledger::of(HopDirection::Back, &airtime);
    let expected = [
        ("payload", airtime.payload),
        ("headers", airtime.header),
        ("repeated", airtime.repeated),
        ("acknowledgements", airtime.acknowledgement),
        ("control", airtime.control),
        ("repair", airtime.repair),
        ("framing", airtime.framing),
        ("stuffing", airtime.stuffing),
        ("keying", airtime.keying),
        ("access", airtime.access),
        ("outage", airtime.outage),
        ("idle", airtime.idle),
    ];
    for (name, nanos) in expected {
        assert_eq!(ledger.seconds(name), nanos as f64 / 1e9, "{name}");
    }
    assert_eq!(expected.map(|(name, _)| name), ENTRIES.map(|(name, ..)| name), "none is left out");
    assert_eq!((ledger.way, ledger.total()), (HopDirection::Back, airtime.total()));
    assert_eq!(ledger.total(), 4095);
}

#[test]
#[should_panic(expected = "no entry is called payloads")]
fn a_name_that_is_no_entry_is_a_fault_of_the_caller() {
    Ledger::of(HopDirection::There, &Airtime::default()).seconds("payloads");
}
