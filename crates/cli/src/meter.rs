//! Progress line on stderr: what is done, the rate and the time left. Shown only for work of more than two seconds.

use crate::node_connection::{bytes, seconds};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use longwire_lab::progress::Progress;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

const BEFORE_FIRST: Duration = Duration::from_secs(2);
/// Interval between updates of the line.
const BETWEEN: Duration = Duration::from_millis(250);

/// Unit in which a meter counts.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Simulated runs.
    Runs,
    /// Bytes, with what was done with them: `stored`.
    Bytes(&'static str),
}

/// Progress line on a terminal, cut to its width. Dropping the meter clears the line.
pub(crate) struct Meter {
    is_visible: bool,
    unit: Unit,
    /// Start of the time over which the rate is measured.
    began: Instant,
    /// Time of the next update.
    due: Instant,
    line: Option<ProgressBar>,
}

impl Meter {
    /// Creates a meter, which shows nothing if `quiet` or if stderr is not a terminal that can clear a line.
    pub(crate) fn new(quiet: bool, unit: Unit) -> Meter {
        let is_visible = !quiet && !ProgressDrawTarget::stderr().is_hidden();
        let began = Instant::now();
        Meter { is_visible, unit, began, due: began + BEFORE_FIRST, line: None }
    }

    /// Computes, and shows the completed runs meanwhile.
    pub(crate) fn watch<R>(mut self, progress: &Progress, compute: impl FnOnce(&Progress) -> R) -> R {
        if !self.is_visible {
            return compute(progress);
        }
        let (done, wait) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                while wait.recv_timeout(BETWEEN) == Err(RecvTimeoutError::Timeout) {
                    match progress.is_stopped() {
                        false => self.show(progress.done(), progress.total()),
                        true => self.draw(Instant::now(), || {
                            "finishing the current runs; press Ctrl-C again to stop at once".to_owned()
                        }),
                    }
                }
            });
            // Dropped at the end, even by a panic, which ends the thread that shows the line.
            let _done: mpsc::Sender<()> = done;
            compute(progress)
        })
    }

    /// Shows how much is done, if it is time for an update.
    pub(crate) fn show(&mut self, done: u64, total: u64) {
        self.show_at(Instant::now(), done, total);
    }

    /// Clears the line until the next update, so that something else can be printed.
    pub(crate) fn clear(&mut self) {
        self.line = None;
    }

    fn show_at(&mut self, now: Instant, done: u64, total: u64) {
        if done == 0 && matches!(self.unit, Unit::Bytes(_)) {
            // The rate is measured from the first byte on, without the wait for a link.
            self.began = now;
        }
        let (unit, elapsed) = (self.unit, now - self.began);
        self.draw(now, || unit.line(done, total, elapsed));
    }

    fn draw(&mut self, now: Instant, line: impl FnOnce() -> String) {
        if self.is_visible && now >= self.due {
            self.due = now + BETWEEN;
            self.line.get_or_insert_with(|| line_on(ProgressDrawTarget::stderr())).set_message(line());
        }
    }
}

/// Creates an empty line, which clears itself when dropped.
fn line_on(target: ProgressDrawTarget) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_msg}").expect("it is a template");
    ProgressBar::with_draw_target(None, target).with_style(style)
}

impl Unit {
    /// Formats the line: `1234 of 2160 runs, 57 %, 41 runs/s, 23 s left`.
    fn line(self, done: u64, total: u64, elapsed: Duration) -> String {
        let elapsed = elapsed.as_secs_f64();
        let rate = done as f64 / elapsed.max(1e-3);
        let digits = usize::from(rate < 10.0);
        let (far, speed) = match self {
            Unit::Runs if done == 0 => return format!("0 of {total} runs, {} elapsed", seconds(elapsed)),
            Unit::Runs => (format!("{done} of {total} runs"), format!("{rate:.digits$} runs")),
            Unit::Bytes(what) => (format!("{} of {} {what}", bytes(done), bytes(total)), bytes(rate as u64)),
        };
        let far = format!("{far}, {} %", done * 100 / total.max(1));
        if done == 0 {
            return far;
        }
        let left = total.saturating_sub(done) as f64 / rate;
        format!("{far}, {speed}/s, {} left", seconds(left.ceil()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{InMemoryTerm, TermLike};

    /// Creates a meter on a terminal in memory.
    fn meter_on(terminal: &InMemoryTerm, unit: Unit) -> Meter {
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        Meter { is_visible: true, line: Some(line_on(target)), ..Meter::new(true, unit) }
    }

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long_still() {
        let line = |done, total| Unit::Runs.line(done, total, Duration::from_secs(30));
        assert_eq!(line(1234, 2160), "1234 of 2160 runs, 57 %, 41 runs/s, 23 s left");
        assert_eq!(line(3, 2160), "3 of 2160 runs, 0 %, 0.1 runs/s, 6.0 h left");
        assert_eq!(line(150, 2160), "150 of 2160 runs, 6 %, 5.0 runs/s, 7 min left");
        assert_eq!(line(0, 0), "0 of 0 runs, 30 s elapsed");
        let line = |done, seconds| Unit::Bytes("stored").line(done, 10_000_000, Duration::from_secs(seconds));
        assert_eq!(line(1_200_000, 3), "1.2 MB of 10.0 MB stored, 12 %, 400.0 kB/s, 22 s left");
        assert_eq!(line(1_200_000, 12), "1.2 MB of 10.0 MB stored, 12 %, 100.0 kB/s, 88 s left");
        assert_eq!(line(9_990_000, 1), "10.0 MB of 10.0 MB stored, 99 %, 10.0 MB/s, 1 s left");
        assert_eq!(line(0, 2), "0 B of 10.0 MB stored, 0 %", "the rate is not known yet");
    }

    #[test]
    fn the_line_starts_late_fits_a_narrow_terminal_and_leaves_nothing() {
        let terminal = InMemoryTerm::new(5, 36);
        let mut meter = meter_on(&terminal, Unit::Bytes("stored"));
        let began = meter.began;
        let mut shown = |milliseconds, done| {
            meter.show_at(began + Duration::from_millis(milliseconds), done, 10_000_000);
            terminal.contents()
        };
        assert_eq!(shown(1999, 1_000_000), "");
        assert_eq!(shown(2000, 1_000_000), "1.0 MB of 10.0 MB stored, 10 %, 500.");
        assert_eq!(shown(2249, 2_000_000), "1.0 MB of 10.0 MB stored, 10 %, 500.");
        assert_eq!(shown(2250, 2_000_000), "2.0 MB of 10.0 MB stored, 20 %, 888.");
        meter.clear();
        terminal.write_str("note").unwrap();
        assert_eq!(terminal.contents(), "note");
    }

    #[test]
    fn the_wait_for_the_first_byte_does_not_count_and_that_for_the_first_run_does() {
        let shown = |unit, done, total| {
            let terminal = InMemoryTerm::new(5, 100);
            let mut meter = meter_on(&terminal, unit);
            let began = meter.began;
            meter.show_at(began + Duration::from_secs(10), 0, total);
            let waiting = terminal.contents();
            meter.show_at(began + Duration::from_secs(20), done, total);
            [waiting, terminal.contents()]
        };
        let sent = shown(Unit::Bytes("transmitted"), 1_000_000, 5_000_000);
        let all = "1.0 MB of 5.0 MB transmitted, 20 %, 100.0 kB/s, 40 s left";
        assert_eq!(sent, ["0 B of 5.0 MB transmitted, 0 %", all]);
        let run = shown(Unit::Runs, 2, 20);
        assert_eq!(run, ["0 of 20 runs, 10 s elapsed", "2 of 20 runs, 10 %, 0.1 runs/s, 3 min left"]);
    }

    #[test]
    fn a_panic_in_the_computation_is_passed_on_and_not_waited_for() {
        let result = std::panic::catch_unwind(|| {
            let meter = Meter { is_visible: true, ..Meter::new(true, Unit::Runs) };
            meter.watch(&Progress::new(), |_| panic!("on purpose"))
        });
        assert!(result.is_err());
    }
}
