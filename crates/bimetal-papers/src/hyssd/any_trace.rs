//! The claims that any trace can decide, on drives that are scaled to it.
//!
//! The paper does not state N, and 65,536 page writes are more than a short trace has: here N is 8,192 on every trace.
//! Left out are the places of the best utilisations, which are those of one trace.

use std::sync::Arc;

use super::lifetime::{is_mountain, slopes};
use super::{Compared, Drive, compared, life_left};
use crate::experiment::{ANY_TRACE, ON_ANY_TRACE};
use crate::finding::{Finding, highest, lowest};
use crate::lab::Lab;
use crate::reading::{curve, heights, metric_over_time, range, response_ms, second_half};
use crate::{Drawn, FigureSpec};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::short;

/// Divisor of the periods.
pub(super) const SHORTER: u32 = 8;

/// The figures.
pub(super) const FIGURES: &[FigureSpec] = &[
    FigureSpec { name: "fig3", title: "response over the utilisation", sources: ON_ANY_TRACE, make: fig3 },
    FigureSpec { name: "fig4", title: "utilisation over time", sources: ON_ANY_TRACE, make: fig4 },
    FigureSpec { name: "fig5", title: "lifetime over the utilisation", sources: ON_ANY_TRACE, make: fig5 },
];

static ST: Drive = Drive { source: &ANY_TRACE, device: "hyssd-st" };
static MT: Drive = Drive { source: &ANY_TRACE, device: "hyssd-mt" };

impl Compared {
    fn replays(&self) -> impl Iterator<Item = &Arc<Entry>> {
        [&self.perf, &self.life].into_iter().chain(self.fixed.iter().map(|(_, entry)| entry))
    }
}

fn fig3(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let claims = [
        [
            "ST: Static is fastest inside 5 to 97 % utilisation: at %",
            "ST: response of Perf by that of the fastest Static",
            "ST: Life is slightly slower than Perf: times",
        ],
        [
            "MT: Static is fastest inside 5 to 97 % utilisation: at %",
            "MT: response of Perf by that of the fastest Static",
            "MT: Life is slightly slower than Perf: times",
        ],
    ];
    let mut findings = Vec::new();
    for (drive, [minimum, perf, life]) in [&ST, &MT].into_iter().zip(claims) {
        let compared = compared(lab, drive)?;
        let ((percent, best), inside) = lowest(&curve(&compared.fixed, response_ms)).unwrap_or_default();
        let of_perf = response_ms(&compared.perf);
        let of_life = response_ms(&compared.life);
        let of_drive = [
            Finding::fact(minimum, "inside", inside, short(percent)),
            Finding::at_most(perf, 1.05, of_perf / best),
            Finding::between(life, 1.0, 1.1, of_life / of_perf),
        ];
        findings.extend(of_drive.map(|finding| lab.judged(compared.replays(), finding)));
    }
    Ok(Drawn::of_claims("ST has SLC beside TLC, MT has MLC. N is 8,192 page writes.", findings))
}

fn fig4(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let compared = compared(lab, &ST)?;
    let [perf, life] = [&compared.perf, &compared.life].map(|entry| metric_over_time(entry, "utilisation_target"));
    let (low, high) = range(&heights(second_half(&perf)));
    let apart = perf.iter().zip(&life).map(|(perf, life)| (perf.1 - life.1).abs()).fold(0.0, f64::max);
    let findings = [
        Finding::at_least("ST: Perf's utilisation follows the workload: moves by", 0.05, high - low),
        Finding::at_least("ST: Life's utilisation leaves Perf's: by up to", 0.05, apart),
    ];
    Ok(Drawn::of_claims(
        "Shares of the fast SSD; Perf's in the second half of the measured requests.",
        findings.map(|finding| lab.judged([&compared.perf, &compared.life], finding)).into(),
    ))
}

fn fig5(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let claims = [
        [
            "ST: Static's life rises to its top and falls from there: top at %",
            "ST: Perf lives shorter than the best Static: life by it",
            "ST: Life lives as long as the best Static: life by it",
        ],
        [
            "MT: Static's life rises to its top and falls from there: top at %",
            "MT: Perf lives shorter than the best Static: life by it",
            "MT: Life lives as long as the best Static: life by it",
        ],
    ];
    let mut findings = Vec::new();
    // Of ST-SSD the paper has one of two tops at the end of the sweep, at 97 %.
    for ((drive, at_end), [mountain, perf, life]) in [(&ST, true), (&MT, false)].into_iter().zip(claims) {
        let compared = compared(lab, drive)?;
        let fixed = curve(&compared.fixed, life_left);
        let ((percent, best), _) = highest(&fixed).unwrap_or_default();
        let of_drive = [
            Finding::fact(mountain, slopes(at_end), is_mountain(&heights(&fixed), at_end), short(percent)),
            Finding::below(perf, 1.0, life_left(&compared.perf) / best),
            Finding::at_least(life, 0.9, life_left(&compared.life) / best),
        ];
        findings.extend(of_drive.map(|finding| lab.judged(compared.replays(), finding)));
    }
    Ok(Drawn::of_claims("Remaining life of the drive by the life that it has used (equation 4).", findings))
}
