use super::*;

#[test]
fn no_bytes_break_a_codec() {
    CODECS.iter().for_each(|codec| try_codec(codec, seeds()));
}

#[test]
fn no_script_breaks_an_engine() {
    PLAYS.iter().for_each(|play| try_play(play.name, seeds(), play.run));
}
