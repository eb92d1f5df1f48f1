//! Scenarios of two hosts over a line, each an exchange with times.

mod figures;
mod harness;
mod hostile;
mod opening;
mod recovery;
mod rules;
mod timed;
mod windows;
