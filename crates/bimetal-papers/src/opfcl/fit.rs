//! Goals of the calibrated stand-ins: FP-FCL's curves in figures 6, 8, 10 and 14. RW-FCL and OP-FCL are judged on these
//! stand-ins.
//!
//! Table 1 does not describe locality: which pages are requested again, and how soon. The first stand-ins use the
//! locality of Financial's first requests for all servers but Search Engine. Here each trace has its own: shares and
//! exponents of recent and of popular pages, and whether the server had run for long before the trace (`settled`).
//! Requests, sizes and working sets remain those of the table.

use super::effects::{bend, erases, hit_rate};
use super::{Case, ON_EXCHANGE, ON_FINANCIAL, ON_HOME, ON_MSN, ON_SEARCH, unified};
use crate::Drawn;
use crate::calibration::{self, Calibration, Goal, QUICK};
use crate::experiment::Fitted;
use crate::finding::lowest;
use crate::lab::Lab;
use crate::reading::{curve, height_at, response_ms};
use bimetal_study::StudyError;

/// The result of `examples/calibrate.rs`.
pub(super) const FITTED_FINANCIAL: Fitted = Fitted {
    workload: "financial",
    quick: None,
    settings: &[("settled", "false"), ("popular_share", "1"), ("popularity", "0.6"), ("recency", "1.2")],
};
pub(super) const FITTED_HOME: Fitted = Fitted {
    workload: "home",
    quick: None,
    settings: &[("settled", "false"), ("popular_share", "0.3"), ("popularity", "0"), ("recency", "2")],
};
pub(super) const FITTED_SEARCH: Fitted = Fitted {
    workload: "search",
    quick: None,
    settings: &[("settled", "true"), ("popular_share", "1"), ("popularity", "0"), ("recency", "1.2")],
};
pub(super) const FITTED_EXCHANGE: Fitted = Fitted {
    workload: "exchange",
    quick: None,
    settings: &[("settled", "true"), ("popular_share", "0.3"), ("popularity", "0.6"), ("recency", "0.8")],
};
pub(super) const FITTED_MSN: Fitted = Fitted {
    workload: "msn",
    quick: None,
    settings: &[("settled", "true"), ("popular_share", "0.7"), ("popularity", "0"), ("recency", "0.8")],
};

/// Response of FP-FCL at the paper's best caching space, relative to its lowest response (fig. 6, 10).
fn at_best(lab: &Lab<'_>, case: &Case, percent: f64) -> Result<f64, StudyError> {
    let responses = curve(&unified(lab, case)?, response_ms);
    Ok(height_at(&responses, percent) / lowest(&responses).map_or(f64::NAN, |((_, least), _)| least))
}

/// Erases at one caching space relative to another (fig. 14).
fn erases_by(lab: &Lab<'_>, case: &Case, percent: f64, by: f64) -> Result<f64, StudyError> {
    let erases = curve(&unified(lab, case)?, erases);
    Ok(height_at(&erases, percent) / height_at(&erases, by))
}

/// The caching space at which FP-FCL responds fastest, in percent.
fn best_space(lab: &Lab<'_>, case: &Case) -> Result<f64, StudyError> {
    Ok(lowest(&curve(&unified(lab, case)?, response_ms)).map_or(f64::NAN, |((percent, _), _)| percent))
}

/// How much FP-FCL's hit rate rises from the least caching space to the most.
fn rise_of_hits(lab: &Lab<'_>, case: &Case) -> Result<f64, StudyError> {
    let hits = curve(&unified(lab, case)?, hit_rate);
    let [Some(first), Some(last)] = [hits.first(), hits.last()] else { return Ok(f64::NAN) };
    Ok(last.1 - first.1)
}

/// The goals of a server whose erases rise from some caching space on, and others.
macro_rules! goals {
    ($case:ident, $best:expr, $axis:expr $(, $other:expr)*) => {
        &[
            Goal {
                claim: "FP-FCL at the paper's best caching space by its lowest response (fig. 6, 10)",
                low: 1.0,
                high: 1.01,
                aim: Some(1.0),
                measure: |lab, source| at_best(lab, &Case { source, ..$case }, $best),
            },
            Goal {
                claim: "FP-FCL, erases at 70 % by those at 10 % (fig. 14)",
                low: 0.9,
                high: 1.2,
                aim: None,
                measure: |lab, source| erases_by(lab, &Case { source, ..$case }, 70.0, 10.0),
            },
            Goal {
                claim: "FP-FCL, erases at 97 % by those at 70 % (fig. 14)",
                low: 1.6,
                high: f64::INFINITY,
                aim: None,
                measure: |lab, source| erases_by(lab, &Case { source, ..$case }, 97.0, 70.0),
            },
            Goal {
                claim: "FP-FCL, erases at 95 % by the end of the axis (fig. 14)",
                low: 0.5,
                high: 1.5,
                aim: Some(1.0),
                measure: |lab, source| Ok(most_erases(lab, &Case { source, ..$case })? / $axis),
            },
            $($other,)*
        ]
    };
}

/// Erases of FP-FCL at the largest caching space that the paper tries everywhere.
fn most_erases(lab: &Lab<'_>, case: &Case) -> Result<f64, StudyError> {
    Ok(height_at(&curve(&unified(lab, case)?, erases), 95.0))
}

/// Without this goal the nearest fit to Home's other figures has its minimum at the least caching space.
const HOME_BEST: Goal = Goal {
    claim: "FP-FCL, best caching space (%), Home (fig. 6)",
    low: 40.0,
    high: 60.0,
    aim: Some(50.0),
    measure: |lab, source| best_space(lab, &Case { source, ..ON_HOME }),
};

/// Without this goal no caching space changes its hit rate.
const HOME_HITS: Goal = Goal {
    claim: "FP-FCL, hit rate at 97 % less that at 10 %, Home (fig. 8)",
    low: 0.05,
    high: 1.0,
    aim: None,
    measure: |lab, source| rise_of_hits(lab, &Case { source, ..ON_HOME }),
};

/// The goals for FP-FCL on Search Engine.
const SEARCH_GOALS: &[Goal] = &[
    Goal {
        claim: "FP-FCL at the paper's best caching space by its lowest response (fig. 6, 10)",
        low: 1.0,
        high: 1.01,
        aim: Some(1.0),
        measure: |lab, source| at_best(lab, &Case { source, ..ON_SEARCH }, 95.0),
    },
    Goal {
        claim: "FP-FCL, hit rate off a straight line, share of its rise, Search Engine (fig. 8)",
        low: 0.0,
        high: 0.1,
        aim: None,
        measure: |lab, source| Ok(bend(&curve(&unified(lab, &Case { source, ..ON_SEARCH })?, hit_rate))),
    },
    Goal {
        claim: "FP-FCL, erases at 80 % by the fewest, Search Engine (fig. 14)",
        low: 1.0,
        high: 1.05,
        aim: None,
        measure: |lab, source| {
            let erases = curve(&unified(lab, &Case { source, ..ON_SEARCH })?, erases);
            Ok(height_at(&erases, 80.0) / lowest(&erases).map_or(f64::NAN, |((_, fewest), _)| fewest))
        },
    },
    Goal {
        claim: "FP-FCL, erases at 95 % by the end of the axis (fig. 14)",
        low: 0.5,
        high: 1.5,
        aim: Some(1.0),
        measure: |lab, source| Ok(most_erases(lab, &Case { source, ..ON_SEARCH })? / 5.0),
    },
];

/// Searched settings of a server's locality, each with its candidate values.
pub(in super::super) const LOCALITIES: &[(&str, &[&str])] = &[
    ("settled", &["false", "true"]),
    ("popular_share", &["0", "0.3", "0.5", "0.7", "0.9", "1"]),
    ("popularity", &["0", "0.3", "0.6", "0.9", "1.2"]),
    ("recency", &["0.8", "1.2", "1.6", "2"]),
];

/// The fits.
pub(super) const CALIBRATIONS: &[Calibration] = &[
    Calibration { source: &super::FINANCIAL, grid: LOCALITIES, search: QUICK, goals: goals!(ON_FINANCIAL, 60.0, 14.0) },
    Calibration {
        source: &super::HOME,
        grid: LOCALITIES,
        search: QUICK,
        goals: goals!(ON_HOME, 50.0, 80.0, HOME_BEST, HOME_HITS),
    },
    Calibration { source: &super::SEARCH, grid: LOCALITIES, search: QUICK, goals: SEARCH_GOALS },
    Calibration { source: &super::EXCHANGE, grid: LOCALITIES, search: QUICK, goals: goals!(ON_EXCHANGE, 70.0, 120.0) },
    Calibration { source: &super::MSN, grid: LOCALITIES, search: QUICK, goals: goals!(ON_MSN, 80.0, 120.0) },
];

/// The fits compared with their goals.
pub(super) fn figure(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    calibration::figure(lab, CALIBRATIONS)
}
