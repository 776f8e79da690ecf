//! Diagrams: converts a [`Plot`] to plotly.js traces and layout. Fields have plotly's names.
//!
//! Names are listed on the left, so that they are readable on a phone. If lines join the points, the names stand side
//! by side instead. The legend is above the diagram and takes no space from it.

use std::io::{self, Read};

use serde::Serialize;
use serde_json::{Value, json};

use super::axis::{name_axis, number_axis, with_breaks};
use super::markup::escape;
use super::style::{INK, Look, PAPER, dash};
use super::table::series_name;
use crate::figure::{Axis, Origin, Plot, PlotKind, Points, Series};
use crate::listing::broken;

/// Width of a diagram on a phone in pixels, without the margins.
const PHONE: usize = 355;
/// Upper limit of the mean width of a character, in pixels.
const CHARACTER: usize = 7;
/// Height of a line of text, in pixels.
const TEXT_LINE: usize = 16;
/// Height of a line of the legend, and width of the symbol in front of a name in it, in pixels.
const LEGEND_LINE: usize = 20;
const LEGEND_SYMBOL: usize = 48;
/// Distance between the horizontal axes if numbers are on the left, in pixels.
const AREA: usize = 300;
/// Height of the lower axis with its label, and width of the numbers on the left, in pixels.
const AXIS_BELOW: usize = 64;
const AXIS_LEFT: usize = 45;
/// Least height of a name on the left, and height of each bar of a name, in pixels.
const NAME: usize = 23;
const BAR: usize = 11;
/// Characters of a name on the left before a line break.
const NAME_CHARACTERS: usize = 18;
/// Lines with more points than this have no marks.
const MARKED_POINTS: usize = 25;

/// The library's script, as an element of the page.
///
/// # Errors
/// None, unless the program file is damaged.
pub(super) fn library() -> io::Result<String> {
    let mut script = String::from("<script>");
    zstd::stream::read::Decoder::new(&include_bytes!("plotly/plotly-basic.min.js.zst")[..])?
        .read_to_string(&mut script)?;
    script.push_str("</script>");
    Ok(script)
}

/// Whether names are on the left.
fn is_lying(plot: &Plot) -> bool {
    plot.kind != PlotKind::Lines && !plot.names().is_empty()
}

/// The label of the left axis, which is above the diagram.
pub(super) fn upright_label(plot: &Plot) -> String {
    if is_lying(plot) { plot.x.label.clone() } else { label(&plot.y, plot.values()) }
}

/// The label of an axis, which says whether its scale is logarithmic, as two ticks alone do not show it, and whether it
/// leaves out values of 0.
fn label(axis: &Axis, mut values: impl Iterator<Item = f64>) -> String {
    match (axis.logarithmic, values.any(|value| value == 0.0)) {
        (false, _) => axis.label.clone(),
        (true, false) => format!("{}, log scale", axis.label),
        (true, true) => format!("{}, log scale without 0", axis.label),
    }
}

/// The diagram and its height in pixels. Series with names in `known` look the same in all diagrams.
pub(super) fn of_plot(plot: &Plot, known: &[String]) -> (Value, usize) {
    let chart = Chart::of(plot);
    let drawn = plot.series.iter().zip(looks(plot, known)).filter(|(series, _)| !series.is_empty());
    let traces: Vec<Value> = drawn.map(|(series, look)| chart.trace(series, look)).collect();
    let config = json!({ "responsive": true, "displayModeBar": false });
    (json!({ "data": traces, "layout": chart.layout(), "config": config }), chart.height())
}

/// The looks of all series. Series with the same name share their look, and names known to the page look the same in
/// all diagrams.
fn looks(plot: &Plot, known: &[String]) -> Vec<Look> {
    let mut names: Vec<&str> = known.iter().map(String::as_str).collect();
    if !plot.series.iter().any(|series| names.contains(&series.name.as_str())) {
        names.clear();
    }
    for series in &plot.series {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let beside_paper = plot.series.iter().any(|series| series.origin == Origin::Paper);
    let index = |series: &Series| names.iter().position(|name| *name == series.name).unwrap_or_default();
    plot.series.iter().map(|series| Look { index: index(series), origin: series.origin, beside_paper }).collect()
}

/// Properties of a diagram that are needed to draw it.
struct Chart<'a> {
    plot: &'a Plot,
    /// The names on its axis; empty for a numeric axis.
    names: Vec<&'a str>,
    /// Whether the names are on the left.
    lying: bool,
    /// Characters of a name before a line break.
    name_characters: usize,
}

impl<'a> Chart<'a> {
    fn of(plot: &'a Plot) -> Self {
        let (names, lying) = (plot.names(), is_lying(plot));
        let side_by_side = (PHONE - AXIS_LEFT) / names.len().max(1) / CHARACTER;
        let name_characters = if lying { NAME_CHARACTERS } else { side_by_side.min(NAME_CHARACTERS) };
        Self { plot, names, lying, name_characters }
    }

    /// The lines of each name.
    fn lines(&self) -> impl Iterator<Item = Vec<String>> {
        self.names.iter().map(|name| broken(name, self.name_characters))
    }

    /// Characters of the longest line of a name.
    fn longest(&self) -> usize {
        self.lines().flatten().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// Whether names that stand side by side have to be rotated.
    fn turns_names(&self) -> bool {
        !self.lying && self.longest() > self.name_characters
    }

    /// The text of a name on its axis.
    fn place(&self, name: &str) -> String {
        with_breaks(name, self.name_characters)
    }

    fn trace(&self, series: &Series, look: Look) -> Value {
        match &series.points {
            Points::Numbers(points) => {
                let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
                self.drawn(xs, ys, series, look)
            }
            Points::Described(points) => {
                let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.x, point.y)).unzip();
                let labels: Vec<String> = points.iter().map(|point| escape(&point.label)).collect();
                let sizes: Vec<usize> = points.iter().map(|point| point.size).collect();
                let mut marker = look.mark();
                marker["size"] = json!(sizes);
                marker["opacity"] = json!(0.8);
                let mut trace = scatter(xs, ys, &series_name(series), "markers");
                trace["marker"] = marker;
                trace["text"] = json!(labels);
                trace
            }
            Points::Names(points) => {
                let names: Vec<String> = points.iter().map(|(name, _)| self.place(name)).collect();
                let values: Vec<f64> = points.iter().map(|&(_, value)| value).collect();
                if self.lying {
                    self.drawn(values, names, series, look)
                } else {
                    self.drawn(names, values, series, look)
                }
            }
        }
    }

    fn drawn(&self, xs: impl Serialize, ys: impl Serialize, series: &Series, look: Look) -> Value {
        let name = series_name(series);
        let mode = match self.plot.kind {
            PlotKind::Bars => return self.bars(xs, ys, &name, look),
            PlotKind::StackedBars => {
                let mut bars = self.bars(xs, ys, &name, look);
                // The paper's stack stands beside the measured one.
                bars["offsetgroup"] = match series.origin {
                    Origin::Measured => json!("measured"),
                    Origin::Paper => json!("paper"),
                };
                return bars;
            }
            PlotKind::Front => {
                let mut steps = scatter(xs, ys, &name, "lines");
                let place = self.plot.series.iter().position(|other| other.name == series.name).unwrap_or_default();
                steps["line"] = json!({ "color": INK, "width": 1, "shape": "hv", "dash": dash(place) });
                return steps;
            }
            PlotKind::Marks => "markers",
            PlotKind::Lines if series.points.values().len() > MARKED_POINTS && !look.beside_paper => "lines",
            PlotKind::Lines => "lines+markers",
        };
        let mut trace = scatter(xs, ys, &name, mode);
        trace["marker"] = look.mark();
        trace["line"] = look.line();
        trace
    }

    fn bars(&self, xs: impl Serialize, ys: impl Serialize, name: &str, look: Look) -> Value {
        let orientation = if self.lying { "h" } else { "v" };
        json!({ "type": "bar", "x": xs, "y": ys, "name": escape(name), "orientation": orientation, "marker": look.bar() })
    }

    fn layout(&self) -> Value {
        let Self { plot, names, lying, .. } = self;
        // The points of a front are compared with each other, so the axis need not start at 0.
        let zero = plot.kind != PlotKind::Front;
        let values = number_axis(&plot.y, &plot.values().collect::<Vec<_>>(), zero);
        let places = || {
            if names.is_empty() {
                return number_axis(&plot.x, &plot.numbers().map(|(x, _)| x).collect::<Vec<_>>(), zero);
            }
            let mut axis = name_axis(names.iter().map(|name| self.place(name)).collect(), *lying);
            axis["tickangle"] = json!(if self.turns_names() { -90 } else { 0 });
            axis
        };
        let (below, mut horizontal, vertical) = if *lying {
            (label(&plot.y, plot.values()), values, places())
        } else {
            (label(&plot.x, plot.numbers().map(|(x, _)| x)), places(), values)
        };
        let label = with_breaks(&below, (PHONE - self.left()) / CHARACTER);
        horizontal["title"] = json!({ "text": label, "font": { "size": 12 } });
        json!({
            "font": { "size": 12, "color": INK, "family": "system-ui, \"Liberation Sans\", Arial, sans-serif" },
            "paper_bgcolor": PAPER,
            "plot_bgcolor": PAPER,
            "margin": { "l": 12, "r": 14, "t": 10, "b": 12 },
            "autosize": true,
            "barmode": if plot.kind == PlotKind::StackedBars { "stack" } else { "group" },
            "bargap": 0.25,
            "hovermode": "closest",
            "hoverlabel": { "namelength": -1 },
            "dragmode": false,
            "showlegend": plot.series.len() > 1,
            "legend": {
                "orientation": "h",
                "traceorder": "normal",
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "font": { "size": 12 },
            },
            "xaxis": horizontal,
            "yaxis": vertical,
        })
    }

    /// Width of the left axis, in pixels.
    fn left(&self) -> usize {
        if self.lying { self.longest() * CHARACTER } else { AXIS_LEFT }
    }

    /// Height that names and legend need on a phone, in pixels.
    fn height(&self) -> usize {
        let series = &self.plot.series;
        let widest = series.iter().map(|series| series_name(series).chars().count()).max().unwrap_or(0);
        let columns = (PHONE.saturating_sub(self.left()) / (widest * CHARACTER + LEGEND_SYMBOL)).max(1);
        let legend = if series.len() > 1 { series.len().div_ceil(columns) * LEGEND_LINE + 8 } else { 0 };
        let lines = self.lines().map(|lines| lines.len()).max().unwrap_or(0) * TEXT_LINE;
        let (area, below) = if self.lying {
            let bars = match self.plot.kind {
                PlotKind::Bars => series.len(),
                PlotKind::StackedBars if series.iter().any(|series| series.origin == Origin::Paper) => 2,
                _ => 1,
            };
            let row = NAME.max(bars * BAR + 10).max(lines + 4);
            (row * self.names.len().max(2), 0)
        } else {
            (AREA, if self.turns_names() { self.longest() * CHARACTER } else { lines.saturating_sub(TEXT_LINE) })
        };
        area + below + AXIS_BELOW + legend
    }
}

fn scatter(xs: impl Serialize, ys: impl Serialize, name: &str, mode: &str) -> Value {
    json!({ "type": "scatter", "x": xs, "y": ys, "name": escape(name), "mode": mode })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Described;

    fn plot(kind: PlotKind, series: Vec<Series>) -> Plot {
        Plot { title: "t".into(), kind, x: Axis::linear("x"), y: Axis::logarithmic("y"), series }
    }

    #[test]
    fn the_library_is_the_pinned_one_and_cannot_end_its_element() {
        let script = library().unwrap();
        assert!(script.starts_with("<script>/**\n* plotly.js (basic - minified) v3.0.1\n"), "see `plotly/README.md`");
        assert!(script.contains("Licensed under the MIT license"));
        assert_eq!(script.matches("</script").count(), 1);
    }

    #[test]
    fn what_is_drawn_is_of_the_library_that_is_inside() {
        let named = |name: &str| Series::measured_by_name(name, vec![("a".into(), 1.0), ("b".into(), 2.0)]);
        let lines = Series::of_paper("line", vec![(1.0, 10.0), (2.0, f64::NAN)]);
        let (bars, _) = of_plot(&plot(PlotKind::StackedBars, vec![named("<one>"), named("two")]), &[]);
        assert_eq!(bars["data"][0]["type"], "bar");
        assert_eq!(bars["data"][0]["name"], "&lt;one&gt;");
        assert_eq!(bars["data"][0]["x"], json!([1.0, 2.0]), "names are on the left");
        assert_eq!(bars["data"][1]["offsetgroup"], "measured");
        assert_eq!(bars["layout"]["barmode"], "stack");
        assert_eq!(bars["layout"]["yaxis"]["categoryarray"], json!(["a", "b"]));
        let (drawn, _) = of_plot(&plot(PlotKind::Lines, vec![lines]), &[]);
        assert_eq!(drawn["data"][0]["mode"], "lines+markers");
        assert_eq!(drawn["data"][0]["y"], json!([10.0, null]), "nothing is drawn where there is no number");
        assert_eq!(drawn["data"][0]["line"]["dash"], "dot");
        assert_eq!(drawn["layout"]["yaxis"]["type"], "log");
        assert_eq!(drawn["layout"]["showlegend"], false);
    }

    #[test]
    fn a_logarithmic_axis_says_that_it_leaves_out_zeros() {
        let of = |values: [f64; 2]| {
            let points = ["a", "b"].map(str::to_owned).into_iter().zip(values).collect();
            let plot = plot(PlotKind::Marks, vec![Series::measured_by_name("one", points)]);
            let (drawn, _) = of_plot(&plot, &[]);
            (upright_label(&plot), drawn["layout"]["xaxis"]["title"]["text"].clone())
        };
        assert_eq!(of([1.0, 2.0]), ("x".to_owned(), json!("y, log scale")));
        assert_eq!(of([0.0, 2.0]), ("x".to_owned(), json!("y, log scale without 0")));
        let lines = |ys: f64| {
            upright_label(&plot(PlotKind::Lines, vec![Series::measured("line", vec![(1.0, ys), (2.0, 3.0)])]))
        };
        assert_eq!((lines(0.0), lines(1.0)), ("y, log scale without 0".to_owned(), "y, log scale".to_owned()));
    }

    #[test]
    fn points_of_a_front_have_their_size_and_say_what_they_are() {
        let points = vec![Described { x: 1.0, y: 2.0, size: 9, label: "a&b".into() }];
        let described = Series { name: "points".into(), origin: Origin::Measured, points: Points::Described(points) };
        let steps = Series::measured("best", vec![(1.0, 2.0)]);
        let (front, _) = of_plot(&plot(PlotKind::Front, vec![described, steps]), &[]);
        assert_eq!(front["data"][0]["marker"]["size"], json!([9]));
        assert_eq!(front["data"][0]["text"], json!(["a&amp;b"]));
        assert_eq!(front["data"][1]["line"]["shape"], "hv");
    }
}
