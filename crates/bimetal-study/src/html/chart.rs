//! Diagrams: from [`Plot`] to plotly.
//!
//! Names stand on the left, below each other, so that they can be read on a phone; only where lines join them do they
//! stand side by side. The legend is above the diagram and takes no room from it.

use plotly::common::{Anchor, Font, Label, Line, LineShape, Mode, Orientation, Title};
use plotly::configuration::{Configuration, DisplayModeBar};
use plotly::layout::{BarMode, DragMode, HoverMode, Layout, Legend, Margin, TraceOrder};
use plotly::{Bar, Scatter, Trace};

use super::axis::{broken, name_axis, number_axis, words_in_lines};
use super::page::escape;
use super::style::{INK, Look, PAPER};
use super::table::series_name;
use crate::figure::{Origin, Plot, PlotKind, Points, Series};

/// Pixels of a diagram on a phone, without the margins.
const PHONE: usize = 355;
/// Pixels of a character, at most on average.
const CHARACTER: usize = 7;
/// Pixels of a line of text.
const TEXT_LINE: usize = 16;
/// Pixels of a line of the legend, and of what stands in front of a name in it.
const LEGEND_LINE: usize = 20;
const LEGEND_SYMBOL: usize = 48;
/// Pixels between axes where numbers are on the left.
const AREA: usize = 300;
/// Pixels of the axis below with its label, and of the numbers on the left.
const AXIS_BELOW: usize = 64;
const AXIS_LEFT: usize = 45;
/// Pixels of a name on the left, at least, and of a bar among others of a name.
const NAME: usize = 23;
const BAR: usize = 11;
/// Characters of a name on the left before it is broken.
const NAME_CHARACTERS: usize = 18;
/// Lines of more points than this have no marks.
const MARKED_POINTS: usize = 25;

/// The library's script, as an element of the page. What it has for typesetting formulas is left out: nothing needs it.
pub(super) fn library() -> String {
    let scripts = plotly::Plot::offline_js_sources();
    let end = scripts.find("</script>").map_or(scripts.len(), |at| at + "</script>".len());
    scripts[..end].to_owned()
}

/// Whether names are on the left.
fn is_lying(plot: &Plot) -> bool {
    plot.kind != PlotKind::Lines && !plot.names().is_empty()
}

/// The label of the axis on the left, which stands above the diagram.
pub(super) fn upright_label(plot: &Plot) -> &str {
    let axis = if is_lying(plot) { &plot.x } else { &plot.y };
    &axis.label
}

/// The diagram, and how many pixels high it should be. Series of the names that are `known` look the same in all diagrams.
pub(super) fn of_plot(plot: &Plot, known: &[String]) -> (plotly::Plot, usize) {
    let chart = Chart::of(plot);
    let mut drawn = plotly::Plot::new();
    for (series, look) in plot.series.iter().zip(looks(plot, known)).filter(|(series, _)| !series.is_empty()) {
        drawn.add_trace(chart.trace(series, look));
    }
    drawn.set_layout(chart.layout());
    drawn.set_configuration(
        Configuration::new().responsive(true).display_mode_bar(DisplayModeBar::False).display_logo(false),
    );
    (drawn, chart.height())
}

/// The looks of all series: those of a name share theirs, and names that the page knows look the same everywhere.
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

/// What is known of a diagram before it is drawn.
struct Chart<'a> {
    plot: &'a Plot,
    /// On its axis of names, if it has one.
    names: Vec<&'a str>,
    /// Whether they are on the left.
    lying: bool,
    /// Characters of a name before it is broken.
    name_characters: usize,
}

impl<'a> Chart<'a> {
    fn of(plot: &'a Plot) -> Self {
        let (names, lying) = (plot.names(), is_lying(plot));
        let side_by_side = (PHONE - AXIS_LEFT) / names.len().max(1) / CHARACTER;
        let name_characters = if lying { NAME_CHARACTERS } else { side_by_side.min(NAME_CHARACTERS) };
        Self { plot, names, lying, name_characters }
    }

    /// Lines of each name.
    fn lines(&self) -> impl Iterator<Item = Vec<String>> {
        self.names.iter().map(|name| words_in_lines(name, self.name_characters))
    }

    /// Characters of the longest line of a name.
    fn longest(&self) -> usize {
        self.lines().flatten().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// Whether names that stand side by side have to be turned.
    fn turns_names(&self) -> bool {
        !self.lying && self.longest() > self.name_characters
    }

    /// A name on its axis.
    fn place(&self, name: &str) -> String {
        broken(name, self.name_characters)
    }

    fn trace(&self, series: &Series, look: Look) -> Box<dyn Trace> {
        match &series.points {
            Points::Numbers(points) => {
                let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
                self.drawn(xs, ys, series, look)
            }
            Points::Described(points) => {
                let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().map(|point| (point.x, point.y)).unzip();
                let labels: Vec<String> = points.iter().map(|point| escape(&point.label)).collect();
                let sizes = points.iter().map(|point| point.size).collect();
                Scatter::new(xs, ys)
                    .name(escape(&series_name(series)))
                    .mode(Mode::Markers)
                    .marker(look.mark().size_array(sizes).opacity(0.8))
                    .text_array(labels)
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

    fn drawn<X, Y>(&self, xs: Vec<X>, ys: Vec<Y>, series: &Series, look: Look) -> Box<dyn Trace>
    where
        X: serde::Serialize + Clone + 'static,
        Y: serde::Serialize + Clone + 'static,
    {
        let name = escape(&series_name(series));
        let mode = match self.plot.kind {
            PlotKind::Bars => return self.bars(xs, ys).name(name).marker(look.bar()),
            PlotKind::StackedBars => {
                // The paper's stack stands beside what was measured.
                let stack = match series.origin {
                    Origin::Measured => "measured",
                    Origin::Paper => "paper",
                };
                return self.bars(xs, ys).name(name).marker(look.bar()).offset_group(stack);
            }
            PlotKind::Marks => Mode::Markers,
            PlotKind::Front => {
                let line = Line::new().color(INK).width(1.0).shape(LineShape::Hv);
                return Scatter::new(xs, ys).name(name).mode(Mode::Lines).line(line);
            }
            PlotKind::Lines if xs.len() > MARKED_POINTS && !look.beside_paper => Mode::Lines,
            PlotKind::Lines => Mode::LinesMarkers,
        };
        Scatter::new(xs, ys).name(name).mode(mode).marker(look.mark()).line(look.line())
    }

    fn bars<X, Y>(&self, xs: Vec<X>, ys: Vec<Y>) -> Box<Bar<X, Y>>
    where
        X: serde::Serialize + Clone + 'static,
        Y: serde::Serialize + Clone + 'static,
    {
        Bar::new(xs, ys).orientation(if self.lying { Orientation::Horizontal } else { Orientation::Vertical })
    }

    fn layout(&self) -> Layout {
        let Self { plot, names, lying, .. } = self;
        // Points of a front are compared with each other, not with nothing.
        let zero = plot.kind != PlotKind::Front;
        let values = number_axis(&plot.y, &plot.values().collect::<Vec<_>>(), zero);
        let places = || {
            if names.is_empty() {
                return number_axis(&plot.x, &plot.numbers().map(|(x, _)| x).collect::<Vec<_>>(), zero);
            }
            let axis = name_axis(names.iter().map(|name| self.place(name)).collect(), *lying);
            axis.tick_angle(if self.turns_names() { -90.0 } else { 0.0 })
        };
        let (below, horizontal, vertical) =
            if *lying { (&plot.y, values, places()) } else { (&plot.x, places(), values) };
        let label = broken(&below.label, (PHONE - self.left()) / CHARACTER);
        Layout::new()
            .font(Font::new().size(12).color(INK).family("system-ui, \"Liberation Sans\", Arial, sans-serif"))
            .paper_background_color(PAPER)
            .plot_background_color(PAPER)
            .margin(Margin::new().left(12).right(14).top(10).bottom(12))
            .auto_size(true)
            .bar_mode(if plot.kind == PlotKind::StackedBars { BarMode::Stack } else { BarMode::Group })
            .bar_gap(0.25)
            .hover_mode(HoverMode::Closest)
            .hover_label(Label::new().name_length(-1))
            .drag_mode(DragMode::False)
            .show_legend(plot.series.len() > 1)
            .legend(legend())
            .x_axis(horizontal.title(Title::with_text(label).font(Font::new().size(12))))
            .y_axis(vertical)
    }

    /// Pixels of the axis on the left.
    fn left(&self) -> usize {
        if self.lying { self.longest() * CHARACTER } else { AXIS_LEFT }
    }

    /// Pixels: as many as names and the legend need on a phone.
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

fn legend() -> Legend {
    Legend::new()
        .orientation(Orientation::Horizontal)
        .trace_order(TraceOrder::Normal)
        .x(0.0)
        .x_anchor(Anchor::Left)
        .y(1.0)
        .y_anchor(Anchor::Bottom)
        .font(Font::new().size(12))
}
