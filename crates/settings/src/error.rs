//! Errors for the user, with hints.

use longwire_proto::setting::Fault;
use std::fmt;

/// Error that the user can correct: what happened, and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Description of the error.
    pub what: String,
    /// Advice on what to do; `None` if there is none.
    pub hint: Option<String>,
}

impl Error {
    /// Creates an error without a hint.
    pub fn new(what: impl Into<String>) -> Error {
        Error { what: what.into(), hint: None }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place of the error in front.
    pub fn within(self, place: impl fmt::Display) -> Error {
        Error { what: format!("{place}: {}", self.what), ..self }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::new(fault.to_string()).hint(fault.hint)
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

/// Returns the known name that is closest to `wrong`; `None` if more than a third of the letters of `wrong` differ.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let budget = wrong.chars().count().div_ceil(3).max(1);
    let scored = known.into_iter().map(|name| (strsim::levenshtein(wrong, name), name));
    scored
        .filter(|(distance, _)| *distance <= budget)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the hint for a name that does not exist: the nearest known one, or else `otherwise`.
pub fn did_you_mean<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: impl Into<String>,
) -> String {
    nearest(wrong, known).map_or_else(|| otherwise.into(), |near| format!("did you mean `{near}`?"))
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
