//! The look of series. They differ in colour and also without colour, and paper series differ from measured ones.

use serde_json::{Value, json};

use crate::figure::Origin;

/// Okabe and Ito's palette, without its yellow, which is hard to see on white.
const COLORS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"];
const DASHES: [&str; 6] = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
/// A hollow symbol has `-open` after its name.
const SYMBOLS: [&str; 8] = ["circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star"];
const PATTERNS: [&str; 8] = ["", "/", ".", "\\", "|", "x", "-", "+"];

/// Text, axes and outlines.
pub(super) const INK: &str = "#1b1b1b";
/// Grid lines.
pub(super) const GRID: &str = "#dddddd";
/// Background.
pub(super) const PAPER: &str = "#ffffff";

/// The look of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Index of its name in the diagram. A measured and a published series of the same name share it.
    pub index: usize,
    /// Source of the series.
    pub origin: Origin,
    /// Whether the diagram also has points of a paper. Then measured lines are solid.
    pub beside_paper: bool,
}

/// Style of the lines of a front in the order of their series: the first is solid.
pub(super) fn dash(series: usize) -> &'static str {
    DASHES[series % DASHES.len()]
}

impl Look {
    fn color(self) -> &'static str {
        COLORS[self.index % COLORS.len()]
    }

    /// Style of the line that joins its points.
    pub fn line(self) -> Value {
        let dash = match self.origin {
            Origin::Paper => "dot",
            Origin::Measured if self.beside_paper => "solid",
            Origin::Measured => dash(self.index),
        };
        json!({ "color": self.color(), "dash": dash, "width": 2 })
    }

    /// Style of its points: filled if measured, hollow if from a paper.
    pub fn mark(self) -> Value {
        let symbol = SYMBOLS[self.index % SYMBOLS.len()];
        match self.origin {
            Origin::Measured => json!({ "color": self.color(), "symbol": symbol, "size": 8 }),
            Origin::Paper => {
                let hollow = format!("{symbol}-open");
                json!({ "color": self.color(), "symbol": hollow, "size": 10, "line": { "width": 2 } })
            }
        }
    }

    /// Style of its bars: filled if measured, hollow if from a paper.
    pub fn bar(self) -> Value {
        let color = self.color();
        match self.origin {
            Origin::Measured => json!({
                "color": color,
                "line": { "color": color, "width": 0 },
                "pattern": {
                    "shape": PATTERNS[self.index % PATTERNS.len()],
                    "fgcolor": PAPER,
                    "bgcolor": color,
                    "size": 7,
                    "solidity": 0.25,
                },
            }),
            Origin::Paper => json!({ "color": PAPER, "line": { "color": color, "width": 2 } }),
        }
    }
}
