//! Goals of the calibrated stand-ins: table 3, figure 9, and the paper's results for SLC-only, MLC-only and the fixed
//! thresholds.
//!
//! Figure 10 has no numbers, but they follow from its text. ComboFTL's times are 0.67 to 0.85 of MLC-only's and 1.2 to
//! 1.49 of SLC-only's. So on every trace SLC-only takes between 0.67 / 1.49 and 0.85 / 1.2 of MLC-only's time. The
//! trace with 0.85 has at least 0.85 / 1.49 = 0.570, and the one with 0.67 at most 0.67 / 1.2 = 0.558. ComboFTL cancels
//! out. Figure 15 is used in the same way: 13 to 20 % fewer erases than MLC-only and 10 to 25 % fewer than the baseline
//! of 8 KB put the baseline at 0.80 / 0.90 to 0.87 / 0.75 of MLC-only, and the text puts it above 1.

use super::{Chip, IOZONE, MLC_ONLY, PC, PHONE, SLC_ONLY, Settings, mlc_erases, replay, time_ratio, traces};
use crate::Drawn;
use crate::calibration::{self, Calibration, Goal, QUICK};
use crate::experiment::{Fitted, Source};
use crate::lab::Lab;
use bimetal_study::StudyError;

/// The result of `examples/calibrate.rs`.
pub(super) const FITTED_PHONE: Fitted = Fitted {
    workload: "mixture",
    quick: None,
    settings: &[
        ("trace", "phone"),
        ("warm_share", "0.75"),
        ("warm_kib", "16"),
        ("theta", "1"),
        ("large_kib", "128"),
        ("extent_kib", "1024"),
    ],
};
pub(super) const FITTED_PC: Fitted = Fitted {
    workload: "mixture",
    quick: None,
    settings: &[
        ("trace", "pc"),
        ("small_share", "0.18"),
        ("warm_share", "0.7"),
        ("warm_kib", "16"),
        ("theta", "1.2"),
        ("large_kib", "64"),
        ("extent_kib", "1024"),
    ],
};
pub(super) const FITTED_IOZONE: Fitted = Fitted {
    workload: "mixture",
    quick: None,
    settings: &[
        ("trace", "iozone"),
        ("small_share", "0.001"),
        ("warm_share", "0.8"),
        ("warm_kib", "128"),
        ("theta", "1.4"),
        ("large_kib", "128"),
        ("extent_kib", "1024"),
    ],
};

const STATIC_5: Chip = ("comboftl-5", "combo-static");
const STATIC_10: Chip = ("comboftl-10", "combo-static");
const EIGHT: Settings = &[("threshold", "8KiB")];
const SIXTY_FOUR: Settings = &[("threshold", "64KiB")];

/// Execution time of a chip relative to another one.
fn ratio(
    lab: &Lab<'_>,
    source: &'static Source,
    of: (Chip, Settings),
    by: (Chip, Settings),
) -> Result<f64, StudyError> {
    let entries = lab.run(&[replay(source, of.0, of.1), replay(source, by.0, by.1)])?;
    Ok(time_ratio(&entries[1], &entries[0]))
}

/// Fig. 10: between the ends of the ranges, and ideally the mean of 0.558 and 0.570.
const CHIPS: Goal = Goal {
    claim: "SLC-only by MLC-only, execution time (6.1)",
    low: 0.67 / 1.49,
    high: 0.85 / 1.2,
    aim: Some(0.564),
    measure: |lab, source| ratio(lab, source, (SLC_ONLY, &[]), (MLC_ONLY, &[])),
};

/// Section 6: "many large-sized update requests, thus it has high temporal and spatial localities", whereas large data
/// of the other traces return only after more than 1,024 MB.
const LOCALITY: Goal = Goal {
    claim: "writes of 32 KB and more that return before 1,024 MB are written, IOzone (6, fig. 9)",
    low: 0.5,
    high: 1.0,
    aim: None,
    measure: traces::large_that_return,
};

/// Section 6.1: "a larger SLC region gives worse results".
const EIGHT_BY_SIZE: Goal = Goal {
    claim: "Baseline 8 KB with 10 % by itself with 5 %, execution time (6.1)",
    low: 1.0,
    high: f64::INFINITY,
    aim: None,
    measure: |lab, source| ratio(lab, source, (STATIC_10, EIGHT), (STATIC_5, EIGHT)),
};

/// The slower of two sizes of SLC, relative to MLC-only.
fn slower(lab: &Lab<'_>, source: &'static Source, threshold: Settings) -> Result<f64, StudyError> {
    let [five, ten] = [STATIC_5, STATIC_10].map(|chip| ratio(lab, source, (chip, threshold), (MLC_ONLY, &[])));
    Ok(five?.max(ten?))
}

/// Section 6.1: on IOzone the baseline of 64 KB is "even worse than the MLC-only chip", so on other traces it is not.
/// No baseline reaches ComboFTL's 0.67. The same condition for the baseline of 8 KB would contradict section 6.5: a
/// scheme that erases MLC more often than MLC-only also spends more time there.
const SIXTY_FOUR_TIME: Goal = Goal {
    claim: "Baseline 64 KB by MLC-only, execution time, the slower of 5 and 10 %, but on IOzone (6.1)",
    low: 0.67,
    high: 1.0,
    aim: None,
    measure: |lab, source| slower(lab, source, SIXTY_FOUR),
};

/// Section 6.5: "even worse results than the MLC-only chip when the portion of SLC region is 5 %".
const EIGHT_ERASES: Goal = Goal {
    claim: "Baseline 8 KB with 5 % by MLC-only, erases of MLC (6.5)",
    low: 1.0,
    high: 0.87 / 0.75,
    aim: None,
    measure: |lab, source| {
        let entries = lab.run(&[replay(source, STATIC_5, EIGHT), replay(source, MLC_ONLY, &[])])?;
        Ok(mlc_erases(&entries[0]) / mlc_erases(&entries[1]))
    },
};

/// Section 6.1: "even worse results than the MLC-only chip".
const SIXTY_FOUR_ON_IOZONE: Goal = Goal {
    claim: "Baseline 64 KB with 5 % by MLC-only, execution time, IOzone (6.1)",
    low: 1.0,
    high: f64::INFINITY,
    aim: None,
    measure: |lab, source| ratio(lab, source, (STATIC_5, SIXTY_FOUR), (MLC_ONLY, &[])),
};

/// Values that are searched for all three traces.
const SHARES: &[&str] = &["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.75", "0.8"];
const EXPONENTS: &[&str] = &["0.4", "0.6", "0.8", "0.9", "1", "1.1", "1.2", "1.3", "1.4", "1.6"];
const EXTENTS: &[&str] = &["1024", "4096", "16384"];

/// For data between small and large: 16 and 32 KB are the sizes whose return the text on figure 9 does not describe.
const OF_A_DISK: &[(&str, &[&str])] = &[
    ("warm_share", SHARES),
    ("warm_kib", &["16", "32"]),
    ("theta", EXPONENTS),
    ("large_kib", &["64", "128"]),
    ("extent_kib", EXTENTS),
];

/// Almost all of IOzone's writes are large.
const OF_IOZONE: &[(&str, &[&str])] = &[
    ("warm_share", &["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"]),
    ("warm_kib", &["64", "128", "256"]),
    ("theta", EXPONENTS),
    ("large_kib", &["64", "128"]),
    ("extent_kib", EXTENTS),
];

/// The goals for Phone and PC.
const GOALS: &[Goal] = &[CHIPS, EIGHT_BY_SIZE, SIXTY_FOUR_TIME, EIGHT_ERASES];

/// The fits.
pub(super) const CALIBRATIONS: &[Calibration] = &[
    Calibration { source: &PHONE, grid: OF_A_DISK, search: QUICK, goals: GOALS },
    Calibration { source: &PC, grid: OF_A_DISK, search: QUICK, goals: GOALS },
    Calibration {
        source: &IOZONE,
        grid: OF_IOZONE,
        search: QUICK,
        goals: &[LOCALITY, CHIPS, EIGHT_BY_SIZE, EIGHT_ERASES, SIXTY_FOUR_ON_IOZONE],
    },
];

/// The fits compared with their goals.
pub(super) fn figure(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    calibration::figure(lab, CALIBRATIONS)
}
