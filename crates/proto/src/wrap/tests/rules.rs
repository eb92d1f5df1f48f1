//! The rules of each service: those that the checker has are those of the documentation, and a test breaks each.

use super::*;
use std::cell::RefCell;

thread_local! {
    /// Breaches that the test in this thread has made.
    static BROKEN: RefCell<Vec<(Side, String)>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a breach.
pub(super) fn broken(side: Side, message: &str) {
    let (_, rule) = message.split_once("broke the contract: ").expect("a breach says what it is");
    BROKEN.with_borrow_mut(|broken| broken.push((side, rule.to_owned())));
}

/// True if the message is that of the rule, with values in place of the dots.
fn is_said(rule: &str, message: &str) -> bool {
    let mut parts = rule.split("..");
    let first = parts.next().expect("there is a first part");
    let Some(mut rest) = message.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Asserts that this test has broken all rules of one side of a service, and that all that it has broken are rules.
pub(super) fn all_broken<S: CheckedService>(side: Side) {
    BROKEN.with_borrow(|broken| {
        let said: Vec<&String> = broken.iter().filter(|(by, _)| *by == side).map(|(_, said)| said).collect();
        let rules: Vec<&Rule> = S::RULES.iter().filter(|rule| rule.side == side).collect();
        let kept = rules.iter().find(|rule| !said.iter().any(|said| is_said(rule.text, said)));
        assert_eq!(kept, None, "no test breaks this rule");
        let strange = said.iter().find(|said| !rules.iter().any(|rule| is_said(rule.text, said)));
        assert_eq!(strange, None, "this is no rule of the {side}");
    });
}

/// The messages in the source of a checker, with dots for their values.
fn messages(source: &str) -> Vec<String> {
    let mut messages = Vec::new();
    for start in ["format_args!(\"", "format!(\"", "ContractBreach(\""] {
        for rest in source.split(start).skip(1) {
            let literal = rest.split('"').next().expect("there is a first part");
            let pieces = literal.split('{').map(|piece| match piece.split_once('}') {
                Some((_, after)) => format!("..{after}"),
                None => piece.to_owned(),
            });
            messages.push(pieces.collect());
        }
    }
    messages
}

/// The table in the documentation of a service.
fn table(rules: &[Rule]) -> String {
    let rows = rules.iter().map(|rule| format!("/// | {} | {} |\n", rule.side, rule.text));
    let head = "///\n/// | side | what breaks the contract; .. stands for a value |\n/// |---|---|\n";
    format!("{head}{}#[derive(Debug)]\n", rows.collect::<String>())
}

/// Each service: its documentation, the source of its checker, and its rules.
macro_rules! services {
    ($($file:literal $service:ident),*) => {
        [$((
            include_str!(concat!("../../service/", $file)),
            include_str!(concat!("../checked/", $file)),
            $service::RULES,
        )),*]
    };
}

const SERVICES: [(&str, &str, &[Rule]); 7] = services![
    "app.rs" App,
    "bundles.rs" Bundles,
    "datagrams.rs" Datagrams,
    "frames.rs" Frames,
    "packets.rs" Packets,
    "storage.rs" Storage,
    "stream.rs" Stream
];

#[test]
fn the_documentation_of_each_service_has_its_rules() {
    for (documentation, _, rules) in SERVICES {
        let expected = table(rules);
        assert!(documentation.contains(&expected), "the documentation needs this table:\n{expected}");
    }
}

#[test]
fn the_checker_says_what_the_rules_are() {
    for (_, checker, rules) in SERVICES {
        let said = messages(checker.split("fn owed").next().expect("there is a first part"));
        let is_rule = |said: &&String| rules.iter().any(|rule| rule.text == **said);
        assert_eq!(said.iter().find(|said| !is_rule(said)), None, "the checker says what is no rule");
        // Room has one message for all services.
        let is_said =
            |rule: &&Rule| rule.text.contains("a room of") || said.iter().any(|said| said == rule.text);
        assert_eq!(rules.iter().find(|rule| !is_said(rule)), None, "the checker never says this rule");
    }
}
