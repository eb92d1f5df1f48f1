//! What the page assumes, and which of it moves the result.

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
            "A station waits for a slot 5 ms on average.",
            "the paper's p times slot time; a station that waits a slot before each draw, as Dire Wolf does, takes 80 ms",
            moved(Model { csma: Csma::WaitThenDraw, ..preset }),
        ),
        assumed(
            "All 29 frames are full.",
            "no entry of the tables has the last one at its 42 bytes",
            moved(Model { last_frame: LastFrame::True, ..preset }),
        ),
        assumed(
            "Bits are stuffed into information only.",
            "the printed formulas say otherwise, and give other tables",
            moved(Model { stuffing: Stuffing::All, ..preset }),
        ),
        assumed(
            "What the convergence layer took beyond the model is turns alone, the same for every row.",
            "the paper's own explanation; fitted on one row",
            "the ratios of Tables V and VII say how far it goes".into(),
        ),
        assumed(
            "A bundle is 90 bytes longer than its file, and each frame carries 255 bytes.",
            "version 6 with short names; the paper does not say",
            "the turn is fitted with them: they move the other rows by less than they are long".into(),
        ),
        assumed(
            "The simulated layer is timed from the call to the bundle's acknowledgement, and storage takes no time.",
            "the paper does not say what was timed; what storage takes is in the turn, which is fitted with it",
            "the table of rigs says what comes of a session that stands before".into(),
        ),
        assumed(
            "Controllers are in KISS mode behind serial lines of 9,600 bit/s, and take their turn before they try to get the \
             channel; hosts acknowledge alone after 3 s (T2), and the frame that fills a window at once.",
            "the paper names KISS, Linux and serial lines and no figures; users of these radios reach them at that rate, and \
             the rest is Linux's",
            "the table of rigs says what comes of other rates, and of stations without such controllers"
                .into(),
        ),
        assumed(
            "TCP/IP goes in UI frames, and is timed from the PORT command to the end of the session.",
            "the paper says neither; of the readings compared it is one that comes near all rows",
            "the table of readings says how far the others are off".into(),
        ),
        assumed(
            "Its hosts are Linux as the preset `linux-2.4` has it: initial timeout 3 s, delayed acknowledgements from 40 ms, \
             timestamps, two segments at first; names and answers of the dialogue are those of a common server.",
            "the paper names Linux and no version; the window of Table IV is that of the route, not of the buffer",
            "the table of readings says what a Linux of today and one without timestamps take".into(),
        ),
    ]
}
