//! Estimates devices, and selects candidates by the estimates.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::estimate::{Estimate, Load};
use super::goals::{Goal, Terms, Whole};
use super::learn::Predicted;
use super::prune::{self, Estimated};
use super::space::{Candidate, Space};
use super::{AdviceError, Phase, Progress, tell};

/// Estimates and selects candidates of a question.
pub(super) struct Selector<'a> {
    pub space: &'a Space<'a>,
    pub load: Load,
    pub goals: &'a [Goal],
    pub terms: &'a Terms,
    pub progress: &'a Progress<'a>,
}

/// Selected candidates.
pub(super) struct Kept {
    /// Each with its estimated figures.
    pub candidates: Vec<(Candidate, Predicted)>,
    /// The reason why a scheme refused a device, if one did.
    pub first_refusal: Option<String>,
}

impl Selector<'_> {
    /// The promising devices that their schemes accept, in the given order.
    pub fn kept(&self, drafts: Vec<Candidate>) -> Result<Kept, AdviceError> {
        tell(self.progress, Phase::Estimating, 0, drafts.len())?;
        let estimates = self.estimates(&drafts)?;
        let promising = prune::promising(drafts.into_iter().zip(estimates).collect(), self.goals);
        let done = AtomicUsize::new(0);
        let of = promising.len();
        let confirm = |(candidate, estimate): Estimated| {
            let at = done.fetch_add(1, Ordering::Relaxed);
            tell(self.progress, Phase::Preparing, at, of)?;
            let predict = |()| {
                let predicted = Predicted::new(&candidate, estimate);
                (candidate.clone(), predicted)
            };
            Ok(self.space.confirmed(&candidate).map(predict))
        };
        let tried: Result<Vec<Result<_, String>>, AdviceError> = promising.into_par_iter().map(confirm).collect();
        let tried = tried?;
        let first_refusal = tried.iter().find_map(|tried| tried.as_ref().err().cloned());
        Ok(Kept { candidates: tried.into_iter().flatten().collect(), first_refusal })
    }

    /// One estimate for each device. Devices with the same layout share theirs.
    fn estimates(&self, drafts: &[Candidate]) -> Result<Vec<Estimate>, AdviceError> {
        // Schemes over the same regions have the same estimate.
        let key = |draft: &Candidate| (draft.layout.regions as u8, draft.point.set.clone());
        let mut places: BTreeMap<(u8, BTreeMap<String, String>), usize> = BTreeMap::new();
        let mut firsts: Vec<&Candidate> = Vec::new();
        let of_draft: Vec<usize> = (drafts.iter())
            .map(|draft| {
                *places.entry(key(draft)).or_insert_with(|| {
                    firsts.push(draft);
                    firsts.len() - 1
                })
            })
            .collect();
        let done = AtomicUsize::new(0);
        let estimate = |draft: &&Candidate| {
            let at = done.fetch_add(1, Ordering::Relaxed);
            tell(self.progress, Phase::Estimating, at, firsts.len())?;
            let whole = Whole { cost_usd: draft.cost_usd, scale: draft.scale };
            Ok(self.load.estimate(&draft.layout, whole, self.terms.warranty_years))
        };
        let estimates: Result<Vec<Estimate>, AdviceError> = firsts.par_iter().map(estimate).collect();
        let estimates = estimates?;
        Ok(of_draft.into_iter().map(|at| estimates[at].clone()).collect())
    }
}
