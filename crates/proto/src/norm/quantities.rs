//! Quantities that have one or two octets in messages (RFC 5401 3.4, RFC 5740 4.2.1, 4.2.3.4 and 4.2.3.5).

use crate::time::Duration;

/// Shortest time that can be expressed.
pub const TIME_MIN: Duration = Duration::from_micros(1);
/// Longest time that can be expressed.
pub const TIME_MAX: Duration = Duration::from_secs(1000);
/// Greatest backoff factor that can be expressed.
pub const BACKOFF_FACTOR_MAX: u8 = 15;

/// Number of codes on the linear part of the scale of times, which has steps of 1 us.
const LINEAR: u8 = 31;
/// Number of codes per factor of e on the logarithmic part.
const PER_E: f64 = 13.0;

/// Returns the code of the shortest time on the scale that is not less than the given one.
pub fn time_code(time: Duration) -> u8 {
    let micros = time.as_secs_f64() * 1e6;
    if micros <= f64::from(LINEAR) {
        return (libm::ceil(micros) as u8).saturating_sub(1);
    }
    let code = libm::ceil(255.0 - PER_E * libm::log(TIME_MAX.as_secs_f64() / time.as_secs_f64()));
    code.clamp(f64::from(LINEAR), 255.0) as u8
}

/// Returns the time that a code stands for.
pub fn time_of(code: u8) -> Duration {
    if code < LINEAR {
        return Duration::from_micros(u64::from(code) + 1);
    }
    let seconds = TIME_MAX.as_secs_f64() / libm::exp(f64::from(255 - code) / PER_E);
    Duration::from_secs_f64(seconds)
}

/// Returns the code of the least number of receivers on the scale (1 and 5 times a power of ten) that is not less than the
/// given one.
pub fn group_size_code(receivers: u64) -> u8 {
    let reaches = |code: &u8| group_size_of(*code) >= receivers;
    (0..16).filter(reaches).min_by_key(|code| group_size_of(*code)).unwrap_or(15)
}

/// Returns the number of receivers that a code of four bits stands for.
pub fn group_size_of(code: u8) -> u64 {
    let code = code & 0x0f;
    let mantissa = if code & 8 == 0 { 1 } else { 5 };
    mantissa * 10_u64.pow(u32::from(code & 7) + 1)
}

/// Returns the code of a rate in bytes per second: a decimal mantissa of 12 bits, and an exponent of 4 bits.
pub fn rate_code(bytes_per_second: f64) -> u16 {
    if bytes_per_second < 1.0 {
        // NRL's implementation has this code for zero.
        return 0x0001;
    }
    let exponent = libm::floor(libm::log10(bytes_per_second)).clamp(0.0, 15.0);
    let mantissa = bytes_per_second / libm::pow(10.0, exponent);
    let scaled = ((mantissa * 4096.0 / 10.0 + 0.5) as u16).min(0x0fff);
    (scaled << 4) | exponent as u16
}

/// Returns the rate in bytes per second that a code stands for.
pub fn rate_of(code: u16) -> f64 {
    f64::from(code >> 4) * (10.0 / 4096.0) * libm::pow(10.0, f64::from(code & 0x0f))
}

/// Returns the code of a share of lost packets, from 0 to 1, in 32 bits: those of the field `cc_loss`, and below them those of the
/// reserved field after it, where NRL's implementation has them.
pub fn loss_code(loss: f64) -> u32 {
    libm::floor(loss.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32
}

/// Returns the share of lost packets that the field `cc_loss` stands for, with the reserved field, which is zero where it has no
/// further bits.
pub fn loss_of(high: u16, low: u16) -> f64 {
    if low == 0 {
        return f64::from(high) / 65_535.0;
    }
    f64::from(u32::from(high) << 16 | u32::from(low)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_survive() {
        for code in 0..=255 {
            assert_eq!(time_code(time_of(code) - Duration::from_nanos(1)), code, "{code}");
        }
        assert_eq!((time_code(Duration::ZERO), time_of(0)), (0, TIME_MIN));
        assert_eq!((time_code(TIME_MAX * 2), time_of(255)), (255, TIME_MAX));
        // From captures of another implementation.
        for (code, micros) in [(148, 266_331), (130, 66_695), (113, 18_037), (76, 1_047), (42, 77)] {
            assert_eq!((time_of(code).as_secs_f64() * 1e6).round() as u64, micros, "{code}");
        }
    }

    #[test]
    fn group_sizes_are_rounded_up() {
        for (receivers, code, size) in
            [(1, 0, 10), (10, 0, 10), (11, 8, 50), (51, 1, 100), (1000, 2, 1000), (1001, 10, 5000)]
        {
            assert_eq!((group_size_code(receivers), group_size_of(code)), (code, size), "{receivers}");
        }
        assert_eq!((group_size_of(15), group_size_code(u64::MAX)), (500_000_000, 15));
    }

    #[test]
    fn rates_have_three_digits() {
        assert_eq!(rate_code(32_000.0), 0x51f4, "the example of RFC 5740 4.2.3.4");
        assert_eq!((rate_code(0.0), rate_of(0x0001)), (1, 0.0));
        for rate in [1.0, 9.999, 64_000.0, 1e6, 9.98e15] {
            assert!((rate_of(rate_code(rate)) / rate - 1.0).abs() < 0.002, "{rate}");
        }
        assert_eq!(rate_code(f64::MAX), 0xffff);
    }

    #[test]
    fn losses_are_shares_of_65535() {
        assert_eq!((loss_code(0.0), loss_code(1.0)), (0, u32::MAX));
        assert_eq!(loss_of((loss_code(0.05263) >> 16) as u16, 0), 3449.0 / 65_535.0);
        for loss in [1e-6, 4.7e-5, 0.05263, 0.999] {
            let code = loss_code(loss);
            let error = loss_of((code >> 16) as u16, code as u16) / loss - 1.0;
            assert!(error.abs() < 0.001, "{loss}: {error}");
        }
    }
}
