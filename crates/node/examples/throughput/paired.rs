//! This program beside the same one of an earlier version, in turn, so that both meet the same load of the machine.

use crate::process;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Pairs of runs for each figure.
const PAIRS: usize = 7;

const PATHS: [(&str, &str); 6] = [
    ("10,000 of 1 KiB, store in memory", "path 10000 1024 memory"),
    ("... store durable", "path 10000 1024 disk"),
    ("... relayed, store in memory", "relay 10000 1024 memory"),
    ("... relayed, store durable", "relay 10000 1024 disk"),
    ("500 of 1 MB, store in memory", "path 500 1000000 memory"),
    ("... store durable", "path 500 1000000 disk"),
];

/// Prints for each path how this program relates to the `earlier` one: medians of both, and the median of the ratios.
pub(crate) fn table(earlier: &str) {
    let me = std::env::current_exe().expect("this program has a path");
    let me = me.to_str().expect("the path is text");
    println!("medians of {PAIRS} pairs, earlier and now in turn; load of the machine {}", process::load());
    println!("{:<36}{:>24}{:>8}{:>24}{:>8}", "", "us CPU per bundle", "ratio", "bundles/s", "ratio");
    for (name, words) in PATHS {
        let pairs: Vec<[Value; 2]> =
            (0..PAIRS).map_while(|_| Some([run(earlier, words)?, run(me, words)?])).collect();
        if pairs.is_empty() {
            println!("{name:<36}the earlier version does not measure this");
            continue;
        }
        let figure = |key: &str| {
            let of = |side: usize| median(pairs.iter().map(|pair| number(&pair[side], key)));
            let ratio = median(pairs.iter().map(|pair| number(&pair[1], key) / number(&pair[0], key)));
            (of(0), of(1), ratio)
        };
        let (cpu, rate) = (figure("cpu_us"), figure("bundles_per_s"));
        let cpu_words = format!("{:.1} -> {:.1}", cpu.0, cpu.1);
        let rate_words = format!("{:.0} -> {:.0}", rate.0, rate.1);
        println!("{name:<36}{cpu_words:>24}{:>8.2}{rate_words:>24}{:>8.2}", cpu.2, rate.2);
    }
    println!("load of the machine at the end {}", process::load());
}

fn number(run: &Value, key: &str) -> f64 {
    run[key].as_f64().unwrap_or(f64::NAN)
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// One run of a program; `None` if it cannot measure this.
fn run(program: &str, words: &str) -> Option<Value> {
    let mut command = Command::new(program);
    let out = command.args(words.split_whitespace()).stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(out.stdout.trim_ascii()).ok().filter(|_| out.status.success())
}
