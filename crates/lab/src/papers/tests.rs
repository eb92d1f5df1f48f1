use super::*;
use crate::claim::Verdict;
use crate::progress::Progress;

#[test]
fn a_folder_and_an_entry_are_a_paper_with_a_page_claims_and_the_same_bytes_on_any_number_of_threads() {
    let paper = find("dummy").expect("it is in the table");
    let progress = Progress::new();
    let play = |threads| {
        let finding = reproduce(paper, &Bench { threads, seed: 7, ..Bench::new(&progress) });
        let mut json = Vec::new();
        finding.experiment.write_json(&mut json).expect("a Vec takes everything");
        (
            finding.report.html(&finding.experiment),
            json,
            crate::output::terminal(&finding.summary, 400, false),
        )
    };
    let (one, three) = (play(1), play(3));
    assert!(one == three);
    let (page, json, terminal) = one;
    assert!(page.contains("longwire paper dummy --seed 7 --runs 400") && page.contains("On dice"));
    assert!(
        page.contains("outside 20 %: the authors' die is not fair")
            && page.contains("not judged: the formula")
    );
    assert!(
        terminal.contains("1 of 2 of those judged hold") && terminal.contains("die is not fair"),
        "{terminal}"
    );
    let document: serde_json::Value = serde_json::from_slice(&json).expect("a document");
    assert_eq!(document["records"][0]["reference"], 3.5);
    assert_eq!(document["records"][0]["n"], 400);
}

#[test]
fn an_early_stop_is_said_on_the_page_and_in_its_command() {
    let paper = find("dummy").expect("it is in the table");
    let finding = reproduce(paper, &Bench::new(&Progress::up_to(10)));
    let report = &finding.report;
    assert!(report.lead.ends_with("Stopped early: 10 of 800 runs completed."), "{}", report.lead);
    assert!(report.command.ends_with(" --runs 5"), "{}", report.command);
}

#[test]
fn papers_have_names_of_their_own() {
    let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    assert_eq!(names, ["cislunar", "dtn-ax25", "ax25-throughput", "dummy"]);
    assert!(find("dumy").is_none());
}

/// Whatever does not hold says why.
#[test]
fn no_verdict_is_without_a_reason() {
    let progress = Progress::new();
    let bench = Bench { runs: Some(2), thin: true, threads: 2, ..Bench::new(&progress) };
    for paper in PAPERS {
        for claim in (paper.play)(&bench).claims {
            let holds = claim.verdict() == Verdict::Holds;
            assert!(holds || !claim.why.is_empty(), "{}: {} ({})", paper.name, claim.what, claim.place);
        }
    }
}
