//! End of a process whose node has lost a thread or task.
//!
//! A panic of a thread or task is an internal error, and the other parts would wait for it for ever. The store permits a node to
//! stop at any moment: a process that exits and is restarted is better than a node that accepts connections and does nothing.

use std::time::Duration;

/// Exit status of a process that ends after a panic: `EX_SOFTWARE` of sysexits.h.
pub const EXIT_STATUS: i32 = 70;
/// Maximum time for writing the reason. A backtrace is long, and the machine may be busy.
const REASON_WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// Makes the panic of any thread or task end this process: it writes the thread and the reason to stderr and exits with
/// [`EXIT_STATUS`].
pub fn end_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The process ends even if its standard error is not read. If this thread cannot be started, it may have to be killed.
        let _ = std::thread::Builder::new().name("ending".into()).spawn(|| {
            std::thread::sleep(REASON_WRITTEN_WITHIN);
            std::process::exit(EXIT_STATUS);
        });
        crate::log::finish();
        tell(panic);
        let thread = std::thread::current();
        crate::log::write_unfiltered(&format!(
            "internal error in thread `{}`: the node stops.\n\
             Accepted bundles are in the store and continue after a restart.\n\
             hint: please report the lines above",
            thread.name().unwrap_or("unnamed")
        ));
        crate::log::finish();
        std::process::exit(EXIT_STATUS);
    }));
}
