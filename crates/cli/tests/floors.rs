//! The order of the rooms: modules import only rooms below their own. The order stands in ARCHITECTURE.md.

mod tokens;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tokens::{Token, tokens};

/// The crates whose rooms ARCHITECTURE.md names.
const CRATES: [&str; 3] = ["crates/lab/src", "crates/node/src", "crates/proto/src"];

/// Removes the items that only tests have.
fn without_tests(tokens: Vec<(usize, Token)>) -> Vec<(usize, Token)> {
    let marks = |i: usize, wanted: &str| {
        let text: String = tokens[i..].iter().take(7).map(|(_, token)| word(token)).collect();
        text.starts_with(wanted)
    };
    let (mut kept, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        if !marks(i, "#[cfg(test)]") {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        // An item ends at its semicolon or at its closing brace, `use` only at its semicolon, and a field at its comma.
        i += 7;
        let is_field = tokens.get(i + 1).is_some_and(|(_, token)| word(token) == ":");
        let (mut depth, mut is_use) = (0, false);
        for (_, token) in &tokens[i..] {
            i += 1;
            let word = word(token);
            match word.as_str() {
                "use" if depth == 0 => is_use = true,
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                _ => {}
            }
            let ends = word == ";" || (word == "}" && !is_use) || (word == "," && is_field);
            if depth == 0 && ends {
                break;
            }
        }
    }
    kept
}

fn word(token: &Token) -> String {
    match token {
        Token::Word(word) => word.clone(),
        Token::Mark(mark) => mark.to_string(),
    }
}

/// Tokens of a source as texts.
struct Source {
    module: Vec<String>,
    tokens: Vec<(usize, String)>,
}

impl Source {
    fn new(module: &[String], text: &str) -> Self {
        let tokens = without_tests(tokens(text)).into_iter().map(|(line, token)| (line, word(&token)));
        Source { module: module.to_vec(), tokens: tokens.collect() }
    }

    fn at(&self, i: usize) -> &str {
        self.tokens.get(i).map_or("", |(_, text)| text)
    }

    fn is_path(&self, i: usize) -> bool {
        (self.at(i), self.at(i + 1)) == (":", ":")
    }

    /// Modules that the source declares in files of their own.
    fn declared(&self) -> Vec<String> {
        let all = 0..self.tokens.len();
        let found = all.filter(|i| self.at(*i) == "mod" && self.at(i + 2) == ";");
        found.map(|i| self.at(i + 1).to_owned()).collect()
    }

    /// Names that the source passes on from other crates.
    fn passed_on(&self) -> Vec<String> {
        let declared = self.declared();
        let mut found = Vec::new();
        for i in (0..self.tokens.len()).filter(|i| self.at(*i) == "use") {
            if !declared.iter().any(|module| module == self.at(i + 1)) {
                self.tree(i + 1, Vec::new(), &mut found);
            }
        }
        found.into_iter().filter_map(|(_, path)| path.last().cloned()).collect()
    }

    /// Paths within the crate that the source names, from the root, with their lines.
    fn references(&self) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        // Modules written inside the file, with the depth of their braces.
        let (mut inside, mut depth) = (Vec::new(), 0);
        for i in 0..self.tokens.len() {
            match self.at(i) {
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inside.retain(|(at, _)| *at < depth);
                }
                "mod" if self.at(i + 2) == "{" => inside.push((depth, self.at(i + 1).to_owned())),
                // An exported macro is at the root, whatever room it is written in.
                "crate" if self.is_path(i + 1) && self.at(i + 4) == "!" => {}
                "crate" if self.is_path(i + 1) && self.at(i.wrapping_sub(1)) != "in" => {
                    self.tree(i + 3, Vec::new(), &mut found);
                }
                "super" if self.is_path(i + 1) && !(i >= 2 && self.is_path(i - 2)) => {
                    let mut from = self.module.clone();
                    from.extend(inside.iter().map(|(_, name)| name.clone()));
                    let mut next = i;
                    while self.at(next) == "super" {
                        from.pop();
                        next += 3;
                    }
                    self.tree(next, from, &mut found);
                }
                _ => {}
            }
        }
        found
    }

    /// Follows a path or a tree of `use`; returns the place behind it.
    fn tree(&self, i: usize, mut path: Vec<String>, found: &mut Vec<(usize, Vec<String>)>) -> usize {
        let mut i = i;
        if self.at(i) != "{" {
            if self.at(i).starts_with(|c: char| c.is_alphabetic() || c == '_') && self.at(i) != "self" {
                path.push(self.at(i).to_owned());
            }
            if self.is_path(i + 1) && self.at(i + 3) != "<" {
                return self.tree(i + 3, path, found);
            }
            found.push((self.tokens[i.min(self.tokens.len() - 1)].0, path));
            return i + 1;
        }
        while !matches!(self.at(i), "}" | "") {
            i = self.tree(i + 1, path.clone(), found);
            while !matches!(self.at(i), "," | "}" | "") {
                i += 1;
            }
            if self.at(i) == "," && self.at(i + 1) == "}" {
                i += 1;
            }
        }
        i + 1
    }
}

/// Rooms of a crate, from the lowest to the highest; names on one line are equally high.
struct Rooms(Vec<Vec<String>>);

impl Rooms {
    /// Reads the marked table of a document. The first cell of a row has the names.
    fn read(document: &str, sources: &str) -> Rooms {
        let begin = format!("<!-- rooms: {sources} -->");
        let (_, marked) =
            document.split_once(&begin).unwrap_or_else(|| panic!("no list of the rooms of {sources}"));
        let (marked, _) = marked.split_once("<!-- end of rooms -->").expect("the list has an end");
        let rows = marked.lines().filter_map(|line| line.strip_prefix("| `"));
        let cells = rows.map(|row| row.split('|').next().unwrap_or_default());
        Rooms(
            cells
                .map(|cell| cell.split(',').map(|name| name.trim_matches([' ', '`']).to_owned()).collect())
                .collect(),
        )
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }

    /// Returns the room of a module or of an item, and its height.
    fn of(&self, path: &[String]) -> Option<(usize, &str)> {
        let rooms = (1..=path.len()).rev().map(|length| path[..length].join("/"));
        rooms.into_iter().find_map(|wanted| {
            let found = self
                .0
                .iter()
                .enumerate()
                .flat_map(|(height, row)| row.iter().map(move |name| (height, name)));
            found.into_iter().find(|(_, name)| **name == wanted).map(|(height, name)| (height, name.as_str()))
        })
    }

    /// True for a folder that is divided into rooms.
    fn is_divided(&self, path: &[String]) -> bool {
        let folder = format!("{}/", path.join("/"));
        path.is_empty() || self.names().any(|name| name.starts_with(&folder))
    }
}

/// Checks one source; each finding is a sentence. `passed_on` are the names of other crates that the root passes on.
fn check(file: &str, source: &Source, rooms: &Rooms, passed_on: &[String], findings: &mut Vec<String>) {
    let Some((height, room)) = rooms.of(&source.module) else {
        if !rooms.is_divided(&source.module) {
            findings.push(format!("{file}: the module is in no room of ARCHITECTURE.md"));
        }
        return;
    };
    for (line, path) in source.references() {
        let said = format!("{file}:{line}: `{room}` imports {}", path.join("::"));
        match rooms.of(&path) {
            Some((_, other)) if other == room => {}
            Some((other_height, _)) if other_height < height => {}
            Some((_, other)) => {
                findings.push(format!("{said}, but `{other}` is no lower room"));
            }
            // Its own module, or an item of it.
            None if path.starts_with(&source.module) => {}
            None if path.first().is_some_and(|name| passed_on.contains(name)) => {}
            None => {
                findings.push(format!("{said}, which is in no room: the room itself has to be named"));
            }
        }
    }
}

/// Reads a module and all below it.
fn read(folder: &Path, module: &[String], sources: &mut Vec<(String, Source)>) {
    let path = module.iter().fold(folder.to_path_buf(), |path, name| path.join(name));
    let files = match module.is_empty() {
        true => vec![folder.join("lib.rs")],
        false => vec![path.with_extension("rs"), path.join("mod.rs")],
    };
    let file = files.iter().find(|file| file.exists()).unwrap_or_else(|| panic!("no file for {module:?}"));
    let source = Source::new(module, &fs::read_to_string(file).expect("a source"));
    let below: Vec<Vec<String>> =
        source.declared().into_iter().map(|name| [module, &[name]].concat()).collect();
    let name = file.strip_prefix(folder).expect("it is below").display().to_string();
    sources.push((name, source));
    below.iter().for_each(|module| read(folder, module, sources));
}

/// Checks all sources of a crate.
fn crate_findings(sources: &[(String, Source)], rooms: &Rooms) -> Vec<String> {
    let mut findings = Vec::new();
    let root = sources.iter().find(|(_, source)| source.module.is_empty());
    let passed_on = root.map_or(Vec::new(), |(_, root)| root.passed_on());
    for (file, source) in sources {
        check(file, source, rooms, &passed_on, &mut findings);
    }
    for room in rooms.names() {
        let is_room = |source: &Source| source.module.join("/") == room;
        if !sources.iter().any(|(_, source)| is_room(source)) {
            findings.push(format!("ARCHITECTURE.md: `{room}` is no module"));
        }
    }
    findings
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn architecture() -> String {
    fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the order of the rooms")
}

fn all_sources(folder: &str) -> Vec<(String, Source)> {
    let mut sources = Vec::new();
    read(&repository().join(folder), &[], &mut sources);
    sources
}

#[test]
fn imports_run_downward() {
    let mut wrong = String::new();
    for folder in CRATES {
        for finding in crate_findings(&all_sources(folder), &Rooms::read(&architecture(), folder)) {
            let _ = writeln!(wrong, "{folder}/{finding}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn an_upward_import_would_be_noticed() {
    let table = "<!-- rooms: here -->\n| rooms | contents |\n|---|---|\n| `low` | - |\n| `middle`, `beside` | - |\n\
                 | `top/first` | - |\n| `top/second` | - |\n<!-- end of rooms -->";
    let rooms = Rooms::read(table, "here");
    let found = |module: &str, text: &str| {
        let module: Vec<String> = module.split('/').map(str::to_owned).collect();
        let mut findings = Vec::new();
        check("file.rs", &Source::new(&module, text), &rooms, &["error".to_owned()], &mut findings);
        findings
    };
    let noticed = [
        ("low", "use crate::middle;", 1),
        ("low", "\nuse crate::middle::{self, Thing};", 2),
        ("low", "use crate::{\n    low::Fine,\n    top::{first::A, second as other},\n};", 3),
        ("low", "fn f() {\n    crate::middle::run::<u8>()\n}", 2),
        ("low/inner", "use super::super::middle::Thing;", 1),
        ("low/inner", "mod own {\n    fn f(_: super::super::super::beside::Thing) {}\n}", 2),
        ("middle", "/* a /* long */\n comment */ pub(crate) use crate::beside::*;", 2),
        ("top/first", "use super::second::Thing;", 1),
        ("top/first", "const C: char = '\"';\nuse crate::top::second;\nconst D: &str = \"\";", 2),
        ("low", "macro_rules! m { () => { $crate::middle::run() } }", 1),
        ("low", "struct S {\n    #[cfg(test)]\n    one: u8,\n    two: crate::middle::A,\n}", 4),
        ("middle", "#[cfg(test)]\nuse crate::{beside::A};\n#[derive(Debug)]\nstruct S(crate::beside::A);", 4),
    ];
    for (module, text, line) in noticed {
        let words = found(module, text);
        assert!(!words.is_empty(), "{text}");
        assert!(words.iter().all(|words| words.starts_with("file.rs:")), "{words:?}");
        assert!(words[0].starts_with(&format!("file.rs:{line}: ")), "{text}: {words:?}");
    }
    let fine = [
        ("middle", "use crate::low::{A, inner::B};\nuse super::low;\npub(in crate::middle) struct S;"),
        ("low", "// use crate::middle;\n/// [`crate::middle`]\n/* crate::middle::A */ struct S;"),
        ("low", "const A: &str = \"crate::middle::A\"; const B: &str = r#\"\" crate::middle::A\"#;"),
        (
            "low",
            "#[cfg(test)]\nmod tests {\n    use crate::middle::{A, B};\n    fn f() { crate::top::second::g() }\n}",
        ),
        ("low", "#[cfg(test)]\nuse crate::middle::{A, B};\nfn f<'a>(_: &'a u8) {}"),
        ("low/inner", "use super::Thing;\nuse self::deep::Other;\nuse crate::low::deep::Other;"),
        ("top/second", "use super::first::Thing;\nuse crate::middle::Thing;"),
        ("top", "pub use second::Thing;"),
        ("low", "use crate::error::{Error, nearest};"),
        ("low", "macro_rules! m { () => { $crate::other!() } }"),
        (
            "low",
            "struct S {\n    #[cfg(test)]\n    one: Option<crate::middle::A>,\n    two: crate::low::B,\n}",
        ),
    ];
    for (module, text) in fine {
        assert_eq!(found(module, text), [""; 0], "{text}");
    }
    assert!(found("attic", "")[0].contains("in no room"));
    assert!(
        found("low", "use crate::Thing;")[0].contains("in no room"),
        "a name that the root only passes on"
    );
    assert!(found("top/first", "use super::Thing;")[0].contains("in no room"), "and one of a divided folder");
    let root = Source::new(&[], "mod low;\npub use low::Thing;\npub use other_crate::{error, deep::toml};");
    assert_eq!(root.passed_on(), ["error", "toml"]);
    let nowhere = crate_findings(&[], &rooms);
    assert!(nowhere[0].contains("`low` is no module"), "{nowhere:?}");
    // Upside down, the true sources are full of them.
    let mut rooms = Rooms::read(&architecture(), "crates/node/src");
    rooms.0.reverse();
    let findings = crate_findings(&all_sources("crates/node/src"), &rooms);
    assert!(findings.len() > 100, "{}", findings.len());
}

/// Modules that have methods of the main task.
fn modules_with_methods_of_the_task(sources: &[(String, Source)]) -> BTreeSet<String> {
    let has_methods = |source: &Source| {
        (0..source.tokens.len())
            .any(|i| (source.at(i), source.at(i + 1), source.at(i + 2)) == ("impl", "Task", "{"))
    };
    let modules = sources.iter().filter(|(_, source)| has_methods(source));
    modules.filter_map(|(_, source)| source.module.first().cloned()).collect()
}

#[test]
fn the_main_task_has_all_its_methods_in_its_own_room() {
    let modules = modules_with_methods_of_the_task(&all_sources("crates/node/src"));
    assert_eq!(modules, BTreeSet::from(["task".to_owned()]));
    let elsewhere =
        Source::new(&["pumps".to_owned()], "// impl Task {}\nuse crate::task::Task;\nimpl Task {\n}");
    let modules = modules_with_methods_of_the_task(&[("file.rs".to_owned(), elsewhere)]);
    assert_eq!(modules, BTreeSet::from(["pumps".to_owned()]));
}

#[test]
fn unsafe_code_is_in_one_file() {
    let mut files = Vec::new();
    for folder in CRATES {
        for (file, source) in all_sources(folder) {
            if source.tokens.iter().any(|(_, token)| token == "unsafe") {
                files.push(format!("{folder}/{file}"));
            }
        }
    }
    assert_eq!(files, ["crates/proto/src/fec/gf256/kernels.rs"]);
}
