//! Goals of the calibrated stand-ins: the erases of both regions under static thresholds, table 3.
//!
//! The first stand-ins take erased bytes for written bytes. Here the written bytes are searched, with the popularity of
//! small data and the space that they and all data have. The devices hold the trace's data before the replay, as in the
//! laboratory's program. Under this condition table 3 and the known length of Fin1 agree: 82,298 erased SLC blocks and
//! the 4,096 that were free before are 10.5 GiB of small writes; the remaining 3.9 GiB are 1.7 GiB more than MLC erased,
//! so that MLC had about as much free space. WLAFTL's own column is not used.

use super::wear::{COLUMNS, TABLE_3};
use super::{AT_FIN1, AT_IOTRACE1, AT_IOTRACE2, AT_SYS, AT_TEST1, AT_TEST2, Settings, divisor, mlc_erases, slc_erases};
use crate::Drawn;
use crate::calibration::{self, Calibration, Goal, QUICK_IN_PAIRS};
use crate::experiment::Source;
use crate::lab::Lab;
use bimetal_study::StudyError;

/// Blocks of SLC that are written before one is erased: all of them.
const FREE: (&str, &str) = ("free_slc_blocks", "4096");

// The result of `examples/calibrate.rs`.
pub(super) const FIN1: Settings =
    &[FREE, ("large_bytes", "1.6"), ("footprint", "0.25"), ("small_space", "0.1"), ("theta", "0.9")];
pub(super) const SYS: Settings = &[
    FREE,
    ("small_bytes", "0.8"),
    ("large_bytes", "1"),
    ("footprint", "0.8"),
    ("small_space", "0.7"),
    ("theta", "1.2"),
];
pub(super) const TEST1: Settings = &[FREE, ("footprint", "1"), ("theta", "1.3")];
pub(super) const TEST2: Settings = &[
    FREE,
    ("small_bytes", "1"),
    ("large_bytes", "1.4"),
    ("footprint", "0.1"),
    ("small_space", "0.7"),
    ("theta", "1.2"),
];
pub(super) const IOTRACE1: Settings = &[
    FREE,
    ("small_bytes", "0.9"),
    ("large_bytes", "1"),
    ("footprint", "0.35"),
    ("small_space", "0.99"),
    ("theta", "1.2"),
];
pub(super) const IOTRACE2: Settings =
    &[FREE, ("large_bytes", "1.2"), ("footprint", "0.8"), ("small_space", "0.7"), ("theta", "1.1")];

/// Blocks of SLC and of MLC erased under the static threshold of a column of table 3, on a device of full size.
fn erases(lab: &Lab<'_>, source: &'static Source, column: usize) -> Result<(f64, f64), StudyError> {
    let columns: Vec<_> = COLUMNS[..STATIC].iter().map(|run| run.of(lab, source)).collect();
    let entries = lab.run(&columns)?;
    let divisor = f64::from(divisor(lab, source));
    Ok((slc_erases(&entries[column]) * divisor, mlc_erases(&entries[column]) * divisor))
}

/// Number of columns with static thresholds.
const STATIC: usize = 3;

/// Tolerance of an erase count.
const WITHIN: f64 = 0.05;

const fn goal(claim: &'static str, erases: u64, measure: calibration::Measure) -> Goal {
    let erases = erases as f64;
    Goal { claim, low: erases * (1.0 - WITHIN), high: erases * (1.0 + WITHIN), aim: Some(erases), measure }
}

/// The goals of a trace.
const fn goals(trace: usize) -> [Goal; 2 * STATIC] {
    let [four, eight, sixteen, _] = TABLE_3[trace];
    [
        goal("SLC erases, static 4 KB (table 3)", four.slc_erases, |lab, source| Ok(erases(lab, source, 0)?.0)),
        goal("SLC erases, static 8 KB (table 3)", eight.slc_erases, |lab, source| Ok(erases(lab, source, 1)?.0)),
        goal("SLC erases, static 16 KB (table 3)", sixteen.slc_erases, |lab, source| Ok(erases(lab, source, 2)?.0)),
        goal("MLC erases, static 4 KB (table 3)", four.mlc_erases, |lab, source| Ok(erases(lab, source, 0)?.1)),
        goal("MLC erases, static 8 KB (table 3)", eight.mlc_erases, |lab, source| Ok(erases(lab, source, 1)?.1)),
        goal("MLC erases, static 16 KB (table 3)", sixteen.mlc_erases, |lab, source| Ok(erases(lab, source, 2)?.1)),
    ]
}

type Grid = &'static [(&'static str, &'static [&'static str])];

const THETA: (&str, &[&str]) = ("theta", &["0.4", "0.6", "0.8", "0.9", "1", "1.1", "1.2", "1.3", "1.4"]);
const FOOTPRINT: (&str, &[&str]) =
    ("footprint", &["0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]);
const SMALL_SPACE: (&str, &[&str]) = ("small_space", &["0.1", "0.2", "0.35", "0.5", "0.7", "0.99"]);
const SMALL_BYTES: (&str, &[&str]) = ("small_bytes", &["0.7", "0.8", "0.9", "1", "1.1"]);
const LARGE_BYTES: (&str, &[&str]) = ("large_bytes", &["0.4", "0.6", "0.8", "1", "1.2", "1.4", "1.6", "1.8", "2"]);

/// The written bytes are known from table 2, so that only their division is searched.
const KNOWN_LENGTH: Grid = &[LARGE_BYTES, FOOTPRINT, SMALL_SPACE, THETA];
const ANY_LENGTH: Grid = &[SMALL_BYTES, LARGE_BYTES, FOOTPRINT, SMALL_SPACE, THETA];
/// Small writes only.
const SMALL_ONLY: Grid = &[FOOTPRINT, THETA];

pub(super) const CALIBRATIONS: &[Calibration] = &[
    Calibration { source: &super::FIN1, grid: KNOWN_LENGTH, search: QUICK_IN_PAIRS, goals: &goals(AT_FIN1) },
    Calibration { source: &super::SYS, grid: ANY_LENGTH, search: QUICK_IN_PAIRS, goals: &goals(AT_SYS) },
    Calibration { source: &super::TEST1, grid: SMALL_ONLY, search: QUICK_IN_PAIRS, goals: &goals(AT_TEST1) },
    Calibration { source: &super::TEST2, grid: ANY_LENGTH, search: QUICK_IN_PAIRS, goals: &goals(AT_TEST2) },
    Calibration { source: &super::IOTRACE1, grid: ANY_LENGTH, search: QUICK_IN_PAIRS, goals: &goals(AT_IOTRACE1) },
    Calibration { source: &super::IOTRACE2, grid: KNOWN_LENGTH, search: QUICK_IN_PAIRS, goals: &goals(AT_IOTRACE2) },
];

/// The calibrated stand-ins compared with their goals.
pub(super) fn figure(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    calibration::figure(lab, CALIBRATIONS)
}
