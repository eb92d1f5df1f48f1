//! TCP/IP as an engine: IPv4 and TCP of one host, with real headers and checksums.
pub mod config;
pub mod wire;
