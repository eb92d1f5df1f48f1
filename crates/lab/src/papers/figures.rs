//! Figures of an experiment, found by case, metric and point.

use crate::record::Record;
use crate::report::{Cell, PlotSeries, Point, Shape};

/// Figures to look up. Points are written as in `published.csv`: `delay_ms=2000 ber=1e-6`; in a curve, `*` stands for the
/// values of one parameter: `delay_ms=* ber=1e-6`.
#[derive(Clone, Copy)]
pub(super) struct Figures<'a>(pub(super) &'a [Record]);

impl<'a> Figures<'a> {
    /// Returns the figures along a curve, each with the value of the parameter.
    pub(super) fn along(self, case: &str, metric: &str, at: &str) -> Vec<(f64, &'a Record)> {
        let is_one = |record: &&Record| record.case == case && record.metric == metric;
        let figures = self.0.iter().filter(is_one);
        figures.filter_map(|record| Some((record.params.along(at)?, record))).collect()
    }

    /// Returns the figure at a point.
    pub(super) fn at(self, case: &str, metric: &str, at: &str) -> Option<&'a Record> {
        self.along(case, metric, at).first().map(|(_, record)| *record)
    }

    /// Returns the mean at a point; NaN without a figure.
    pub(super) fn mean(self, case: &str, metric: &str, at: &str) -> f64 {
        self.at(case, metric, at).map_or(f64::NAN, |record| record.mean)
    }

    /// Returns the cell of a table with the figure at a point, or with this word without one.
    pub(super) fn cell(self, case: &str, metric: &str, at: &str, without: &str) -> Cell {
        let cell = |record: &Record| Cell::summary(&record.summary());
        self.at(case, metric, at).map_or_else(|| Cell::text(without), cell)
    }

    /// Returns a series of a plot with a curve.
    pub(super) fn curve(self, name: impl Into<String>, case: &str, metric: &str, at: &str) -> PlotSeries {
        let points = self.along(case, metric, at).into_iter();
        PlotSeries::new(name, points.map(|(x, record)| Point::of(x, record)).collect())
    }

    /// Returns a series of a plot with the published figures along a curve.
    pub(super) fn published(self, name: &str, case: &str, metric: &str, at: &str) -> PlotSeries {
        PlotSeries::new(name, self.points(case, metric, at, |record| record.reference)).published()
    }

    /// Returns a series of a plot with the ideal values along a curve.
    pub(super) fn limits(self, name: &str, case: &str, metric: &str, at: &str) -> PlotSeries {
        PlotSeries::new(name, self.points(case, metric, at, |record| record.limit)).shaped(Shape::Bound)
    }

    fn points(self, case: &str, metric: &str, at: &str, y: fn(&Record) -> Option<f64>) -> Vec<Point> {
        let figures = self.along(case, metric, at).into_iter();
        figures.filter_map(|(x, record)| Some(Point::new(x, y(record)?))).collect()
    }
}
