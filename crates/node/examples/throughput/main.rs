//! The whole path on one machine: application, node, TCPCL 4 over loopback TCP, node, application; what the disk and
//! loopback TCP alone do in the same run, and dtn7-rs beside it where it is installed.
//!
//! ```text
//! cargo run --release -p longwire-node --example throughput                                all of it, as a table
//! cargo run --release -p longwire-node --example throughput -- path 10000 1024 memory      one run
//! cargo run --release -p longwire-node --example throughput -- paired EARLIER              beside this program of an earlier version
//! ```
//!
//! `LONGWIRE_BENCH_FOLDER` is where the stores lie (a disk that is worth measuring), `LONGWIRE_DTND` the path of dtn7-rs'
//! daemon. Every measurement is a process of its own, so that its memory is its own. Every payload is compared. It prints
//! and judges nothing.

mod disk;
mod dtn7;
mod loopback;
mod neighbours;
mod paired;
mod path;
mod payloads;
mod process;
mod relaying;
mod resting;
mod websocket;

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

#[cfg(target_env = "gnu")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Each figure of the table is the median of so many runs.
const RUNS: usize = 3;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().expect("a number");
    let figures = match words[..] {
        [] => return table(),
        ["path", count, length, kind] => path::run(number(count), number(length), kind, "tcp"),
        ["path", count, length, kind, carrier] => path::run(number(count), number(length), kind, carrier),
        ["relay", count, length, kind] => relaying::run(number(count), number(length), kind),
        ["ends", address, count, length] => {
            return relaying::ends(address.parse().expect("an address"), number(count), number(length));
        }
        ["paired", earlier] => return paired::table(earlier),
        ["ping"] => resting::ping(),
        ["idle"] => resting::idle(),
        ["fill", count] => resting::fill(number(count)),
        ["found"] => resting::found(),
        ["beside", count] => resting::beside(number(count)),
        ["neighbours", count] => neighbours::run(number(count)),
        ["crowd", address, count] => {
            return neighbours::crowd(address.parse().expect("an address"), number(count));
        }
        ["loopback", count, length] => loopback::run(number(count), number(length)),
        ["dtn7", count, length] => dtn7::run(number(count), number(length)),
        _ => panic!("nothing to measure is called {words:?}"),
    };
    println!("{figures}");
}

/// Folder for stores.
fn folder() -> PathBuf {
    std::env::var_os("LONGWIRE_BENCH_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Measures something in a process of its own; none: it could not be measured, and the process has said why.
fn measure(words: &str) -> Option<Value> {
    let me = std::env::current_exe().expect("this program has a path");
    let out = Command::new(me).args(words.split_whitespace()).stderr(std::process::Stdio::inherit()).output();
    let out = out.expect("it starts");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    serde_json::from_str(text.lines().last()?).ok()
}

/// Of several runs the one in the middle, by a figure.
fn median(words: &str, by: &str) -> Option<Value> {
    let mut runs: Vec<Value> = (0..RUNS).filter_map(|_| measure(words)).collect();
    let key = |run: &Value| run[by].as_f64().unwrap_or(f64::INFINITY);
    runs.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let middle = runs.len() / 2;
    (!runs.is_empty()).then(|| runs.swap_remove(middle))
}

fn table() {
    println!(
        "median of {RUNS} runs; two nodes and two applications; load of the machine {}, TCP {}",
        process::load(),
        process::congestion_control()
    );
    println!("{:<42}{:>10}{:>9}{:>9}{:>7}{:>10}", "", "bundles/s", "Mbit/s", "us CPU", "MB", "stranded");
    for (count, length) in [(10_000, 1024), (500, 1_000_000)] {
        for (kind, words) in [
            ("memory", "store in memory"),
            ("tls", "store in memory, TLS 1.3"),
            ("disk", "store durable"),
            ("memory ltp", "LTP, store in memory"),
            ("disk ltp", "LTP, store durable"),
        ] {
            let name = format!("{count} of {length} B, {words}");
            if let Some(run) = median(&format!("path {count} {length} {kind}"), "seconds") {
                row(&name, &run);
                if kind.starts_with("disk") {
                    print_disk(&run);
                }
            }
        }
        for (kind, words) in [("memory", "relayed, store in memory"), ("disk", "relayed, store durable")] {
            if let Some(run) = median(&format!("relay {count} {length} {kind}"), "seconds") {
                row(&format!("{count} of {length} B, {words}"), &run);
            }
        }
        if let Some(run) = median(&format!("dtn7 {count} {length}"), "seconds") {
            row(&format!("{count} of {length} B, dtn7-rs, store in memory"), &run);
        }
        if length > 100_000
            && let Some(run) = median(&format!("loopback {count} {length}"), "seconds")
        {
            row(&format!("{count} of {length} B, loopback TCP alone"), &run);
        }
    }
    for (name, words) in [
        ("ping, round trip", "ping"),
        ("idle node", "idle"),
        ("1,000 idle neighbours", "neighbours 1000"),
        ("100,000 bundles taken in and stored", "fill 100000"),
        ("... found at the next start", "found"),
        ("... 10,000 others to a neighbour", "beside 10000"),
        ("1,000,000 bundles taken in and stored", "fill 1000000"),
        ("... found at the next start", "found"),
        ("... 10,000 others to a neighbour", "beside 10000"),
    ] {
        if let Some(Value::Object(run)) = measure(words) {
            let figures = run.iter().map(|(name, figure)| format!("{} {figure}", name.replace('_', " ")));
            println!("{name:<42}{}", figures.collect::<Vec<_>>().join(", "));
        }
    }
    println!("load of the machine at the end {}", process::load());
}

fn row(name: &str, run: &Value) {
    let figure = |name: &str| run[name].as_f64().unwrap_or(f64::NAN);
    println!(
        "{name:<42}{:>10.0}{:>9.0}{:>9.1}{:>7.0}{:>10.0}",
        figure("bundles_per_s"),
        figure("mbit_per_s"),
        figure("cpu_us"),
        figure("peak_mb"),
        figure("stranded")
    );
}

fn print_disk(run: &Value) {
    let figure = |name: &str| run[name].as_f64().unwrap_or(f64::NAN);
    println!(
        "{:<42}{:.0} MB/s written by both stores, {:.0} by the disk alone in batches of {:.0} kB: {:.0} %",
        "",
        figure("stores_mb_per_s"),
        figure("disk_mb_per_s"),
        figure("batch_kb"),
        figure("stores_mb_per_s") / figure("disk_mb_per_s") * 100.0
    );
}
