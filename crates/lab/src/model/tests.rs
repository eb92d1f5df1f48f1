use super::ax25::{Csma, Duplex, LastFrame, Model, PRESETS, Spent, Stuffed, Stuffing, Tail};

const FILE_BYTES: u64 = 7182;

/// Rounds half up, as in a printed table.
fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale + 0.5).floor() / scale
}

fn transfers(model: Model, rate_bps: f64) -> [f64; 7] {
    [1, 2, 3, 4, 5, 6, 7].map(|window| model.transfer(rate_bps, window, FILE_BYTES).total_s())
}

fn throughputs(model: Model, rate_bps: f64) -> [f64; 7] {
    [1, 2, 3, 4, 5, 6, 7].map(|window| rounded(model.throughput_bps(rate_bps, window), 0))
}

#[test]
fn ronan_tables_ii_and_iii_to_the_printed_digit() {
    let table = |rate| transfers(Model::ronan_2011(), rate).map(|seconds| rounded(seconds, 1));
    assert_eq!(table(1200.0), [68.0, 61.2, 58.8, 57.8, 56.9, 56.4, 56.4]);
    assert_eq!(table(9600.0), [17.4, 12.2, 10.4, 9.7, 8.9, 8.6, 8.6]);
}

#[test]
fn ronan_table_vi_to_the_printed_digit() {
    let model = Model::ronan_2011();
    let measured = [110.36, 82.82, 73.64, 70.45, 65.64, 63.73, 64.55];
    let cycles = [1, 2, 3, 4, 5, 6, 7].map(|window| model.cycles(window, FILE_BYTES));
    assert_eq!(cycles, [29, 15, 10, 8, 6, 5, 5]);
    let modelled = transfers(model, 1200.0);
    let difference = |index: usize| measured[index] - modelled[index];
    let printed = [0, 1, 2, 3, 4, 5, 6].map(|index| rounded(difference(index), 1));
    assert_eq!(printed, [42.4, 21.6, 14.8, 12.6, 8.8, 7.4, 8.2]);
    let a_group = [0, 1, 2, 3, 4, 5, 6].map(|index| rounded(difference(index) / cycles[index] as f64, 2));
    assert_eq!(a_group, [1.46, 1.44, 1.48, 1.58, 1.46, 1.47, 1.63]);
}

/// The formulas as printed give other tables: the preset is a reading, and the parameters distinguish the readings.
#[test]
fn ronan_as_printed_gives_other_tables() {
    let entries = |model| {
        let table = |rate| transfers(model, rate).map(|seconds| rounded(seconds, 1));
        let same =
            |ours: [f64; 7], theirs: [f64; 7]| ours.iter().zip(theirs).filter(|(a, b)| **a == *b).count();
        (
            same(table(1200.0), [68.0, 61.2, 58.8, 57.8, 56.9, 56.4, 56.4]),
            same(table(9600.0), [17.4, 12.2, 10.4, 9.7, 8.9, 8.6, 8.6]),
        )
    };
    let formulas = Model { stuffing: Stuffing::All, ..Model::ronan_2011() };
    assert_eq!(entries(formulas), (1, 5));
    assert_eq!(entries(Model { tail: Tail::Data, ..formulas }), (2, 0));
    assert_eq!(entries(Model { stuffing: Stuffing::None, ..Model::ronan_2011() }), (0, 0));
    assert_eq!(entries(Model { last_frame: LastFrame::True, ..Model::ronan_2011() }).0, 0);
}

#[test]
fn zielinski_in_half_duplex() {
    let model = Model::zielinski();
    assert_eq!(throughputs(model, 1200.0), [730.0, 876.0, 939.0, 974.0, 996.0, 1011.0, 1022.0]);
    assert_eq!(throughputs(model, 9600.0), [1949.0, 3189.0, 4047.0, 4676.0, 5157.0, 5537.0, 5845.0]);
    assert_eq!(throughputs(model, 38400.0), [2374.0, 4447.0, 6272.0, 7893.0, 9340.0, 10641.0, 11816.0]);
}

#[test]
fn zielinski_in_full_duplex_does_not_ask_for_a_window_of_two_or_more() {
    let model = Model { duplex: Duplex::Full, ..Model::zielinski() };
    assert_eq!(throughputs(model, 1200.0)[1..], [1095.0; 6]);
    // 2048 bits in 2208 * 63/62 bits of time, at 9600 bit/s: 8763.
    assert_eq!(throughputs(model, 9600.0)[1..], [8763.0; 6]);
    // A long file has the same throughput, whatever its start and end take.
    let spent = model.transfer(1200.0, 7, 25_600_000);
    assert!((8.0 * 25_600_000.0 / spent.total_s() - 1095.0).abs() < 1.0, "{spent:?}");
    assert_eq!(spent.access_s, 0.0);
}

/// With a window of one frame nothing coincides: both stations are keyed again for each frame.
#[test]
fn one_frame_at_a_time_waits_for_its_acknowledgement_in_full_duplex_too() {
    let model = Model { duplex: Duplex::Full, txtail_s: 0.05, turnaround_s: 0.01, ..Model::zielinski() };
    // Two turns, two key-ups of 0.3 s, a frame of 2208 * 63/62 bits and an acknowledgement of 160 * 63/62.
    let cycle_s = |rate: f64| 0.02 + 0.6 + (2208.0 + 160.0) * 63.0 / 62.0 / rate;
    for rate in [1200.0, 9600.0] {
        let off = model.throughput_bps(rate, 1) * cycle_s(rate) / 2048.0 - 1.0;
        assert!(off.abs() < 1e-9, "{rate} bit/s: {off}");
        // The last two tails of a file do not coincide with anything.
        let file_s = model.transfer(rate, 1, 10 * 256).total_s();
        assert!((file_s - 10.0 * cycle_s(rate)).abs() <= 0.1 + 1e-9, "{rate} bit/s: {file_s} s");
        assert!(file_s > model.transfer(rate, 2, 10 * 256).total_s());
    }
    assert_eq!(Model { t2_s: 1.0, ..model }.transfer(1200.0, 1, 2560).t2_s, 10.0);
    assert_eq!(Model { t2_s: 1.0, ..model }.transfer(1200.0, 2, 2560).t2_s, 1.0);
}

#[test]
fn zielinski_waits_t2_for_every_window_but_the_whole_one() {
    let model = Model::preset("zielinski-t2").expect("a preset");
    let slow = throughputs(model, 1200.0);
    assert_eq!((slow[5], slow[6]), (934.0, 1022.0));
    let fast = throughputs(model, 9600.0);
    assert_eq!((fast[5], fast[6]), (3817.0, 5845.0));
    assert_eq!(throughputs(Model { poll: true, ..model }, 9600.0), throughputs(Model::zielinski(), 9600.0));
    // 29 frames are four windows of seven and one frame for which T2 is waited.
    assert_eq!(model.transfer(1200.0, 7, FILE_BYTES).t2_s, 1.0);
    assert_eq!(model.transfer(1200.0, 6, FILE_BYTES).t2_s, 5.0);
}

#[test]
fn zielinski_equation_5() {
    let at = |rate| {
        let model = Model { serial_bps: Some(rate), ..Model::zielinski() };
        rounded(model.transfer(1200.0, 7, FILE_BYTES).serial_s, 3)
    };
    assert_eq!([9600.0, 19_200.0, 57_600.0, 115_200.0].map(at), [0.533, 0.267, 0.089, 0.044]);
}

/// Times of two Dire Wolfs on an audio channel, seconds from the connection request to the last acknowledgement.
#[test]
fn direwolf_is_within_three_per_cent_of_what_it_measured() {
    let measured = [
        (1200.0, 1, 73.2),
        (1200.0, 4, 58.5),
        (1200.0, 7, 56.6),
        (9600.0, 1, 22.8),
        (9600.0, 4, 11.2),
        (9600.0, 7, 9.9),
    ];
    for (rate, window, seconds) in measured {
        let ours = Model::direwolf().transfer(rate, window, FILE_BYTES).total_s();
        assert!((ours / seconds - 1.0).abs() < 0.03, "{ours} instead of {seconds} at {rate}, k = {window}");
    }
}

#[test]
fn the_mean_wait_of_each_way_to_draw() {
    let mean = |csma: Csma| rounded(csma.mean_s(0.020, 0.25), 6);
    assert_eq!(
        Csma::NAMES.iter().map(|(_, csma)| mean(*csma)).collect::<Vec<_>>(),
        [0.0, 0.005, 0.04, 0.06, 0.08]
    );
}

#[test]
fn an_empty_file_takes_what_connecting_takes() {
    for (_, _, model) in PRESETS {
        let model = Model { serial_bps: Some(9600.0), t2_s: 1.0, ..model };
        for duplex in [Duplex::Half, Duplex::Full] {
            let spent = Model { duplex, ..model }.transfer(1200.0, 4, 0);
            assert_eq!(spent, Spent { set_up_s: spent.set_up_s, ..Spent::default() });
        }
    }
}

#[test]
fn knobs_that_make_no_sense_are_named() {
    for (name, _, model) in PRESETS {
        assert_eq!(model.flaw(), None, "{name}");
    }
    let good = Model::direwolf();
    let wrong = [
        Model { information_bytes: 0, ..good },
        Model { header_bytes: 0, ..good },
        Model { persistence: 0.0, ..good },
        Model { persistence: f64::NAN, ..good },
        Model { t2_s: -1.0, ..good },
        Model { txdelay_s: f64::INFINITY, ..good },
        Model { serial_bps: Some(0.0), ..good },
    ];
    for model in wrong {
        assert!(model.flaw().is_some(), "{model:?}");
    }
}

/// One stuffed bit per five ones: 255 octets of ones have one for every five bits, and zeros have only those of the
/// headers.
#[test]
fn stuffing_counted_on_the_very_bytes() {
    let count = |octet: u8| Stuffed::count(&vec![octet; 25_500], 255).bits_a_byte;
    assert!((count(0xff) - 8.0 / 5.0).abs() < 0.02, "{}", count(0xff));
    assert!(count(0x00) < 0.02, "{}", count(0x00));
    // Random bits have one stuffed bit per 62.
    let mut rng = longwire_proto::rng::Rng::new(1);
    let random: Vec<u8> = (0..255_000).map(|_| rng.next_u64() as u8).collect();
    let stuffed = Stuffed::count(&random, 255);
    assert!((stuffed.bits_a_byte / (8.0 / 62.0) - 1.0).abs() < 0.06, "{stuffed:?}");
    let [exact, all] = [Stuffing::Exact(stuffed), Stuffing::All]
        .map(|stuffing| Model { stuffing, ..Model::direwolf() }.transfer(1200.0, 4, 255_000).total_s());
    assert!((exact / all - 1.0).abs() < 0.002, "{exact} and {all}");
}
