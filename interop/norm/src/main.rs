//! A sender or receiver of NORM with NRL's library, for tests of other implementations beside it.
//!
//! | file | content |
//! |---|---|
//! | `options` | the command line, with its help |
//! | `sender`, `receiver` | the roles |
//! | `report` | lines of JSON on standard output, one for each event |
//! | `norm` | declarations of the library, with safe functions around them |

mod norm;
mod options;
mod receiver;
mod report;
mod sender;

use norm::{
    Instance, NormCreateInstance, NormSetMulticastLoopback, NormSetRxLoss, NormSetRxSocketBuffer,
    NormSetTxLoss, NormSetTxSocketBuffer, Session,
};
use options::{HELP, Options, Role};
use report::Report;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Space of the sockets; the operating system may give less.
const SOCKET_BYTES: u32 = 4 << 20;

/// How a role ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Complete,
    /// A node did not acknowledge the watermark.
    Unacknowledged,
    /// An object ended before it was complete.
    Aborted,
    Timeout,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Complete => "complete",
            Outcome::Unacknowledged => "unacknowledged",
            Outcome::Aborted => "aborted",
            Outcome::Timeout => "timeout",
        }
    }
}

/// The library with one session, and the limit in time.
#[derive(Debug)]
struct Peer {
    instance: Instance,
    session: Session,
    report: Report,
    deadline: Instant,
}

impl Peer {
    fn start(options: &Options) -> Result<Peer, String> {
        let start = Instant::now();
        let instance = NormCreateInstance(false);
        if !instance.is_valid() {
            return Err("the library does not start".into());
        }
        let session = instance.create_session(&options.address, options.port, options.node);
        if !session.is_valid() {
            return Err(format!("no session with {}", options.address));
        }
        if let Some(name) = &options.interface
            && !session.set_multicast_interface(name)
        {
            return Err(format!("no interface {name}"));
        }
        if options.loopback {
            session.share_rx_port();
            NormSetMulticastLoopback(session, true);
        }
        if let Some(port) = options.tx_port
            && !session.set_tx_port(port)
        {
            return Err(format!("no port {port}"));
        }
        NormSetRxLoss(session, options.rx_loss);
        NormSetTxLoss(session, options.tx_loss);
        Ok(Peer { instance, session, report: Report::new(start), deadline: start + options.timeout })
    }

    /// Sizes of the sockets, which exist once the role has been started.
    fn enlarge_sockets(&self) {
        NormSetTxSocketBuffer(self.session, SOCKET_BYTES);
        NormSetRxSocketBuffer(self.session, SOCKET_BYTES);
    }

    /// Time until the deadline, `None` behind it.
    fn remaining(&self) -> Option<Duration> {
        self.deadline.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
    }

    /// Lets the library answer for some time after the task is done.
    fn linger(&self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(rest) = end.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero()) {
            self.instance.next_event(rest);
        }
    }
}

fn run(options: &Options) -> Result<Outcome, String> {
    let peer = Peer::start(options)?;
    let outcome = match &options.role {
        Role::Send(send) => sender::run(&peer, options, send)?,
        Role::Receive(receive) => receiver::run(&peer, options, receive)?,
    };
    peer.report.line("end").text("outcome", outcome.name()).print();
    peer.linger(options.linger);
    Ok(outcome)
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(arguments.into_iter()) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}\nhint: norm-peer --help");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(Outcome::Complete) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
