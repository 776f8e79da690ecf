//! The claims that any trace can decide, on devices that are scaled to it and filled, with one request at a time.
//!
//! Left out are the best number of laps and amounts of erases, which are those of one trace, and the sizes of the savings:
//! the paper prints them for its best trace only, so that the sign is judged. Equal whole cycles are derived from its counts, and
//! its text on the erases of MLC by the size of SLC cannot be read: both questions are ours.

use super::rivals::{CFTL, COMBO, HEADLINES, OURS, RIVALS, RUNS, moved_down_mib};
use super::wear::{COLUMNS, DYNAMIC, STATIC_4, cycles, is_in_step};
use super::{LAPS, SLC_MIB, WLAFTL, best, each, mlc_erases, phi, response_ms};
use crate::claim::Kind;
use crate::experiment::{ANY_TRACE, ON_ANY_TRACE};
use crate::finding::{Finding, falls};
use crate::lab::Lab;
use crate::{Drawn, FigureSpec};
use bimetal_study::StudyError;
use bimetal_study::figure::short;

/// The figures.
pub(super) const FIGURES: &[FigureSpec] = &[
    FigureSpec { name: "table3", title: "wear of both regions", sources: ON_ANY_TRACE, make: table3 },
    FigureSpec { name: "fig4", title: "response over Max_Cycle_Time", sources: ON_ANY_TRACE, make: fig4 },
    FigureSpec { name: "fig5", title: "erases over the size of SLC", sources: ON_ANY_TRACE, make: fig5 },
    FigureSpec { name: "rivals", title: "beside ComboFTL and CFTL", sources: ON_ANY_TRACE, make: rivals },
];

fn table3(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let entries = lab.run(&[COLUMNS[STATIC_4], COLUMNS[DYNAMIC]].map(|run| run.of(lab, &ANY_TRACE)))?;
    let [fixed, dynamic] = [&entries[0], &entries[1]];
    let in_step = Finding::fact(
        "both regions wear by as many whole cycles",
        "as many",
        is_in_step(dynamic),
        short(cycles(dynamic)),
    )
    .of_kind(Kind::Ours);
    let in_step = if cycles(dynamic) < 1.0 { in_step.undecided("neither region has worn by a cycle") } else { in_step };
    let findings = [
        Finding::below("Φ below that of a static 4 KB: by it", 1.0, phi(dynamic) / phi(fixed)),
        Finding::at_most("Φ near 1", 1.51, phi(dynamic)).expected("at most 1.51, of 1.02 to 1.51"),
        in_step,
        Finding::below(
            "MLC erases below those of a static 4 KB: by them",
            1.0,
            mlc_erases(dynamic) / mlc_erases(fixed),
        ),
    ];
    Ok(Drawn::of_claims(
        "512 MB of SLC beside 2 GB of MLC. Φ is the larger share of life used by the smaller; 1 is ideal.",
        findings.map(|finding| lab.judged([dynamic], finding)).into(),
    ))
}

fn fig4(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let entries = lab.run(&LAPS.map(|laps| WLAFTL.of(lab, &ANY_TRACE).set("max_cycle_time", laps)))?;
    let curve: Vec<_> = LAPS.map(f64::from).into_iter().zip(each(&entries, response_ms)).collect();
    let ((laps, _), inside) = best(&curve).unwrap_or_default();
    let finding = Finding::fact(
        "response falls, then rises with Max_Cycle_Time: lowest at",
        "inside 1 to 5, by 1 % below both ends",
        inside,
        short(laps),
    );
    Ok(Drawn::of_claims("512 MB of SLC beside 2 GB of MLC.", vec![lab.judged(&entries, finding)]))
}

fn fig5(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let entries = lab.run(&SLC_MIB.map(|mib| WLAFTL.with_slc(lab, &ANY_TRACE, mib)))?;
    let erased = each(&entries, mlc_erases);
    let finding = Finding::fact(
        "MLC erases fall with the size of SLC: at 512 by 32 MB",
        "falls at every step",
        falls(&erased, 0.0),
        short(erased[SLC_MIB.len() - 1] / erased[0]),
    )
    .of_kind(Kind::Ours);
    Ok(Drawn::of_claims("32 to 512 MB of SLC beside 2 GB of MLC.", vec![lab.judged(&entries, finding)]))
}

fn rivals(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let runs: Vec<_> = RUNS[..RIVALS].iter().map(|run| run.of(lab, &ANY_TRACE)).collect();
    let entries = lab.run(&runs)?;
    let balance = |claim, rival: usize| Finding::below(claim, 1.0, phi(&entries[OURS]) / phi(&entries[rival]));
    let moved = each(&entries, moved_down_mib);
    let mut findings =
        vec![balance("Φ below that of ComboFTL: by it", COMBO), balance("Φ below that of CFTL: by it", CFTL)];
    findings.extend(HEADLINES.iter().map(|headline| {
        let [ours, rival] = [OURS, headline.rival].map(|run| (headline.figure)(&entries[run]));
        Finding::below(headline.claims[0], 1.0, ours / rival)
    }));
    findings.extend([
        Finding::above("CFTL moves more from SLC to MLC: times", 1.0, moved[CFTL] / moved[OURS]),
        Finding::below("ComboFTL moves less from SLC to MLC: times", 1.0, moved[COMBO] / moved[OURS]),
    ]);
    // A rival that writes nothing to SLC is judged, too.
    let judged = |finding| lab.judged([&entries[OURS]], finding);
    Ok(Drawn::of_claims(
        "512 MB of SLC beside 2 GB of MLC, page maps in both regions; figures by those of the rival.",
        findings.into_iter().map(judged).collect(),
    ))
}
