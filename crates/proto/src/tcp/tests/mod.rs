//! Stories of two hosts over a line, each a dialogue with times.

mod figures;
mod harness;
mod opening;
