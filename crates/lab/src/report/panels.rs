//! Panels: a plot with more series than there are styles, as several small plots on one scale.

use super::plot::{Plot, PlotSeries, STYLES, Shape};
use crate::label;
use crate::record::{Params, Value, distinct};

/// Series as it is drawn.
#[derive(Clone)]
pub(super) struct Drawn<'a> {
    pub(super) series: &'a PlotSeries,
    /// Number of the colour, marker and dash, below [`STYLES`].
    pub(super) style: usize,
    /// Name in the legend.
    pub(super) name: String,
}

/// Part of a plot with a frame of its own.
pub(super) struct Panel<'a> {
    /// Parameters that all its series have in common; empty if there are none.
    pub(super) title: String,
    /// Series, in drawing order.
    pub(super) drawn: Vec<Drawn<'a>>,
}

impl Panel<'_> {
    /// Name of the panel in a plot with this title.
    pub(super) fn name(&self, plot: &str) -> String {
        if self.title.is_empty() { plot.to_owned() } else { format!("{plot}, {}", self.title) }
    }
}

pub(super) struct Panels<'a> {
    pub(super) panels: Vec<Panel<'a>>,
    /// Legend of all panels, if their series have the same names.
    pub(super) legend: Option<Vec<Drawn<'a>>>,
}

/// Series with the number of its style.
type Numbered<'a> = (&'a PlotSeries, usize);

/// Returns the panels of a plot: a single one if there are enough styles for its series. Published points are beside the
/// series whose style they have, bounds and marks are in all panels; neither is counted.
pub(super) fn of(plot: &Plot) -> Panels<'_> {
    let all: Vec<Numbered<'_>> = plot.series.iter().zip(plot.numbers()).collect();
    let (common, own): (Vec<Numbered<'_>>, Vec<Numbered<'_>>) =
        all.iter().copied().partition(|(series, _)| is_common(series));
    if own.len() <= STYLES {
        let whole = all.into_iter().map(|(series, number)| Drawn {
            series,
            style: number % STYLES,
            name: series.full_name(),
        });
        return Panels { panels: vec![Panel { title: String::new(), drawn: whole.collect() }], legend: None };
    }
    let groups = split(own, &Params::new());
    let names = names(&groups);
    let one_legend = names.len() <= STYLES;
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for (given, group) in &groups {
        let mut drawn: Vec<Drawn<'_>> = Vec::new();
        for (at, &(series, _)) in group.iter().enumerate() {
            let name = name_in(series, given);
            let of_name = names.iter().position(|known| *known == name).filter(|_| one_legend);
            drawn.push(Drawn { series, style: of_name.unwrap_or(at), name });
        }
        for &(series, number) in &common {
            let beside = |group: &[Numbered<'_>]| group.iter().position(|(_, theirs)| *theirs == number);
            let style = match beside(group).filter(|_| series.style.is_some()) {
                Some(at) => drawn[at].style,
                None if series.style.is_some() && groups.iter().any(|(_, group)| beside(group).is_some()) => {
                    continue;
                }
                None => number % STYLES,
            };
            drawn.push(Drawn { series, style, name: series.full_name() });
        }
        panels.push(Panel { title: label::point(given), drawn });
    }
    let legend = one_legend.then(|| legend_of(&panels));
    Panels { panels, legend }
}

/// Returns true for what is drawn over the series of a panel and has no place in their count.
fn is_common(series: &PlotSeries) -> bool {
    series.published || matches!(series.shape, Shape::Bound | Shape::FaintSteps | Shape::Letter(_))
}

/// Splits series into groups of at most [`STYLES`]: by the parameter with the fewest values as long as one has the same
/// value in several series, else in order. Each group is returned with the parameters by which it was made.
fn split<'a>(series: Vec<Numbered<'a>>, given: &Params) -> Vec<(Params, Vec<Numbered<'a>>)> {
    if series.len() <= STYLES {
        return vec![(given.clone(), series)];
    }
    let Some((key, values)) = fewest(&series) else {
        return series.chunks(STYLES).map(|part| (given.clone(), part.to_vec())).collect();
    };
    let mut groups = Vec::new();
    for value in values {
        let here = series.iter().copied().filter(|(series, _)| series.at.get(&key) == value.as_ref());
        let given = match &value {
            Some(value) => given.clone().with(key.as_str(), value.clone()),
            None => given.clone(),
        };
        groups.extend(split(here.collect(), &given));
    }
    groups
}

/// Finds the parameter with the fewest values, and these in order of their first use.
fn fewest(series: &[Numbered<'_>]) -> Option<(String, Vec<Option<Value>>)> {
    let values = |key: &str| distinct(series.iter().map(|(series, _)| series.at.get(key).cloned()));
    let keys = series.first()?.0.at.iter().map(|(key, _)| key);
    let candidates = keys.map(|key| (key.to_owned(), values(key)));
    candidates.filter(|(_, values)| (2..series.len()).contains(&values.len())).min_by_key(|(_, v)| v.len())
}

/// Name of a series beside others with these parameters.
fn name_in(series: &PlotSeries, given: &Params) -> String {
    let others = series.at.iter().filter(|(key, _)| given.get(key).is_none());
    series.name_at(&others.fold(Params::new(), |params, (key, value)| params.with(key, value.clone())))
}

/// Distinct names of the series of all groups, in order of their first use.
fn names(groups: &[(Params, Vec<Numbered<'_>>)]) -> Vec<String> {
    let names = |(given, group): &(Params, Vec<Numbered<'_>>)| -> Vec<String> {
        group.iter().map(|(series, _)| name_in(series, given)).collect()
    };
    distinct(groups.iter().flat_map(names))
}

fn legend_of<'a>(panels: &[Panel<'a>]) -> Vec<Drawn<'a>> {
    let mut legend: Vec<Drawn<'a>> = Vec::new();
    for one in panels.iter().flat_map(|panel| &panel.drawn) {
        let same =
            |known: &Drawn<'_>| known.name == one.name && known.series.published == one.series.published;
        if !legend.iter().any(same) {
            legend.push(one.clone());
        }
    }
    legend
}

#[cfg(test)]
mod tests {
    use super::super::plot::{Axis, Point};
    use super::*;

    fn series(name: &str, params: &[(&str, u32)]) -> PlotSeries {
        let params = params.iter().fold(Params::new(), |params, (key, value)| params.with(*key, *value));
        PlotSeries::new(name, vec![Point::new(1.0, 2.0)]).at(params)
    }

    fn plot(all: impl IntoIterator<Item = PlotSeries>) -> Plot {
        all.into_iter().fold(Plot::new("time", Axis::default(), Axis::default()), Plot::with)
    }

    fn names<'a>(drawn: &'a [Drawn<'_>]) -> Vec<&'a str> {
        drawn.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn a_grid_is_split_by_the_parameter_with_the_fewest_values() {
        let grid = (0..3).flat_map(|loss| (0..5).map(move |k| series("tcp", &[("k", k), ("loss", loss)])));
        let bound = PlotSeries::new("ideal", Vec::new()).shaped(Shape::Bound);
        let plot = plot(grid.chain([bound]));
        let made = of(&plot);
        let titles: Vec<&str> = made.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["frame loss 0", "frame loss 1", "frame loss 2"]);
        for panel in &made.panels {
            assert_eq!(
                names(&panel.drawn),
                ["tcp, k 0", "tcp, k 1", "tcp, k 2", "tcp, k 3", "tcp, k 4", "ideal"]
            );
            let styles: Vec<usize> = panel.drawn.iter().map(|one| one.style).collect();
            assert_eq!(styles[..5], [0, 1, 2, 3, 4], "the same name has the same style");
        }
        assert_eq!(made.legend.expect("one for all panels").len(), 6);
        assert_eq!(made.panels[1].name("time"), "time, frame loss 1");
    }

    #[test]
    fn series_without_a_common_value_are_taken_seven_at_a_time() {
        for all in [
            (0..9).map(|k| series("tcp", &[("k", k)])).collect::<Vec<_>>(),
            (0..9).map(|k| series(&format!("tcp {k}"), &[])).collect(),
        ] {
            let plot = plot(all);
            let made = of(&plot);
            assert_eq!(made.panels.iter().map(|panel| panel.drawn.len()).collect::<Vec<_>>(), [7, 2]);
            assert!(made.legend.is_none() && made.panels.iter().all(|panel| panel.title.is_empty()));
        }
    }

    #[test]
    fn groups_that_are_still_too_large_are_split_again() {
        let grid = (0..2).flat_map(|loss| (0..8).map(move |k| series("", &[("loss", loss), ("k", k)])));
        let plot = plot(grid);
        let counts: Vec<usize> = of(&plot).panels.iter().map(|panel| panel.drawn.len()).collect();
        assert_eq!(counts, [7, 1, 7, 1]);
    }

    #[test]
    fn published_points_follow_their_series_and_are_not_counted() {
        let ours = |count: u32| (0..count).map(|k| series(&format!("k {k}"), &[]));
        let theirs =
            |style: usize| PlotSeries::new("paper", vec![Point::new(1.0, 1.0)]).published().styled(style);
        let few = plot(ours(7).chain([theirs(0), theirs(6)]));
        assert_eq!(of(&few).panels.len(), 1);
        let many = plot(ours(9).chain([theirs(1), theirs(8)]));
        let made = of(&many);
        for (panel, with, style) in [(0, "k 1", 1), (1, "k 8", 1)] {
            let drawn = &made.panels[panel].drawn;
            let published: Vec<_> = drawn.iter().filter(|one| one.series.published).collect();
            assert_eq!(published.len(), 1, "{:?}", names(drawn));
            assert_eq!(published[0].style, style);
            assert!(drawn.iter().any(|one| one.name == with && one.style == style));
        }
    }
}
