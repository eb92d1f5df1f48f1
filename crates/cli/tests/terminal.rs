//! Complete output of comparisons on pseudo-terminals of different widths.

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Temporary folder, removed on drop.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the output of a comparison on a terminal of the given width.
fn shown(width: u16, link: &str) -> String {
    let name = format!("longwire-terminal-{link}-{width}-{}", std::process::id());
    let place = Place(std::env::temp_dir().join(name));
    fs::create_dir_all(&place.0).unwrap();
    fs::write(place.0.join("letter.txt"), "Nothing accepted is ever lost.\n".repeat(100)).unwrap();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 40, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["compare", "letter.txt", "--link", link, "--runs", "3"])
        .current_dir(&place.0)
        .env_clear()
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    // Reading fails once the other end of the terminal is closed.
    let _ = fs::File::from(ours).read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

/// Returns the output before the settings at all widths: the answer, the ranking and the remarks.
fn answers(link: &str) -> String {
    let mut all = String::new();
    for width in [80, 100, 120] {
        let shown = shown(width, link);
        let end = shown.find("\nsettings: ").or_else(|| shown.find("\nnode configuration: ")).unwrap();
        let answer = &shown[..end];
        for line in answer.lines() {
            assert!(line.chars().count() <= width.into(), "{width}: {line}");
        }
        assert!(!answer.contains('…'), "a name is cut: {answer}");
        // The missing guarantee of delivery is mentioned once.
        let words = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.matches("there are no acknowledgements").count() <= 1, "{answer}");
        all += &format!("-- {width} columns\n{answer}\n");
    }
    all
}

#[test]
fn a_comparison_of_lines_fits_80_100_and_120_columns() {
    insta::assert_snapshot!(answers("cislunar"));
}

#[test]
fn a_comparison_on_the_air_fits_80_100_and_120_columns() {
    insta::assert_snapshot!(answers("ax25-9600"));
}
