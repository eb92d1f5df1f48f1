//! Links above a plot over time: strips in which contact and outage differ by colour and texture, and shades below outages.

use super::plot::Frame;
use super::scale::Scale;
use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Link above a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Band {
    /// Ends of the link, in words.
    pub name: String,
    /// Outages: start and end on the horizontal axis, ascending.
    pub outages: Vec<(f64, f64)>,
}

/// Height of a strip with its name.
const STRIP: f64 = 36.0;
const THICK: f64 = 12.0;

/// Returns a frame with room for these links above it.
pub(super) fn below(frame: Frame, bands: &[Band]) -> Frame {
    let more = STRIP * bands.len() as f64;
    Frame { height: frame.height + more, top: frame.top + more, bottom: frame.bottom + more, ..frame }
}

pub(super) fn draw(out: &mut String, bands: &[Band], xs: &Scale, ys: &Scale) {
    for (index, band) in bands.iter().enumerate() {
        let top = STRIP * index as f64;
        let (name, base, strip) = (super::html::escape(&band.name), top + 14.0, top + 20.0);
        let _ = write!(out, r#"<text class="name" x="{:.1}" y="{base:.1}">{name}</text>"#, xs.from);
        let _ = writeln!(out, r#"<rect class="contact" {}/>"#, place((xs.from, xs.to), (strip, THICK)));
        for span in visible(band, xs) {
            let place = place(span, (strip, THICK));
            let _ = write!(out, r#"<rect class="outage" {place}/>"#);
            let _ = writeln!(out, "<rect fill=\"url(#hatch)\" {place}/>");
        }
    }
    for span in bands.iter().flat_map(|band| visible(band, xs)) {
        let _ = writeln!(out, r#"<rect class="outage-shade" {}/>"#, place(span, (ys.to, ys.from - ys.to)));
    }
}

/// Outages on the scale, as far as they are visible.
fn visible<'a>(band: &'a Band, xs: &'a Scale) -> impl Iterator<Item = (f64, f64)> + 'a {
    let inside = |(from, to): &(f64, f64)| (from.max(xs.low), to.min(xs.high));
    let spans = band.outages.iter().map(inside).filter(|(from, to)| from < to);
    spans.map(|(from, to)| (xs.place(from), xs.place(to)))
}

fn place((from, to): (f64, f64), (top, height): (f64, f64)) -> String {
    format!(r#"x="{from:.1}" y="{top:.1}" width="{:.1}" height="{height:.1}""#, to - from)
}

/// Legend of the strips.
pub(super) fn legend() -> Markup {
    let swatch = |content: &str| {
        html! { svg viewBox="0 0 34 14" aria-hidden="true" { (PreEscaped(content)) } }
    };
    let strip = "x=\"1\" y=\"1\" width=\"32\" height=\"12\"";
    html! {
        ul.legend {
            li { (swatch(&format!("<rect class=\"contact\" {strip}/>"))) "contact" }
            li {
                (swatch(&format!("<rect class=\"outage\" {strip}/><rect fill=\"url(#hatch)\" {strip}/>")))
                "outage"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plot::{Axis, Plot, PlotSeries, Point};
    use super::*;

    #[test]
    fn outages_are_drawn_as_far_as_the_axis_goes_and_plots_without_links_are_as_before() {
        let points = vec![Point::new(0.0, 0.0), Point::new(100.0, 10.0)];
        let axes = || (Axis::new("time", "s").from_zero(), Axis::new("delivered", "byte").from_zero());
        let plot = |bands| {
            let (x, y) = axes();
            Plot { bands, ..Plot::new("Arrivals", x, y).with(PlotSeries::new("ltp", points.clone())) }
        };
        let band = |outages: &[(f64, f64)]| Band { name: "tx to <rx>".into(), outages: outages.to_vec() };
        let drawn = |bands| plot(bands).picture().into_string();
        let whole = drawn(vec![band(&[(20.0, 30.0), (90.0, 500.0), (600.0, 700.0)]), band(&[])]);
        assert_eq!(whole.matches("class=\"outage\"").count(), 2 + 1, "two and the legend");
        assert_eq!(whole.matches("class=\"contact\"").count(), 2 + 1);
        assert_eq!(whole.matches("class=\"outage-shade\"").count(), 2);
        assert!(whole.contains("tx to &lt;rx&gt;") && whole.contains("viewBox=\"0 0 760 472\""));
        let without = drawn(Vec::new());
        assert!(!without.contains("outage") && without.contains("viewBox=\"0 0 760 400\""));
    }
}
