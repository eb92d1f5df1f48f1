//! `paper aerotp`: a published comparison of error control for airborne telemetry.
//!
//! "Comparison of Adaptive Transport-Layer Error-Control Mechanisms for Highly-Dynamic Airborne Telemetry Networks", K. S. Pathapati,
//! J. P. Rohrer, J. P. G. Sterbenz. 1 MB at 4.416 Mbit/s over 10 Gbit/s, 5 Mbit/s with bit errors both ways, and 10 Gbit/s: the modes of
//! AeroTP, UDP and the TCP of ns-3.
//!
//! The paper states no figures of its plots, so its claims are statements. Its code, its header and its timers are unknown: the
//! engine has a format of its own, and the weak code of some modes is calibrated to the losses that the paper describes.

mod beyond;
mod claims;
mod connections;
mod ends;
mod observed;
mod page;
mod path;
#[cfg(test)]
mod tests;
mod trials;

use super::Paper;

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "aerotp",
    title: "AeroTP, TCP and UDP with bit errors: a published evaluation, reproduced",
    about: "AeroTP's modes, TCP and UDP over an airborne link with bit errors",
    citation: "K. S. Pathapati, J. P. Rohrer, J. P. G. Sterbenz: Comparison of Adaptive Transport Layer Error-Control \
               Mechanisms for Highly-Dynamic Airborne Telemetry Networks",
    play: |bench| page::page(&trials::play(bench)),
};
