//! Stories of two hosts over a line, each a dialogue with times.

mod figures;
mod harness;
mod hostile;
mod opening;
mod recovery;
mod rules;
mod windows;
