//! Fig. 5: remaining life by utilisation, and what Life gains and loses.

use super::{Case, Compared, PLACE, UTILISATIONS, compared, life_left, plot};
use crate::Drawn;
use crate::claim::Kind;
use crate::finding::{Best, Finding, highest, row};
use crate::lab::Lab;
use crate::reading::{curve, heights, response_ms};
use bimetal_study::StudyError;
use bimetal_study::compare::Entry;
use bimetal_study::figure::short;

/// Fig. 5.
pub(super) fn figure(lab: &Lab<'_>, case: &Case) -> Result<Drawn, StudyError> {
    let compared = compared(lab, &case.drive)?;
    let fixed = curve(&compared.fixed, life_left);
    let ((_, best), _) = highest(&fixed).unwrap_or_default();
    let [perf, life, agile, banded] = [&compared.perf, &compared.life, &compared.agile_life, &compared.banded_life]
        .map(|entry| life_left(entry) / best);
    let mut findings = vec![
        mountain(case, &heights(&fixed)),
        Finding::best_at(
            "utilisation of the Static that lives longest (%)",
            case.longest_lived,
            Best::Highest,
            PLACE,
            &fixed,
        )
        .unless(
            "the top is where both SSDs wear alike, which follows from how many writes hit at each utilisation: the \
                 generated streams' hits are fitted up to 64 MiB only. With repeated requests to recent pages alone \
                 (`popular_share=0`) it is at 5 % on Financial, where 10 % is 0.2 % worse, with most to popular ones (0.8) at 60 % on Exchange",
        )
        .unless_calibrated(
            "the locality that has MT-SSD's longest life at the paper's 10 % has ST-SSD's at 70 %; none of the search has both",
        )
        .fitted()
        .target("T27"),
        Finding::fact("Perf lives shorter than the best Static", "below 1", perf < 1.0, short(perf)),
        Finding::between("Life lives as long as the best Static", 0.9, f64::INFINITY, life)
            .reason(format!(
                "{} of the best Static's; with a sixteenth of the period, which is not given (`period`, `timeout`), {}; with a dead \
                 band of a tenth {}",
                short(life),
                short(agile),
                short(banded)
            ))
            .target("T27"),
    ];
    if let Some(hot_set) = &compared.hot_set {
        let best = highest(&curve(&hot_set.fixed, life_left)).map_or(f64::NAN, |((_, best), _)| best);
        findings.push(
            Finding::between(
                "the same where the slow SSD takes what misses, in steps of 0.25 %",
                0.9,
                f64::INFINITY,
                life_left(&hot_set.life) / best,
            )
            .unless(
                "at full size in MT-SSD under Exchange; with smaller steps (`life_step_percent=0.1`) it is 0.931, with a \
                 sixteenth of the period, which is not given, 1.07",
            )
            .of_kind(Kind::Ours),
        );
    }
    findings.extend(life_by_perf(&compared));
    Ok(Drawn {
        caption: "How many times what was written can still be written before the first SSD is worn out (equation 4)."
            .into(),
        plots: vec![plot("Remaining life by what is used", "L", &compared, life_left)],
        findings,
    })
}

/// "In all the figures, the Static scheme shows a mountain shape result having left and right slopes". Where the paper has
/// the top at the end of the sweep, there is no slope to see beyond it.
fn mountain(case: &Case, lives: &[f64]) -> Finding {
    let at_end = UTILISATIONS.last() == Some(&case.longest_lived);
    Finding::fact(
        "Static's life is a mountain: it rises to its top and falls from there",
        slopes(at_end),
        is_mountain(lives, at_end),
        row(lives.iter().copied()),
    )
    .unless_calibrated(
        "in MT-SSD under Financial alone: life is longest at 5 %, where the sweep begins, 0.2 % longer than at the paper's \
         10 % in a quick run, and 0.4 % at full size",
    )
    .target("T27")
}

/// Life beside Perf: "Life notably enhances the lifetime", and "a relatively large degree of lifetime can be enhanced by
/// sacrificing a small degree of performance": more of the one than of the other.
fn life_by_perf(compared: &Compared) -> [Finding; 2] {
    let by_perf = |figure: fn(&Entry) -> f64| figure(&compared.life) / figure(&compared.perf);
    let [life, response] = [life_left, response_ms].map(by_perf);
    [
        Finding::above("Life lives longer than Perf: times", 1.0, life),
        Finding::fact(
            "Life gains more life than it loses response",
            "life by Perf's above response by Perf's",
            life > response,
            format!("{} and {}", short(life), short(response)),
        )
        .unless(
            "steps of 1 % overshoot, and the paper prints no step; with 0.25 % (`life_step_percent=0.25`) it is 1.13 and 1.05 in \
             ST-SSD under Exchange, and 1.10 and 1.01 in MT-SSD under Financial; in ST-SSD under Financial, where it is 0.863 and \
             0.965, Life then lives shorter than Perf",
        )
        .unless_calibrated(
            "steps of 1 % overshoot, and the paper prints no step; with 0.25 % (`life_step_percent=0.25`) it is 1.34 and 1.14 in \
             ST-SSD under Exchange, and 1.02 and 1.01 in MT-SSD under Financial",
        ),
    ]
}

/// What is expected of lives, whose top may be at the end of the sweep.
pub(super) fn slopes(at_end: bool) -> &'static str {
    if at_end { "rises, then falls unless the top is at 97 %" } else { "rises, then falls" }
}

/// Whether values rise to the maximum and fall from there; the maximum may be at the end if this is allowed.
pub(super) fn is_mountain(values: &[f64], at_end: bool) -> bool {
    let top = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0);
    let is_inside = top > 0 && (at_end || top + 1 < values.len());
    is_inside && values[..=top].is_sorted() && values[top..].is_sorted_by(|a, b| a >= b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountains() {
        assert!(is_mountain(&[1.0, 2.0, 3.0, 2.0], false));
        assert!(is_mountain(&[1.0, 2.0, 3.0], true), "the top may be at the end");
        assert!(!is_mountain(&[1.0, 2.0, 3.0], false) && !is_mountain(&[3.0, 2.0, 1.0], true), "one slope");
        assert!(!is_mountain(&[1.0, 3.0, 2.0, 2.5], true));
        assert!(!is_mountain(&[2.0, 1.0, 3.0], true));
        assert!(!is_mountain(&[], true));
    }
}
