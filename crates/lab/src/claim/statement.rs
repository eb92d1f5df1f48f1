//! Statements as data: bounds for figures, for their ratios to other figures or for their differences from them.
//!
//! ```toml
//! [[statement]]
//! words = "Firmware A and B are very close to each other."
//! meaning = "within 5 %, at both rates"
//! kind = "predicted"
//! check = [{ says = "A over B", of = { firmware = "A", rate = [1200, 9600] }, over = { firmware = "B" }, within = 0.05 }]
//! ```
//!
//! `of` selects figures by their parameters: all combinations of the values given. `over` has the values in which the
//! other figures differ. The experiment knows what the parameters mean.

use super::{Claim, Ours, Published, Rule};
use crate::record::{FigureKind, Params, Value};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Figures selected by their parameters.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Selection(BTreeMap<String, Values>);

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    One(Value),
    Several(Vec<Value>),
}

impl Selection {
    /// Returns the parameters of each figure: all combinations, those of the last parameter by name next to each other.
    pub fn points(&self) -> Vec<Params> {
        self.differing(&Params::new())
    }

    /// Returns those of the figures that differ from this one in what is selected.
    fn differing(&self, point: &Params) -> Vec<Params> {
        self.0.iter().fold(vec![point.clone()], |points, (name, values)| {
            let values = match values {
                Values::One(value) => std::slice::from_ref(value),
                Values::Several(values) => values,
            };
            let of =
                |point: &Params| values.iter().map(|value| point.clone().with(name, value.clone())).collect();
            points.iter().flat_map::<Vec<Params>, _>(of).collect()
        })
    }
}

/// Bounds of figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Description of the comparison, in a few words; `None` for a check that is not described.
    pub says: Option<String>,
    of: Selection,
    /// Other figures, with whose values the bounds are multiplied.
    over: Option<Selection>,
    /// True if the bounds are added to the values of the other figures instead.
    #[serde(default)]
    difference: bool,
    /// True if one of the figures has to be within its bounds, not each.
    #[serde(default)]
    any: bool,
    from: Option<f64>,
    to: Option<f64>,
    /// Bounds of a ratio in both directions, as a share: 0.05 is 5 %.
    within: Option<f64>,
}

/// Figure with its bounds.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// Check that it is a part of.
    pub check: &'a Check,
    /// Parameters of the figure.
    pub of: Params,
    /// Parameters of the other one.
    pub over: Option<Params>,
}

/// Values of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Value of the figure.
    pub value: f64,
    /// Value of the other figure.
    pub over: Option<f64>,
    /// Lower and upper bound of the figure.
    pub bounds: [Option<f64>; 2],
}

impl Compared {
    /// Returns true if the figure is within its bounds.
    pub fn holds(&self) -> bool {
        let [from, to] = self.bounds;
        from.is_none_or(|from| self.value >= from) && to.is_none_or(|to| self.value <= to)
    }
}

impl Comparison<'_> {
    /// Compares the figures, whose values `value` returns.
    pub fn compare(&self, mut value: impl FnMut(&Params) -> f64) -> Compared {
        let (ours, over) = (value(&self.of), self.over.as_ref().map(value));
        let Check { from, to, within, difference, .. } = self.check;
        let ends = within.map_or([*from, *to], |share| [1.0 / (1.0 + share), 1.0 + share].map(Some));
        let bounds = ends.map(|end| match over {
            Some(over) if *difference => end.map(|end| over + end),
            _ => end.map(|end| over.unwrap_or(1.0) * end),
        });
        Compared { value: ours, over, bounds }
    }
}

impl Check {
    /// Returns all figures with what they are compared with.
    pub fn comparisons(&self) -> Vec<Comparison<'_>> {
        let with = |of: &Params, over: Option<Params>| Comparison { check: self, of: of.clone(), over };
        let comparisons = |of: Params| match &self.over {
            None => vec![with(&of, None)],
            Some(over) => over.differing(&of).into_iter().map(|over| with(&of, Some(over))).collect(),
        };
        self.of.points().into_iter().flat_map(comparisons).collect()
    }

    /// Returns true if the check holds, and the range of what is compared.
    fn judge(&self, mut value: impl FnMut(&Params) -> f64) -> (bool, Option<String>) {
        let compared: Vec<Compared> =
            self.comparisons().iter().map(|comparison| comparison.compare(&mut value)).collect();
        let mut holding = compared.iter().map(Compared::holds);
        let holds = if self.any { holding.any(|holds| holds) } else { holding.all(|holds| holds) };
        let relative = compared.iter().map(|Compared { value, over, .. }| match over {
            Some(over) if self.difference => value - over,
            over => value / over.unwrap_or(1.0),
        });
        let least = format!("{:.2}", relative.clone().fold(f64::MAX, f64::min));
        let most = format!("{:.2}", relative.fold(f64::MIN, f64::max));
        let range = if least == most { least } else { format!("{least} to {most}") };
        (holds, self.says.as_ref().map(|says| format!("{says}: {range}")))
    }
}

/// Published statement, with its interpretation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    words: String,
    /// Condition under which it holds.
    meaning: String,
    kind: FigureKind,
    /// Reason of a miss.
    #[serde(default)]
    why: String,
    check: Vec<Check>,
}

impl Statement {
    /// Returns the claim of this place, judged by the values of our figures.
    pub fn claim(&self, place: &str, mut value: impl FnMut(&Params) -> f64) -> Claim {
        let judged: Vec<(bool, Option<String>)> =
            self.check.iter().map(|check| check.judge(&mut value)).collect();
        let found: Vec<&str> = judged.iter().filter_map(|(_, found)| found.as_deref()).collect();
        let meaning = format!("Interpreted as {}", self.meaning);
        Claim {
            what: self.words.clone(),
            place: place.into(),
            published: Published::Statement,
            ours: Ours::Words(match &found[..] {
                [] => meaning.clone(),
                found => format!("{meaning}: {}", found.join("; ")),
            }),
            rule: Rule::Criterion(Some(judged.iter().all(|(holds, _)| *holds))),
            kind: self.kind,
            why: if self.why.is_empty() { meaning } else { self.why.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Verdict;

    fn statement(check: &str) -> Statement {
        let text = format!("words = 'w'\nmeaning = 'm'\nkind = 'predicted'\ncheck = [{check}]");
        toml::from_str(&text).expect("a statement")
    }

    /// Value: ten times the number, plus one for the letter b.
    fn claim(check: &str) -> Claim {
        statement(check).claim("p", |params| {
            let letter = f64::from(params.get("letter") == Some(&Value::from("b")));
            10.0 * params.get("number").and_then(Value::as_f64).expect("a number") + letter
        })
    }

    fn holds(check: &str) -> bool {
        claim(check).verdict() == Verdict::Holds
    }

    #[test]
    fn all_combinations_are_compared_with_those_that_differ_in_what_is_given() {
        let all = "of = { letter = ['a', 'b'], number = [1, 2] }";
        assert!(holds(&format!("{{ {all}, from = 10, to = 21 }}")));
        assert!(!holds(&format!("{{ {all}, from = 10.5, to = 21 }}")));
        assert!(!holds(&format!("{{ {all}, from = 10, to = 20.5 }}")));
        assert!(holds(&format!("{{ {all}, any = true, to = 10 }}")));
        assert!(!holds(&format!("{{ {all}, any = true, to = 9 }}")));
        let statement = statement(&format!("{{ {all}, over = {{ number = 3 }} }}"));
        let points = statement.check[0].comparisons();
        let words = |at: &Params| at.to_string();
        assert_eq!(words(&points[1].of), "letter=a number=2");
        assert_eq!(points[3].over.as_ref().map(words).as_deref(), Some("letter=b number=3"));
    }

    #[test]
    fn bounds_are_of_the_figure_its_ratio_or_its_difference() {
        let twice = "of = { number = 2 }, over = { number = 1 }";
        assert!(
            holds(&format!("{{ {twice}, from = 2, to = 2 }}")) && !holds(&format!("{{ {twice}, to = 1.9 }}"))
        );
        assert!(
            holds(&format!("{{ {twice}, within = 1 }}")) && !holds(&format!("{{ {twice}, within = 0.9 }}"))
        );
        let half = "of = { number = 1 }, over = { number = 2 }";
        assert!(
            holds(&format!("{{ {half}, within = 1 }}")) && !holds(&format!("{{ {half}, within = 0.9 }}"))
        );
        let apart = format!("{twice}, difference = true");
        assert!(
            holds(&format!("{{ {apart}, from = 10, to = 10 }}")) && !holds(&format!("{{ {apart}, to = 9 }}"))
        );
        // A rise of less than nothing is none, whatever the sign of the other figure.
        assert!(holds("{ of = { number = -1 }, over = { number = -2 }, from = 2 }"));
        assert!(!holds("{ of = { number = -5 }, over = { number = -2 }, from = 2 }"));
    }

    #[test]
    fn what_was_found_is_described_where_it_has_a_name() {
        let found = claim(
            "{ says = 'up', of = { number = [2, 3] }, over = { number = 1 }, from = 1 }, { of = { number = 1 } }",
        );
        assert_eq!(found.ours, Ours::Words("Interpreted as m: up: 2.00 to 3.00".into()));
        assert_eq!(found.why, "Interpreted as m");
    }
}
