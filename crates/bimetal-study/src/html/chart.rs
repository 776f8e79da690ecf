//! Diagrams: from [`Plot`] to plotly.
//!
//! Names stand on the left, below each other, so that they can be read on a phone; numbers lie on the axis below. The
//! legend is above the diagram and takes no room from it.

use plotly::common::{Anchor, Font, Label, Mode, Orientation, TickMode, Title};
use plotly::configuration::{Configuration, DisplayModeBar};
use plotly::layout::{
    Axis, AxisType, BarMode, CategoryOrder, DragMode, HoverMode, Layout, Legend, Margin, RangeMode, TraceOrder,
};
use plotly::{Bar, Scatter, Trace};

use super::page::escape;
use super::style::{GRID, INK, Look, PAPER};
use super::table::series_name;
use crate::figure::{self, Origin, Plot, PlotKind, Points, Series};
use crate::number::plain;

/// Pixels of a diagram without its axis below and its legend.
const AREA: usize = 300;
/// Pixels of the axis below and its label.
const AXIS_BELOW: usize = 64;
/// Pixels of a name on the left, at least.
const NAME: usize = 23;
/// Pixels of a bar among others of a name.
const BAR: usize = 11;
/// Pixels of a line of the legend.
const LEGEND_LINE: usize = 20;
/// Pixels of a character and of a legend's symbol; pixels that a legend has on a phone.
const CHARACTER: usize = 7;
const SYMBOL: usize = 48;
const PHONE: usize = 330;
/// Characters of a name on the left before it is broken, and of an axis' label.
const NAME_CHARACTERS: usize = 18;
const LABEL_CHARACTERS: usize = 44;
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
    let lying = is_lying(plot);
    let mut drawn = plotly::Plot::new();
    let looks = looks(plot, known);
    for (series, look) in plot.series.iter().zip(&looks) {
        drawn.add_trace(trace(plot, series, *look, lying));
    }
    let names = plot.names();
    let below = if lying { &plot.y } else { &plot.x };
    let numbers = |axis: &figure::Axis, values: Vec<f64>| number_axis(axis, &values);
    let names_axis = || name_axis(&names, lying);
    let ys: Vec<f64> = plot.values().collect();
    let (horizontal, vertical) = match (names.is_empty(), lying) {
        (true, _) => (numbers(&plot.x, plot.numbers().map(|(x, _)| x).collect()), numbers(&plot.y, ys)),
        (false, true) => (numbers(&plot.y, ys), names_axis()),
        (false, false) => (names_axis(), numbers(&plot.y, ys)),
    };
    let label = Title::with_text(broken(&escape(&below.label), LABEL_CHARACTERS)).font(Font::new().size(12));
    let layout = Layout::new()
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
        .x_axis(horizontal.title(label))
        .y_axis(vertical);
    drawn.set_layout(layout);
    drawn.set_configuration(
        Configuration::new().responsive(true).display_mode_bar(DisplayModeBar::False).display_logo(false),
    );
    (drawn, height(plot, &names, lying))
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

fn trace(plot: &Plot, series: &Series, look: Look, lying: bool) -> Box<dyn Trace> {
    match &series.points {
        Points::Numbers(points) => {
            let (xs, ys) = points.iter().copied().unzip();
            drawn(plot.kind, xs, ys, series, look, lying)
        }
        Points::Names(points) => {
            let names = points.iter().map(|(name, _)| place(name)).collect();
            let values = points.iter().map(|&(_, value)| value).collect();
            if lying {
                drawn(plot.kind, values, names, series, look, lying)
            } else {
                drawn(plot.kind, names, values, series, look, lying)
            }
        }
    }
}

fn drawn<X, Y>(kind: PlotKind, xs: Vec<X>, ys: Vec<Y>, series: &Series, look: Look, lying: bool) -> Box<dyn Trace>
where
    X: serde::Serialize + Clone + 'static,
    Y: serde::Serialize + Clone + 'static,
{
    let name = escape(&series_name(series));
    let mode = match kind {
        PlotKind::Bars | PlotKind::StackedBars => {
            let orientation = if lying { Orientation::Horizontal } else { Orientation::Vertical };
            return Bar::new(xs, ys).name(name).marker(look.bar()).orientation(orientation);
        }
        PlotKind::Marks => Mode::Markers,
        PlotKind::Lines if xs.len() > MARKED_POINTS && !look.beside_paper => Mode::Lines,
        PlotKind::Lines => Mode::LinesMarkers,
    };
    Scatter::new(xs, ys).name(name).mode(mode).marker(look.mark()).line(look.line())
}

fn axis() -> Axis {
    Axis::new().auto_margin(true).grid_color(GRID).line_color(INK).show_line(true).zero_line(false)
}

/// An axis of numbers over these values.
fn number_axis(described: &figure::Axis, values: &[f64]) -> Axis {
    if !described.logarithmic {
        return axis().range_mode(RangeMode::ToZero).n_ticks(6).separate_thousands(true);
    }
    let ticks = logarithmic_ticks(values);
    let labels = ticks.iter().map(|&tick| tick_label(tick)).collect();
    axis().type_(AxisType::Log).tick_mode(TickMode::Array).tick_values(ticks).tick_text(labels)
}

/// An axis of names, the first one on top where they stand below each other.
fn name_axis(names: &[&str], lying: bool) -> Axis {
    let places: Vec<String> = names.iter().map(|name| place(name)).collect();
    let end = names.len() as f64 - 0.5;
    let range = if lying { vec![end, -0.5] } else { vec![-0.5, end] };
    axis()
        .type_(AxisType::Category)
        .category_order(CategoryOrder::Array)
        .category_array(places)
        .range(range)
        .show_grid(!lying)
        .tick_mode(TickMode::Linear)
        .dtick(1.0)
}

/// A name as it stands on an axis.
fn place(name: &str) -> String {
    broken(&escape(name), NAME_CHARACTERS)
}

/// Powers of ten that are within reach of the values; where there are few, their doubles and fivefolds too.
fn logarithmic_ticks(values: &[f64]) -> Vec<f64> {
    let positive = || values.iter().copied().filter(|&value| value > 0.0 && value.is_finite());
    let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    if most == 0.0 {
        return Vec::new();
    }
    let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let factors: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    // At most so many fit beside each other.
    let step = (last - first) / 7 + 1;
    let powers = (first..=last).step_by(step.unsigned_abs() as usize);
    powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power))).collect()
}

fn tick_label(tick: f64) -> String {
    if (0.001..1e6).contains(&tick) {
        return if tick < 1.0 { format!("{tick}") } else { plain(tick.round()) };
    }
    format!("{tick:e}")
}

/// Text in lines of at most so many characters, unless a word is longer.
fn broken(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("<br>")
}

/// Pixels: as many as names and the legend need on a phone.
fn height(plot: &Plot, names: &[&str], lying: bool) -> usize {
    let widest = plot.series.iter().map(|series| series_name(series).chars().count()).max().unwrap_or(0);
    let columns = (PHONE / (widest * CHARACTER + SYMBOL)).max(1);
    let legend = if plot.series.len() > 1 { plot.series.len().div_ceil(columns) * LEGEND_LINE + 8 } else { 0 };
    let bars = if plot.kind == PlotKind::Bars { plot.series.len() } else { 1 };
    let lines = |name: &&str| place(name).matches("<br>").count() + 1;
    let row = |name: &&str| NAME.max(bars * BAR + 10).max(lines(name) * 16 + 4);
    let area = if lying { names.iter().map(row).sum::<usize>().max(2 * NAME) } else { AREA };
    area + AXIS_BELOW + legend
}
