//! Configuration file of a node, into which settings are merged: everything else in it stays, with its comments and its
//! order.

use longwire_lab::link::LinkProfile;
use longwire_lab::protocols::PROTOCOLS;
use longwire_lab::record::{Configuration, Key, Setting};
use longwire_node::Config;
use longwire_node::config::LinkSettings;
use longwire_settings::error::{Error, did_you_mean};
use longwire_settings::{file, toml_text};
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// Configuration file of a node, and the link that gets settings.
#[derive(Debug)]
pub(crate) struct NodeFile {
    path: PathBuf,
    text: String,
    config: Config,
    /// Index of the `[[link]]`; `None` if the node has none and only accepts connections.
    link: Option<usize>,
}

/// Configuration with the settings of a protocol.
#[derive(Debug)]
pub(crate) struct Merged {
    /// Text of the file.
    pub(crate) text: String,
    pub(crate) remarks: Vec<String>,
}

/// Table in a configuration.
#[derive(Clone, Copy, Debug)]
enum Place {
    Node,
    Link(usize),
    Tnc(usize),
}

impl NodeFile {
    /// Reads a configuration for the link with this name; without a name, for its only link.
    ///
    /// # Errors
    /// Fails if the file is not the configuration of a node, or it is not clear which link is meant.
    pub(crate) fn read(path: &Path, name: Option<&str>) -> Result<NodeFile, Error> {
        let text = file::read_text(path).map_err(|error| {
            Error::new(format!("cannot read {}: {error}", path.display()))
                .hint("give the configuration of a node with --config")
        })?;
        NodeFile::parse(path, text, name)
    }

    /// The same for a text, whose paths are relative to the folder of `path`.
    ///
    /// # Errors
    /// Returns the errors of [`NodeFile::read`].
    pub(crate) fn parse(path: &Path, text: String, name: Option<&str>) -> Result<NodeFile, Error> {
        let config = checked(path, &text)?;
        let link = chosen(path, &config, name)?;
        Ok(NodeFile { path: path.to_owned(), text, config, link })
    }

    /// Checks that a protocol for one of these kinds of links can be configured, before a comparison over this profile.
    ///
    /// # Errors
    /// Fails if the link is of another kind, or the TNC is missing.
    pub(crate) fn check(&self, kinds: &[&str], name: &str, profile: &LinkProfile) -> Result<(), Error> {
        if let Some(link) = self.link() {
            let (own, link) = (link.kind.as_str(), &link.name);
            if !kinds.iter().any(|kind| can_become(own, kind)) {
                let what =
                    format!("link `{link}` is of kind {own}, which `compare` does not rank over `{name}`");
                let hint = "choose another link with --for or another profile with --link";
                return Err(
                    Error::new(what).hint(format!("kinds for this profile: {}; {hint}", kinds.join(", ")))
                );
            }
        }
        if profile.radio.is_some() {
            self.tnc()?;
        }
        Ok(())
    }

    /// Returns the reason for which the link, or a peer that opens one, cannot use a protocol for links of this kind.
    pub(crate) fn obstacle(&self, protocol: &str, kind: &str) -> Option<Error> {
        match self.link() {
            Some(link) => check_kind(link, protocol, kind).err(),
            None if self.config.admits(kind) => None,
            None => {
                let what = format!("the node accepts no links of kind {kind}, which `{protocol}` needs");
                Some(Error::new(what).hint("add an address to `listen` or `listen-udp`"))
            }
        }
    }

    /// Merges the settings of a protocol, and checks the result as a node does.
    ///
    /// # Errors
    /// Fails if the link cannot use the protocol, or a node does not accept the result.
    pub(crate) fn with(&self, protocol: &str, configuration: &Configuration) -> Result<Merged, Error> {
        let Some(kind) = configuration.kind else {
            return Err(Error::new(format!("nodes do not have links for `{protocol}`"))
                .hint("the report shows how to configure it without a node"));
        };
        let document = self.text.parse::<DocumentMut>();
        let mut document =
            document.map_err(|error| Error::new(format!("{}: {error}", self.path.display())))?;
        let (mut unchanged, mut shared): (Vec<String>, Vec<String>) = Default::default();
        if let (Some(link), Some(at)) = (self.link(), self.link) {
            check_kind(link, protocol, kind)?;
            if link.kind != kind {
                set(table(&mut document, Place::Link(at)), "kind", &format!("\"{kind}\""));
            }
        }
        for (key, default) in &configuration.at_default {
            let (place, above, section) = self.places(key)?;
            if remove(table(&mut document, place), section, &key.name) && above.is_none() {
                shared.push(format!("[{}]", key.section));
            }
            let Some(above) = above else { continue };
            let Some(said) = value_in(table(&mut document, above), section, &key.name) else { continue };
            match default {
                Some(default) if toml_text::value_of(&said) == *default => {}
                Some(default) => {
                    set_in(table(&mut document, place), section, &key.name, &default.to_string());
                }
                None => unchanged.push(format!("`{}`", key.name)),
            }
        }
        for Setting { key, value } in configuration.node_settings() {
            let (place, above, section) = self.places(&key)?;
            set_in(table(&mut document, place), section, &key.name, &value.to_string());
            if above.is_none() {
                shared.push(format!("[{}]", key.section));
            }
        }
        shared.sort();
        shared.dedup();
        let text = document.to_string();
        let place = format!("a node does not accept the settings of `{protocol}`");
        checked(&self.path, &text).map_err(|error| error.within(place))?;
        Ok(Merged { text, remarks: self.remarks(protocol, &unchanged, &shared) })
    }

    fn link(&self) -> Option<&LinkSettings> {
        self.link.map(|at| &self.config.link[at])
    }

    /// Index of the TNC of the link; without a link, of the only TNC.
    fn tnc(&self) -> Result<usize, Error> {
        let tncs = &self.config.tnc;
        let found = match self.link() {
            Some(link) => tncs.iter().position(|tnc| tnc.name == link.tnc),
            None if tncs.len() == 1 => Some(0),
            None => None,
        };
        found.ok_or_else(|| {
            let path = self.path.display();
            Error::new(match tncs.len() {
                0 => format!("{path} has no [[tnc]]"),
                count => format!("{path} has {count} TNCs, and no link says which one is meant"),
            })
            .hint("add a [[link]] over a [[tnc]] and name it with --for")
        })
    }

    /// Returns the table that a setting belongs to, and the section there; between them, for a setting of a single link,
    /// the table with the same section for all links.
    fn places<'a>(&self, key: &'a Key) -> Result<(Place, Option<Place>, &'a str), Error> {
        let section = key.section.as_str();
        Ok(match (section.strip_prefix("tnc."), self.link) {
            (Some("ax25"), Some(link)) => (Place::Link(link), Some(Place::Tnc(self.tnc()?)), "ax25"),
            (Some(at_tnc), _) => (Place::Tnc(self.tnc()?), None, at_tnc),
            (None, Some(link)) if is_of_link(section) => (Place::Link(link), Some(Place::Node), section),
            (None, _) => (Place::Node, None, section),
        })
    }

    /// Tells where the settings are, which keys could not be set at the link, and which sections are not only the link's.
    fn remarks(&self, protocol: &str, unchanged: &[String], shared: &[String]) -> Vec<String> {
        let path = self.path.display();
        let Some(link) = self.link() else {
            return vec![format!(
                "{path}: connections that the node accepts have the settings of {protocol}"
            )];
        };
        let mut remarks = vec![format!("{path}: link `{}` has the settings of {protocol}", link.name)];
        if !unchanged.is_empty() {
            remarks.push(format!(
                "link `{}` also has {} from a section of all links; {protocol} was simulated without",
                link.name,
                unchanged.join(", ")
            ));
        }
        if !shared.is_empty() && self.config.link.len() > 1 {
            remarks.push(format!("other links of the node are also affected by {}", shared.join(", ")));
        }
        remarks
    }
}

/// Checks that a link of this kind can be used by a protocol of another.
fn check_kind(link: &LinkSettings, protocol: &str, kind: &str) -> Result<(), Error> {
    let own = link.kind.as_str();
    if can_become(own, kind) {
        return Ok(());
    }
    let what = format!("link `{}` is of kind {own}, but `{protocol}` needs kind {kind}", link.name);
    Err(Error::new(what).hint(match (is_group(own), is_group(kind)) {
        (_, true) => {
            "for a group, set `kind`, its callsign and its `members`, and remove `peer`; the report shows the settings"
        }
        (true, _) => "for a single neighbour, add a [[link]] with its callsign and name it with --for",
        _ => "set `kind` and the address of the neighbour, or choose another link with --for",
    }))
}

/// Reads a configuration as a node does.
fn checked(path: &Path, text: &str) -> Result<Config, Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    Config::parse(text, &path.display().to_string(), folder)
}

/// Returns the index of the link with this name; without a name, of the only one; `None` if there is none.
fn chosen(path: &Path, config: &Config, name: Option<&str>) -> Result<Option<usize>, Error> {
    let names = || config.link.iter().map(|link| link.name.as_str());
    let all = || names().collect::<Vec<&str>>().join(", ");
    match name {
        Some(name) => names().position(|known| known == name).map(Some).ok_or_else(|| {
            let none =
                "this node has no [[link]]; without --for, the connections that it accepts get the settings";
            let some = || format!("links of this node: {}", all());
            let otherwise = if config.link.is_empty() { none.to_owned() } else { some() };
            let hint = did_you_mean(name, names(), otherwise);
            Error::new(format!("{}: no such link: `{name}`", path.display())).hint(hint)
        }),
        None if config.link.len() > 1 => {
            let what = format!("{} has {} links", path.display(), config.link.len());
            Err(Error::new(what).hint(format!("choose one with --for: {}", all())))
        }
        None => Ok((!config.link.is_empty()).then_some(0)),
    }
}

/// Returns true for a section that a `[[link]]` can have of its own: that of its convergence layer. The others are those
/// of the node.
fn is_of_link(section: &str) -> bool {
    let first = section.split('.').next();
    let mut carriers = PROTOCOLS.iter().filter_map(|protocol| protocol.carrier);
    carriers.any(|carrier| Some(carrier.about().section) == first)
}

fn is_group(kind: &str) -> bool {
    let mut carriers = PROTOCOLS.iter().filter_map(|protocol| protocol.carrier);
    carriers.any(|carrier| carrier.about().name == kind && carrier.about().is_group)
}

/// Returns true if a link can change from one kind to the other, because the neighbour has the same place.
fn can_become(own: &str, kind: &str) -> bool {
    let place = |kind: &str| {
        let mut carriers = PROTOCOLS.iter().filter_map(|protocol| protocol.carrier);
        let about = carriers.find(|carrier| carrier.about().name == kind)?.about();
        Some((about.media, about.port))
    };
    own == kind || (place(own) == place(kind) && !is_group(own) && !is_group(kind))
}

/// Returns a table of the document, which a node has read.
fn table(document: &mut DocumentMut, place: Place) -> &mut dyn TableLike {
    let (name, at) = match place {
        Place::Node => return document.as_table_mut(),
        Place::Link(at) => ("link", at),
        Place::Tnc(at) => ("tnc", at),
    };
    let found: Option<&mut dyn TableLike> = match document.get_mut(name) {
        Some(Item::ArrayOfTables(tables)) => tables.get_mut(at).map(|table| table as &mut dyn TableLike),
        Some(Item::Value(Value::Array(values))) => {
            let inline = values.get_mut(at).and_then(Value::as_inline_table_mut);
            inline.map(|table| table as &mut dyn TableLike)
        }
        _ => None,
    };
    found.expect("the node has read this table")
}

/// Sets a key in a section, which is created if necessary.
fn set_in(table: &mut dyn TableLike, section: &str, name: &str, value: &str) {
    let (first, rest) = section.split_once('.').map_or((section, None), |(first, rest)| (first, Some(rest)));
    let item = table.entry(first).or_insert_with(|| {
        let mut table = Table::new();
        // A table that has only other tables needs no header.
        table.set_implicit(rest.is_some());
        Item::Table(table)
    });
    let inner = item.as_table_like_mut().expect("the node has read a table here");
    match rest {
        Some(rest) => set_in(inner, rest, name, value),
        None => set(inner, name, value),
    }
    space(item);
}

/// Sets the blanks in `{ .. }` after a change, unless it has lines of its own.
fn space(item: &mut Item) {
    if let Some(inline) = item.as_inline_table_mut()
        && !inline.to_string().contains('\n')
    {
        inline.fmt();
    }
}

/// Sets a key. A value that is the same stays as it is written, and a comment beside another one stays.
fn set(table: &mut dyn TableLike, name: &str, value: &str) {
    let new: Value = value.parse().expect("a setting is written as TOML");
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) if toml_text::value_of(&old.to_string()) == toml_text::value_of(value) => {}
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(name, Item::Value(new));
        }
    }
}

/// Returns the value of a key in a section, as it is written.
fn value_in(table: &dyn TableLike, section: &str, name: &str) -> Option<String> {
    let inner = section.split('.').try_fold(table, |table, part| table.get(part)?.as_table_like())?;
    Some(inner.get(name)?.as_value()?.to_string())
}

/// Removes a key from a section; returns false if it was not there.
fn remove(table: &mut dyn TableLike, section: &str, name: &str) -> bool {
    let (first, rest) = section.split_once('.').map_or((section, None), |(first, rest)| (first, Some(rest)));
    let Some(item) = table.get_mut(first) else { return false };
    let Some(inner) = item.as_table_like_mut() else { return false };
    let is_removed = match rest {
        Some(rest) => remove(inner, rest, name),
        None => inner.remove(name).is_some(),
    };
    if is_removed {
        space(item);
    }
    is_removed
}

#[cfg(test)]
mod tests;
