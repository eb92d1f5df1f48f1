//! Text of a page as data: a TOML file for each paper, with the headings and paragraphs of its sections and its
//! assumptions.

use crate::report::{Assumption, Section};
use crate::toml_text;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Text of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    section: BTreeMap<String, Part>,
    /// Assumptions, without the effects that are computed.
    #[serde(default)]
    pub(super) assumption: Vec<Assumption>,
}

/// Heading and first paragraphs of a section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    heading: String,
    #[serde(default)]
    text: Vec<String>,
}

impl Text {
    /// Reads the text of a paper.
    pub(super) fn read(text: &str) -> Text {
        data(text)
    }

    /// Creates a section with its paragraphs.
    pub(super) fn section(&self, name: &str) -> Section {
        let part = self.section.get(name).unwrap_or_else(|| panic!("a section `{name}`"));
        Section::new(&part.heading).with_all(part.text.iter().map(String::as_str))
    }
}

/// Reads a file that is a part of this program.
///
/// # Panics
/// Panics if the file is invalid.
pub(super) fn data<T: DeserializeOwned>(text: &str) -> T {
    let data = toml_text::parse(text, "data").and_then(|table| toml_text::from_table(table, "data"));
    data.unwrap_or_else(|error| panic!("{error}"))
}
