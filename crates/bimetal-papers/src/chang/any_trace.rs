//! The claims that any trace can decide, on drives that are scaled to it: SLC keeps its share of the drive.
//!
//! Left out are amounts of the paper's traces (figs. 7 and 10, the 68 % of section 5.3.2, the factors of table 3), prices
//! and the sizes of SLC at which wear reaches the ratio of the endurances. Of a printed number that differs between
//! traces, the end of the paper's range that is less in the hybrid's favour is the limit.

use std::sync::Arc;

use super::factors::{COLLECTION, lowered};
use super::hash::Tables;
use super::speed::{controlled, energy};
use super::wear::{WEAR_THRESHOLD, mlc_ahead, most_erases, slc_spread};
use super::{SLC_MIB, over_sizes, replay, speedup};
use crate::experiment::{ANY_TRACE, ON_ANY_TRACE};
use crate::finding::{Finding, rises};
use crate::lab::Lab;
use crate::reading::{metric, range, time_s};
use crate::{Drawn, FigureSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::short;

/// The figures.
pub(super) const FIGURES: &[FigureSpec] = &[
    FigureSpec { name: "fig8a", title: "speed-up over the size of SLC", sources: ON_ANY_TRACE, make: fig8a },
    FigureSpec { name: "fig8b", title: "density control with the same budget", sources: ON_ANY_TRACE, make: fig8b },
    FigureSpec { name: "fig9", title: "where time is saved", sources: ON_ANY_TRACE, make: fig9 },
    FigureSpec { name: "table3", title: "the model", sources: ON_ANY_TRACE, make: table3 },
    FigureSpec { name: "fig11", title: "hash tables", sources: ON_ANY_TRACE, make: fig11 },
    FigureSpec { name: "fig12", title: "wear of SLC and MLC", sources: ON_ANY_TRACE, make: fig12 },
    FigureSpec { name: "table4", title: "energy", sources: ON_ANY_TRACE, make: table4 },
];

/// Indexes in [`SLC_MIB`]: 32, 64, 256 and 512 MB.
const AT_32: usize = 0;
const AT_64: usize = 1;
const AT_256: usize = 3;
const AT_512: usize = 4;

/// The least speed-ups that the paper prints for 256 MB, and the one of its abstract with the tolerance of its claim here.
const C1_SPEEDUP: f64 = 1.3;
const C3_SPEEDUP: f64 = 1.38;
const ABSTRACT_SPEEDUP: f64 = 1.8 * 0.9;

/// The drive without SLC, and the hybrid by size of SLC.
struct Curve {
    without: Arc<Entry>,
    hybrids: Vec<Arc<Entry>>,
}

impl Curve {
    fn run(lab: &Lab<'_>, device: &'static str) -> Result<Self, StudyError> {
        let (without, hybrids) = over_sizes(lab, &ANY_TRACE, device, &SLC_MIB)?;
        Ok(Self { without, hybrids })
    }

    fn speedups(&self) -> Vec<f64> {
        self.hybrids.iter().map(|hybrid| speedup(&self.without, hybrid)).collect()
    }

    fn replays(&self) -> impl Iterator<Item = &Arc<Entry>> {
        std::iter::once(&self.without).chain(&self.hybrids)
    }
}

fn fig8a(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let curves = [Curve::run(lab, "chang-c1")?, Curve::run(lab, "chang-c2")?, Curve::run(lab, "chang-c3")?];
    let speedups = curves.each_ref().map(Curve::speedups);
    let [c1, c2, c3] = &speedups;
    let each = |value: fn(&[f64]) -> f64| speedups.each_ref().map(|curve| value(curve));
    let gains = each(|curve| curve[AT_256] - curve[AT_32]);
    let rise = speedups.iter().all(|curve| rises(&curve[..=AT_256], 0.0));
    let most = |values: [f64; 3]| range(&values).1;
    let few = most(each(|curve| (curve[AT_64] - 1.0) / (curve[AT_256] - 1.0)));
    let gain = speedups.iter().all(|curve| curve[AT_256] > 1.0);
    let findings = vec![
        Finding::fact(
            "speed-up rises with SLC up to 256 MB; least gain of C1, C2, C3",
            "rises at every step",
            rise,
            short(range(&gains).0),
        ),
        Finding::below(
            "saturates there: most at 512 by 256 MB",
            1.05,
            most(each(|curve| curve[AT_512] / curve[AT_256])),
        ),
        if gain {
            Finding::below("little below 128 MB: most gain at 64 by 256 MB", 0.5, few)
        } else {
            Finding::below("little below 128 MB: most gain at 64 by 256 MB", 0.5, f64::NAN).reason("nothing is gained")
        },
        Finding::at_least("speed-up, C1, 256 MB", C1_SPEEDUP, c1[AT_256]),
        Finding::at_least("speed-up, C3, 256 MB", C3_SPEEDUP, c3[AT_256]).expected("at least 1.38, of 1.38 to 1.84"),
        Finding::at_least("speed-up of the abstract: C3, 256 MB", ABSTRACT_SPEEDUP, c3[AT_256])
            .expected("at least 1.62, 1.8 - 10 %"),
        Finding::above("C3 gains more than C1: speed-up by C1's", 1.0, c3[AT_256] / c1[AT_256]),
        Finding::about("C2 gains as much as C3 at 256 MB", 1.0, 0.02, c2[AT_256] / c3[AT_256]),
        Finding::below("C2 gains less than C3 at 32 MB", 1.0, c2[AT_32] / c3[AT_32]),
    ];
    let judged = |finding| lab.judged(curves.iter().flat_map(Curve::replays), finding);
    Ok(Drawn::of_claims(
        "Total response of the drive without SLC by that of the hybrid. Sizes of SLC are the paper's, as shares of a drive of \
         20 GB.",
        findings.into_iter().map(judged).collect(),
    ))
}

fn fig8b(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let curve = Curve::run(lab, "chang-c3")?;
    let controlled = controlled(lab, &ANY_TRACE)?;
    let density: Vec<f64> = controlled.iter().map(|entry| speedup(&curve.without, entry)).collect();
    let shares: Vec<f64> = density.iter().zip(curve.speedups()).map(|(density, hybrid)| density / hybrid).collect();
    let findings = [
        Finding::below("density control below the hybrid at every size: most by it", 1.0, range(&shares).1),
        Finding::below("density control below the speed-up of SLC mode's reads", 1.2, density[AT_512]),
    ];
    let replays = || curve.replays().chain(&controlled);
    Ok(Drawn::of_claims(
        "C3. Density control has additional MLC of twice the hybrid's SLC. It may use all of that in SLC mode, a quarter or a \
         sixteenth; the best of the three counts.",
        findings.map(|finding| lab.judged(replays(), finding)).into(),
    ))
}

fn fig9(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let run = |device, scheme| replay(lab, &ANY_TRACE, device, scheme);
    let entries = lab.run(&[
        run("chang-c1", "conventional"),
        run("chang-c1", "chang"),
        run("chang-c3", "conventional"),
        run("chang-c3", "chang"),
    ])?;
    let saved = |with: usize| {
        let time = |entry: &Entry| time_s(entry, None, None, COLLECTION);
        time(&entries[with - 1]) - time(&entries[with])
    };
    let total = entries[2].report.simulated_s - entries[3].report.simulated_s;
    let part = "C1: SLC takes a part of the bytes, not most";
    let slc_share = metric(&entries[1], "slc_write_share");
    let collection = "C3: most of the saved time is of garbage collection";
    let findings = [
        if slc_share > 0.0 { Finding::below(part, 0.5, slc_share) } else { Finding::above(part, 0.0, slc_share) },
        Finding::above(collection, 0.5, if total > 0.0 { saved(3) / total } else { f64::NAN }),
        Finding::above("garbage collection falls by more in C3 than in C1 (s)", 0.0, saved(3) - saved(1)),
    ];
    Ok(Drawn::of_claims(
        "256 MB of SLC on a drive of 20 GB. Garbage collection is folding in MLC and emptying tail blocks of SLC.",
        findings.map(|finding| lab.judged(&entries, finding)).into(),
    ))
}

fn table3(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let entries = lab.run(&["chang", "conventional"].map(|scheme| replay(lab, &ANY_TRACE, "chang-c3", scheme)))?;
    let modelled = metric(&entries[1], "model_write_us") / metric(&entries[0], "model_write_us");
    let findings = [
        Finding::about(
            "the model predicts the speed-up: by it",
            1.0,
            0.1,
            modelled / speedup(&entries[1], &entries[0]),
        ),
        Finding::at_least("SLC lowers the folds per page write, by the share", 0.18, lowered(&entries[1], &entries[0]))
            .expected("at least 0.18, of 0.18 and 0.39"),
    ];
    Ok(Drawn::of_claims(
        "C3, 256 MB of SLC on a drive of 20 GB. The model of section 4.1 with the factors that the replay measures.",
        findings.map(|finding| lab.judged(&entries, finding)).into(),
    ))
}

fn fig11(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let tables = Tables::run(lab, &ANY_TRACE)?;
    let more = tables.more_probes(15).max(tables.more_probes(16));
    let faster = tables.faster(15).max(tables.faster(16));
    let larger = tables.rejects_at_eight(15) - tables.rejects_at_eight(16);
    let findings = [
        Finding::at_least("2^14 entries reject more writes than 2^15: times", 2.0, tables.times_fewer()),
        Finding::at_least("2^15 entries reject as many as 2^16 or more: share more", 0.0, larger),
        Finding::below("the speed-up levels off: with 2^16 by 2^15 entries", 1.05, tables.levels()),
        Finding::at_least("quadratic probing rejects as many as linear in 2^14: times", 1.0, tables.quadratic()),
        Finding::about("both alike with 2^16 entries: speed-up by linear's", 1.0, 0.05, tables.alike()),
        Finding::below("more than 8 probes hardly reject fewer: share fewer", 0.01, more),
        Finding::below("more than 8 probes are hardly faster: times", 1.05, faster),
    ];
    Ok(Drawn::of_claims(
        "C3. A table of 2^16 entries has half as many as SLC has pages, on a drive of any size.",
        findings.map(|finding| lab.judged(tables.hybrids(), finding)).into(),
    ))
}

fn fig12(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let curves = [Curve::run(lab, "chang-c2")?, Curve::run(lab, "chang-c3")?];
    let ratio = |curve: &Curve| {
        range(&curve.hybrids.iter().map(|entry| entry.block_wearing.unwrap_or(f64::NAN)).collect::<Vec<_>>()).1
    };
    let rejected = |curve: &Curve| metric(&curve.hybrids[AT_32], "throttle_rejects");
    let [c2, c3] = curves.each_ref().map(rejected);
    let worn = curves.each_ref().map(|curve| &curve.hybrids[AT_256]);
    let even_if = |finding: Finding, region: &str, erases: f64| {
        let most = range(&worn.map(|entry| most_erases(entry, region))).1;
        let why = || format!("no block of `{region}` has {erases} erases");
        if most < erases { finding.undecided(why()) } else { finding }
    };
    let ahead = range(&worn.map(|entry| mlc_ahead(entry))).1;
    let spread = range(&worn.map(|entry| slc_spread(entry))).1;
    let limit = 3.0 * WEAR_THRESHOLD;
    let slc = Finding::at_most("SLC blocks wear evenly: erase counts differ by", 1.0, spread);
    let mlc = Finding::below("MLC blocks wear evenly: most worn above the mean by", limit, ahead);
    let findings = [
        even_if(slc, "slc", 2.0),
        even_if(mlc, "mlc", limit),
        Finding::at_most(
            "C2: erases of SLC by those of MLC at most the endurance ratio",
            10.0 * 1.02,
            ratio(&curves[0]),
        )
        .expected("at most 10 + 2 %"),
        Finding::at_most(
            "C3: erases of SLC by those of MLC at most the endurance ratio",
            20.0 * 1.02,
            ratio(&curves[1]),
        )
        .expected("at most 20 + 2 %"),
        Finding::above("C2 rejects more writes than C3 at 32 MB: times", 1.0, c2 / c3),
    ];
    Ok(Drawn::of_claims(
        "Wear after all passes, at each size of SLC of fig. 8. Evenness is of 256 MB.",
        findings.map(|finding| lab.judged(curves.iter().flat_map(Curve::replays), finding)).into(),
    ))
}

fn table4(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let Curve { without, hybrids } = Curve::run(lab, "chang-c3")?;
    let saved = Finding::at_most("energy by that without SLC, 256 MB", 0.736, energy(&without, &hybrids[AT_256]))
        .expected("at most 0.736, of 0.542 to 0.736");
    Ok(Drawn::of_claims("C3, energy of all operations.", vec![lab.judged([&without, &hybrids[AT_256]], saved)]))
}
