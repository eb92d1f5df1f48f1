//! Clocks: DTN time, Unix time, and the time since this machine started.
//!
//! Units: milliseconds since 2000-01-01 for DTN time, Unix seconds.

use longwire_proto::service::SteadyReading;
use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds from the Unix epoch to the DTN epoch, 2000-01-01 (RFC 9171 4.2.6).
pub(crate) const DTN_EPOCH_MS: u64 = 946_684_800_000;
/// 2024-01-01 in DTN time: an earlier clock has not been set.
const PLAUSIBLE_DTN_MS: u64 = 757_382_400_000;

/// Source of DTN time, milliseconds; returns `None` without a clock.
pub type WallClock = Arc<dyn Fn() -> Option<u64> + Send + Sync>;

/// Converts DTN time to Unix seconds.
pub(crate) fn unix_s(dtn_ms: u64) -> u64 {
    dtn_ms.saturating_add(DTN_EPOCH_MS) / 1000
}

/// Returns the time of the system clock, Unix seconds; `None` if the clock is not set.
pub fn unix_now() -> Option<i64> {
    system_dtn_ms().and_then(|dtn_ms| i64::try_from(unix_s(dtn_ms)).ok())
}

/// Returns DTN time by the system clock; `None` if the clock is not set.
pub fn system_dtn_ms() -> Option<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let dtn_ms = u64::try_from(since.as_millis()).ok()?.checked_sub(DTN_EPOCH_MS)?;
    (dtn_ms >= PLAUSIBLE_DTN_MS).then_some(dtn_ms)
}

/// Returns the time since this machine started, including sleep; `None` if the system does not provide it.
pub(crate) fn steady() -> Option<SteadyReading> {
    static START: LazyLock<Option<u64>> = LazyLock::new(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let digits: String = name.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        u64::from_str_radix(&digits, 16).ok().filter(|of| *of != 0)
    });
    let of = (*START)?;
    let since = std::fs::read_to_string("/proc/uptime").ok()?;
    let (seconds, hundredths) = since.split_whitespace().next()?.split_once('.')?;
    let ms = seconds.parse::<u64>().ok()?.checked_mul(1000)? + hundredths.parse::<u64>().ok()? * 10;
    Some(SteadyReading { of, ms })
}

/// Formats a DTN time for operators: `12:30:00 UTC`, with the date unless it is less than a day from `now`.
pub(crate) fn clock_time(at_dtn_ms: u64, now_dtn_ms: u64) -> String {
    let unix_s = unix_s(at_dtn_ms);
    let at =
        i64::try_from(unix_s).ok().and_then(|unix_s| time::OffsetDateTime::from_unix_timestamp(unix_s).ok());
    let Some(at) = at else { return "the distant future".into() };
    let clock = format!("{:02}:{:02}:{:02} UTC", at.hour(), at.minute(), at.second());
    match at_dtn_ms.abs_diff(now_dtn_ms) < 86_400_000 {
        true => clock,
        false => format!("{}-{:02}-{:02} {clock}", at.year(), u8::from(at.month()), at.day()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_its_date_unless_it_is_today() {
        assert_eq!(clock_time(848_579_400_250, 848_579_400_000), "12:30:00 UTC");
        assert_eq!(clock_time(848_579_400_250, 0), "2026-11-21 12:30:00 UTC");
        assert_eq!(clock_time(u64::MAX, 0), "the distant future");
    }
}
