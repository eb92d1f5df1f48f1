//! What everything that reads settings shares: TOML as people write it, and errors that say what to do next.

pub mod error;
pub mod file;
mod reader;
pub mod toml_text;
