//! Verdicts of the three implementations on the same bundles.

use longwire_interop_codecs::case::{cases, sound};
use longwire_interop_codecs::damage::damage;
use longwire_interop_codecs::difference::{Comparison, page, unseen};
use longwire_interop_codecs::tree::Tree;
use longwire_interop_codecs::verdict::ours;
use longwire_proto::bp::generate::Generator;
use longwire_proto::rng::Rng;

fn generator(seed: u64, common: bool) -> Generator {
    Generator { common, ..Generator::new(Rng::new(seed)) }
}

/// Tests each rule of RFC 9171 with a separate bundle: our verdict follows the clause.
#[test]
fn we_say_what_the_clauses_say() {
    for case in cases() {
        let mut tree = sound();
        (case.edit)(&mut tree);
        let verdict = ours(&tree.to_bytes());
        assert_eq!(verdict.is_ok(), case.legal, "{} ({}): {verdict:?}", case.name, case.clause);
    }
}

/// Every difference between the verdicts is in the table, and every row of the table occurs.
#[test]
fn every_difference_is_in_the_table() {
    let mut comparison = Comparison::default();
    for case in cases() {
        let mut tree = sound();
        (case.edit)(&mut tree);
        comparison.compare(case.name, &tree.to_bytes());
    }
    for seed in 0..SEEDS {
        let mut generator = generator(seed, seed % 2 == 0);
        let bytes = generator.bundle().to_bytes();
        comparison.compare(&format!("seed {seed}, undamaged"), &bytes);
        let mut tree = Tree::read(&bytes);
        for _ in 0..=generator.rng.below(2) {
            damage(&mut tree, &mut generator.rng);
        }
        comparison.compare(&format!("seed {seed}"), &tree.to_bytes());
    }
    println!("{} bundles, {} accepted by us", comparison.bundles, comparison.accepted);
    let unknown = comparison.unknown.values().map(|(times, example)| format!("{times} times: {example}"));
    let unknown: Vec<String> = unknown.collect();
    assert!(unknown.is_empty(), "{} differences without a row:\n{}", unknown.len(), unknown.join("\n"));
    assert_eq!(unseen(&comparison.seen), [""; 0], "rows without a difference");
    assert!(comparison.accepted > SEEDS, "the undamaged ones at least");
}

/// The page in the documentation is the table.
#[test]
fn the_page_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/codec-differences.md");
    if std::env::var_os("LONGWIRE_WRITE").is_some() {
        std::fs::write(path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(path).expect("the page is there");
    assert!(written == page(), "docs/codec-differences.md is outdated: run with LONGWIRE_WRITE=1");
}

const SEEDS: u64 = 20_000;
