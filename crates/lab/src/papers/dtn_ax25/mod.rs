//! `paper dtn-ax25`: a published evaluation of bundles over connected-mode AX.25, compared with TCP/IP over AX.25.
//!
//! "More experiments with Delay and Disruption Tolerant Networking over AX.25 Networks", J. Ronan, D. Long, K. Walsh. A
//! file of 7182 bytes is sent from one radio to another at 1200 and at 9600 bit/s, with windows of 1 to 7 frames.
//!
//! The model of the paper is reproduced to the printed digit, and so is its explanation of the remaining time: one
//! constant per turnaround of the channel, taken from one row, predicts the other rows. Raw AX.25, the convergence
//! layer and FTP over TCP/IP run on a simulated channel.

mod beyond;
mod closed;
mod page;
#[cfg(test)]
mod tests;
mod trials;

use super::Paper;
use crate::claim;
use crate::record::Params;
use std::sync::LazyLock;

/// The evaluation.
pub const PAPER: Paper = Paper {
    name: "dtn-ax25",
    title: "Bundles over connected-mode AX.25: a published evaluation, reproduced",
    about: "Bundles over connected-mode AX.25 between two radios, compared with TCP/IP",
    citation: "J. Ronan, D. Long, K. Walsh: More experiments with Delay and Disruption Tolerant Networking over \
               AX.25 Networks",
    play: |bench| page::page(&trials::simulate(bench)),
};

const PUBLISHED: &str = include_str!("published.csv");
/// File length, bytes.
const FILE_BYTES: u64 = 7182;
/// Rates, bit/s.
const RATES_BPS: [f64; 2] = [1200.0, 9600.0];

const MODEL: &str = "model ronan-2011";
/// Case of the same with the turnaround.
const TURNING: &str = "model ronan-2011 with turnaround";
const RAW: &str = "raw AX.25, simulated";
/// Case of the convergence layer.
const BUNDLES: &str = "AX.25-CL, simulated";
const TCP: &str = "TCP/IP over UI frames, simulated";

/// Row of Tables II and V, or III and VII: published times for one window, seconds.
struct Row {
    rate_bps: f64,
    window: u32,
    model_s: f64,
    convergence_s: f64,
    tcp_s: f64,
}

/// Rows of Tables II, III, V and VII. The constants come from the first one.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let [model, bundles, tcp] =
        [MODEL, BUNDLES, TCP].map(|case| claim::published(PUBLISHED, case, "transfer_s"));
    let points = RATES_BPS.into_iter().flat_map(|rate_bps| (1..=7).map(move |window| (rate_bps, window)));
    let row = |(at, (rate_bps, window)): (usize, (f64, u32))| {
        let (model_s, convergence_s, tcp_s) = (model[at], bundles[at], tcp[at]);
        Row { rate_bps, window, model_s, convergence_s, tcp_s }
    };
    points.enumerate().map(row).collect()
});

fn params(row: &Row) -> Params {
    Params::new().with("rate_bps", row.rate_bps).with("window", row.window).with("file_bytes", FILE_BYTES)
}
