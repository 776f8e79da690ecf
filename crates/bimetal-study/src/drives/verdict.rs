//! Predicted beside measured.

use super::measure::Measured;
use super::review::{Figure, Mark, Review, Role};

/// A prediction this close is right: what reviewers' own sentences scatter by.
const WITHIN: f64 = 0.2;

/// What a figure says about the predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Within 20 %.
    Right,
    /// Beyond.
    Wrong,
    /// The construction was taken from it.
    Input,
}

/// A figure of a drive, predicted and measured.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Which.
    pub figure: Figure,
    /// What the device did; none if it showed no such thing, as a second drop.
    pub predicted: Option<f64>,
    /// What the drive did.
    pub measured: f64,
    /// Who says so.
    pub mark: Mark,
    /// Whether that agrees.
    pub standing: Standing,
}

impl Compared {
    /// By how much the prediction is off, as a share of what was measured.
    pub fn error(&self) -> Option<f64> {
        self.predicted.map(|predicted| predicted / self.measured - 1.0)
    }
}

/// All figures of a drive.
pub fn compare(review: &Review, measured: &Measured) -> Vec<Compared> {
    let compared = |(&figure, &(value, mark)): (&Figure, &(f64, Mark))| {
        let predicted = measured.figures.get(&figure).copied();
        let is_within = predicted.is_some_and(|predicted| (predicted / value - 1.0).abs() <= WITHIN);
        let standing = match (review.inputs.contains(&figure), is_within) {
            (true, _) => Standing::Input,
            (false, true) => Standing::Right,
            (false, false) => Standing::Wrong,
        };
        Compared { figure, predicted, measured: value, mark, standing }
    };
    review.figures.iter().map(compared).collect()
}

/// What the figures of several drives come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assessment {
    /// Figures that count.
    pub figures: usize,
    /// Those within 20 %.
    pub right: usize,
    /// Median of the errors, as a share.
    pub median_error: f64,
}

impl Assessment {
    /// Share of figures within 20 %.
    pub fn share(&self) -> f64 {
        if self.figures == 0 { 0.0 } else { self.right as f64 / self.figures as f64 }
    }
}

/// Assesses the drives of a role.
pub fn assess<'a>(drives: impl Iterator<Item = (&'a Review, &'a [Compared])>, role: Role) -> Assessment {
    let counted = drives.filter(|(review, _)| review.role == role).flat_map(|(_, compared)| compared);
    let counted: Vec<&Compared> = counted.filter(|compared| compared.standing != Standing::Input).collect();
    // A figure that the device does not show is off by all of it.
    let mut errors: Vec<f64> = counted.iter().map(|compared| compared.error().map_or(1.0, f64::abs)).collect();
    errors.sort_by(f64::total_cmp);
    Assessment {
        figures: counted.len(),
        right: counted.iter().filter(|compared| compared.standing == Standing::Right).count(),
        median_error: errors.get(errors.len() / 2).copied().unwrap_or_default(),
    }
}
