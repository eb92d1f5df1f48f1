//! Sections of the convergence layers: one for each carrier of the table, in the configuration and in its links.

use super::{Config, LinkSettings};
use longwire_settings::error::Error;
use longwire_settings::toml_text::{check_keys, to_table};
use longwire_towers::AnyCarrier;
use longwire_towers::{CARRIERS, carriers};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Settings of convergence layers by section, as far as they are set.
#[derive(Clone, Default, PartialEq)]
pub struct CarrierSections(BTreeMap<String, Table>);

/// Hides the values, of which keys must not be logged.
impl fmt::Debug for CarrierSections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl CarrierSections {
    /// Returns a section; empty if nothing is set.
    pub fn get(&self, section: &str) -> Table {
        self.0.get(section).cloned().unwrap_or_default()
    }

    /// Sets a section.
    ///
    /// # Panics
    /// Panics if TOML cannot represent the settings as a table, which is a fault of the caller.
    pub fn set(&mut self, section: &str, settings: &impl Serialize) {
        self.0.insert(section.to_owned(), to_table(settings));
    }

    /// Returns true if all settings have the same values, set or by default.
    pub(crate) fn is_same(&self, other: &CarrierSections) -> bool {
        self.differing(other).next().is_none()
    }

    /// Names of the sections with different values, set or by default. Carriers may share one.
    pub(super) fn differing(&self, other: &CarrierSections) -> impl Iterator<Item = &'static str> {
        let differs = |carrier: &&&dyn AnyCarrier| {
            let name = carrier.about().section;
            carrier.document(&self.get(name)) != carrier.document(&other.get(name))
        };
        CARRIERS.iter().filter(differs).map(|carrier| carrier.about().section)
    }

    /// Makes relative paths relative to this folder: the settings whose names end in `-file`.
    pub(super) fn beside(&mut self, folder: &Path) {
        for table in self.0.values_mut() {
            each_file(table, &mut |path| *path = folder.join(&*path).to_string_lossy().into_owned());
        }
    }

    /// Returns the paths of all files.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for mut table in self.0.values().cloned() {
            each_file(&mut table, &mut |path| files.push(PathBuf::from(&*path)));
        }
        files
    }

    /// Returns the names of the sections that are set.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, table)| !table.is_empty()).map(|(name, _)| name.as_str())
    }

    /// Takes the sections out of a table, whose other keys are those of `others`.
    ///
    /// # Errors
    /// Fails on a section that is not a table, and on an unknown key, with the tables that have it, or else the nearest known
    /// key, as a hint.
    fn take(from: &mut Table, others: &impl Serialize, place: &str) -> Result<CarrierSections, Error> {
        let others = document(others);
        let keys = others.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
        let mut known: Vec<&str> = keys.collect();
        section_names().for_each(|name| known.push(name));
        check_keys(from, &known, place).map_err(|error| {
            let wrong = from.keys().find(|key| !known.contains(&key.as_str()));
            match wrong.and_then(|key| tables_with(key, from)) {
                Some(tables) => error.hint(tables),
                None => error,
            }
        })?;
        let mut sections = CarrierSections::default();
        for name in section_names() {
            match from.remove(name) {
                Some(Value::Table(table)) => drop(sections.0.insert(name.to_owned(), table)),
                Some(_) => return Err(Error::new(format!("{place}: `{name}` is not a table"))),
                None => {}
            }
        }
        Ok(sections)
    }
}

/// Calls a function with the path of each file in a table and in those within it.
fn each_file(table: &mut Table, act: &mut impl FnMut(&mut String)) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => each_file(inner, act),
            Value::String(path) if key.ends_with("-file") => act(path),
            _ => {}
        }
    }
}

/// Maximum number of tables that a hint names.
const TABLES_NAMED_MAX: usize = 3;

/// Returns a hint that names the tables which have this key; `None` if no table has it, or too many have. `from` is the table
/// where it stands: in that of a link, the section of its convergence layer comes first.
fn tables_with(key: &str, from: &Table) -> Option<String> {
    let config = document(&Config::default());
    match config.get(key) {
        Some(value) if value.is_object() => return Some(format!("`[{key}]` is a table of its own")),
        Some(_) => return Some(format!("`{key}` belongs at the top of the file, before the first table")),
        None => {}
    }
    let mut found = Vec::new();
    let kind = from.get("kind").and_then(Value::as_str);
    if let Some(carrier) = kind.and_then(carriers::find) {
        let section = carrier.document(&Table::new()).unwrap_or_default();
        collect_tables(key, &section, &format!("link.{}", carrier.about().section), &mut found);
    }
    if found.is_empty() {
        collect_tables(key, &config, "", &mut found);
        for carrier in CARRIERS {
            let section = carrier.document(&Table::new()).unwrap_or_default();
            collect_tables(key, &section, carrier.about().section, &mut found);
        }
    }
    let is_few = (1..=TABLES_NAMED_MAX).contains(&found.len());
    is_few.then(|| format!("`{key}` is a setting of {}", found.join(" and of ")))
}

/// Adds the tables in a document, and those within them, that have a key.
fn collect_tables(key: &str, document: &Json, name: &str, found: &mut Vec<String>) {
    let Some(table) = document.as_object() else { return };
    if !name.is_empty() && table.contains_key(key) {
        found.push(format!("`[{name}]`"));
    }
    for (inner, value) in table {
        let path = if name.is_empty() { inner.clone() } else { format!("{name}.{inner}") };
        collect_tables(key, value, &path, found);
    }
}

fn document(settings: &impl Serialize) -> Json {
    serde_json::to_value(settings).expect("settings are a document")
}

fn section_names() -> impl Iterator<Item = &'static str> {
    CARRIERS.iter().map(|carrier| carrier.about().section)
}

/// Takes the sections of all links, and those of the configuration itself, out of a configuration.
pub(super) fn take(from: &mut Table, place: &str) -> Result<(CarrierSections, Vec<CarrierSections>), Error> {
    let common = CarrierSections::take(from, &Config::default(), place)?;
    for carrier in CARRIERS {
        let read = carrier.document(&common.get(carrier.about().section));
        read.map_err(|error| error.within(place))?;
    }
    let links = match from.get_mut("link") {
        Some(Value::Array(links)) => &mut links[..],
        _ => &mut [],
    };
    let links = links.iter_mut().filter_map(Value::as_table_mut);
    let plain = LinkSettings::default();
    let links = links.map(|link| CarrierSections::take(link, &plain, &format!("{place}: [[link]]")));
    Ok((common, links.collect::<Result<_, _>>()?))
}

impl Config {
    /// Returns the configuration as a document with all settings, with nulls for those that have no value.
    pub(super) fn document(&self) -> Json {
        let mut document = document(self);
        for carrier in CARRIERS {
            let name = carrier.about().section;
            // A configuration that was checked has no unknown keys.
            document[name] = carrier.document(&self.carriers.get(name)).unwrap_or_default();
            for (at, link) in self.link.iter().enumerate() {
                let own = link.carriers.get(name);
                document["link"][at][name] = serde_json::to_value(own).expect("a table is a document");
            }
        }
        document
    }
}
