//! The rules of each service: the documentation of the service lists what its checker says, and a test breaks each.

use super::*;
use std::cell::RefCell;

/// The side of a service that a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The upper engine, with its requests.
    User,
    /// The lower engine, with its indications.
    Provider,
}

/// A service whose documentation has a table of rules.
pub(super) trait Documented: CheckedService {
    /// Source of the module of the service.
    const DOCUMENTATION: &str;
    /// Source of the checker.
    const CHECKER: &str;
}

/// The rules in the documentation of a service: the side that each binds, and what the checker says when it is broken,
/// with two dots for each value.
fn rules(documentation: &str) -> Vec<(Side, &str)> {
    let head = "///\n/// | side | what breaks the contract; .. stands for a value |\n/// |---|---|\n";
    let (_, table) = documentation.split_once(head).expect("the service has a table of rules");
    let rule = |line| match str::strip_suffix(line, " |")?.strip_prefix("/// | ")?.split_once(" | ")? {
        ("user", text) => Some((Side::User, text)),
        ("provider", text) => Some((Side::Provider, text)),
        (side, _) => panic!("no side is called {side}"),
    };
    table.lines().map_while(rule).collect()
}

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
pub(super) fn all_broken<S: Documented>(side: Side) {
    BROKEN.with_borrow(|broken| {
        let said: Vec<&String> = broken.iter().filter(|(by, _)| *by == side).map(|(_, said)| said).collect();
        let rules = rules(S::DOCUMENTATION).into_iter().filter(|(binds, _)| *binds == side);
        let rules: Vec<&str> = rules.map(|(_, text)| text).collect();
        let kept = rules.iter().find(|rule| !said.iter().any(|said| is_said(rule, said)));
        assert_eq!(kept, None, "no test breaks this rule");
        let strange = said.iter().find(|said| !rules.iter().any(|rule| is_said(rule, said)));
        assert_eq!(strange, None, "this is no rule of the {side:?}");
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

/// Each service with its documentation and the source of its checker.
macro_rules! documented {
    ($($file:literal $service:ident),*) => {
        $(impl Documented for $service {
            const DOCUMENTATION: &str = include_str!(concat!("../../service/", $file));
            const CHECKER: &str = include_str!(concat!("../checked/", $file));
        })*

        #[test]
        fn the_checker_says_what_the_documentation_lists() {
            $(expect_rules::<$service>();)*
        }
    };
}

documented!(
    "app.rs" App,
    "bundles.rs" Bundles,
    "connections.rs" Connections,
    "datagrams.rs" Datagrams,
    "frames.rs" Frames,
    "packets.rs" Packets,
    "storage.rs" Storage,
    "stream.rs" Stream
);

fn expect_rules<S: Documented>() {
    let rules = rules(S::DOCUMENTATION);
    let said = messages(S::CHECKER.split("fn owed").next().expect("there is a first part"));
    let is_rule = |said: &&String| rules.iter().any(|(_, text)| text == *said);
    assert_eq!(said.iter().find(|said| !is_rule(said)), None, "the checker says what is no rule");
    // Room has one message for all services.
    let is_said = |text: &&str| text.contains("a room of") || said.iter().any(|said| said == text);
    let unsaid = rules.iter().map(|(_, text)| *text).find(|text| !is_said(text));
    assert_eq!(unsaid, None, "the checker never says this rule");
}
