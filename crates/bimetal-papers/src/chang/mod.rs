//! Chang 2010: a small SLC chip in front of an MLC array (schemes `chang`, `conventional`, `density-control`).

mod any_trace;
mod factors;
mod fit;
mod hash;
mod memory;
mod profile;
mod speed;
mod wear;

use std::sync::Arc;

use bimetal_core::report;

use super::experiment::{Experiment, Scale, Source};
use super::lab::Lab;
use super::{FigureSpec, PaperSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;

/// The registry entry.
pub static SPEC: PaperSpec = PaperSpec {
    name: "chang",
    citation: "Li-Pin Chang, A Hybrid Approach to NAND-Flash-Based Solid-State Disks, IEEE Transactions on Computers 59(10), \
               2010",
    summary: "a small SLC chip in front of an MLC array",
    figures: &[
        FigureSpec { name: "s42", title: "memory of the maps", sources: &[&NTFS], make: memory::s42 },
        FigureSpec { name: "s51", title: "how often SLC is written over", sources: BOTH, make: memory::s51 },
        FigureSpec { name: "fig7", title: "the traces: sizes, updates, hits", sources: BOTH, make: profile::fig7 },
        FigureSpec { name: "fig8a", title: "speed-up over the size of SLC", sources: BOTH, make: speed::fig8a },
        FigureSpec { name: "fig8b", title: "density control with the same budget", sources: BOTH, make: speed::fig8b },
        FigureSpec { name: "fig9", title: "overheads by cause", sources: &[&NTFS], make: factors::fig9 },
        FigureSpec { name: "s532", title: "who serves the writes", sources: &[&NTFS], make: factors::s532 },
        FigureSpec { name: "table3", title: "factors of the model", sources: BOTH, make: factors::table3 },
        FigureSpec { name: "fig10", title: "where MLC is written", sources: BOTH, make: profile::fig10 },
        FigureSpec { name: "fig11", title: "hash tables", sources: BOTH, make: hash::fig11 },
        FigureSpec { name: "fig12a", title: "evenness of wear", sources: &[&NTFS_16TH], make: wear::fig12a },
        FigureSpec { name: "fig12b", title: "wear of SLC beside MLC", sources: &[&NTFS], make: wear::fig12b },
        FigureSpec { name: "table4", title: "energy and cost", sources: BOTH, make: speed::table4 },
        FigureSpec { name: "fit", title: "the calibrated stand-ins", sources: BOTH, make: fit::figure },
        FigureSpec { name: "abstract", title: "the headline", sources: BOTH, make: speed::headline },
    ],
    on_any_trace: any_trace::FIGURES,
    calibrations: fit::CALIBRATIONS,
};

/// Write requests of the paper's NTFS trace (section 5.3.2).
const PAPER_WRITES: f64 = 1_534_627.0;

/// Both traces.
const BOTH: &[&Source] = &[&NTFS, &EXT3];

/// A month of a Windows laptop, with enough requests for the paper's 1,534,627 writes (section 5.3.2).
static NTFS: Source = Source {
    name: "ntfs",
    workload: "bimodal-ntfs",
    settings: &[("requests", "2557700")],
    quick: &[("requests", "400000")],
    calibrated: Some(fit::FITTED_NTFS),
};

/// A month of a Linux laptop, with the same number of requests.
static EXT3: Source = Source {
    name: "ext3",
    workload: "bimodal-ext3",
    settings: &[("requests", "2557700")],
    quick: &[("requests", "400000")],
    calibrated: Some(fit::FITTED_EXT3),
};

/// NTFS on a sixteenth of the disk, so that its blocks are erased sixteen times as often.
static NTFS_16TH: Source = Source {
    name: "ntfs-16th",
    workload: "bimodal-ntfs",
    settings: &[("scale", "16"), ("requests", "150000")],
    quick: &[("requests", "150000")],
    calibrated: Some(fit::FITTED_NTFS),
};

/// Sizes of SLC in Figs. 8 and 12b, in MiB.
const SLC_MIB: [u32; 5] = [32, 64, 128, 256, 512];

/// Logical capacity of the drives, in MiB.
const LOGICAL_MIB: u32 = 20 << 10;

/// A replay as in the paper: ten passes over the trace (section 5.1), or three in a quick run. For any trace the drive is
/// scaled to it.
fn replay(lab: &Lab<'_>, source: &'static Source, device: &'static str, scheme: &'static str) -> Experiment {
    if source.is_any() {
        return Experiment::new(source, device, scheme).fitted();
    }
    let passes = match lab.scale() {
        Scale::Quick => 3,
        Scale::Full => 10,
    };
    Experiment::new(source, device, scheme).passes(passes, passes)
}

/// The drive without SLC, and the hybrid with each of these settings of its scheme or device.
fn beside_conventional(
    lab: &Lab<'_>,
    source: &'static Source,
    device: &'static str,
    settings: &[&[(&str, String)]],
) -> Result<(Arc<Entry>, Vec<Arc<Entry>>), StudyError> {
    let mut experiments = vec![replay(lab, source, device, "conventional")];
    for settings in settings {
        let hybrid = replay(lab, source, device, "chang");
        experiments.push(settings.iter().fold(hybrid, |hybrid, (key, value)| hybrid.set(key, value)));
    }
    let mut entries = lab.run(&experiments)?;
    let hybrids = entries.split_off(1);
    Ok((entries.remove(0), hybrids))
}

/// The same for sizes of SLC.
fn over_sizes(
    lab: &Lab<'_>,
    source: &'static Source,
    device: &'static str,
    mib: &[u32],
) -> Result<(Arc<Entry>, Vec<Arc<Entry>>), StudyError> {
    let capacity = |&mib: &u32| [("slc.capacity", source.capacity(f64::from(mib), LOGICAL_MIB))];
    let settings: Vec<[(&str, String); 1]> = mib.iter().map(capacity).collect();
    beside_conventional(lab, source, device, &settings.iter().map(|setting| &setting[..]).collect::<Vec<_>>())
}

/// RS: total response of the first divided by that of the second.
fn speedup(conventional: &Entry, hybrid: &Entry) -> f64 {
    report::response_speedup(&conventional.report, &hybrid.report).unwrap_or(f64::NAN)
}

/// Points by size in MiB.
fn points(mib: &[u32], entries: &[Arc<Entry>], value: impl Fn(&Entry) -> f64) -> Vec<(f64, f64)> {
    mib.iter().zip(entries).map(|(&size, entry)| (f64::from(size), value(entry))).collect()
}
