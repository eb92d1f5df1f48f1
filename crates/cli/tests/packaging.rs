//! Files for the installation of a node: sample configuration, unit, package, container and dashboard.

use longwire_node::Config;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Calls a function with every text in a document that is the value of this key.
fn each_text<'a>(value: &'a Value, key: &str, act: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| match field {
            Value::String(text) if name == key => act(text),
            _ => each_text(field, key, act),
        }),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, key, act)),
        _ => {}
    }
}

/// Names of the samples of a metric in OpenMetrics.
fn samples(name: &str, kind: &str) -> Vec<String> {
    let endings: &[&str] = match kind {
        "gauge" => &[""],
        "counter" => &["_total"],
        "histogram" => &["_bucket", "_count", "_sum"],
        "info" => &["_info"],
        _ => panic!("{name} is of another type: {kind}"),
    };
    endings.iter().map(|ending| format!("{name}{ending}")).collect()
}

/// The names of the metrics are recorded from nodes by a test of the node, `metrics_are_named_as_recorded`.
#[test]
fn the_dashboard_names_only_metrics_that_a_node_exports() {
    let metrics = text("vectors/http/metrics.txt");
    let metrics = metrics.lines().map(|line| line.split_once(' ').unwrap());
    let known: Vec<String> = metrics.flat_map(|(name, kind)| samples(name, kind)).collect();
    let dashboard: Value = serde_json::from_str(&text("docs/grafana.json")).unwrap();
    let mut named: BTreeMap<String, u32> = BTreeMap::new();
    for key in ["expr", "query"] {
        each_text(&dashboard, key, &mut |query| {
            let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            for word in words.filter(|word| word.starts_with("longwire_") || word.starts_with("process_")) {
                *named.entry(word.to_owned()).or_default() += 1;
            }
        });
    }
    assert!(named.len() >= 25, "{named:?}");
    let unknown: Vec<&String> = named.keys().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn panels_of_the_dashboard_have_numbers_of_their_own_and_do_not_overlap() {
    let dashboard: Value = serde_json::from_str(&text("docs/grafana.json")).unwrap();
    let mut cells = BTreeMap::new();
    let mut numbers = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        numbers.push(panel["id"].as_u64().unwrap());
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{panel}");
        for (column, row) in (x..x + w).flat_map(|column| (y..y + h).map(move |row| (column, row))) {
            assert!(cells.insert((column, row), ()).is_none(), "{panel}");
        }
    }
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
}

#[test]
fn the_sample_configuration_is_valid_once_it_has_a_node_id() {
    let sample = text("docs/node.toml");
    let folder = Path::new("/etc/longwire");
    let unset = Config::parse(&sample, "node.toml", folder).unwrap_err().to_string();
    assert!(unset.contains("`node`"), "{unset}");
    // Every commented setting is valid as well.
    let setting = |line: &str| {
        line.starts_with("#[") || line.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
    };
    let all: Vec<&str> =
        sample.lines().map(|line| line.strip_prefix('#').filter(|_| setting(line)).unwrap_or(line)).collect();
    let config = Config::parse(&all.join("\n"), "node.toml", folder).unwrap();
    assert_eq!((config.node.as_str(), config.link.len()), ("dtn://my-node/", 1));
    assert!(config.http.listen.is_some());
    // The unit and the container provide the folders of the sample.
    let unit = text("docs/longwire.service");
    assert!(
        config.storage.path.starts_with("/var/lib/longwire") && unit.contains("\nStateDirectory=longwire\n")
    );
    assert!(config.control().starts_with("/run/longwire") && unit.contains("\nRuntimeDirectory=longwire\n"));
    assert!(unit.contains("\nExecStart=longwire node --config /etc/longwire/node.toml\n"));
}

#[test]
fn the_package_has_files_that_exist_and_a_step_that_writes_each_generated_one() {
    let manifest: toml_edit::DocumentMut = text("crates/cli/Cargo.toml").parse().unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let steps = text("docs/install.md");
    let mut count = 0;
    for asset in assets {
        let parts: Vec<&str> = asset.as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
        let source =
            parts[0].trim_start_matches("../../").trim_end_matches("/*.1").trim_end_matches("/*.toml");
        match source.starts_with("target/") {
            true => assert!(steps.contains(source), "docs/install.md does not write {source}"),
            false => assert!(root().join(source).exists(), "{source}"),
        }
        count += 1;
    }
    assert!(count >= 8);
}

#[test]
fn the_container_is_built_with_the_oldest_supported_rust_and_does_not_run_as_the_superuser() {
    let manifest: toml_edit::DocumentMut = text("Cargo.toml").parse().unwrap();
    let version = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    let container = text("Containerfile");
    assert!(container.contains(&format!("/rust:{version}-slim")), "{container}");
    let last_stage = container.rsplit("\nFROM ").next().unwrap();
    assert!(last_stage.contains("\nUSER longwire\n") && !last_stage.contains("cargo"), "{last_stage}");
    assert!(
        last_stage.contains("\nCMD [\"node\", \"--config\", \"/etc/longwire/node.toml\"]\n"),
        "{last_stage}"
    );
}
