//! What went wrong, and what to do about it.

use std::fmt;

/// An error of the user's making, told to the user: what happened, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What happened.
    pub what: String,
    /// What to do next, if something is known to help.
    pub hint: Option<String>,
}

impl Error {
    /// This happened.
    pub fn new(what: impl Into<String>) -> Error {
        Error { what: what.into(), hint: None }
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// The known name that `wrong` most likely stands for: at most a third of its letters differ.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let budget = wrong.chars().count().div_ceil(3).max(1);
    let scored = known.into_iter().map(|name| (distance(wrong, name), name));
    scored
        .filter(|(distance, _)| *distance <= budget)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters have to be put in, taken out or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_unless_nothing_is_near() {
        let known = ["delay-ms", "rate-bps", "ber"];
        assert_eq!(nearest("dealy-ms", known), Some("delay-ms"));
        assert_eq!(nearest("rate", known), None);
        assert_eq!(nearest("bear", known), Some("ber"));
        assert_eq!(nearest("window", known), None);
    }
}
