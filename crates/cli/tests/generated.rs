//! Completions and manual pages, which are generated from the definition of the commands.

mod common;

use common::Place;
use std::fs;

/// Names of all verbs, as `longwire --help` lists them.
fn verbs(place: &Place) -> Vec<String> {
    let help = String::from_utf8(place.longwire(&["--help"]).output().unwrap().stdout).unwrap();
    let (_, list) = help.split_once("\nCommands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    // Continuations of long descriptions are indented further.
    let starts = list.lines().filter(|line| !line.starts_with("   "));
    let verbs: Vec<String> = starts
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|verb| verb != "help")
        .collect();
    assert!(verbs.len() >= 20 && verbs.contains(&"doctor".to_owned()), "{verbs:?}");
    verbs
}

#[test]
fn completions_of_every_shell_contain_all_verbs_and_options() {
    let place = Place::new("completions");
    let verbs = verbs(&place);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = place.longwire(&["completions", shell]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        for verb in &verbs {
            let is_there = text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == verb);
            assert!(is_there, "{shell} does not complete {verb}");
        }
        // Fish writes options without their dashes.
        assert!(text.contains("down-for") && text.contains("expires-within"), "{shell}");
    }
    let output = place.longwire(&["completions", "tcsh"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn every_verb_has_a_manual_page_and_the_first_page_lists_them_all() {
    let place = Place::new("man");
    let output = place.longwire(&["man", "share/man1"]).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    // Groff writes a hyphen as `\-`.
    let page =
        |name: &str| fs::read_to_string(place.path("share/man1").join(name)).unwrap().replace('\\', "");
    let first = page("longwire.1");
    for verb in verbs(&place) {
        assert!(first.contains(&format!("longwire-{verb}(1)")), "{verb}: {first}");
        let text = page(&format!("longwire-{verb}.1"));
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{verb}: {text}");
    }
    assert!(page("longwire-doctor.1").contains("--down-for"));
    assert!(page("longwire-links-cut.1").contains("Cut a link"));
    fs::write(place.path("file"), "").unwrap();
    let output = place.longwire(&["man", "file"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: cannot write manual pages to file: ") && said.contains("hint: "),
        "{said}"
    );
}
