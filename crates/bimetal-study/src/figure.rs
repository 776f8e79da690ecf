//! Diagrams as data: measured points, and published ones for comparison.
//!
//! The diagram in a report and the table come from the same points.

use schemars::JsonSchema;
use serde::Serialize;

use crate::number::plain;

/// One diagram.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Plot {
    /// Its title, which is unique within a figure.
    pub title: String,
    /// How points are drawn.
    pub kind: PlotKind,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

impl Plot {
    /// A diagram of bars or marks over names.
    pub fn by_name(title: impl Into<String>, kind: PlotKind, names: &str, values: Axis, series: Vec<Series>) -> Self {
        Self { title: title.into(), kind, x: Axis::linear(names), y: values, series }
    }

    /// Whether it has no points, or none that its axis can show.
    pub fn is_empty(&self) -> bool {
        let shows_none = self.y.logarithmic && !self.values().any(|value| value > 0.0);
        shows_none || self.series.iter().all(Series::is_empty)
    }

    /// Whether all bars or marks belong to one name. Such numbers need no diagram.
    pub fn has_single_bars(&self) -> bool {
        matches!(self.kind, PlotKind::Bars | PlotKind::StackedBars | PlotKind::Marks) && self.names().len() == 1
    }

    /// The names on the horizontal axis, in an order that fits every series. Empty for a numeric axis.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for series in &self.series {
            let Points::Names(points) = &series.points else { continue };
            let place = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
            // Names before the first known name are inserted in front of it. Each later new name follows its
            // predecessor.
            let first_known = points.iter().find_map(|(name, _)| place(&names, name));
            let mut next = first_known.unwrap_or(names.len());
            for (name, _) in points {
                match place(&names, name) {
                    Some(known) => next = known + 1,
                    None => {
                        names.insert(next, name);
                        next += 1;
                    }
                }
            }
        }
        names
    }

    /// Its points over a numeric axis.
    pub fn numbers(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|series| match &series.points {
            Points::Numbers(points) => points.clone(),
            Points::Described(points) => points.iter().map(|point| (point.x, point.y)).collect(),
            Points::Names(_) => Vec::new(),
        })
    }

    /// The values of all points on the vertical axis.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(|series| series.points.values())
    }
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// Marks joined by lines.
    Lines,
    /// Marks alone.
    Marks,
    /// Described marks, and numbers joined by steps to the right and then up or down: the best value at every price.
    Front,
    /// Bars; bars of the same place stand side by side.
    Bars,
    /// Bars; bars of the same place are stacked.
    StackedBars,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Axis {
    /// The quantity with its unit: `SLC (MiB)`.
    pub label: String,
    /// Whether the scale is logarithmic.
    pub logarithmic: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), logarithmic: false }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), logarithmic: true }
    }
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// The label in the legend.
    pub name: String,
    /// The source of the points.
    pub origin: Origin,
    /// The points, from left to right: positions, which are numbers or names, and values.
    #[schemars(with = "Vec<(Position, Option<f64>)>")]
    pub points: Points,
}

/// The horizontal position of a point in JSON.
#[derive(JsonSchema)]
#[schemars(inline, untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Position {
    Number(f64),
    Name(String),
}

/// The source of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// This program.
    Measured,
    /// The paper, as printed or as read off its figure.
    Paper,
}

/// Points over a numeric axis, or over names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Points {
    /// `(x, y)`.
    Numbers(Vec<(f64, f64)>),
    /// `(name, y)`.
    Names(Vec<(String, f64)>),
    /// Points with a label each.
    Described(Vec<Described>),
}

/// A point over a numeric axis, with its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Described {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Width of its mark in pixels.
    pub size: usize,
    /// Its label.
    pub label: String,
}

impl Points {
    /// The points, with horizontal positions as text.
    pub fn by_name(&self) -> Vec<(String, f64)> {
        match self {
            Self::Numbers(points) => points.iter().map(|&(x, y)| (short(x), y)).collect(),
            Self::Names(points) => points.clone(),
            Self::Described(points) => points.iter().map(|point| (short(point.x), point.y)).collect(),
        }
    }

    /// The vertical positions alone.
    pub fn values(&self) -> Vec<f64> {
        match self {
            Self::Numbers(points) => points.iter().map(|&(_, y)| y).collect(),
            Self::Names(points) => points.iter().map(|&(_, y)| y).collect(),
            Self::Described(points) => points.iter().map(|point| point.y).collect(),
        }
    }
}

impl Series {
    /// Whether it has no points.
    pub fn is_empty(&self) -> bool {
        match &self.points {
            Points::Numbers(points) => points.is_empty(),
            Points::Names(points) => points.is_empty(),
            Points::Described(points) => points.is_empty(),
        }
    }

    /// Measured points over a numeric axis.
    pub fn measured(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Measured, points: Points::Numbers(points) }
    }

    /// The paper's points over a numeric axis.
    pub fn of_paper(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Paper, points: Points::Numbers(points) }
    }

    /// Measured points over names.
    pub fn measured_by_name(name: impl Into<String>, points: Vec<(String, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Measured, points: Points::Names(points) }
    }

    /// The paper's points over names.
    pub fn of_paper_by_name(name: impl Into<String>, points: Vec<(String, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Paper, points: Points::Names(points) }
    }
}

/// A measured number as text; `none` if it is not finite.
pub fn short(number: f64) -> String {
    if number.is_finite() { plain(number) } else { "none".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_the_order_of_every_series() {
        let series =
            |names: &str| Series::measured_by_name(names, names.chars().map(|name| (name.to_string(), 1.0)).collect());
        let names = |all: &[&str]| {
            let (x, y) = (Axis::linear("x"), Axis::linear("y"));
            let series = all.iter().map(|names| series(names)).collect();
            Plot { title: String::new(), kind: PlotKind::Bars, x, y, series }.names().concat()
        };
        assert_eq!(names(&["bd", "abcde"]), "abcde");
        assert_eq!(names(&["ab", "cd"]), "abcd");
        assert_eq!(names(&["ac", "bc", ""]), "abc");
        assert_eq!(names(&["ab", "ba"]), "ab");
    }
}
