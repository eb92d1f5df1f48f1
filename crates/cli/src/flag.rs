//! Parsers for the values of options. Numbers and durations have the same form everywhere.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use longwire_settings::duration::{self, DURATION_HINT};
use std::time::Duration;

/// Parses a duration as in configurations: `200ms`, `1.5 h`. Zero is valid.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| format!("not a valid duration; {DURATION_HINT}"))
}

pub(crate) fn time_above_zero(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    if time.is_zero() { Err("must be greater than zero".to_owned()) } else { Ok(time) }
}

/// Returns a parser for whole numbers from `least` to `most`, of the type of the option.
pub(crate) fn whole<T>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: TryFrom<u64>,
{
    move |text: &str| {
        // An upper limit beyond all practical values does not help the user.
        let wanted = || match u32::try_from(most) {
            Ok(most) if most < u32::MAX => format!("must be a whole number from {least} to {most}"),
            _ => format!("must be a whole number, {least} or more, and not too large"),
        };
        let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(wanted)
    }
}

/// Parses a number of zero or more.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
    number.ok_or_else(|| "must be a number, 0 or more".to_owned())
}

pub(crate) type Words<T> = &'static [(&'static str, T)];
pub(crate) type ExplainedWords<T> = &'static [(&'static str, T, &'static str)];

pub(crate) fn word<T: Copy + Send + Sync + 'static>(words: Words<T>) -> impl TypedValueParser<Value = T> {
    let parser = PossibleValuesParser::new(words.iter().map(|(word, _)| *word));
    parser.map(move |word| words.iter().find(|(known, _)| *known == word).expect("an allowed value").1)
}

/// Returns a parser for words whose meaning the help explains.
pub(crate) fn explained<T>(words: ExplainedWords<T>) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let parser = words.iter().map(|(word, _, meaning)| PossibleValue::new(*word).help(*meaning));
    PossibleValuesParser::new(parser)
        .map(move |word| words.iter().find(|(known, ..)| *known == word).expect("an allowed value").1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_units_and_are_written_as_in_configurations() {
        let seconds = |text: &str| time(text).map(|time| time.as_secs_f64());
        for (text, expected) in
            [("20min", 1200.0), ("1.5 h", 5400.0), ("90s", 90.0), ("200 ms", 0.2), ("0s", 0.0)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for wrong in ["20", "-1s", "soon", "", "1 week"] {
            assert!(time(wrong).is_err_and(|said| said.contains("\"5 s\"")), "{wrong}");
        }
        assert!(time_above_zero("0s").is_err() && time_above_zero("1 ms").is_ok());
    }

    #[test]
    fn numbers_that_are_not_wanted_are_answered_in_words() {
        let port = whole::<u8>(0, 15);
        assert_eq!((port("0"), port("15")), (Ok(0), Ok(15)));
        for wrong in ["16", "-1", "x", "", "1.5", "99999999999999999999"] {
            assert_eq!(port(wrong), Err("must be a whole number from 0 to 15".to_owned()), "{wrong}");
        }
        assert!(
            whole::<usize>(1, u64::MAX)("0")
                .is_err_and(|said| said.starts_with("must be a whole number, 1 or more"))
        );
        assert!(number("-1").is_err() && number("nan").is_err() && number("2.5") == Ok(2.5));
    }
}
