//! Deserializer for TOML values that also reads durations: `"2 h"` is two hours in a field of type
//! [`Duration`](core::time::Duration), and a string in a field of type `String`.

use crate::duration;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::borrow::Cow;
use std::fmt;
use toml::{Table, Value};

/// Reason for which a value does not have the expected type, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueFault {
    /// Message of serde.
    pub(crate) message: String,
    /// Keys that lead to the value, innermost first.
    path: Vec<String>,
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.path.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        write!(f, "\nin `{}`", keys.join("."))
    }
}

impl std::error::Error for ValueFault {}

impl Error for ValueFault {
    fn custom<T: fmt::Display>(message: T) -> ValueFault {
        ValueFault { message: message.to_string(), path: Vec::new() }
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> ValueFault {
        let name = wanted.to_string();
        ValueFault::custom(format!("expected {}, found {}", kind_of(&name, found), words_for(found)))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> ValueFault {
        ValueFault::invalid_type(found, wanted)
    }
}

/// Describes the expected value, which serde gives as the name of a type. The limit of a type is named to a number that exceeds
/// it; that of the setting may be less.
fn kind_of<'a>(wanted: &'a str, found: Unexpected<'_>) -> Cow<'a, str> {
    let is_large = match found {
        Unexpected::Unsigned(_) => true,
        Unexpected::Signed(number) => number > 0,
        _ => false,
    };
    let plain = match wanted {
        "u8" if is_large => return at_most(u8::MAX),
        "u16" if is_large => return at_most(u16::MAX),
        "u32" if is_large => return at_most(u32::MAX),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a non-negative whole number",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        "struct Duration" => "a duration",
        name if name.starts_with("struct ") => "a table",
        other => other,
    };
    plain.into()
}

fn at_most(most: impl fmt::Display) -> Cow<'static, str> {
    format!("a whole number of at most {most}").into()
}

fn words_for(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => truth.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Value to deserialize.
pub(crate) struct Reader(pub(crate) Value);

impl<'de> Deserializer<'de> for Reader {
    type Error = ValueFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(truth) => visitor.visit_bool(truth),
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Reader));
                let read = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(read)
            }
            Value::Table(table) => visitor.visit_map(Fields::of(table)),
            date @ Value::Datetime(_) => date.deserialize_any(visitor).map_err(ValueFault::custom),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueFault> {
        match self.0 {
            Value::String(text) if name == "Duration" => match duration::parse(&text) {
                Some(time) => {
                    let parts = [("secs", time.as_secs()), ("nanos", u64::from(time.subsec_nanos()))];
                    visitor.visit_map(MapDeserializer::new(parts.into_iter()))
                }
                None => visitor.visit_string(text),
            },
            date @ Value::Datetime(_) => {
                date.deserialize_struct(name, fields, visitor).map_err(ValueFault::custom)
            }
            other => Reader(other).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueFault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueFault> {
        match self.0 {
            Value::String(text) => StringDeserializer::new(text).deserialize_enum(name, variants, visitor),
            Value::Table(table) if table.len() == 1 => {
                MapAccessDeserializer::new(Fields::of(table)).deserialize_enum(name, variants, visitor)
            }
            Value::Table(table) => Err(ValueFault::custom(format!(
                "expected one of {}, found {} keys",
                quoted(variants),
                table.len()
            ))),
            other => Reader(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, ValueFault> for Reader {
    type Deserializer = Reader;

    fn into_deserializer(self) -> Reader {
        self
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Entries of a table, one after another.
struct Fields {
    entries: toml::map::IntoIter<String, Value>,
    /// Entry whose key has been read, but not its value.
    under_way: Option<(String, Value)>,
}

impl Fields {
    fn of(table: Table) -> Fields {
        Fields { entries: table.into_iter(), under_way: None }
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = ValueFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueFault> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.under_way = Some((key.clone(), value));
        seed.deserialize(StringDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, ValueFault> {
        let (key, value) = self.under_way.take().expect("a value is asked for after its key");
        seed.deserialize(Reader(value)).map_err(|mut fault| {
            fault.path.push(key);
            fault
        })
    }
}
