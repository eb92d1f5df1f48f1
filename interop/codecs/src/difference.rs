//! Classes of bundle on which a partner and this codec differ, each with the deciding clause.

use crate::verdict::{PARTNERS, Partner, ours, reading, theirs};
use longwire_proto::bp::Bundle;
use std::collections::{BTreeMap, BTreeSet};

mod table;

pub use table::TABLE;

/// Class of difference, a row of the table.
#[derive(Debug)]
pub struct Difference {
    /// Codec that differs.
    pub partner: Partner,
    /// Criterion of the class.
    pub class: Class,
    /// Deciding clause.
    pub clause: &'static str,
    /// Explanation: content of the clause, and behaviour of the partner.
    pub why: &'static str,
}

/// Criterion of a class.
#[derive(Debug)]
pub enum Class {
    /// This codec refuses with one of these errors; the partner accepts.
    TheyAccept(&'static [&'static str]),
    /// The partner refuses with a message that contains this text; this codec accepts, and the condition holds for the bundle.
    TheyRefuse(&'static str, fn(&Bundle) -> bool),
    /// Both accept, but one of these fields is decoded differently in a bundle for which the condition holds.
    TheyRead(&'static [&'static str], fn(&Bundle) -> bool),
}

/// Difference found on a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Met {
    /// This codec refuses with this error; the partner accepts.
    TheyAccept(String),
    /// The partner refuses with this message; this codec accepts this bundle.
    TheyRefuse(String, Bundle),
    /// The partner decodes this field of the bundle differently.
    TheyRead(&'static str, Bundle),
}

/// Returns all differences on these bytes, by partner.
pub fn differences(bytes: &[u8]) -> Vec<(Partner, Met)> {
    let mut found = Vec::new();
    let we = ours(bytes);
    for partner in PARTNERS {
        match (&we, theirs(partner, bytes)) {
            (Err(_), Err(_)) => {}
            (Err(error), Ok(_)) => found.push((partner, Met::TheyAccept(error.clone()))),
            (Ok(bundle), Err(words)) => {
                // Each of several reasons is a separate difference.
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

/// Index of a row of the table, and of one of its messages.
pub type Place = (usize, usize);

/// Returns the place of a difference in the table.
pub fn place_of(partner: Partner, met: &Met) -> Option<Place> {
    let lines = TABLE.iter().enumerate().filter(|(_, line)| line.partner == partner);
    lines.into_iter().find_map(|(index, line)| Some((index, line.class.position(met)?)))
}

impl Class {
    /// Returns the index of the message of this class that matches a difference.
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

    /// Messages, or fields, of the class.
    pub fn words(&self) -> &[&'static str] {
        match self {
            Class::TheyAccept(words) | Class::TheyRead(words, _) => words,
            Class::TheyRefuse(words, _) => core::slice::from_ref(words),
        }
    }
}

/// Returns the messages of all places of the table that were not seen.
pub fn unseen(seen: &BTreeSet<Place>) -> Vec<&'static str> {
    let places = TABLE.iter().enumerate().flat_map(|(line, difference)| {
        difference.class.words().iter().enumerate().map(move |(word, words)| ((line, word), *words))
    });
    places.filter(|(place, _)| !seen.contains(place)).map(|(_, words)| words).collect()
}

/// Places of the table that were seen, and differences that belong to none.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Bundles compared.
    pub bundles: u64,
    /// Bundles that this codec accepts.
    pub accepted: u64,
    /// Places of the table that were seen.
    pub seen: BTreeSet<Place>,
    /// Differences without a row, by their message without digits: count, and the first bundle that shows each.
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
        Met::TheyRead(field, _) => format!("{partner} decodes {field} differently"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the table as a page.
pub fn page() -> String {
    let mut page = PAGE_HEAD.to_string();
    for difference in TABLE {
        let kind = match difference.class {
            Class::TheyAccept(_) => "accepts, we refuse",
            Class::TheyRefuse(..) => "refuses, we accept",
            Class::TheyRead(..) => "decodes differently",
        };
        let words: Vec<String> = difference.class.words().iter().map(|words| format!("`{words}`")).collect();
        let Difference { partner, clause, why, .. } = difference;
        page.push_str(&format!("| {partner} | {kind} | {clause} | {why} | {} |\n", words.join("<br>")));
    }
    page
}

const PAGE_HEAD: &str = "\
# Codec differences

Comparison of this codec with the crates `bp7` 0.12 and `hardy-bpv7` 0.6 on one bundle for each rule of RFC 9171 and on random
bundles, valid and damaged, with correct CRCs. Bundles that all three accept are decoded identically, and all three accept every
bundle of commonly supported features. Each class of bundle with a different verdict has a row with the deciding clause. The
tests fail for a difference without a row and for a row without a difference. Written by
`LONGWIRE_WRITE=1 cargo test --manifest-path interop/Cargo.toml -p longwire-interop-codecs`.

| codec | difference | clause | explanation | message |
|---|---|---|---|---|
";
