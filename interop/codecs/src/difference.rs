//! The classes of bundle of which a partner thinks otherwise than we do, each with the clause that decides.

use crate::verdict::{PARTNERS, Partner, ours, reading, theirs};
use longwire_proto::bp::Bundle;
use std::collections::{BTreeMap, BTreeSet};

mod table;

pub use table::TABLE;

/// A class of difference.
#[derive(Debug)]
pub struct Difference {
    /// Who thinks otherwise.
    pub partner: Partner,
    /// What tells the class.
    pub class: Class,
    /// The clause that decides.
    pub clause: &'static str,
    /// What it says, and what the partner does.
    pub why: &'static str,
}

/// What tells a class.
#[derive(Debug)]
pub enum Class {
    /// We refuse with one of these errors; the partner accepts.
    TheyAccept(&'static [&'static str]),
    /// The partner refuses in words that have this in them; we accept a bundle of which that is true.
    TheyRefuse(&'static str, fn(&Bundle) -> bool),
    /// Both accept, and one of these fields reads otherwise in a bundle of which that is true.
    TheyRead(&'static [&'static str], fn(&Bundle) -> bool),
}

/// A difference as it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// We refuse with this error, the partner accepts.
    TheyAccept(String),
    /// The partner refuses with these words.
    TheyRefuse(String, Bundle),
    /// The partner reads this field otherwise.
    TheyRead(&'static str, Bundle),
}

/// Every difference over these bytes, by partner.
pub fn differences(bytes: &[u8]) -> Vec<(Partner, Met)> {
    let mut found = Vec::new();
    let we = ours(bytes);
    for partner in PARTNERS {
        match (&we, theirs(partner, bytes)) {
            (Err(_), Err(_)) => {}
            (Err(error), Ok(_)) => found.push((partner, Met::TheyAccept(error.clone()))),
            (Ok(bundle), Err(words)) => {
                // Each of several reasons is a difference of its own.
                let words: BTreeSet<&str> = words.split("; ").collect();
                for words in words {
                    found.push((partner, Met::TheyRefuse(words.to_string(), bundle.clone())));
                }
            }
            (Ok(bundle), Ok(their_reading)) => {
                for field in reading(bundle).differences(&their_reading) {
                    found.push((partner, Met::TheyRead(field, bundle.clone())));
                }
            }
        }
    }
    found
}

/// A line of the table, and which of its words.
pub type Place = (usize, usize);

/// Where in the table a difference belongs.
pub fn place_of(partner: Partner, met: &Met) -> Option<Place> {
    let lines = TABLE.iter().enumerate().filter(|(_, line)| line.partner == partner);
    lines.into_iter().find_map(|(index, line)| Some((index, line.class.position(met)?)))
}

impl Class {
    /// Which of the class's words a difference shows.
    fn position(&self, met: &Met) -> Option<usize> {
        match (self, met) {
            (Class::TheyAccept(errors), Met::TheyAccept(found)) => {
                errors.iter().position(|error| error == found)
            }
            (Class::TheyRefuse(words, when), Met::TheyRefuse(found, bundle)) => {
                (found.contains(words) && when(bundle)).then_some(0)
            }
            (Class::TheyRead(fields, when), Met::TheyRead(found, bundle)) => {
                fields.iter().position(|field| field == found && when(bundle))
            }
            _ => None,
        }
    }

    /// All the words.
    pub fn words(&self) -> &[&'static str] {
        match self {
            Class::TheyAccept(words) | Class::TheyRead(words, _) => words,
            Class::TheyRefuse(words, _) => core::slice::from_ref(words),
        }
    }
}

/// All places of the table that were not seen.
pub fn unseen(seen: &BTreeSet<Place>) -> Vec<&'static str> {
    let places = TABLE.iter().enumerate().flat_map(|(line, difference)| {
        difference.class.words().iter().enumerate().map(move |(word, words)| ((line, word), *words))
    });
    places.filter(|(place, _)| !seen.contains(place)).map(|(_, words)| words).collect()
}

/// Which lines of the table were seen, and what belongs to none of them.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Bundles compared.
    pub bundles: u64,
    /// Of them, those that we accept.
    pub accepted: u64,
    /// What of the table was seen.
    pub seen: BTreeSet<Place>,
    /// What is in no line, by its words without their numbers: how often, and the first bundle that shows it.
    pub unknown: BTreeMap<String, (u64, String)>,
}

impl Comparison {
    /// Compares the three verdicts on these bytes.
    pub fn compare(&mut self, origin: &str, bytes: &[u8]) {
        self.bundles += 1;
        self.accepted += u64::from(ours(bytes).is_ok());
        for (partner, met) in differences(bytes) {
            match place_of(partner, &met) {
                Some(place) => drop(self.seen.insert(place)),
                None => {
                    let words = describe(partner, &met);
                    let entry = self
                        .unknown
                        .entry(words.replace(|c: char| c.is_ascii_digit(), ""))
                        .or_insert((0, format!("{words}; {origin}: {}", hex(bytes))));
                    entry.0 += 1;
                }
            }
        }
    }
}

fn describe(partner: Partner, met: &Met) -> String {
    match met {
        Met::TheyAccept(error) => format!("{partner} accepts; we: {error}"),
        Met::TheyRefuse(words, _) => format!("{partner} refuses: {words}"),
        Met::TheyRead(field, _) => format!("{partner} reads another {field}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The table as a page.
pub fn page() -> String {
    let mut page = PAGE_HEAD.to_string();
    for difference in TABLE {
        let kind = match difference.class {
            Class::TheyAccept(_) => "accepts, we refuse",
            Class::TheyRefuse(..) => "refuses, we accept",
            Class::TheyRead(..) => "reads otherwise",
        };
        let words: Vec<String> = difference.class.words().iter().map(|words| format!("`{words}`")).collect();
        let Difference { partner, clause, why, .. } = difference;
        page.push_str(&format!("| {partner} | {kind} | {clause} | {why} | {} |\n", words.join("<br>")));
    }
    page
}

const PAGE_HEAD: &str = "\
# Where bundle codecs disagree

The codec of this project beside the crates `bp7` 0.12 and `hardy-bpv7` 0.6, on one bundle for each rule of RFC 9171 and on
random bundles, sound and damaged, with right checksums. What all three accept they read the same; what everybody should
understand all three accept. Every class of bundle of which they think otherwise is a line here, with the clause that decides.
The tests fail on a difference that has no line and on a line that nothing shows. Written by
`LONGWIRE_WRITE=1 cargo test --manifest-path interop/Cargo.toml -p longwire-interop-codecs`.

| who | what | clause | why | words |
|---|---|---|---|---|
";
