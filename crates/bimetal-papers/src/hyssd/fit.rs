//! Goals of the calibrated stand-ins: the places at which Static is best, in figures 3 and 5. Perf and Life are judged on
//! these stand-ins.
//!
//! Table I does not describe locality: which pages are requested again, and how soon. The first stand-ins use the
//! locality of Financial's first requests. Here it is searched for each trace, by what the paper prints of its baseline:
//! the utilisations with the lowest response and with the longest life, on both drives. Requests and sizes remain those
//! of the table.

use bimetal_study::StudyError;
use bimetal_study::compare::Entry;

use super::{Case, Drive, MT_EXCHANGE, MT_FINANCIAL, ST_EXCHANGE, ST_FINANCIAL, by_utilisation, fixed, life_left};
use crate::Drawn;
use crate::calibration::{self, Calibration, Goal, QUICK};
use crate::experiment::{Fitted, Source};
use crate::finding::{highest, lowest};
use crate::lab::Lab;
use crate::opfcl::LOCALITIES;
use crate::reading::{curve, height_at, response_ms};

// The result of `examples/calibrate.rs`.
pub(super) const FITTED_FINANCIAL: Fitted = Fitted {
    workload: "financial",
    quick: None,
    settings: &[("settled", "false"), ("popular_share", "0"), ("popularity", "0.3"), ("recency", "2")],
};
pub(super) const FITTED_EXCHANGE: Fitted = Fitted {
    workload: "exchange",
    quick: None,
    settings: &[("settled", "true"), ("popular_share", "0.3"), ("popularity", "0.3"), ("recency", "1.2")],
};

/// A figure of Static on a drive, by utilisation.
fn of_static(
    lab: &Lab<'_>,
    case: &Case,
    source: &'static Source,
    figure: fn(&Entry) -> f64,
) -> Result<Vec<(f64, f64)>, StudyError> {
    let entries = lab.run(&fixed(lab, &Drive { source, ..case.drive }))?;
    Ok(curve(&by_utilisation(&entries), figure))
}

/// Static's response at the paper's best utilisation, relative to its lowest.
fn response(lab: &Lab<'_>, case: &Case, source: &'static Source) -> Result<f64, StudyError> {
    let responses = of_static(lab, case, source, response_ms)?;
    Ok(height_at(&responses, case.fastest) / lowest(&responses).map_or(f64::NAN, |((_, least), _)| least))
}

/// Static's life at the paper's best utilisation, relative to its longest.
fn life(lab: &Lab<'_>, case: &Case, source: &'static Source) -> Result<f64, StudyError> {
    let lives = of_static(lab, case, source, life_left)?;
    Ok(height_at(&lives, case.longest_lived) / highest(&lives).map_or(f64::NAN, |((_, most), _)| most))
}

/// The goals of a trace, for Static on both drives.
macro_rules! goals {
    ($st:ident, $mt:ident) => {
        &[
            Goal {
                claim: "Static's response at the paper's best utilisation by its lowest, ST-SSD (fig. 3)",
                low: 1.0,
                high: 1.01,
                aim: Some(1.0),
                measure: |lab, source| response(lab, &$st, source),
            },
            Goal {
                claim: "Static's response at the paper's best utilisation by its lowest, MT-SSD (fig. 3)",
                low: 1.0,
                high: 1.01,
                aim: Some(1.0),
                measure: |lab, source| response(lab, &$mt, source),
            },
            Goal {
                claim: "Static's life at the paper's best utilisation by its longest, ST-SSD (fig. 5)",
                low: 0.99,
                high: 1.0,
                aim: Some(1.0),
                measure: |lab, source| life(lab, &$st, source),
            },
            Goal {
                claim: "Static's life at the paper's best utilisation by its longest, MT-SSD (fig. 5)",
                low: 0.99,
                high: 1.0,
                aim: Some(1.0),
                measure: |lab, source| life(lab, &$mt, source),
            },
        ]
    };
}

/// The fits.
pub(super) const CALIBRATIONS: &[Calibration] = &[
    Calibration {
        source: &super::FINANCIAL,
        grid: LOCALITIES,
        search: QUICK,
        goals: goals!(ST_FINANCIAL, MT_FINANCIAL),
    },
    Calibration { source: &super::EXCHANGE, grid: LOCALITIES, search: QUICK, goals: goals!(ST_EXCHANGE, MT_EXCHANGE) },
];

/// The fits compared with their goals.
pub(super) fn figure(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    calibration::figure(lab, CALIBRATIONS)
}
