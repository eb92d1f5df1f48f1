//! Effects of other assumptions about controllers.

use super::calibrate::edges;
use super::figures::Values;
use super::fleet::{Case, Constants, FAST, Role, SLOW, SLOW_BPS, find};
use super::simulated::Simulated;
use crate::controllers::Transfer;
use crate::format::range;
use crate::stats::{self, least};
use longwire_proto::time::Duration;

const SEEDS: u64 = 16;

/// Mean throughput of a transfer with a change.
fn changed(case: Case, change: impl Fn(&mut Transfer)) -> f64 {
    let mut transfer = case.transfer();
    change(&mut transfer);
    transfer.mean_throughput_bps(SEEDS)
}

/// Returns the figures of the effects, in the order of the assumptions.
pub(super) fn effects(simulated: &Simulated) -> Vec<Vec<String>> {
    let (fastest, tnc3) = (Case::delivered("TNC3S", 38_400), find("TNC3S"));
    let mfj = Case::exchanged(Role::Sender, "MFJ", FAST[0]);
    let [slow, quick] = FAST.map(|machine| Case::exchanged(Role::Receiver, "TF 2.7", machine));
    let [of_tnc3, of_mfj, of_slow] = [fastest, mfj, slow].map(|case| changed(case, |_| ()));
    let counted_1 = changed(fastest, |transfer| {
        for side in [&mut transfer.sender, &mut transfer.recipient] {
            side.controller.megacycles_per_s = tnc3.clock_mhz;
        }
    });
    let silent = changed(mfj, |transfer| transfer.sender.polls = false);
    let speed = tnc3.clock_mhz * tnc3.work_per_cycle;
    let to_tnc3 = changed(mfj, |transfer| transfer.recipient.controller.megacycles_per_s = speed);
    let from_tnc3 = changed(quick, |transfer| transfer.sender.controller.megacycles_per_s = speed);
    let bps = |figures: &[f64]| figures.iter().map(|bps| format!("{bps:.0}")).collect();
    vec![
        bps(&[counted_1, of_tnc3]),
        bps(&[silent, of_mfj]),
        bps(&[to_tnc3, of_mfj, of_slow, from_tnc3]),
        Vec::new(),
        strictly_similar(simulated),
        vec![longer_t2(simulated)],
        falling_windows(),
    ]
}

/// Cycles per octet of TF 2.3 and its windows if `similar` is as strict as `independent`: within 5 %.
fn strictly_similar(simulated: &Simulated) -> Vec<String> {
    let case = Case::exchanged(Role::Sender, "TF 2.3", SLOW[0]);
    let is_strict = |point: &Constants| {
        let of = |window| case.with_window(window).transfer_with(*point).mean_throughput_bps(SEEDS);
        let [whole, single] = [7, 1].map(of);
        whole <= 1.05 * single
    };
    let left: Vec<f64> = edges("TF 2.3").into_iter().filter(is_strict).map(|point| point.0).collect();
    let windows = FAST.map(|machine| {
        let case = Case::exchanged(Role::Sender, "TF 2.3", machine).long();
        let values = simulated.leeway.values(&case).filter(|((octet, _), _)| left.contains(octet));
        range(values.map(|value| value.1), 1)
    });
    [range(left.iter().copied(), 0)].into_iter().chain(windows).collect()
}

/// Finds the T2 with which TNC3 and TNC7 are below the others for every k < 7.
fn longer_t2(simulated: &Simulated) -> String {
    /// Longest T2 tried, seconds.
    const LONGEST: u64 = 10;
    let of = |machine, window| Case::delivered(machine, SLOW_BPS).with_window(window);
    let is_below = |t2_s: u64, machine, window| {
        let ours = changed(of(machine, window), |transfer| {
            transfer.recipient.controller.firmware.acknowledge_delay = Some(Duration::from_secs(t2_s));
        });
        let others = ["TNC2", "TNC2D", "KPC-9612+"].map(|other| simulated.throughput(of(other, window)));
        ours < least(others)
    };
    let all_are = |t2_s: &u64| {
        (1..7).all(|window| ["TNC7multi", "TNC3S"].iter().all(|name| is_below(*t2_s, name, window)))
    };
    let found = (3..=LONGEST).find(all_are);
    found.map_or(format!("none up to {LONGEST} s"), |t2_s| format!("{t2_s} s"))
}

/// Mean windows with shorter T103, at which they begin to shrink.
fn falling_windows() -> Vec<String> {
    let window = |machine: &str, milliseconds: u64| {
        let mut transfer = Case::delivered(machine, 153_600).long().transfer();
        transfer.tx_delay = Duration::from_millis(milliseconds);
        format!("{:.1}", stats::mean((0..2).map(|seed| transfer.play(seed).mean_window())))
    };
    let of_tnc3 = [150, 100, 50].map(|milliseconds| window("TNC3S", milliseconds));
    vec![of_tnc3.join(", "), window("TNC7multi", 5)]
}
