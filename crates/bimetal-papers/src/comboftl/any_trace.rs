//! The claims that any trace can decide, on chips that are scaled to it: the shares of blocks in SLC mode stay.
//!
//! Left out are the traces' own properties (table 3, fig. 9), rules of the scheme checked against itself (figs. 13 and
//! 14), the share of SLC with the least time, and claims on IOzone alone. Of a printed range, the end that is
//! less in ComboFTL's favour is the limit.

use std::sync::Arc;

use super::adaptation::Steps;
use super::erases::UNIT_BLOCKS;
use super::techniques::VERSIONS;
use super::time::{BARS, COMBO, EIGHT, GCLOCK, MIXED, MLC, SHARES, SIXTY_FOUR, SLC, of_share};
use super::{COMBO_5, collection_s, demotion_s, execution_s, mlc_erases, of_each, time_ratio};
use crate::claim::Kind;
use crate::experiment::{ANY_TRACE, Experiment, ON_ANY_TRACE};
use crate::finding::{Finding, lowest};
use crate::lab::Lab;
use crate::{Drawn, FigureSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::short;

/// The figures.
pub(super) const FIGURES: &[FigureSpec] = &[
    FigureSpec { name: "fig10", title: "execution time of all schemes", sources: ON_ANY_TRACE, make: fig10 },
    FigureSpec { name: "fig11", title: "share of blocks in SLC mode", sources: ON_ANY_TRACE, make: fig11 },
    FigureSpec { name: "fig12", title: "without each technique", sources: ON_ANY_TRACE, make: fig12 },
    FigureSpec { name: "fig14", title: "the number of chances over time", sources: ON_ANY_TRACE, make: fig14 },
    FigureSpec { name: "fig15", title: "erases of MLC", sources: ON_ANY_TRACE, make: fig15 },
    FigureSpec { name: "fig16", title: "size of a unit", sources: ON_ANY_TRACE, make: fig16 },
    FigureSpec { name: "introduction", title: "the headline", sources: ON_ANY_TRACE, make: headline },
];

/// Write performance in the introduction, by that of SLC-only and of MLC-only, with the tolerance of these claims here.
const BY_SLC: f64 = 0.84 * 0.9;
const BY_MLC: f64 = 1.48 * 0.9;

/// The replays of these chips.
fn on_trace(lab: &Lab<'_>, chips: &[(super::Chip, &[(&str, &str)])]) -> Result<Vec<Arc<Entry>>, StudyError> {
    Ok(of_each(lab, ON_ANY_TRACE, chips)?.concat())
}

/// The replays of Fig. 10.
fn bars(lab: &Lab<'_>) -> Result<Vec<Arc<Entry>>, StudyError> {
    on_trace(lab, &BARS.map(|(_, chip, settings)| (chip, settings)))
}

fn fig10(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let runs = bars(lab)?;
    let ratio = |of: usize, by: usize| time_ratio(&runs[by], &runs[of]);
    let worse = |by: usize| ratio(COMBO, by).max(ratio(COMBO + 1, by));
    let demotes = |of: usize| demotion_s(&runs[of]) / demotion_s(&runs[COMBO]);
    let collects = collection_s(&runs[EIGHT]) / collection_s(&runs[COMBO]);
    let findings = [
        Finding::at_most("time by MLC-only, the worse of 5 and 10 %", 0.85, worse(MLC))
            .expected("at most 0.85, of 0.67 to 0.85"),
        Finding::at_most("time by SLC-only, the worse of 5 and 10 %", 1.49, worse(SLC))
            .expected("at most 1.49, of 1.2 to 1.49"),
        Finding::about("alike with 5 and 10 %: time by it", 1.0, 0.05, ratio(COMBO + 1, COMBO)),
        Finding::above("Baseline 8 KB collects more in MLC: times", 1.0, collects),
        Finding::above("Baseline 8 KB is worse with 10 % than with 5 %: times", 1.0, ratio(EIGHT + 1, EIGHT)),
        Finding::at_least("Baseline 64 KB sends more from SLC to MLC: times", 2.0, demotes(SIXTY_FOUR)),
        Finding::at_least("2Q/GCLOCK sends more from SLC to MLC: times", 2.0, demotes(GCLOCK)),
        Finding::below("faster than Baseline 8 KB: time by it", 1.0, ratio(COMBO, EIGHT)),
        Finding::below("faster than Baseline 64 KB: time by it", 1.0, ratio(COMBO, SIXTY_FOUR)),
        Finding::below("faster than 2Q/GCLOCK: time by it", 1.0, ratio(COMBO, GCLOCK)),
        Finding::below("faster than MixedFTL (expected): time by it", 1.0, ratio(COMBO, MIXED)),
    ];
    // A baseline that sends nothing to SLC is judged, too.
    let judged = |finding| lab.judged([&runs[COMBO], &runs[COMBO + 1], &runs[MLC]], finding);
    Ok(Drawn::of_claims(
        "Times of all operations, added up; reads of the trace count, which the paper leaves out. 5 % of the blocks in SLC \
         mode unless 10 % are named.",
        findings.into_iter().map(judged).collect(),
    ))
}

fn fig11(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let entries = lab.run(&SHARES.map(|share| of_share(&ANY_TRACE, share)))?;
    let curve = |figure: fn(&Entry) -> f64| -> Vec<(f64, f64)> {
        SHARES.iter().zip(&entries).map(|(&share, entry)| (f64::from(share) / 10.0, figure(entry))).collect()
    };
    let ((best, _), inside) = lowest(&curve(execution_s)).unwrap_or_default();
    let collection = curve(collection_s);
    let at = |share: f64| collection.iter().find(|point| point.0 == share).map_or(f64::NAN, |point| point.1);
    let findings = [
        Finding::fact("the time has a minimum inside 2.5 to 17.5 % of SLC: at %", "inside", inside, short(best)),
        Finding::above("MLC collects more at 17.5 % than at 15 %: times", 1.0, at(17.5) / at(15.0)),
    ];
    Ok(Drawn::of_claims(
        "ComboFTL by the share of the blocks in SLC mode. The place of the minimum, 15 % in the paper, is that of its trace.",
        findings.map(|finding| lab.judged(&entries, finding)).into(),
    ))
}

/// Indexes in [`VERSIONS`].
const COMPLETE: usize = 0;
const NO_EARLY: usize = 1;
const AT_8: usize = 2;
const AT_64: usize = 3;
const UNDETECTED: usize = 4;
const NO_CHANCES: usize = 5;

fn fig12(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let runs = on_trace(lab, &VERSIONS.map(|(_, settings)| (COMBO_5, settings)))?;
    let slower = |version: usize| time_ratio(&runs[COMPLETE], &runs[version]);
    let others = (NO_EARLY..VERSIONS.len()).filter(|&version| version != UNDETECTED);
    let slowest = others.map(slower).fold(0.0, f64::max);
    let more = |figure: fn(&Entry) -> f64, version: usize| figure(&runs[version]) / figure(&runs[COMPLETE]);
    let findings = [
        Finding::below("little lost without early migration: times as long", 1.05, slower(NO_EARLY)),
        Finding::about("similar with a threshold of 8 KB: times as long", 1.0, 0.1, slower(AT_8)),
        Finding::above("with 64 KB much more goes from SLC to MLC: times", 2.0, more(demotion_s, AT_64)),
        Finding::at_least("slower without hot unit detection: times as long", 1.05, slower(UNDETECTED)),
        Finding::above("that is the slowest version: by the slowest other", 1.0, slower(UNDETECTED) / slowest),
        Finding::above("with one chance MLC collects more: times", 1.0, more(collection_s, NO_CHANCES)),
        Finding::above("slower without chances: times as long", 1.0, slower(NO_CHANCES)).of_kind(Kind::Ours),
    ];
    Ok(Drawn::of_claims(
        "5 % of the blocks in SLC mode, by complete ComboFTL. With one chance, that is without a second one, valid tail pages \
         of SLC go down at once.",
        findings.map(|finding| lab.judged([&runs[COMPLETE]], finding)).into(),
    ))
}

fn fig14(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    const CLAIM: &str = "the number of chances changes over time";
    let finding = match Steps::run(lab, &ANY_TRACE)?.chances() {
        Some((least, most)) => Finding::fact(CLAIM, "it does", most > least, format!("{least} to {most}")),
        None => Finding::not_judged(CLAIM, "it does", "nothing", "the trace is too short for a period of adjustment"),
    };
    Ok(Drawn::of_claims("5 % of the blocks in SLC mode, after adjustment periods.", vec![finding]))
}

fn fig15(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let runs = bars(lab)?;
    let by = |of: usize, by: usize| mlc_erases(&runs[of]) / mlc_erases(&runs[by]);
    let findings = [
        Finding::at_most("erases of MLC by MLC-only, 5 %", 0.87, by(COMBO, MLC))
            .expected("at most 0.87, of 0.8 to 0.87"),
        Finding::at_most("erases of MLC by MLC-only, 10 %", 0.8, by(COMBO + 1, MLC))
            .expected("at most 0.8, of 0.73 to 0.8"),
        Finding::below("fewer with 10 than with 5 %: by them", 1.0, by(COMBO + 1, COMBO)),
        Finding::at_most("erases of MLC by Baseline 8 KB", 0.9, by(COMBO, EIGHT))
            .expected("at most 0.9, of 0.75 to 0.9"),
        Finding::above("Baseline 8 KB erases more than MLC-only: times", 1.0, by(EIGHT, MLC)),
    ];
    let judged = |finding| lab.judged([&runs[COMBO], &runs[COMBO + 1], &runs[MLC]], finding);
    Ok(Drawn::of_claims(
        "Erases of the MLC region, 5 % of the blocks in SLC mode unless 10 % are named.",
        findings.map(judged).into(),
    ))
}

fn fig16(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let unit = |blocks: &str| -> Experiment { super::replay(&ANY_TRACE, COMBO_5, &[("unit_blocks", blocks)]) };
    let entries = lab.run(&[unit(UNIT_BLOCKS[0]), unit(UNIT_BLOCKS[UNIT_BLOCKS.len() - 1])])?;
    let falls = collection_s(&entries[1]) / collection_s(&entries[0]);
    let finding = Finding::at_most("larger units: MLC collects less with 32 than with 1 block", 0.5, falls);
    Ok(Drawn::of_claims(
        "5 % of the blocks in SLC mode; time of collection in MLC.",
        vec![lab.judged(&entries, finding)],
    ))
}

fn headline(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let chips = [BARS[MLC], BARS[SLC], BARS[COMBO]].map(|(_, chip, settings)| (chip, settings));
    let runs = on_trace(lab, &chips)?;
    let findings = [
        Finding::at_least("write performance by SLC-only", BY_SLC, time_ratio(&runs[2], &runs[1]))
            .expected("at least 0.756, 0.84 - 10 %"),
        Finding::at_least("write performance by MLC-only", BY_MLC, time_ratio(&runs[2], &runs[0]))
            .expected("at least 1.33, 1.48 - 10 %"),
    ];
    Ok(Drawn::of_claims("5 % of the blocks in SLC mode.", findings.map(|finding| lab.judged(&runs, finding)).into()))
}
