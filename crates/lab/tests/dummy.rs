//! A convergence layer that exists only in its file and in the table of them runs in every experiment.

use longwire_lab::compare::{Options, compare};
use longwire_lab::progress::Progress;
use longwire_lab::run::{Setup, Wanted};
use longwire_lab::scenario::Scenario;
use std::path::Path;

fn setup(nodes: &str, link: &str, more: &str) -> Setup {
    let text = format!(
        "protocol = 'dummy'\nnodes = [{nodes}]\nduration-limit-s = 3000\n{more}\n[workload]\nbytes = 5000\n{link}"
    );
    let scenario = Scenario::parse(&text, "test").unwrap();
    Setup::new(scenario, Path::new(".")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Over datagrams of UDP and over UI frames, to the next node and over a relay, with and without losses.
#[test]
fn it_delivers_over_both_of_its_media() {
    for link in ["lan", "ax25-9600"] {
        for (nodes, ber) in [("'tx', 'rx'", "0"), ("'tx', 'mx', 'rx'", "0"), ("'tx', 'rx'", "1e-5")] {
            let link = format!("[[link]]\nprofile = '{link}'\nber = {ber}\n");
            let outcome = setup(nodes, &link, "").run(0, Wanted::default());
            assert!(outcome.delivered, "{nodes} {link}: {:?}", outcome.missed);
        }
    }
}

#[test]
fn it_is_compared_on_the_links_of_its_media_and_its_settings_are_changed_by_name() {
    let file = std::env::temp_dir().join(format!("longwire-dummy-{}", std::process::id()));
    std::fs::write(&file, "Nothing accepted is ever lost.\n".repeat(40)).unwrap();
    for link in ["lan", "ax25-9600"] {
        let (files, link) = (vec![file.clone()], link.to_owned());
        let options =
            Options { files, link, runs: Some(1), seed: 1, threads: 1, traces: false, receivers: 1 };
        let finding = compare(&options, &Progress::new()).unwrap();
        let records = &finding.experiment.records;
        assert!(records.iter().any(|record| record.case == "dummy/patient"), "{}", options.link);
    }
    std::fs::remove_file(&file).unwrap();
    let lan = "[[link]]\nprofile = 'lan'\n";
    let patient = setup("'tx', 'rx'", lan, "settings.dummy.retry-after = '9 s'");
    assert!(patient.settings()["dummy"].to_string().contains("9"), "{}", patient.settings());
    let text = format!("protocol = 'dummy'\nsettings.dummy.retry-aftr = '9 s'\n{lan}");
    let wrong = Setup::new(Scenario::parse(&text, "test").unwrap(), Path::new("."));
    let error = wrong.err().expect("no such setting").to_string();
    assert!(error.contains("did you mean `retry-after`?"), "{error}");
}
