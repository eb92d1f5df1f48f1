//! Cost of large worlds: stations that share a radio channel, and bundle agents with a contact plan, for three sizes of each.
//!
//! With the same time per event for all sizes, a world takes time in proportion to its events and to nothing else.
//! Times are those of the processor. Events and digests depend on the seed alone and are the same on every machine; each
//! size runs in a process of its own, so that its peak memory is its own.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark measures real time")]

mod agents;
mod stations;

use longwire_proto::time::Instant;
use longwire_sim::NodeId;
use std::process::Command;

const SEED: u64 = 1;

/// World, as an argument of this program.
struct World {
    argument: &'static str,
    title: &'static str,
    sizes: [u32; 3],
    run: fn(u32) -> Outcome,
}

const WORLDS: [World; 2] = [
    World {
        argument: "stations",
        title: "stations on one AX.25 channel of 9,600 bit/s, one hour",
        sizes: [250, 500, 1000],
        run: stations::run,
    },
    World {
        argument: "agents",
        title: "bundle agents with a contact plan of one day",
        sizes: [50, 100, 200],
        run: agents::run,
    },
];

/// Result of a run, the same on every machine.
struct Outcome {
    events: u64,
    /// Deliveries to users, in words.
    delivered: String,
    digest: Digest,
}

/// FNV-1a hash of the times, places and contents of all deliveries.
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, at: Instant, node: NodeId, bytes: &[u8]) {
        let (at, node) = (at.as_nanos().to_le_bytes(), node.0.to_le_bytes());
        for byte in at.iter().chain(&node).chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Time of this process on a processor, seconds; `None` where the system does not tell.
fn processor_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<u64>().ok()? as f64 / 1e9)
}

/// Peak memory of this process, bytes; `None` where the system does not tell.
fn peak_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? as f64 * 1024.0)
}

/// Runs one size of a world, and prints its row.
fn measure(world: &World, nodes: u32) {
    let (memory, processor, start) = (peak_bytes(), processor_s(), std::time::Instant::now());
    let outcome = (world.run)(nodes);
    let elapsed = start.elapsed().as_secs_f64();
    let seconds = processor_s().zip(processor).map_or(elapsed, |(end, begin)| end - begin);
    let events = outcome.events as f64;
    let memory = peak_bytes().zip(memory).map_or("unknown".to_owned(), |(end, begin)| {
        format!("{:.1} MB, {:.1} kB/node", (end - begin) / 1e6, (end - begin) / 1e3 / f64::from(nodes))
    });
    println!(
        "  {nodes:>5} nodes {:>10} events {seconds:7.2} s {:6.2} million events/s {:6.0} ns/event; {memory}; {}; digest {:016x}",
        outcome.events,
        events / seconds / 1e6,
        seconds * 1e9 / events,
        outcome.delivered,
        outcome.digest.0
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [argument, nodes] = &arguments[..] {
        let world = WORLDS.iter().find(|world| world.argument == argument).expect("`stations` or `agents`");
        return measure(world, nodes.parse().expect("a number of nodes"));
    }
    let this = std::env::current_exe().expect("the program has a path");
    for world in &WORLDS {
        println!("{}", world.title);
        for nodes in world.sizes {
            let status = Command::new(&this).arg(world.argument).arg(nodes.to_string()).status();
            assert!(status.is_ok_and(|status| status.success()), "{nodes} nodes of {}", world.argument);
        }
    }
}
