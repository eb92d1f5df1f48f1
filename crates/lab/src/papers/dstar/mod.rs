//! `paper dstar`: a published comparison of TCP and of bundles over NORM on D-STAR DD radios.
//!
//! "A further comparison of different TCP/IP and DTN protocols over the D-STAR Digital Data mode", J. Ronan, C. O'Connor.
//! A file of 6 MiB, and iperf for 600 s, over one, two and three radio links on one channel of 1.2 GHz, and with a station
//! that the sender does not hear.
//!
//! Two constants of the channel, the fixed cost of a transmission and the rate, come from a ping and from one row; all other
//! figures are predictions. The rules by which the radios get the channel are not published: what is assumed stands on the
//! page with its effect.

mod page;
mod probes;
#[cfg(test)]
mod tests;
mod trials;
mod world;

use super::Paper;

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "dstar",
    title: "TCP and bundles over D-STAR DD: a published evaluation, reproduced",
    about: "TCP and bundles over D-STAR DD radios, up to three links on one channel",
    citation: "J. Ronan, C. O'Connor: A further comparison of different TCP/IP and DTN protocols over the D-STAR Digital \
               Data mode",
    play: |bench| page::page(&trials::play(bench)),
};

const PUBLISHED: &str = include_str!("published.csv");
/// Minima, maxima and means of Tables I to IV.
const TABLES: &str = include_str!("tables.csv");
