//! Sources that all convergence layers share name none of them.
//!
//! A source names one if an identifier in it contains the name; sources of tests count, too. Not counted are the folder of the
//! engine, those of carriers and the table, and neither are comments and texts: those about a convergence layer, such as
//! configurations, have to name it.

#[path = "../../cli/tests/tokens/mod.rs"]
mod tokens;

use std::fs;
use std::path::Path;
use tokens::{Token, tokens};

/// Engines.
const ENGINES: [&str; 5] = ["fecframe", "ltp", "saratoga", "udpcl", "uicl"];
/// Maximum number of other sources that name one of them.
const SOURCES_MAX: usize = 3;

/// Adds all sources of a folder.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), fs::read_to_string(&path).expect("a source")));
        }
    }
}

#[test]
fn few_sources_name_a_convergence_layer() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    let mut all = Vec::new();
    sources(crates, &mut all);
    for name in ENGINES {
        let names = |source: &str| {
            let is_name =
                |token: &Token| matches!(token, Token::Word(word) if word.to_lowercase().contains(name));
            source.to_lowercase().contains(name) && tokens(source).iter().any(|(_, token)| is_name(token))
        };
        let own = [
            format!("proto/src/{name}/"),
            // Carriers are built on one another.
            "towers/src/carriers/".to_owned(),
        ];
        let is_other = |file: &str| !own.iter().any(|own| file.contains(own));
        let naming = all.iter().filter(|(file, source)| is_other(file) && names(source));
        let naming: Vec<&str> = naming.map(|(file, _)| file.as_str()).collect();
        assert!((1..=SOURCES_MAX).contains(&naming.len()), "{name} is named in {naming:#?}");
    }
}
