//! Goals of the calibrated stand-ins: the factors of the drive without SLC in C3, table 3.
//!
//! The sizes of writes, the share of small ones and the written sectors are published facts of the traces, which the
//! first stand-ins have, too. Not stated are the popularity of the hot data, their extents, the share of small writes
//! that are not hot, and the length of large runs. Of these, a block-mapped drive without SLC sees how often its chains are
//! folded and how long they are: p2, n4, n3 and p1. Several settings meet all goals, and the results of the hybrid differ between
//! them; the search takes the settings that are nearest to the printed factors.

use std::collections::BTreeMap;

use super::profile::{MORE_UPDATES, updates};
use super::{EXT3, NTFS, replay};
use crate::Drawn;
use crate::calibration::{self, Calibration, FULL_IN_PAIRS, Goal, Measure, Setting};
use crate::claim::StandIn;
use crate::experiment::{Fitted, Scale, Source};
use crate::lab::Lab;
use crate::pool::{Pool, QuietLab};
use crate::reading::metric;
use bimetal_core::profile::CurvePlan;
use bimetal_study::StudyError;

// The results of `examples/calibrate.rs`.
const NTFS_SETTINGS: &[Setting] = &[EXTENT_FOUND, THETA_FOUND, ("run", "384KiB"), ("hot_share", "0.93")];
const EXT3_SETTINGS: &[Setting] = &[EXTENT_FOUND, THETA_FOUND, ("run", "4MiB"), ("hot_share", "0.96")];

/// The extents and the popularity of hot data are those of NTFS in both, because the paper prints only p2 of ext3.
const EXTENT_FOUND: Setting = ("hot_extent", "32KiB");
const THETA_FOUND: Setting = ("theta", "1.05");

pub(super) const FITTED_NTFS: Fitted = Fitted { workload: "bimodal-ntfs", settings: NTFS_SETTINGS, quick: None };
pub(super) const FITTED_EXT3: Fitted = Fitted { workload: "bimodal-ext3", settings: EXT3_SETTINGS, quick: None };

/// A factor of the drive without SLC.
fn factor(lab: &Lab<'_>, source: &'static Source, name: &'static str) -> Result<f64, StudyError> {
    Ok(metric(&lab.run(&[replay(lab, source, "chang-c3", "conventional")])?[0], name))
}

/// Tolerance of a factor.
const WITHIN: f64 = 0.1;

const fn goal(claim: &'static str, value: f64, measure: Measure) -> Goal {
    Goal { claim, low: value * (1.0 - WITHIN), high: value * (1.0 + WITHIN), aim: Some(value), measure }
}

const SCANNED: Goal =
    goal("n3 without SLC (table 3)", 48.4, |lab, source| factor(lab, source, "model_n3_scanned_pages"));
const FOLDED: Goal = goal("n4 without SLC (table 3)", 2.0, |lab, source| factor(lab, source, "model_n4_folded_blocks"));
const MISSES: Goal = goal("p1 without SLC (table 3)", 0.034, |lab, source| factor(lab, source, "model_p1_map_miss"));

/// Of NTFS only: under ext3 the large writes of a month are more than ten times the 2.2 GB that they go to.
const UPDATES: Goal = Goal {
    claim: "update ratio of 8 sectors by that of large writes (fig. 7b)",
    low: MORE_UPDATES,
    high: f64::INFINITY,
    aim: None,
    measure: |_, source| {
        // Data are written again and again over a month, not over the fewer requests of a quick run.
        let pool = Pool::new(Scale::Full, 1, BTreeMap::new(), &QuietLab);
        let month = Lab::new(&pool, StandIn::Calibrated);
        Ok(updates(&month.profile(source, &CurvePlan { points: 0, ..CurvePlan::default() })?))
    },
};

const fn folds(value: f64) -> Goal {
    goal("p2 without SLC (table 3)", value, |lab, source| factor(lab, source, "model_p2_fold"))
}

const THETA: (&str, &[&str]) = ("theta", &["0.5", "0.6", "0.7", "0.8", "0.9", "1", "1.05", "1.1"]);
const EXTENT: (&str, &[&str]) = ("hot_extent", &["4KiB", "8KiB", "16KiB", "32KiB", "64KiB", "128KiB"]);
const HOT: (&str, &[&str]) = ("hot_share", &["0.75", "0.8", "0.85", "0.9", "0.93", "0.96", "0.99"]);
const RUN: (&str, &[&str]) = ("run", &["128KiB", "256KiB", "384KiB", "512KiB", "1MiB", "2MiB", "4MiB", "8MiB"]);
pub(super) const CALIBRATIONS: &[Calibration] = &[
    Calibration {
        source: &NTFS,
        grid: &[RUN, HOT, EXTENT, THETA],
        search: FULL_IN_PAIRS,
        goals: &[SCANNED, FOLDED, MISSES, folds(0.028), UPDATES],
    },
    Calibration { source: &EXT3, grid: &[RUN, HOT], search: FULL_IN_PAIRS, goals: &[folds(0.011)] },
];

/// The calibrated stand-ins compared with their goals.
pub(super) fn figure(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    calibration::figure(lab, CALIBRATIONS)
}
