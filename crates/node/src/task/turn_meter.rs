//! Load of the node: passes of the event loop, and resources of the process.

use super::busy_loop_guard::BusyLoopGuard;
use crate::view;
use longwire_proto::time::Duration;

/// Bounds of the histogram of passes, seconds.
const BOUNDS_S: [f64; 8] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0];

/// Durations of passes of the event loop. New input waits for the current pass and is handled in the next.
#[derive(Debug, Default)]
pub(crate) struct TurnMeter {
    counts: [u64; BOUNDS_S.len()],
    count: u64,
    busy: Duration,
    longest: Duration,
    pub(super) guard: BusyLoopGuard,
}

impl TurnMeter {
    /// Adds a pass.
    pub(crate) fn add(&mut self, took: Duration) {
        self.count += 1;
        self.busy += took;
        self.longest = self.longest.max(took);
        let seconds = took.as_secs_f64();
        if let Some(at) = BOUNDS_S.iter().position(|bound| seconds <= *bound) {
            self.counts[at] += 1;
        }
    }

    pub(crate) fn view(&self) -> view::Turns {
        let within = BOUNDS_S.iter().zip(self.counts);
        view::Turns {
            count: self.count,
            busy_s: self.busy.as_secs_f64(),
            longest_s: self.longest.as_secs_f64(),
            restless: self.guard.slowed(),
            within: within.map(|(bound_s, count)| view::Within { bound_s: *bound_s, count }).collect(),
        }
    }
}

/// Resources of the process, as far as the system reports them.
pub(crate) fn process() -> view::Process {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/self/statm");
    let resident_pages: u64 =
        memory.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    // The name may contain any character and ends at the last bracket; user and system time are the 14th and 15th value.
    let times = read("/proc/self/stat");
    let behind_name = times.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 =
        behind_name.split_whitespace().skip(11).take(2).filter_map(|text| text.parse::<u64>().ok()).sum();
    let open_files = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    view::Process {
        resident_bytes: resident_pages * rustix::param::page_size() as u64,
        cpu_s: ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64,
        open_files,
        open_files_max: crate::config::descriptors::limits().0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_turn_is_counted_once() {
        let mut turns = TurnMeter::default();
        for micros in [10, 100, 101, 5_000, 5_000_000] {
            turns.add(Duration::from_micros(micros));
        }
        let view = turns.view();
        assert_eq!((view.count, view.longest_s), (5, 5.0));
        let counts: Vec<u64> = view.within.iter().map(|within| within.count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 1, 0, 0, 0], "the longest is beyond all bounds");
    }

    #[test]
    fn this_process_uses_something() {
        let process = process();
        assert!(process.resident_bytes > 100_000 && process.open_files > 2, "{process:?}");
    }
}
