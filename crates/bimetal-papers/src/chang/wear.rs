//! Fig. 12: evenness of wear, and wear of SLC relative to MLC.

use bimetal_core::report::{EraseBin, WearFigures};

use super::{NTFS, NTFS_16TH, over_sizes, points};
use crate::Drawn;
use crate::experiment::Experiment;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use crate::reading::metric;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series};

/// The dual-pool threshold TH (section 5.1).
pub(super) const WEAR_THRESHOLD: f64 = 16.0;

/// Numbers of passes over the trace after which wear is evaluated.
const PASSES: [u32; 3] = [3, 10, 30];

/// A figure of a region's wear.
fn wear(entry: &Entry, region: &str, figure: fn(&WearFigures) -> f64) -> f64 {
    entry.report.wear_of(region).map_or(f64::NAN, figure)
}

/// Erases of a region's most worn block beyond the mean.
fn ahead(figures: &WearFigures) -> f64 {
    f64::from(figures.erases_max) - figures.erases_mean
}

/// Erases of the most worn MLC block beyond the mean.
pub(super) fn mlc_ahead(entry: &Entry) -> f64 {
    wear(entry, "mlc", ahead)
}

/// Erases of the most worn block.
pub(super) fn most_erases(entry: &Entry, region: &str) -> f64 {
    wear(entry, region, |region| f64::from(region.erases_max))
}

/// Difference between the most and the least worn SLC block.
pub(super) fn slc_spread(entry: &Entry) -> f64 {
    wear(entry, "slc", |slc| match (slc.erase_counts.first(), slc.erase_counts.last()) {
        (Some(least), Some(most)) => f64::from(most.to - least.from),
        _ => f64::NAN,
    })
}

/// Fig. 12a: erase counts of SLC and MLC blocks, for C3 at a sixteenth of its size.
pub(super) fn fig12a(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let small = |device, passes| {
        Experiment::new(&NTFS_16TH, device, "chang")
            .set("slc.capacity", "16MiB")
            .set("mlc.capacity", "1344MiB")
            .set("logical", "1280MiB")
            .passes(passes, passes)
    };
    let mut experiments = PASSES.map(|passes| small("chang-c3", passes)).to_vec();
    experiments.push(small("chang-c2", PASSES[1]));
    let entries = lab.run(&experiments)?;
    let (c3, c2) = (&entries[..PASSES.len()], &entries[PASSES.len()]);
    let over_passes = |name: &str, region: &str, figure: fn(&WearFigures) -> f64| {
        let point =
            |entry: &std::sync::Arc<Entry>| (wear(entry, "mlc", |mlc| mlc.erases_mean), wear(entry, region, figure));
        Series::measured(name, c3.iter().map(point).collect())
    };
    // C3 after the pass to which the claims apply.
    let distribution = |name: &str, region: &str| {
        let bins = c3[1].report.wear_of(region).map_or(&[][..], |wear| &wear.erase_counts[..]);
        let middle = |bin: &EraseBin| f64::midpoint(f64::from(bin.from), f64::from(bin.to));
        Series::measured(name, bins.iter().map(|bin| (middle(bin), f64::from(bin.blocks))).collect())
    };
    let spreads = [slc_spread(&c3[1]), slc_spread(c2)];
    let most = [mlc_ahead(&c3[1]), mlc_ahead(c2)];
    let findings = vec![
        Finding::fact(
            "SLC blocks wear perfectly evenly",
            "erase counts differ by 1 at most, C3 and C2",
            spreads.iter().all(|&spread| spread <= 1.0),
            row(spreads),
        )
        .target("T25"),
        Finding::fact(
            "MLC blocks wear evenly: dual-pool levelling with TH = 16",
            "most worn block less than 3 TH = 48 above the mean, C3 and C2",
            most.iter().all(|&most| most < 3.0 * WEAR_THRESHOLD),
            row(most) + " above it",
        )
        .target("T25")
        .unless("a cold-pool block that gets hot data runs ahead until the rules notice"),
    ];
    Ok(Drawn {
        caption: "A sixteenth of C3: 16 MB of SLC, 1,344 MB of MLC and a hot set of 1 MB, so that blocks are erased as often \
                  as the paper's; claims are of the tenth pass."
            .into(),
        plots: vec![Plot {
            title: "Erase counts over time".into(),
            kind: PlotKind::Lines,
            x: Axis::linear("mean erase count of MLC"),
            y: Axis::linear("erase count"),
            series: vec![
                over_passes("most worn MLC block above the mean", "mlc", ahead),
                over_passes("standard deviation, MLC", "mlc", |wear| wear.erases_stddev),
                over_passes("standard deviation, SLC", "slc", |wear| wear.erases_stddev),
            ],
        }, Plot {
            title: "Blocks by erase count".into(),
            kind: PlotKind::Marks,
            x: Axis::linear("erase count"),
            y: Axis::logarithmic("blocks"),
            series: vec![distribution("SLC", "slc"), distribution("MLC", "mlc")],
        }],
        findings,
    })
}

/// Sizes of SLC in Fig. 12b, in MiB.
const SMALL_MIB: [u32; 7] = [8, 16, 32, 64, 128, 256, 512];

/// Reason why the smallest SLC wears more than its share.
const HOTTEST: &str = "a few sectors get more writes than so small a chip may take, updates are never turned away, and data are copied \
    back while the throttle acts; with a flatter popularity and without copying back (`theta=0.5`, `slc_writeback=false`) it is \
    at most 10.1 in C2 and 20.0 in C3";

/// The same on the calibrated stand-in.
const HOTTEST_CALIBRATED: &str = "a few sectors get more writes than so small a chip may take, updates are never turned away, and data are \
    copied back while the throttle acts; with a flatter popularity and without copying back (`theta=0.5`, `slc_writeback=false`) \
    it is at most 10.1 in C2 and 20.1 in C3";

/// Fig. 12b: BW, mean erases of SLC divided by those of MLC.
#[expect(clippy::too_many_lines, reason = "most are a list of claims")]
pub(super) fn fig12b(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let mut series = Vec::new();
    let mut findings = Vec::new();
    let mut rejects = Vec::new();
    for (name, device, limit, at_most, equal, below) in [
        (
            "C2",
            "chang-c2",
            10.0,
            "C2: BW at most the endurance ratio",
            "C2: BW is the endurance ratio up to 16 MB",
            "C2: BW below the endurance ratio beyond 32 MB",
        ),
        (
            "C3",
            "chang-c3",
            20.0,
            "C3: BW at most the endurance ratio",
            "C3: BW is the endurance ratio up to 16 MB",
            "C3: BW below the endurance ratio beyond 32 MB",
        ),
    ] {
        let (_, hybrids) = over_sizes(lab, &NTFS, device, &SMALL_MIB)?;
        let points = points(&SMALL_MIB, &hybrids, |entry| entry.block_wearing.unwrap_or(f64::NAN));
        let values: Vec<f64> = points.iter().map(|&(_, value)| value).collect();
        let highest = values.iter().copied().fold(f64::NAN, f64::max);
        findings.extend([
            Finding::fact(at_most, format!("{limit} + 2 % at every size"), highest <= 1.02 * limit, row([highest]))
                .target("T23")
                .unless(HOTTEST)
                .unless_calibrated(HOTTEST_CALIBRATED),
            Finding::fact(
                equal,
                format!("{limit} ± 5 % at 8 and 16 MB"),
                values[..2].iter().all(|value| (value / limit - 1.0).abs() <= 0.05),
                row(values[..2].iter().copied()),
            )
            .target("T23")
            .unless(HOTTEST)
            .unless_calibrated(HOTTEST_CALIBRATED),
            Finding::fact(
                below,
                format!("below {limit} from 64 MB on"),
                values[3..].iter().all(|&value| value < limit),
                row(values[3..].iter().copied()),
            )
            .target("T23")
            .unless_calibrated("C2 at 64 MB alone; with a flatter popularity (`theta=0.7`) it is 9.7"),
        ]);
        rejects.push(metric(&hybrids[1], "throttle_rejects") / hybrids[1].report.write_us.count as f64);
        series.push(Series::measured(name, points));
        series.push(Series::of_paper(name, vec![(8.0, limit), (16.0, limit)]));
    }
    findings.push(Finding::fact(
        "C2 rejects more writes than C3 where SLC is small",
        "a larger share of the writes at 16 MB",
        rejects[0] > rejects[1],
        row(rejects),
    ));
    Ok(Drawn {
        caption: "NTFS. The limits are the ratios of the endurances, 10 for C2 and 20 for C3. While SLC is worn as much as MLC, \
                  only updates of data in SLC are taken."
            .into(),
        plots: vec![Plot {
            title: "Block-wearing ratio".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("SLC (MiB)"),
            y: Axis::logarithmic("erases of SLC by those of MLC"),
            series,
        }],
        findings,
    })
}
