//! Fig. 8, table 4 and the abstract: response, energy and cost.

use std::sync::Arc;

use bimetal_core::chip;
use bimetal_core::model::chang::operation_uj;
use bimetal_core::report;

use super::{EXT3, LOGICAL_MIB, NTFS, SLC_MIB, over_sizes, points, replay, speedup};
use crate::Drawn;
use crate::claim::Kind;
use crate::experiment::Source;
use crate::finding::{Finding, rises, row};
use crate::lab::Lab;
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// Fig. 8a: response of the drive without SLC divided by the response with SLC.
#[expect(clippy::too_many_lines, reason = "most are a list of claims")]
pub(super) fn fig8a(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let curves: [(&str, &Source, &str); 4] = [
        ("C1, NTFS", &NTFS, "chang-c1"),
        ("C2, NTFS", &NTFS, "chang-c2"),
        ("C3, NTFS", &NTFS, "chang-c3"),
        ("C3, ext3", &EXT3, "chang-c3"),
    ];
    let mut values = Vec::new();
    for (_, source, device) in curves {
        let (conventional, hybrids) = over_sizes(lab, source, device, &SLC_MIB)?;
        values.push(points(&SLC_MIB, &hybrids, |hybrid| speedup(&conventional, hybrid)));
    }
    let at = |curve: usize, size: usize| values[curve][size].1;
    let heights = |curve: usize| values[curve].iter().map(|&(_, value)| value).collect::<Vec<_>>();
    let all = |holds: &dyn Fn(usize) -> bool| (0..curves.len()).all(holds);
    let each = |value: &dyn Fn(usize) -> f64| row((0..curves.len()).map(value));
    let [c1, c2, c3, ext3] = [0, 1, 2, 3];
    let findings = vec![
        Finding::fact(
            "rises with the size of SLC up to 256 MB, all configurations",
            "rises",
            all(&|curve| rises(&heights(curve)[..4], 0.0)),
            row([c1, c2, c3, ext3].map(|curve| at(curve, 3) - at(curve, 0))) + " more at 256 than at 32 MB",
        )
        .target("T20"),
        Finding::fact(
            "saturates at 256 MB, all configurations",
            "less than 5 % more at 512 MB",
            all(&|curve| at(curve, 4) < 1.05 * at(curve, 3)),
            each(&|curve| at(curve, 4) / at(curve, 3)),
        )
        .target("T20")
        .unless("ext3 alone: with hot extents of 64 KiB for 8 it is 1.01")
        .unless_calibrated(
            "small writes that are not hot fill a larger SLC, too; in a quick run under ext3 alone, where it is 1.01 with runs of 2 MiB \
             for 4 (`run=2MiB`); at full size under NTFS alone, where it is 1.01 in C3 with 1 % of the small writes cold for 7 \
             (`hot_share=0.99`)",
        ),
        Finding::fact(
            "little gained below 128 MB, all configurations",
            "at 64 MB less than half the gain of 256 MB",
            all(&|curve| at(curve, 1) - 1.0 < 0.5 * (at(curve, 3) - 1.0)),
            each(&|curve| (at(curve, 1) - 1.0) / (at(curve, 3) - 1.0)),
        )
        .unless("on NTFS in C3 alone: the hottest data fit into little SLC; with a hot set of 64 MiB for 16 and a flatter popularity \
             (`hot_set=64MiB`, `theta=0.7`) it is 0.30")
        .unless_calibrated("on NTFS in C3 alone, where more popular data fit into little SLC; with less popularity (`theta=0.9`) it is 0.49"),
        Finding::about("C3, 256 MB, NTFS", 1.84, 0.1, at(c3, 3)).target("T20").unless_calibrated(LONG_RUNS),
        Finding::about("C3, 256 MB, ext3", 1.38, 0.1, at(ext3, 3))
            .target("T20")
            .unless("the stand-in has hot extents of 8 KiB; with 64 KiB it is 1.3")
            .unless_calibrated("the paper prints one figure of ext3 without SLC; with hot extents of 128 KiB (`hot_extent=128KiB`), which \
                 meet it, too, it is 1.40 in a quick run and 1.50 at full size"),
        Finding::about("C1, 256 MB, NTFS", 1.3, 0.1, at(c1, 3)).target("T20").unless_calibrated(OTHER_FIT),
        Finding::fact(
            "C3 gains more than C1",
            "1.84 and 1.3",
            at(c3, 3) > at(c1, 3),
            format!("{} and {}", short(at(c3, 3)), short(at(c1, 3))),
        )
        .target("T20"),
        Finding::fact(
            "C3 gains more under NTFS than under ext3",
            "1.84 and 1.38",
            at(c3, 3) > at(ext3, 3),
            format!("{} and {}", short(at(c3, 3)), short(at(ext3, 3))),
        )
        .unless_calibrated(
            "at full size, where more cold small writes have collected in SLC under NTFS; with runs of 4 MiB (`run=4MiB`) it is \
             1.72 there",
        ),
        Finding::about("C2 by C3, 256 MB", 1.0, 0.02, at(c2, 3) / at(c3, 3)),
        Finding::fact(
            "C2 gains less than C3 where SLC is small",
            "less at 32 MB",
            at(c2, 0) < at(c3, 0),
            format!("{} and {}", short(at(c2, 0)), short(at(c3, 0))),
        ),
    ];
    let series = curves.iter().zip(&values).map(|(&(name, ..), points)| Series::measured(name, points.clone()));
    let paper = [("C1, NTFS", 1.3), ("C3, NTFS", 1.84), ("C3, ext3", 1.38)];
    let of_paper = paper.map(|(name, speedup)| Series::of_paper(name, vec![(256.0, speedup)]));
    Ok(Drawn {
        caption: "Total response of the drive without SLC by that of the hybrid, on a filled drive. The paper gives \
                  numbers at 256 MB only. Where SLC is small the throttle turns writes away, earlier in C1 and C2, whose \
                  endurances are closer to each other."
            .into(),
        plots: vec![Plot {
            title: "Speed-up".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("SLC (MiB)"),
            y: Axis::linear("speed-up"),
            series: series.chain(of_paper).collect(),
        }],
        findings,
    })
}

/// Reason for C1 on the calibrated stand-in.
const OTHER_FIT: &str = "table 3 without SLC does not decide it: with runs of 1 MiB and a tenth of the small writes cold (`run=1MiB`, \
    `hot_share=0.9`), which meet its factors, too, it is 1.34";

/// Reason for C3 and the headline on the calibrated stand-in.
const LONG_RUNS: &str = "at full size; table 3 without SLC does not decide it: five settings that meet its factors within 11 % give \
    1.33 to 1.59; with runs of 4 MiB (`run=4MiB`), which leave n3 and n4 as printed and lower p1 and p2 by 18 and 28 %, it is \
    1.72";

/// Reason for the energy under NTFS on the calibrated stand-in.
const AS_TIME_CALIBRATED: &str = "energy follows time, as in fig8a; in a quick run it is 0.575 with 8 % of the small writes cold \
    for 7 (`hot_share=0.92`), at full size 0.58 with runs of 4 MiB (`run=4MiB`)";

/// Reason for energies.
const AS_TIME: &str = "energy follows time: the same as the speed-up of this trace in fig8a";

/// The same under ext3.
const AS_TIME_EXT3: &str = "energy follows time, as in fig8a; with hot extents of 64 KiB for 8 (`hot_extent=64KiB`) it \
    is 0.77";
const AS_TIME_EXT3_CALIBRATED: &str = "energy follows time, as in fig8a; with hot extents of 256 KiB for 32 \
    (`hot_extent=256KiB`) it is 0.72 in a quick run and 0.68 at full size";

/// The same for the share of energy that is saved.
const MORE_OF_IT: &str = "it is 1 - 1 / speed-up, so that a speed-up a little lower counts more here";
const MORE_OF_IT_CALIBRATED: &str = "it is 1 - 1 / speed-up, so that a speed-up a little lower counts more here; with \
    8 % of the small writes cold for 7 (`hot_share=0.92`) it is 0.425 in a quick run, with runs of 4 MiB \
    (`run=4MiB`) 0.42 at full size";

/// Raw MLC capacity of the drives, in MiB.
const MLC_MIB: u32 = 21 << 10;

/// MLC of density control beyond that of the hybrids, in MiB: twice their SLC.
fn extra_mib() -> [u32; SLC_MIB.len()] {
    SLC_MIB.map(|size| 2 * size)
}

/// Parts of the additional capacity that density control may use for blocks in SLC mode. The rest serves log blocks, as
/// the usual spare area does.
const BUDGET_PARTS: [u32; 3] = [1, 4, 16];

/// Spare area of the drives, in percent of their logical capacity.
const USUAL_SPARE_PERCENT: f64 = 5.0;

/// Density control with each of these additional capacities, and the best budget of each.
pub(super) fn controlled(lab: &Lab<'_>, source: &'static Source) -> Result<Vec<Arc<Entry>>, StudyError> {
    let percent = |mib: u32| f64::from(mib) / f64::from(LOGICAL_MIB) * 100.0;
    let experiments = extra_mib().map(|extra| {
        let device = replay(lab, source, "chang-c3-mlc", "density-control")
            .set("mlc.capacity", source.capacity(f64::from(MLC_MIB + extra), LOGICAL_MIB));
        let spare = |part| USUAL_SPARE_PERCENT + percent(extra - extra / part);
        BUDGET_PARTS.map(|part| device.clone().set("usual_spare_percent", spare(part)))
    });
    let entries = lab.run(experiments.as_flattened())?;
    let response_us = |entry: &&Arc<Entry>| entry.report.response_us.mean;
    let best =
        |budgets: &[Arc<Entry>]| budgets.iter().min_by(|a, b| response_us(a).total_cmp(&response_us(b))).cloned();
    Ok(entries.chunks(BUDGET_PARTS.len()).filter_map(best).collect())
}

/// Fig. 8b: the same for density control, which has additional MLC of twice the hybrid's SLC size (section 5.3.1).
pub(super) fn fig8b(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let extra_mib = extra_mib();
    let mut series = Vec::new();
    let mut findings = Vec::new();
    let mut largest = Vec::new();
    for (name, claim, source) in [
        ("NTFS", "below the hybrid with the same budget, NTFS", &NTFS),
        ("ext3", "below the hybrid with the same budget, ext3", &EXT3),
    ] {
        let (conventional, hybrids) = over_sizes(lab, source, "chang-c3", &SLC_MIB)?;
        let controlled = controlled(lab, source)?;
        let hybrid = points(&extra_mib, &hybrids, |entry| speedup(&conventional, entry));
        let density = points(&extra_mib, &controlled, |entry| speedup(&conventional, entry));
        let shares: Vec<f64> = density.iter().zip(&hybrid).map(|(density, hybrid)| density.1 / hybrid.1).collect();
        findings.push(
            Finding::fact(
                claim,
                "below 1 of it at every size",
                shares.iter().all(|&share| share < 1.0),
                row(shares.iter().copied()),
            )
            .target("T21")
            .unless("under ext3 alone, with 64 and 128 MB, most of which serve log blocks: they save more folds than so little SLC")
        );
        largest.extend(density.last().map(|&(_, speedup)| speedup));
        series.push(Series::measured(format!("density control, {name}"), density));
        series.push(Series::measured(format!("hybrid, {name}"), hybrid));
    }
    findings.push(Finding::fact(
        "below the ideal speed-ups of SLC mode, 1.2 (read) and 2 (write), even with 1,024 MB more",
        "below 1.2",
        largest.iter().all(|&speedup| speedup < 1.2),
        row(largest.iter().copied()),
    ).unless("under NTFS alone, with 64 MB in SLC mode: the rest serves log blocks, which save folds; with all 1,024 MB in SLC mode it \
              is 0.92"));
    Ok(Drawn {
        caption: "Density control runs MLC blocks in SLC mode while they are hot. Beyond the usual spare area it has twice the \
                  bytes of the hybrid's SLC, as in the paper. All of that, a quarter or a sixteenth may be used in SLC mode; the \
                  best of the three is shown. C2's chip is C3's but for its endurance; C1's has no SLC mode."
            .into(),
        plots: vec![Plot {
            title: "Speed-up".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("further MLC (MiB), or twice the hybrid's SLC"),
            y: Axis::linear("speed-up"),
            series,
        }],
        findings,
    })
}

/// ES: energy of the second divided by that of the first.
pub(super) fn energy(conventional: &Entry, hybrid: &Entry) -> f64 {
    report::energy_saving(&conventional.report, &hybrid.report).unwrap_or(f64::NAN)
}

/// EC: price of the second divided by that of the first.
fn cost(conventional: &Entry, hybrid: &Entry) -> f64 {
    report::extra_cost(&conventional.report, &hybrid.report).unwrap_or(f64::NAN)
}

/// Table 4: energy and cost of configuration C3.
pub(super) fn table4(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (ntfs_without, ntfs) = over_sizes(lab, &NTFS, "chang-c3", &SLC_MIB)?;
    let (ext3_without, ext3) = over_sizes(lab, &EXT3, "chang-c3", &SLC_MIB)?;
    let ntfs_energy = points(&SLC_MIB, &ntfs, |entry| energy(&ntfs_without, entry));
    let ext3_energy = points(&SLC_MIB, &ext3, |entry| energy(&ext3_without, entry));
    let costs = points(&SLC_MIB, &ntfs, |entry| cost(&ntfs_without, entry));
    let products = |without: &Entry, hybrids: &[Arc<Entry>]| {
        hybrids.iter().map(|hybrid| energy(without, hybrid) * speedup(without, hybrid)).collect::<Vec<_>>()
    };
    let products = [products(&ntfs_without, &ntfs), products(&ext3_without, &ext3)].concat();
    let farthest = products.iter().copied().max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs()));
    let page_write_uj = chip::find("chang-mlc-5k").map_or(f64::NAN, |chip| operation_uj(&chip, chip.program_us));
    let findings = vec![
        Finding::about("cost of C3 with 256 MB by that without", 1.04, 0.005, costs[3].1)
            .of_kind(Kind::Arithmetic)
            .target("T4"),
        Finding::about("energy by that without SLC, 256 MB, NTFS", 0.542, 0.1, ntfs_energy[3].1)
            .unless(AS_TIME)
            .unless_calibrated(AS_TIME_CALIBRATED),
        Finding::about("energy by that without SLC, 256 MB, ext3", 0.736, 0.1, ext3_energy[3].1)
            .unless(AS_TIME_EXT3)
            .unless_calibrated(AS_TIME_EXT3_CALIBRATED),
        Finding::about(
            "energy ratio x speed-up (all operations draw the same power)",
            1.0,
            0.02,
            farthest.unwrap_or(f64::NAN),
        )
        .of_kind(Kind::Arithmetic)
        .target("T22"),
        Finding::about("energy of an MLC page write, µJ", 39.6, 0.001, page_write_uj)
            .of_kind(Kind::Arithmetic)
            .target("T3"),
    ];
    let at_256 = |value| vec![(256.0, value)];
    Ok(Drawn {
        caption: "Ratios to the drive without SLC. Below 1, the hybrid takes less energy; cost is that of all flash."
            .into(),
        plots: vec![Plot {
            title: "Energy and cost".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("SLC (MiB)"),
            y: Axis::linear("by that without SLC"),
            series: vec![
                Series::measured("energy, NTFS", ntfs_energy),
                Series::measured("energy, ext3", ext3_energy),
                Series::measured("cost", costs),
                Series::of_paper("energy, NTFS", at_256(0.542)),
                Series::of_paper("energy, ext3", at_256(0.736)),
                Series::of_paper("cost", at_256(1.04)),
            ],
        }],
        findings,
    })
}

/// The abstract's figures for the best case: C3 with 256 MB under NTFS.
pub(super) fn headline(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let (without, hybrids) = over_sizes(lab, &NTFS, "chang-c3", &SLC_MIB)?;
    let hybrid = &hybrids[3];
    let measured = [speedup(&without, hybrid), 1.0 - energy(&without, hybrid), cost(&without, hybrid) - 1.0];
    let named = |values: [f64; 3]| ["speed-up", "energy saved", "extra cost"].map(String::from).into_iter().zip(values);
    Ok(Drawn {
        caption: "Configuration C3, 256 MB of SLC, NTFS.".into(),
        plots: vec![Plot {
            title: "Headline".into(),
            kind: PlotKind::Bars,
            x: Axis::linear("figure"),
            y: Axis::linear("ratio"),
            series: vec![
                Series::measured_by_name("here", named(measured).collect()),
                Series::of_paper_by_name("paper", named([1.8, 0.46, 0.04]).collect()),
            ],
        }],
        findings: vec![
            Finding::about("1.8 times faster", 1.8, 0.1, measured[0]).unless_calibrated(LONG_RUNS),
            Finding::about("46 % less energy", 0.46, 0.1, measured[1])
                .unless(MORE_OF_IT)
                .unless_calibrated(MORE_OF_IT_CALIBRATED),
            Finding::between("4 % more cost", 0.035, 0.045, measured[2]).of_kind(Kind::Arithmetic),
        ],
    })
}
