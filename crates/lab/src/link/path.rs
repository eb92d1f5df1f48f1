//! Paths: a link, or several one after the other with a node between each two of them.

use super::{LinkProfile, table_of};
use crate::error::Error;
use crate::toml_text::{self, check_keys, merge};
use serde::Deserialize;
use std::path::Path;
use toml::{Table, Value};

/// Maximum hops of a link profile.
const HOPS_MAX: usize = 16;

/// One or several links, in the order in which files take them.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPath {
    /// Display name.
    pub title: String,
    /// Names of the nodes: one more than links.
    pub nodes: Vec<String>,
    /// The links.
    pub hops: Vec<LinkProfile>,
}

/// Profile of several hops, as a file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Hops {
    title: String,
    nodes: Vec<String>,
    hop: Vec<Table>,
}

impl LinkPath {
    /// Loads the built-in profile with this name or the profile in this file, as [`LinkProfile::load`] does; a profile
    /// with `[[hop]]` has several links, each with the keys of a link profile, or `profile` and the keys that differ.
    ///
    /// # Errors
    /// Returns the errors of [`LinkProfile::load`], and fails if nodes and hops do not fit.
    pub fn load(name: &str, base: &Path) -> Result<LinkPath, Error> {
        LinkPath::of_table(table_of(name, base)?, name, base)
    }

    /// Reads the table of a profile. `name` is that of its file, or of a built-in profile, for errors and as the place of files
    /// that it names.
    ///
    /// # Errors
    /// Returns the errors of [`LinkPath::load`] for a profile that is there.
    pub fn of_table(table: Table, name: &str, base: &Path) -> Result<LinkPath, Error> {
        let place = format!("link `{name}`");
        if !table.contains_key("hop") {
            let link = LinkProfile::from_table(table, &place)?;
            let nodes = ["tx", "rx"].map(str::to_owned).to_vec();
            return Ok(LinkPath { title: link.title.clone(), nodes, hops: vec![link] });
        }
        check_keys(&table, &["title", "nodes", "hop"], &place)?;
        let Hops { title, nodes, hop } = toml_text::from_table(table, &place)?;
        let wrong = |what: String| Err(Error::new(format!("{place}: {what}")));
        if hop.is_empty() || hop.len() > HOPS_MAX {
            return wrong(format!("`[[hop]]` must be given 1 to {HOPS_MAX} times, not {}", hop.len()));
        }
        if nodes.len() != hop.len() + 1 {
            let (hops, names) = (hop.len(), nodes.len());
            return wrong(format!("`nodes` must name {} nodes for {hops} hops, not {names}", hops + 1));
        }
        // Files that a profile names are relative to it.
        let file = name.ends_with(".toml") || name.contains('/');
        let folder = Path::new(name).parent().filter(|_| file).map(|folder| base.join(folder));
        let base = folder.as_deref().unwrap_or(base);
        let hops = hop.iter().map(|keys| LinkProfile::resolve_at(keys, base, &format!("{place}, [[hop]]")));
        let hops = hops.collect::<Result<Vec<_>, Error>>()?;
        if hops.iter().any(LinkProfile::is_shared) && hops.len() > 1 {
            return wrong(
                "hops with `[radio]` or `[ethernet]` are not supported in a path of several".into(),
            );
        }
        Ok(LinkPath { title, nodes, hops })
    }

    /// Loads a profile and changes keys of its link: each change is `KEY=VALUE`, such as `ber=0` or `radio.tx-delay-ms=100`.
    ///
    /// # Errors
    /// Returns the errors of [`LinkPath::load`], and fails if a key or a value is invalid, or the profile has several hops.
    pub fn load_with(name: &str, changes: &[String], base: &Path) -> Result<LinkPath, Error> {
        if changes.is_empty() {
            return LinkPath::load(name, base);
        }
        let mut table = table_of(name, base)?;
        for change in changes {
            merge(&mut table, &changed_key(change)?);
        }
        let link = LinkProfile::from_table(table, &format!("link `{name}`"))?;
        let nodes = ["tx", "rx"].map(str::to_owned).to_vec();
        Ok(LinkPath { title: link.title.clone(), nodes, hops: vec![link] })
    }

    /// The link towards the destination.
    pub fn last(&self) -> &LinkProfile {
        self.hops.last().expect("a path has a hop")
    }

    /// Returns true if the nodes share a radio channel.
    pub fn is_radio(&self) -> bool {
        self.last().radio.is_some()
    }

    /// Returns true if any link has outages.
    pub fn has_outages(&self) -> bool {
        self.hops.iter().any(|link| !link.outage.is_empty() || !link.pass.is_empty())
    }
}

/// Reads `KEY=VALUE`; a word needs no quotes.
fn changed_key(change: &str) -> Result<Table, Error> {
    let quoted = change.split_once('=').map(|(key, word)| format!("{key} = {}", Value::from(word.trim())));
    let read = change.parse::<Table>().ok().or_else(|| quoted?.parse::<Table>().ok());
    read.filter(|table| !table.is_empty()).ok_or_else(|| {
        Error::new(format!("`{change}` does not change a key of a link"))
            .hint("write KEY=VALUE, such as ber=0 or delay-ms=2000")
    })
}

/// Error for a profile of several hops where a single link is needed.
pub(super) fn single(table: &Table, place: &str) -> Result<(), Error> {
    match table.get("hop") {
        Some(Value::Array(_)) => {
            Err(Error::new(format!("{place} has several hops, but a single link is needed"))
                .hint("give each hop its own [[channel]]"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_sim::Fcs;

    fn written(text: &str) -> Result<LinkPath, Error> {
        let folder =
            std::env::temp_dir().join(format!("longwire-path-{}-{:x}", std::process::id(), hash(text)));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("link.toml");
        std::fs::write(&file, text).expect("a file");
        let read = LinkPath::load(&file.display().to_string(), Path::new("."));
        std::fs::remove_dir_all(&folder).expect("it is ours");
        read
    }

    fn hash(text: &str) -> u64 {
        text.bytes().fold(7, |hash, byte| hash * 31 % 0xffff_fffb + u64::from(byte))
    }

    #[test]
    fn a_single_link_is_a_path_of_one_hop() {
        let path = LinkPath::load("cislunar", Path::new(".")).expect("it is shipped");
        assert_eq!((path.nodes.len(), path.hops.len(), path.has_outages()), (2, 1, false));
        assert_eq!(path.title, path.last().title);
    }

    #[test]
    fn hops_have_keys_of_links_and_their_own_outages() {
        let path = written(
            "title = 't'\nnodes = ['a', 'b', 'c']\n[[hop]]\nprofile = 'cislunar'\nber = 0\n[[hop]]\nrate-bps = 9600\n\
             outage = [{ after-s = 5, length-s = 10, announced = true }]",
        );
        let path = path.expect("it is valid");
        let [first, second] = &path.hops[..] else { panic!("two hops") };
        assert_eq!((first.rate_bps, first.ber, first.delay_ms), (115_200, 0.0, 1280.0));
        assert_eq!((second.rate_bps, second.outage.len()), (9600, 1));
        assert!(path.has_outages() && !path.is_radio());
    }

    #[test]
    fn keys_of_a_shipped_link_can_be_changed() {
        let changed = |changes: &[&str], name: &str| {
            let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
            LinkPath::load_with(name, &changes, Path::new("."))
        };
        let path = changed(&["ber=0", "delay-ms = 5", "fcs=none"], "cislunar").expect("it is valid");
        let shipped = LinkPath::load("cislunar", Path::new("."));
        let link = path.last();
        assert_eq!((link.ber, link.delay_ms, link.rate_bps, link.fcs), (0.0, 5.0, 115_200, Fcs::None));
        assert_eq!(changed(&[], "cislunar"), shipped);
        assert!(changed(&["radio.tx-delay-ms=5"], "ax25-1200").expect("it is valid").is_radio());
        for (change, name) in [
            ("bre=0", "cislunar"),
            ("ber=7", "cislunar"),
            ("ber", "cislunar"),
            ("", "cislunar"),
            ("ber=0\nfcs=1", "cislunar"),
            ("ber=0", "mars-relay"),
        ] {
            assert!(changed(&[change], name).is_err(), "{change} for {name}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (text, what) in [
            ("nodes = ['a', 'b']\nhop = []", "must be given 1 to 16 times"),
            ("nodes = ['a', 'b']\n[[hop]]\n[[hop]]", "must name 3 nodes for 2 hops, not 2"),
            ("nodes = ['a', 'b']\nber = 0\n[[hop]]", "unknown"),
            ("nodes = ['a', 'b']\n[[hop]]\nbre = 0", "[[hop]]"),
            ("nodes = ['a', 'b', 'c']\n[[hop]]\n[[hop]]\nmtu-bytes = 256\n[hop.radio]", "`[radio]`"),
            ("nodes = ['a', 'b', 'c']\n[[hop]]\n[hop.ethernet]\n[[hop]]", "`[ethernet]`"),
            ("nodes = ['a', 'b']\n[[hop]]\nprofile = 'nowhere'", "no such link profile"),
        ] {
            let error = written(text).expect_err(text).to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
