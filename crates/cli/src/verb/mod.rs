//! Verbs of the command, one module each.

mod bundles;
mod call;
mod certificate;
mod clock;
mod compare;
mod completions;
mod demo;
mod doctor;
mod emulate;
mod heard;
mod init;
mod key;
mod links;
mod man;
mod measure;
mod merge;
mod model;
mod monitor;
mod node;
mod paper;
mod ping;
mod recv;
mod run;
mod send;
mod status;
mod store;

use crate::failure::CommandResult;
use clap::Subcommand;

/// Verb with its options.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Compare(compare::Compare),
    Demo(demo::Demo),
    Emulate(emulate::Emulate),
    Paper(paper::Paper),
    Run(run::Run),
    Merge(merge::Merge),
    Model(model::Model),
    Init(init::Init),
    Node(node::Node),
    Monitor(monitor::Monitor),
    Call(call::Call),
    Send(send::Send),
    Recv(recv::Recv),
    Ping(ping::Ping),
    Measure(measure::Measure),
    Status(status::Status),
    Doctor(doctor::Doctor),
    Bundles(bundles::Bundles),
    Store(store::Store),
    Links(links::Links),
    Heard(heard::Heard),
    Clock(clock::Clock),
    Certificate(certificate::Certificate),
    Key(key::Key),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Verb {
    pub(crate) fn run(&self) -> CommandResult {
        match self {
            Verb::Compare(compare) => compare.run(),
            Verb::Demo(demo) => demo.run(),
            Verb::Emulate(emulate) => emulate.run(),
            Verb::Paper(paper) => paper.run(),
            Verb::Run(run) => run.run(),
            Verb::Merge(merge) => merge.run(),
            Verb::Model(model) => model.run(),
            Verb::Init(init) => init.run(),
            Verb::Node(node) => node.run(),
            Verb::Monitor(monitor) => monitor.run(),
            Verb::Call(call) => call.run(),
            Verb::Send(send) => send.run(),
            Verb::Recv(recv) => recv.run(),
            Verb::Ping(ping) => ping.run(),
            Verb::Measure(measure) => measure.run(),
            Verb::Status(status) => status.run(),
            Verb::Doctor(doctor) => doctor.run(),
            Verb::Bundles(bundles) => bundles.run(),
            Verb::Store(store) => store.run(),
            Verb::Links(links) => links.run(),
            Verb::Heard(heard) => heard.run(),
            Verb::Clock(clock) => clock.run(),
            Verb::Certificate(certificate) => certificate.run(),
            Verb::Key(key) => key.run(),
            Verb::Completions(completions) => completions.run(),
            Verb::Man(man) => man.run(),
        }
    }
}
