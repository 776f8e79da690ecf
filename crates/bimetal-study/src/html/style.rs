//! How series look: told apart without colour as well as with it, and what a paper has from what was measured.

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
/// Behind everything.
pub(super) const PAPER: &str = "#ffffff";

/// The look of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Place of its name among the names of the diagram: what was measured and what a paper has of the same share it.
    pub index: usize,
    /// Who measured it.
    pub origin: Origin,
    /// Whether the diagram has points of a paper: dashes are theirs then.
    pub beside_paper: bool,
}

impl Look {
    fn color(self) -> &'static str {
        COLORS[self.index % COLORS.len()]
    }

    /// How its points are joined.
    pub fn line(self) -> Value {
        let dash = match self.origin {
            Origin::Paper => "dot",
            Origin::Measured if self.beside_paper => "solid",
            Origin::Measured => DASHES[self.index % DASHES.len()],
        };
        json!({ "color": self.color(), "dash": dash, "width": 2 })
    }

    /// Its points: full, those of a paper hollow.
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

    /// Its bars: full, those of a paper hollow.
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
