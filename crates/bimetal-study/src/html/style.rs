//! How series look: told apart without colour as well as with it, and what a paper has from what was measured.

use plotly::common::{DashType, Line, Marker, MarkerSymbol, Pattern, PatternShape};

use crate::figure::Origin;

/// Okabe and Ito's palette, without its yellow, which is hard to see on white.
const COLORS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"];
const DASHES: [DashType; 6] =
    [DashType::Solid, DashType::Dash, DashType::Dot, DashType::DashDot, DashType::LongDash, DashType::LongDashDot];
/// Symbols with their hollow forms.
const SYMBOLS: [(MarkerSymbol, MarkerSymbol); 8] = [
    (MarkerSymbol::Circle, MarkerSymbol::CircleOpen),
    (MarkerSymbol::Square, MarkerSymbol::SquareOpen),
    (MarkerSymbol::Diamond, MarkerSymbol::DiamondOpen),
    (MarkerSymbol::TriangleUp, MarkerSymbol::TriangleUpOpen),
    (MarkerSymbol::TriangleDown, MarkerSymbol::TriangleDownOpen),
    (MarkerSymbol::Cross, MarkerSymbol::CrossOpen),
    (MarkerSymbol::X, MarkerSymbol::XOpen),
    (MarkerSymbol::Star, MarkerSymbol::StarOpen),
];
const PATTERNS: [PatternShape; 8] = [
    PatternShape::None,
    PatternShape::RightDiagonalLine,
    PatternShape::Dot,
    PatternShape::LeftDiagonalLine,
    PatternShape::VerticalLine,
    PatternShape::DiagonalCross,
    PatternShape::HorizontalLine,
    PatternShape::Cross,
];

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
    pub fn line(self) -> Line {
        let dash = match self.origin {
            Origin::Paper => DashType::Dot,
            Origin::Measured if self.beside_paper => DashType::Solid,
            Origin::Measured => DASHES[self.index % DASHES.len()].clone(),
        };
        Line::new().color(self.color()).dash(dash).width(2.0)
    }

    /// Its points: full, those of a paper hollow.
    pub fn mark(self) -> Marker {
        let (full, hollow) = SYMBOLS[self.index % SYMBOLS.len()].clone();
        match self.origin {
            Origin::Measured => Marker::new().color(self.color()).symbol(full).size(8),
            Origin::Paper => Marker::new().color(self.color()).symbol(hollow).size(10).line(Line::new().width(2.0)),
        }
    }

    /// Its bars: full, those of a paper hollow.
    pub fn bar(self) -> Marker {
        let outline = |color: &'static str, width| Line::new().color(color).width(width);
        match self.origin {
            Origin::Measured => {
                let shape = PATTERNS[self.index % PATTERNS.len()].clone();
                let pattern = Pattern::new().shape(shape).foreground_color(PAPER).background_color(self.color());
                Marker::new()
                    .color(self.color())
                    .line(outline(self.color(), 0.0))
                    .pattern(pattern.size(7.0).solidity(0.25))
            }
            Origin::Paper => Marker::new().color(PAPER).line(outline(self.color(), 2.0)),
        }
    }
}
