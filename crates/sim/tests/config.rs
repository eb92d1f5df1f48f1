//! Configuration in the form in which users write it.

use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;

#[test]
fn a_channel_is_written_with_units() {
    let config: ChannelConfig = toml::from_str(
        r#"
        [forward]
        rate-bps = 115200
        delay = { constant-ms = 1280 }
        queue-bytes = 15000
        errors = { ber = 1e-6 }
        fcs = "crc16"
        outages = [{ from-s = 30, to-s = 60.5 }]

        [backward]
        delay = { schedule = [{ at-s = 0, delay-ms = 1280 }, { at-s = 600, delay-ms = 1300.25 }] }
        errors = { gilbert-elliott = { good-bits-mean = 1e6, bad-bits-mean = 100, good-ber = 0, bad-ber = 0.1 } }
        backpressure = false
        announced = true
        "#,
    )
    .expect("it is right");
    assert_eq!(config.forward.rate_bps, 115_200);
    assert_eq!(config.forward.delay, Delay::constant_ms(1280));
    assert_eq!(config.forward.outages[0].to, Instant::from_millis(60_500));
    let half_way = config.backward.delay.at(Instant::from_secs(300));
    assert_eq!(half_way, Duration::from_micros(1_290_125));
    assert!((config.backward.errors.mean_ber() - 1e-5).abs() < 1e-8);
    let written = toml::to_string(&config).expect("it can be written");
    assert_eq!(toml::from_str::<ChannelConfig>(&written).expect("and read"), config);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (text, hint) in [
        ("[forward]\nrate = 5", "unknown field `rate`"),
        ("[forward]\ndelay = { constant-ms = -1 }", "not a time in milliseconds"),
        ("[forward]\nerrors = \"many\"", "unknown variant `many`"),
        ("[forward]\noutages = [{ from-s = 1 }]", "missing field `to-s`"),
    ] {
        let error = toml::from_str::<ChannelConfig>(text).expect_err(text).to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn disks_and_clocks_are_written_with_units() {
    let disk: DiskConfig =
        toml::from_str("sync-latency-ms = 7.5\ncapacity-bytes = 1000").expect("it is right");
    assert_eq!((disk.sync_latency, disk.capacity_bytes), (Duration::from_micros(7500), 1000));
    let clock: ClockConfig =
        toml::from_str("offset-ms = -5\njumps = [{ at-s = 3, by-ms = 100 }]").expect("it is right");
    assert_eq!(clock.dtn_ms(Instant::from_secs(3)), Some(EPOCH_DTN_MS + 3000 - 5 + 100));
}
