//! Assumptions of the page, and their effect on the result.

use super::{Row, TIMES, time_s};
use crate::model::ax25::{Csma, LastFrame, Model, Stuffing};
use crate::report::Assumption;

pub(super) fn assumptions() -> Vec<Assumption> {
    let preset = Model::ronan_2011();
    let moved = |other: Model| {
        let change = |row: &Row| (time_s(&other, row) / time_s(&preset, row) - 1.0) * 100.0;
        format!(
            "the model's times change by {:+.1} % (1200 bit/s) and {:+.1} % (9600 bit/s) at k = 1, by {:+.1} % and {:+.1} % at k = 7",
            change(&TIMES[0]),
            change(&TIMES[7]),
            change(&TIMES[6]),
            change(&TIMES[13])
        )
    };
    let assumed = |text: &str, basis: &str, effect: String| Assumption {
        text: text.into(),
        basis: basis.into(),
        effect: Some(effect),
        moves_result: true,
    };
    vec![
        assumed(
            "The mean wait for a slot is 5 ms.",
            "p times slot time, as in the paper; 80 ms for stations that wait a slot before each draw, as Dire Wolf \
             does",
            moved(Model { csma: Csma::WaitThenDraw, ..preset }),
        ),
        assumed(
            "All 29 frames are full.",
            "no table entry matches a last frame of 42 bytes",
            moved(Model { last_frame: LastFrame::True, ..preset }),
        ),
        assumed(
            "Bit stuffing applies to information octets only.",
            "the printed formulas differ and give other tables",
            moved(Model { stuffing: Stuffing::All, ..preset }),
        ),
        assumed(
            "The time of the convergence layer beyond the model is turnaround only, equal in every row.",
            "the paper's own explanation; fitted on one row",
            "see the ratios in Tables V and VII".into(),
        ),
        assumed(
            "A bundle is 90 bytes longer than its file, and each frame carries 255 bytes.",
            "version 6 with short names; not stated in the paper",
            "the turnaround is fitted with them; they change the other rows by less than their own length"
                .into(),
        ),
        assumed(
            "The simulated layer is timed from the connection request to the acknowledgement of the bundle; storage \
             adds no delay.",
            "not stated in the paper; storage time is part of the turnaround, which is fitted with it",
            "see the table of test setups for an existing session".into(),
        ),
        assumed(
            "Controllers are in KISS mode on serial lines of 9,600 bit/s, and their turnaround precedes channel \
             access; hosts acknowledge after 3 s (T2), and at once when a frame fills the window.",
            "the paper mentions KISS, Linux and serial lines without figures; this rate is usual with these radios, \
             the rest are Linux defaults",
            "for other rates and for stations without such controllers see the table of test setups".into(),
        ),
        assumed(
            "TCP/IP uses UI frames and is timed from the PORT command to the end of the session.",
            "neither is stated in the paper; this reading is close to all rows",
            "see the table of readings for the others".into(),
        ),
        assumed(
            "The hosts run Linux as in the preset `linux-2.4`: initial timeout 3 s, delayed acknowledgements from 40 \
             ms, timestamps, initial window of two segments; commands and replies of the session are those of a \
             common server.",
            "the paper names Linux without a version; the window of Table IV is that of the route, not of the buffer",
            "for a current Linux and one without timestamps see the table of readings".into(),
        ),
    ]
}
