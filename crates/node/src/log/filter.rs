//! Selection of messages by the environment variable `LONGWIRE_LOG`.
//!
//! ```text
//! LONGWIRE_LOG=warn              lowest level of all targets
//! LONGWIRE_LOG=warn,store=info   the same, except for one target
//! ```

use longwire_settings::error::{Error, did_you_mean};
use std::collections::BTreeMap;
use tracing_subscriber::filter::{LevelFilter, Targets};

const VARIABLE: &str = "LONGWIRE_LOG";
/// Targets of all messages, in the order of docs/log.md. None begins with another one, since `Targets` compares beginnings.
const TARGETS: [&str; 10] =
    ["node", "configuration", "security", "store", "peers", "discovery", "udp", "tnc", "mail", "folders"];
const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];
/// Lowest level of targets for which the variable gives none.
const DEFAULT: LevelFilter = LevelFilter::INFO;

/// The filter that the environment asks for.
///
/// # Errors
/// Fails if the value of the variable is invalid.
pub(super) fn from_environment() -> Result<Targets, Error> {
    parse(&std::env::var_os(VARIABLE).unwrap_or_default().to_string_lossy())
}

/// Parses the value of the variable. Messages of other crates are never selected.
///
/// # Errors
/// Fails if a level or a target is unknown.
pub(super) fn parse(text: &str) -> Result<Targets, Error> {
    let mut general = DEFAULT;
    let mut single = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((target, level)) => {
                single.insert(target_of(target.trim())?, level_of(level.trim())?);
            }
            None => general = level_of(part)?,
        }
    }
    let with_level = |target: &'static str| (target, single.get(target).copied().unwrap_or(general));
    Ok(TARGETS.into_iter().map(with_level).collect())
}

fn level_of(name: &str) -> Result<LevelFilter, Error> {
    let found = LEVELS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, level)| level).ok_or_else(|| unknown("level", name, &LEVELS.map(|(known, _)| known)))
}

fn target_of(name: &str) -> Result<&'static str, Error> {
    TARGETS.into_iter().find(|known| *known == name).ok_or_else(|| unknown("target", name, &TARGETS))
}

fn unknown(kind: &str, name: &str, known: &[&'static str]) -> Error {
    let all = format!("use one of {}, for example `{VARIABLE}=warn,store=info`", known.join(", "));
    Error::new(format!("environment variable {VARIABLE}: no such {kind}: `{name}`")).hint(did_you_mean(
        name,
        known.iter().copied(),
        all,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_wrong_value_is_refused_with_a_hint() {
        for (text, what, hint) in [
            ("wrn", "no such level: `wrn`", "did you mean `warn`?"),
            ("info,stor=debug", "no such target: `stor`", "did you mean `store`?"),
            (
                "store",
                "no such level: `store`",
                "use one of off, error, warn, info, debug, trace, for example",
            ),
            ("store=", "no such level: ``", "use one of off"),
            ("store=info=debug", "no such level: `info=debug`", "use one of off"),
            ("store:debug", "no such level: `store:debug`", "`LONGWIRE_LOG=warn,store=info`"),
            ("=debug", "no such target: ``", "use one of node, configuration, security"),
            ("off,\u{fffd}=warn", "no such target: `\u{fffd}`", "use one of node"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.what, format!("environment variable LONGWIRE_LOG: {what}"));
            assert!(error.hint.as_ref().is_some_and(|said| said.contains(hint)), "{text}: {error}");
        }
    }

    #[test]
    fn no_target_is_the_beginning_of_another_one() {
        for target in TARGETS {
            assert_eq!(TARGETS.iter().filter(|other| other.starts_with(target)).count(), 1, "{target}");
        }
    }

    /// A message with another target would never be written.
    #[test]
    fn the_filter_and_its_page_know_the_targets_of_all_messages() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut folders = vec![crates.join("node/src"), crates.join("cli/src")];
        let mut used = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let source = fs::read_to_string(path).expect("text");
                    let targets =
                        source.split("target: \"").skip(1).filter_map(|rest| rest.split('"').next());
                    used.extend(targets.map(str::to_owned));
                }
            }
        }
        assert_eq!(used, BTreeSet::from(TARGETS.map(str::to_owned)));
        let page = include_str!("../../../../docs/log.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let named: Vec<&str> = rows.filter(|name| LEVELS.iter().all(|(level, _)| level != name)).collect();
        assert_eq!(named, TARGETS);
    }
}
