//! Chang 2010: a small SLC chip in front of an MLC array (schemes `chang`, `conventional`, `density-control`).

use bimetal_core::report;

use super::finding::{Finding, rises, row};
use super::lab::{Experiment, Lab, Source};
use super::{Drawn, FigureSpec, PaperSpec};
use crate::StudyError;
use crate::compare::Entry;
use crate::figure::{Axis, Plot, PlotKind, Series, short};

/// The registry's line.
pub static SPEC: PaperSpec = PaperSpec {
    name: "chang",
    citation: "Li-Pin Chang, A Hybrid Approach to NAND-Flash-Based Solid-State Disks, IEEE Transactions on Computers 59(10), \
               2010",
    summary: "a small SLC chip in front of an MLC array",
    figures: &[
        FigureSpec { name: "fig8a", title: "speed-up over the size of SLC", sources: &[&NTFS, &EXT3], make: fig8a },
        FigureSpec {
            name: "fig8b",
            title: "density control with the same budget",
            sources: &[&NTFS, &EXT3],
            make: fig8b,
        },
    ],
};

/// A month of a Windows laptop.
static NTFS: Source =
    Source { name: "ntfs", workload: "bimodal-ntfs", settings: &[], quick_requests: 400_000, quick_settings: &[] };

/// A month of a Linux laptop.
static EXT3: Source =
    Source { name: "ext3", workload: "bimodal-ext3", settings: &[], quick_requests: 400_000, quick_settings: &[] };

/// Sizes of SLC in Fig. 8a, in MiB.
const SLC_MIB: [u32; 5] = [32, 64, 128, 256, 512];

/// The replays of a figure are this many passes over a trace; the paper's are ten.
const PASSES: u32 = 3;

/// Fig. 8a: response of the drive without SLC by that with it.
fn fig8a(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let curves: [(&str, &Source, &str); 4] = [
        ("C1, NTFS", &NTFS, "chang-c1"),
        ("C2, NTFS", &NTFS, "chang-c2"),
        ("C3, NTFS", &NTFS, "chang-c3"),
        ("C3, ext3", &EXT3, "chang-c3"),
    ];
    let mut points = Vec::new();
    for (_, source, device) in curves {
        points.push(speedups(lab, source, device, "chang", &SLC_MIB, "slc.capacity")?);
    }
    let at_256 = |curve: usize| points[curve][3].1;
    let [c1, c2, c3, ext3] = [0, 1, 2, 3];
    let values = |curve: usize| points[curve].iter().map(|&(_, value)| value).collect::<Vec<_>>();
    let findings = vec![
        Finding::fact(
            "rises with the size of SLC up to 256 MB",
            "rises, all configurations",
            [c1, c2, c3, ext3].iter().all(|&curve| rises(&values(curve)[..4], 0.0)),
            row(values(c3)),
        )
        .target("T20"),
        Finding::fact(
            "saturates at 256 MB",
            "less than 5 % more at 512 MB",
            [c1, c2, c3, ext3].iter().all(|&curve| values(curve)[4] < 1.05 * values(curve)[3]),
            row([c1, c2, c3, ext3].map(|curve| values(curve)[4] / values(curve)[3])),
        )
        .target("T20"),
        Finding::about("C3, 256 MB, NTFS", 1.84, 0.1, at_256(c3)).target("T20"),
        Finding::about("C3, 256 MB, ext3", 1.38, 0.1, at_256(ext3)).target("T20"),
        Finding::about("C1, 256 MB, NTFS", 1.3, 0.1, at_256(c1)).target("T20"),
        Finding::fact(
            "C3 gains more than C1",
            "1.84 and 1.3",
            at_256(c3) > at_256(c1),
            format!("{} and {}", short(at_256(c3)), short(at_256(c1))),
        )
        .target("T20"),
    ];
    let series = curves.iter().zip(&points).map(|(&(name, ..), points)| Series::measured(name, points.clone()));
    let paper = [("C1, NTFS", 1.3), ("C3, NTFS", 1.84), ("C3, ext3", 1.38)];
    let of_paper = paper.map(|(name, speedup)| Series::of_paper(name, vec![(256.0, speedup)]));
    Ok(Drawn {
        caption:
            "Total response of the drive without SLC by that of the hybrid, on a filled drive. The paper gives numbers \
                  at 256 MB only."
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

/// Fig. 8b: the same of density control, whose budget is spent on MLC blocks in SLC mode.
fn fig8b(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let mut series = Vec::new();
    let mut below = true;
    for (name, source) in [("NTFS", &NTFS), ("ext3", &EXT3)] {
        let hybrid = speedups(lab, source, "chang-c3", "chang", &SLC_MIB, "slc.capacity")?;
        let density = speedups(lab, source, "chang-c3", "density-control", &SLC_MIB, "slc.capacity")?;
        below &= density.iter().zip(&hybrid).all(|(density, hybrid)| density.1 < hybrid.1);
        series.push(Series::measured(format!("density control, {name}"), density));
        series.push(Series::measured(format!("hybrid, {name}"), hybrid));
    }
    let measured = [series[0].points.values(), series[2].points.values()].concat();
    let findings = vec![
        Finding::fact("below the hybrid with the same budget", "at every size", below, row(measured.clone()))
            .target("T21"),
        Finding::fact(
            "far below what SLC mode alone would allow",
            "below 1.2 and 2",
            measured.iter().all(|&speedup| speedup < 1.2),
            short(measured.iter().copied().fold(f64::NAN, f64::max)),
        )
        .target("T21"),
    ];
    Ok(Drawn {
        caption: "Density control has the hybrid's budget in money as further MLC blocks, which it runs in SLC mode for what \
                  is hot."
            .into(),
        plots: vec![Plot {
            title: "Speed-up".into(),
            kind: PlotKind::Lines,
            x: Axis::logarithmic("SLC of the hybrid (MiB), or MLC for as much money"),
            y: Axis::linear("speed-up"),
            series,
        }],
        findings,
    })
}

/// Speed-ups over the drive without SLC, over a field of the device in MiB.
fn speedups(
    lab: &Lab<'_>,
    source: &'static Source,
    device: &'static str,
    scheme: &'static str,
    mib: &[u32],
    field: &str,
) -> Result<Vec<(f64, f64)>, StudyError> {
    let run = |scheme| Experiment::new(source, device, scheme).passes(PASSES, PASSES);
    let mut experiments = vec![run("conventional")];
    experiments.extend(mib.iter().map(|size| run(scheme).set(field, format!("{size}MiB"))));
    let entries = lab.run(&experiments)?;
    let speedup = |entry: &Entry| report::response_speedup(&entries[0].report, &entry.report).unwrap_or(f64::NAN);
    Ok(mib.iter().zip(&entries[1..]).map(|(&size, entry)| (f64::from(size), speedup(entry))).collect())
}
