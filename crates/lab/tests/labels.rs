//! Pages use words and units for what they show: a key of a file or of a record is never a label.

use longwire_lab::bench::Shard;
use longwire_lab::progress::Progress;
use longwire_lab::scenario::{Options, parse_sweep};
use longwire_lab::sweep;
use std::path::PathBuf;

/// Page of a scenario with one run of each case.
fn page(scenario: PathBuf, sweeps: &[&str]) -> String {
    let options = Options {
        scenario,
        sweeps: sweeps.iter().map(|word| parse_sweep(word).expect("it is a sweep")).collect(),
        runs: Some(1),
        seed: Some(7),
        shard: Shard::WHOLE,
        threads: 2,
        traces: false,
    };
    let finding = sweep::run(&options, &Progress::default()).expect("it runs");
    finding.report.html(&finding.experiment)
}

/// Texts of a page outside of style, code and data.
fn labels(page: &str) -> Vec<&str> {
    let body = page.split_once("<main>").expect("a page has a body").1;
    let parts = body.split('<').filter(|part| !part.starts_with("code>"));
    parts.filter_map(|part| part.split_once('>')).map(|(_, text)| text.trim()).collect()
}

fn check(page: &str) {
    let raw: Vec<&str> = labels(page).into_iter().filter(|text| text.contains('_')).collect();
    assert!(raw.is_empty(), "labels with keys: {raw:?}");
    // One word for one thing: protocol, settings, case, run, link, path.
    for word in ["series", "stack", "contender"] {
        assert!(!page.contains(word), "`{word}` on the page");
    }
}

#[test]
fn pages_of_scenarios_have_no_raw_keys() {
    let shipped = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    check(&page(shipped("positions.toml"), &["frames.per-minute=1,2"]));
    check(&page(shipped("valley.toml"), &[]));
    let few = ["airborne.packets=20,40", "airborne.duration-s=100", "airborne.within-s=60"];
    check(&page(shipped("airborne.toml"), &few));
    let chain = std::env::temp_dir().join(format!("longwire-labels-{}.toml", std::process::id()));
    std::fs::write(&chain, "protocol = \"tcp\"\nworkload.bytes = 3000\n[[link]]\nprofile = \"lan\"\n")
        .unwrap();
    let swept = page(chain.clone(), &["link.delay-ms=1,2,3", "link.ber=0,1e-6"]);
    std::fs::remove_file(chain).unwrap();
    check(&swept);
    let texts = labels(&swept);
    assert!(texts.contains(&"one-way delay (ms)"), "the axis has words: {texts:?}");
    assert!(texts.iter().any(|text| text.contains("bit-error rate 0")), "and so has the legend: {texts:?}");
}

#[test]
fn a_raw_key_is_noticed() {
    let with_key = "<style>a_b{}</style><main><th scope=\"col\">delay_ms</th><code>x_y</code></main>";
    assert_eq!(labels(with_key).iter().filter(|text| text.contains('_')).count(), 1);
}
