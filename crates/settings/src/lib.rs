//! Shared parts of all programs that read settings: files, TOML with durations, and errors with hints.

#![forbid(unsafe_code)]

pub mod error;
pub mod figure;
pub mod file;
mod reader;
pub mod toml_text;

pub use longwire_proto::duration;
