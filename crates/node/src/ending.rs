//! The end of a process whose node has lost a part of itself.
//!
//! A thread or task that panics is a fault of this program, and the others would wait for it for ever. The store is such
//! that a node may end at any moment: ending, and being started again, is better than a node that answers and does nothing.

use std::time::Duration;

/// The exit status of a process that ends so: `EX_SOFTWARE` of sysexits.h.
pub const EXIT_STATUS: i32 = 70;
/// How long it takes at most to say why. A backtrace is long, and a machine may have much else to do.
const LAST_WORDS_MAX: Duration = Duration::from_secs(10);

/// From now on the panic of any thread or task ends this process: it says which and why on stderr, and its exit status is
/// [`EXIT_STATUS`].
pub fn end_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // It ends, whether anybody reads why or not. Without a thread left for that, it may have to be ended.
        let _ = std::thread::Builder::new().name("ending".into()).spawn(|| {
            std::thread::sleep(LAST_WORDS_MAX);
            std::process::exit(EXIT_STATUS);
        });
        crate::standard_error::finish();
        tell(panic);
        let thread = std::thread::current();
        crate::standard_error::say(format_args!(
            "longwire: a part of the node ({}) has failed, by a fault of this program: it ends.\n\
             What it has accepted is in its store, and goes on when it is started again.\n\
             hint: report the lines above",
            thread.name().unwrap_or("a thread")
        ));
        crate::standard_error::finish();
        std::process::exit(EXIT_STATUS);
    }));
}
