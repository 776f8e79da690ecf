//! Selection of promising devices from a large number, by estimates alone.
//!
//! The devices of one scheme have similar estimation errors, so their order is more reliable than their values. Of each
//! scheme, the Pareto front of price, responses and wear is kept, then the front of the rest, and so on. Every scheme
//! keeps the same number of devices, because only simulations can compare schemes.

use super::answer::response_of;
use super::estimate::Estimate;
use super::goals::{Goal, Measure};
use super::space::Candidate;
use crate::sweep::pareto;

/// Largest number of kept devices, over all schemes.
const KEPT_MAX: usize = 1000;

/// A device with its estimated figures.
pub type Estimated = (Candidate, Estimate);

/// The promising devices, in their given order.
pub fn promising(drafts: Vec<Estimated>, goals: &[Goal]) -> Vec<Estimated> {
    if drafts.len() <= KEPT_MAX {
        return drafts;
    }
    let mut schemes: Vec<String> = drafts.iter().map(|(draft, _)| draft.point.scheme.clone()).collect();
    schemes.sort_unstable();
    schemes.dedup();
    let mut is_kept = vec![false; drafts.len()];
    for scheme in &schemes {
        let own: Vec<usize> = (0..drafts.len()).filter(|&at| drafts[at].0.point.scheme == *scheme).collect();
        for at in best(&drafts, own, goals, KEPT_MAX / schemes.len()) {
            is_kept[at] = true;
        }
    }
    drafts.into_iter().zip(is_kept).filter_map(|(draft, is_kept)| is_kept.then_some(draft)).collect()
}

/// Indexes of the best candidates, at most `most`; among equals, the closest to the goals.
fn best(drafts: &[Estimated], mut left: Vec<usize>, goals: &[Goal], most: usize) -> Vec<usize> {
    let response = response_of(goals);
    let values = |at: usize| {
        let of = |measure| drafts[at].1.expected.of(measure);
        vec![of(Measure::Cost), of(response), of(Measure::Mean), -of(Measure::Tbw)]
    };
    let mut kept: Vec<usize> = Vec::new();
    while kept.len() < most && !left.is_empty() {
        let points: Vec<pareto::Goals> = left.iter().map(|&at| values(at)).collect();
        let mut layer: Vec<usize> = pareto::front(&points).into_iter().map(|place| left[place]).collect();
        if layer.is_empty() {
            break;
        }
        left.retain(|at| !layer.contains(at));
        let excess = |at: usize| drafts[at].1.expected.worst_excess(goals);
        layer.sort_by(|&a, &b| excess(a).total_cmp(&excess(b)).then(a.cmp(&b)));
        layer.truncate(most - kept.len());
        kept.extend(layer);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::asked::Asked;
    use crate::advise::goals::Outcome;
    use crate::advise::prices::PriceList;
    use crate::advise::space::{Space, Wanted};
    use crate::sweep::point::Replay;
    use crate::sweep::source::TraceSource;

    #[test]
    fn of_each_scheme_the_best_are_kept() {
        let prices = PriceList::new(None, None, &[]).unwrap();
        let space = Space::new(&Asked::default(), 1 << 30, &prices).unwrap();
        let drafts = space.drafts(&Wanted::default(), &TraceSource::in_memory("m"), &Replay::default());
        // More flash gives a longer life, and more dies give shorter responses.
        let estimate = |draft: &Candidate| {
            Estimate::of(Outcome::new(|measure| match measure {
                Measure::Cost => draft.cost_usd,
                Measure::Tbw => draft.layout.flash_bytes as f64,
                _ => 1.0 / f64::from(draft.layout.dies()),
            }))
        };
        let all: Vec<Estimated> = drafts.into_iter().map(|draft| (draft.clone(), estimate(&draft))).collect();
        let kept = promising(all.clone(), &[]);
        assert!(all.len() > KEPT_MAX && kept.len() <= KEPT_MAX, "{} {}", all.len(), kept.len());
        // The front of pagemap's devices has fewer members than it may keep.
        let own = |estimated: &&Estimated| estimated.0.point.scheme == "pagemap";
        for (candidate, _) in all.iter().filter(own) {
            let (layout, usd) = (&candidate.layout, candidate.cost_usd);
            let beats = |(other, _): &Estimated| {
                let values = [(-usd, -other.cost_usd), (layout.dies().into(), other.layout.dies().into())];
                let flash = (layout.flash_bytes as f64, other.layout.flash_bytes as f64);
                let pairs = || values.iter().chain([&flash]);
                pairs().all(|(own, other)| own <= other) && pairs().any(|(own, other)| own < other)
            };
            let is_beaten = all.iter().filter(own).any(beats);
            let is_kept = kept.iter().any(|(other, _)| other.point.set == candidate.point.set);
            assert!(is_kept || is_beaten, "{}", layout.words(1.0));
        }
    }
}
