//! Common units for the figures of all schemes, so that they can stand side by side.

use bimetal_core::report::{Figure, KeyFigures};

use crate::compare::Entry;
use crate::number::{LIVES, TIMES, Units, common_unit, units};

/// Common units for the figures of all schemes, so that they can stand side by side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Unit of the main replay's times. It suits the means and is also used for percentiles.
    pub time: (&'static str, f64),
    /// Unit of service times: `time`, unless that leaves too few digits.
    pub service: (&'static str, f64),
    /// Unit of lives.
    pub life: (&'static str, f64),
}

/// Values from here on are too wide. They get a larger unit, even if the smallest value is then below one.
const SHOWN_MAX: f64 = 1e5;

impl Scale {
    /// The units for these results.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let entries: Vec<&Entry> = entries.into_iter().collect();
        let lives = entries.iter().filter_map(|entry| entry.report.key_figures.lifetime_years);
        let main: Vec<f64> = entries.iter().filter_map(|entry| entry.mean_us()).collect();
        let service: Vec<f64> = entries.iter().filter_map(|entry| entry.mean_service_us()).collect();
        let own = |means: &[f64]| with_digits(means).unwrap_or_else(|| unit(TIMES, means.to_vec()));
        let shared = with_digits(&[&main[..], &service].concat());
        Self {
            time: shared.unwrap_or_else(|| own(&main)),
            service: shared.unwrap_or_else(|| own(&service)),
            life: unit(LIVES, lives.collect()),
        }
    }
}

/// A unit for all values of a figure, so that they stand side by side.
pub fn of_figure(entries: &[Entry], figure: &Figure<KeyFigures>) -> (&'static str, f64) {
    unit(units(figure.unit), entries.iter().filter_map(|entry| (figure.of)(&entry.report.key_figures)).collect())
}

/// The largest unit of time that the largest mean reaches and in which all means have three digits.
fn with_digits(means: &[f64]) -> Option<(&'static str, f64)> {
    let positive = || means.iter().copied().filter(|&mean| mean > 0.0);
    let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    let suits = |&&(_, size): &&(&'static str, f64)| most >= size && least >= size / 10.0 && most / size < SHOWN_MAX;
    TIMES.iter().rev().find(suits).copied()
}

fn unit(units: Units, values: Vec<f64>) -> (&'static str, f64) {
    let most = values.iter().copied().fold(0.0, f64::max);
    let least = common_unit(units, values.into_iter(), 1.0);
    let fits = |&&(_, size): &&(&'static str, f64)| size >= least.1 && most / size < SHOWN_MAX;
    units.iter().find(fits).copied().unwrap_or(least)
}
