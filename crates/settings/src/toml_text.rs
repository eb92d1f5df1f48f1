//! TOML texts and tables: reading with hints, merging, changes by dotted keys.

use crate::duration::{self, DURATION_HINT};
use crate::error::{Error, did_you_mean};
use crate::reader::Reader;
use longwire_proto::setting::Settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use toml::{Table, Value};

/// Parses a text; `place` names it in errors.
///
/// # Errors
/// Fails if the text is not valid TOML.
pub fn parse(text: &str, place: &str) -> Result<Table, Error> {
    text.parse::<Table>().map_err(|error| Error::new(format!("{place}: {}", error.to_string().trim_end())))
}

/// Deserializes a table; `place` names it in errors. Fields of type `Duration` accept texts such as `"200 ms"`.
///
/// # Errors
/// Fails on unknown keys, with the nearest known key as a hint, and on values of the wrong type.
pub fn from_table<T: DeserializeOwned>(table: Table, place: &str) -> Result<T, Error> {
    T::deserialize(Reader(Value::Table(table)))
        .map_err(|fault| Error { hint: hint_of(&fault.message), ..Error::new(format!("{place}: {fault}")) })
}

/// Checks that a table has no other keys than these; `place` names it in errors, which are those of [`from_table`].
///
/// # Errors
/// Fails on an unknown key, with the nearest known key as a hint.
pub fn check_keys(table: &Table, known: &[&str], place: &str) -> Result<(), Error> {
    let Some(wrong) = table.keys().find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let expected = match &names[..] {
        [one] => one.clone(),
        [one, two] => format!("{one} or {two}"),
        all => format!("one of {}", all.join(", ")),
    };
    let message = format!("unknown field `{wrong}`, expected {expected}");
    Err(Error { hint: hint_of(&message), ..Error::new(format!("{place}: {message}")) })
}

/// Deserializes the settings of an engine, as [`from_table`] does, and checks them.
///
/// # Errors
/// Fails as [`from_table`] does, and on values with which the engine could not work.
pub fn read<T: DeserializeOwned + Settings>(table: Table, place: &str) -> Result<T, Error> {
    let settings: T = from_table(table, place)?;
    settings.check().map_err(|fault| Error::from(fault).within(place))?;
    Ok(settings)
}

/// Replaces durations, which serde writes as seconds and nanoseconds, with texts such as `200 ms`.
pub fn durations_written(table: &Table) -> Table {
    fn write(value: &Value) -> Value {
        match value {
            Value::Table(table) => match duration_in(table) {
                Some(text) => Value::String(text),
                None => Value::Table(durations_written(table)),
            },
            Value::Array(items) => Value::Array(items.iter().map(write).collect()),
            other => other.clone(),
        }
    }
    table.iter().map(|(key, value)| (key.clone(), write(value))).collect()
}

fn duration_in(table: &Table) -> Option<String> {
    let part =
        |key: &str| table.get(key).and_then(Value::as_integer).and_then(|part| u64::try_from(part).ok());
    let (secs, nanos) = (part("secs")?, part("nanos")?);
    if table.len() != 2 {
        return None;
    }
    u32::try_from(nanos).ok().and_then(|nanos| duration::exact(Duration::new(secs, nanos)))
}

/// Converts a value to a table, without fields that are `None`.
///
/// # Panics
/// Panics if TOML cannot represent the value as a table, which is a fault of this program.
pub fn to_table(value: &impl Serialize) -> Table {
    Table::try_from(value).expect("a configuration is a TOML table")
}

/// Returns the hint for a message of serde: the nearest known name for ``unknown field `a`, expected one of `b`, `c` ``, and
/// the form of a duration where one is expected.
fn hint_of(message: &str) -> Option<String> {
    if message.starts_with("expected a duration") {
        return Some(DURATION_HINT.to_owned());
    }
    let (_, rest) = message.split_once("unknown ")?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    Some(did_you_mean(wrong, known.iter().copied(), format!("known names: {}", known.join(", "))))
}

/// Merges `over` into `table`: tables key by key, other values as a whole.
pub fn merge(table: &mut Table, over: &Table) {
    for (key, value) in over {
        match (table.get_mut(key), value) {
            (Some(Value::Table(inner)), Value::Table(over)) => merge(inner, over),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns settings as a table, with changes.
///
/// # Panics
/// Panics as [`to_table`] does.
pub fn changed(settings: &impl Serialize, changes: &Table) -> Table {
    let mut table = to_table(settings);
    merge(&mut table, changes);
    table
}

/// Returns the entries of `table` that differ from `known`: tables key by key, other values as a whole.
pub fn difference(table: &Table, known: &Table) -> Table {
    let differs = |(key, value): (&String, &Value)| match (value, known.get(key)) {
        (value, Some(same)) if value == same => None,
        (Value::Table(inner), Some(Value::Table(known))) if duration_in(inner).is_none() => {
            Some((key.clone(), Value::Table(difference(inner, known))))
        }
        (value, _) => Some((key.clone(), value.clone())),
    };
    table.iter().filter_map(differs).collect()
}

/// Sets the value of a dotted key. In an array of tables, a number selects one of them (`channel.1.ber`); without a
/// number all are set (`channel.ber`), or those that have an array of this name, if any has (`channel.outage.after-s`).
/// Missing tables are created.
///
/// # Errors
/// Fails if a part of the key other than the last is not a table, or if an array has no entry of the given number.
pub fn set(table: &mut Table, key: &str, value: &Value) -> Result<(), Error> {
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let Some(rest) = rest else {
        table.insert(first.to_owned(), value.clone());
        return Ok(());
    };
    let inner = table.entry(first.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    let no_table = || Error::new(format!("`{key}`: `{first}` is not a table"));
    match inner {
        Value::Table(inner) => set(inner, rest, value),
        Value::Array(items) => {
            let (number, after) = rest.split_once('.').map_or((rest, None), |(n, after)| (n, Some(after)));
            match (number.parse::<usize>(), after) {
                (Ok(index), Some(after)) => {
                    let count = items.len();
                    let item = items.get_mut(index).and_then(Value::as_table_mut).ok_or_else(|| {
                        Error::new(format!("`{key}`: `{first}` has {count} entries, numbered from 0"))
                    })?;
                    set(item, after, value)
                }
                _ => {
                    let has_array = |item: &Value| item.get(number).is_some_and(Value::is_array);
                    let with_array = after.is_some() && items.iter().any(has_array);
                    for item in items.iter_mut().filter(|item| !with_array || has_array(item)) {
                        set(item.as_table_mut().ok_or_else(no_table)?, rest, value)?;
                    }
                    Ok(())
                }
            }
        }
        _ => Err(no_table()),
    }
}

/// Parses a word of the command line as a number, a truth value or a quoted string; any other word is a string.
pub fn value_of(word: &str) -> Value {
    let parsed = format!("x = {word}").parse::<Table>().ok().and_then(|mut table| table.remove("x"));
    parsed.unwrap_or_else(|| Value::String(word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().expect("TOML")
    }

    #[test]
    fn a_merge_goes_key_by_key_into_tables() {
        let mut base = table("a = 1\n[t]\nx = 1\ny = 2");
        merge(&mut base, &table("b = 3\n[t]\ny = 4"));
        assert_eq!(base, table("a = 1\nb = 3\n[t]\nx = 1\ny = 4"));
    }

    #[test]
    fn a_dotted_key_reaches_into_tables_and_arrays() {
        let mut base = table("[[link]]\nber = 1\n[[link]]\nber = 2\noutage = [{ a = 1 }, { a = 2 }]");
        set(&mut base, "link.ber", &Value::Integer(5)).expect("both");
        set(&mut base, "link.1.ber", &Value::Integer(6)).expect("one");
        set(&mut base, "link.outage.a", &Value::Integer(7)).expect("those that there are");
        set(&mut base, "settings.tcp.mss", &Value::Integer(536)).expect("made");
        let expected = "[[link]]\nber = 5\n[[link]]\nber = 6\noutage = [{ a = 7 }, { a = 7 }]\n[settings.tcp]\nmss = 536";
        let expected = table(expected);
        assert_eq!(base, expected);
        assert!(set(&mut base, "link.2.ber", &Value::Integer(6)).is_err());
        assert!(set(&mut base, "settings.tcp.mss.more", &Value::Integer(6)).is_err());
    }

    #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct Sample {
        name: String,
        after: Duration,
        idle: Option<Duration>,
        all: Vec<Duration>,
        paths: Vec<std::path::PathBuf>,
        free: Table,
        growth: Growth,
    }

    #[derive(Debug, PartialEq, serde::Deserialize, serde::Serialize)]
    #[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
    enum Growth {
        Off,
        Bytes { for_so_long: Duration, name: String },
    }

    #[test]
    fn a_length_of_time_is_read_where_the_field_is_one_and_a_word_stays_a_word() {
        let text = "name = '2h'\nafter = '200 ms'\nidle = '1.5s'\nall = ['90 s', '20min']\npaths = ['5d', '3 s']\n\
                    growth.bytes = { for-so-long = '3 d', name = '7 s' }\nfree.keepalive = '15 s'";
        let sample: Sample = from_table(table(text), "test").expect("it makes sense");
        let bytes = Growth::Bytes { for_so_long: Duration::from_secs(3 * 86_400), name: "7 s".into() };
        assert_eq!((sample.name.as_str(), &sample.growth), ("2h", &bytes));
        assert_eq!(sample.after, Duration::from_millis(200));
        assert_eq!(sample.idle, Some(Duration::from_millis(1500)));
        assert_eq!(sample.all, [90, 1200].map(Duration::from_secs));
        assert_eq!(sample.paths, ["5d", "3 s"].map(std::path::PathBuf::from));
        assert_eq!(sample.free, table("keepalive = '15 s'"), "a free table keeps its strings");
        // The values are written as texts and can be read again.
        let written = durations_written(&to_table(&sample));
        assert_eq!(written["idle"].as_str(), Some("1.5 s"));
        assert_eq!(from_table::<Sample>(written, "test").expect("it makes sense"), sample);
        let off =
            table(&text.replace("growth.bytes = { for-so-long = '3 d', name = '7 s' }", "growth = 'off'"));
        assert_eq!(from_table::<Sample>(off, "test").expect("it makes sense").growth, Growth::Off);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let wrong = |text: &str| from_table::<Sample>(table(text), "test").expect_err(text).to_string();
        assert!(wrong("nme = 'x'").contains("did you mean `name`?"));
        let said = wrong("growth.bytes = { name = 'x', for-so-long = 'soon' }");
        assert!(
            said.contains("expected a duration, found \"soon\"\nin `growth.bytes.for-so-long`"),
            "{said}"
        );
        assert!(wrong("growth = { off = 1, bytes = 2 }").contains("found 2 keys"));
        assert!(wrong("all = ['90 s', 'soon']").contains("in `all`"));
        assert!(wrong("growth = 'of'").contains("did you mean `off`?"));
    }

    #[test]
    fn settings_out_of_their_range_are_refused_with_their_place_and_a_hint() {
        use longwire_proto::ax25cl::Config;
        assert!(read::<Config>(table("open-max = 1"), "[ax25cl]").is_ok());
        let error = read::<Config>(table("open-max = 0"), "link `b`: [ax25cl]").unwrap_err();
        assert_eq!(error.what, "link `b`: [ax25cl]: `open-max` is 0; it must be at least 1");
        assert_eq!(error.hint.as_deref(), Some("with 0 nothing can be sent"));
        assert!(read::<Config>(table("open = 0"), "[ax25cl]").unwrap_err().what.starts_with("[ax25cl]: "));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named_as_people_name_it() {
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default)]
        struct Kinds {
            count: u64,
            port: u16,
            share: f64,
            name: String,
            on: bool,
            list: Vec<String>,
            inner: Inner,
        }
        #[derive(Debug, Default, serde::Deserialize)]
        struct Inner {}
        for (text, said) in [
            ("count = 'many'", "expected a non-negative whole number, found \"many\"\nin `count`"),
            ("count = -1", "expected a non-negative whole number, found -1\nin `count`"),
            ("count = 1.5", "expected a non-negative whole number, found 1.5\nin `count`"),
            ("port = 65536", "expected a whole number of at most 65535, found 65536\nin `port`"),
            ("port = -1", "expected a non-negative whole number, found -1\nin `port`"),
            ("port = 'many'", "expected a non-negative whole number, found \"many\"\nin `port`"),
            ("share = true", "expected a number, found true\nin `share`"),
            ("name = 5", "expected a string, found 5\nin `name`"),
            ("on = 'yes'", "expected true or false, found \"yes\"\nin `on`"),
            ("list = 'one'", "expected a list, found \"one\"\nin `list`"),
            ("inner = 5", "expected a table, found 5\nin `inner`"),
            ("name = { a = 1 }", "expected a string, found a table\nin `name`"),
        ] {
            let error = from_table::<Kinds>(table(text), "test").expect_err(text).to_string();
            assert_eq!(error, format!("test: {said}"));
        }
    }

    #[test]
    fn lengths_of_time_are_written_for_people() {
        let read = table(
            "a = {secs = 0, nanos = 200000000}\nb = {secs = 1, nanos = 500000000}\n[t]\n\
                          c = [{secs = 90, nanos = 0}, 'tuned', {secs = 1200, nanos = 0}]",
        );
        let people = table("a = '200 ms'\nb = '1.5 s'\n[t]\nc = ['90 s', 'tuned', '20 min']");
        assert_eq!(durations_written(&read), people);
        for (text, nanos) in [("0 s", 0), ("1.5h", 5_400_000_000_000), ("7 ns", 7), ("3us", 3_000)] {
            assert_eq!(duration::parse(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
        for wrong in ["", "s", "5", "-1 s", "1 m", "nan s", "inf s", "1 s 2 ms", "300000 d", "1e300 d"] {
            assert_eq!(duration::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused_with_the_way_to_write_one() {
        #[derive(Debug, serde::Deserialize)]
        struct Timer {
            #[expect(dead_code, reason = "only whether it can be read matters")]
            after: std::time::Duration,
        }
        for wrong in ["after = '-5 s'", "after = 5", "after = 'soon'"] {
            let error = from_table::<Timer>(table(wrong), "test").expect_err(wrong).to_string();
            assert!(error.contains("expected a duration") && error.contains("\"200 ms\""), "{error}");
        }
    }

    #[test]
    fn words_become_values() {
        assert_eq!(value_of("1e-6"), Value::Float(1e-6));
        assert_eq!(value_of("12"), Value::Integer(12));
        assert_eq!(value_of("true"), Value::Boolean(true));
        assert_eq!(value_of("tcpcl3/dtn2"), Value::String("tcpcl3/dtn2".into()));
    }
}
