//! Configuration of radio channels in the form in which users write it.

use longwire_proto::time::Duration;
use longwire_sim::*;

#[test]
fn a_channel_is_written_with_units() {
    let config: RadioConfig = toml::from_str(
        r#"
        rate-bps = 9600
        stations = [{ tx-delay-ms = 150.5, persistence = 255, access = "uniform" }]
        paths = [{ from = 0, to = 1, heard = false, errors = { ber = 1e-6 } }]
        errors = { gilbert-elliott = { good-bits-mean = 1e6, bad-bits-mean = 100, good-ber = 0, bad-ber = 0.1 } }
        "#,
    )
    .expect("it is right");
    assert_eq!((config.rate_bps, config.paths[0].heard), (9600, false));
    assert_eq!(config.stations[0].tx_delay, Duration::from_micros(150_500));
    assert!((config.errors.mean_ber() - 1e-5).abs() < 1e-8);
    let written = toml::to_string(&config).expect("it can be written");
    assert_eq!(toml::from_str::<RadioConfig>(&written).expect("and read"), config);
    let tnc: TncConfig = toml::from_str("frame-time-ms = 7.5\nserial-bps = 9600").expect("it is right");
    assert_eq!((tnc.frame_time, tnc.serial_bps), (Duration::from_micros(7500), Some(9600)));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (text, hint) in [
        ("rate = 5", "unknown field `rate`"),
        ("stations = [{ tx-delay-ms = -1 }]", "not a time in milliseconds"),
        ("errors = \"many\"", "unknown variant `many`"),
        ("paths = [{ from = 1 }]", "missing field `to`"),
    ] {
        let error = toml::from_str::<RadioConfig>(text).expect_err(text).to_string();
        assert!(error.contains(hint), "{error}");
    }
}
