//! Progress line on stderr: completed runs, rate and time left. Shown only for computations of more than two seconds.

use longwire_lab::progress::Progress;
use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const BEFORE_FIRST: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_millis(250);

/// Computes; if `visible`, shows a progress line on stderr and erases it at the end.
pub(crate) fn shown<R>(visible: bool, progress: &Progress, compute: impl FnOnce(&Progress) -> R) -> R {
    if !visible {
        return compute(progress);
    }
    let (done, wait) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || show(progress, &wait));
        // Dropped at the end, even by a panic, which ends the thread that shows the line.
        let _done: mpsc::Sender<()> = done;
        compute(progress)
    })
}

fn show(progress: &Progress, wait: &mpsc::Receiver<()>) {
    let began = Instant::now();
    let mut width = 0;
    let mut pause = BEFORE_FIRST;
    while wait.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        pause = BETWEEN;
        let line = match progress.is_stopped() {
            false => line(progress.done(), progress.total(), began.elapsed()),
            true => "finishing the current runs; press Ctrl-C again to stop at once".to_owned(),
        };
        let shown = write!(io::stderr(), "\r{line:width$}");
        width = line.chars().count();
        if shown.is_err() {
            return;
        }
    }
    if width > 0 {
        let _ = write!(io::stderr(), "\r{:width$}\r", "");
    }
}

/// Formats the progress line: `1234 of 2160 runs, 57 %, 41 runs/s, 23 s left`.
fn line(done: u64, total: u64, elapsed: Duration) -> String {
    if done == 0 || total == 0 {
        return format!("{done} of {total} runs, {} elapsed", time(elapsed.as_secs_f64()));
    }
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let left = total.saturating_sub(done) as f64 / rate;
    let rate = if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
    format!("{done} of {total} runs, {} %, {rate} runs/s, {} left", done * 100 / total, time(left))
}

fn time(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long_still() {
        let at = Duration::from_secs(30);
        assert_eq!(line(1234, 2160, at), "1234 of 2160 runs, 57 %, 41 runs/s, 23 s left");
        assert_eq!(line(3, 2160, at), "3 of 2160 runs, 0 %, 0.1 runs/s, 6.0 h left");
        assert_eq!(line(150, 2160, at), "150 of 2160 runs, 6 %, 5.0 runs/s, 7 min left");
        assert_eq!(line(0, 0, at), "0 of 0 runs, 30 s elapsed");
    }

    #[test]
    fn a_panic_in_the_computation_is_passed_on_and_not_waited_for() {
        let result = std::panic::catch_unwind(|| shown(true, &Progress::new(), |_| panic!("on purpose")));
        assert!(result.is_err());
    }
}
