//! All devices of a comparison, in parallel.

use std::ops::ControlFlow;

use bimetal_core::device::Resolved;
use bimetal_core::replay::Plan;
use rayon::prelude::*;

use super::entry::{Entry, Spread};
use super::one::entry;
use crate::prepare::{Prepared, Workload};
use crate::replays::{Progress, Replays, Tally};
use crate::{StudyError, memory};

/// Replays all devices. Both replays of a device are separate jobs, so that they run in parallel.
pub(super) fn replayed(
    prepared: &Prepared,
    replays: &Replays,
    seeds: u32,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Vec<Entry>, StudyError> {
    let jobs = if jobs == 0 { std::thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let plans = replays.plans();
    memory::check(&prepared.runs, plans.len(), jobs)?;
    let tally = Tally::new(prepared.runs.len(), plans.len(), progress);
    let tasks: Vec<(usize, usize)> =
        (0..prepared.runs.len()).flat_map(|run| (0..plans.len()).map(move |replay| (run, replay))).collect();
    let one = |&(run, replay): &(usize, usize)| {
        let served = |requests| tally.served(run, replay, requests);
        if served(0).is_break() {
            return Err(StudyError::Stopped);
        }
        let seeds = if replay == 0 { seeds } else { 1 };
        let result = with_seeds(&prepared.runs[run], &prepared.workload, plans[replay], seeds, served);
        tally.done(run);
        result
    };
    let every = || tasks.par_iter().with_max_len(1).map(one).collect::<Result<Vec<Entry>, _>>();
    let entries = match rayon::ThreadPoolBuilder::new().num_threads(jobs.min(tasks.len())).build() {
        Ok(pool) => pool.install(every),
        // No threads can be started, so the replays run one after the other.
        Err(_) => tasks.iter().map(one).collect(),
    }?;
    let (mut entries, mut results) = (entries.into_iter(), Vec::with_capacity(prepared.runs.len()));
    while let Some(entry) = entries.next() {
        let service = replays.service.as_ref().and_then(|_| entries.next());
        results.push(match service {
            Some(service) => entry.with_service_of(&service.report),
            None => entry,
        });
    }
    Ok(results)
}

/// Runs one device with its own seed, and with the following seeds for the spread of its mean response.
fn with_seeds(
    resolved: &Resolved,
    workload: &Workload,
    plan: &Plan,
    seeds: u32,
    progress: impl Fn(u64) -> ControlFlow<()>,
) -> Result<Entry, StudyError> {
    let (requests, facts) = (&workload.requests, &workload.facts);
    let mut first = entry(resolved, requests, facts, plan, &mut |served| progress(served))?;
    if seeds < 2 {
        return Ok(first);
    }
    let of_one_seed = requests.len() as u64 * u64::from(plan.passes);
    let only_sums = Plan { intervals: 0, ..plan.clone() };
    let mut means_us = vec![first.report.response_us.mean];
    for number in 1..u64::from(seeds) {
        let mut other = resolved.clone();
        other.device.seed = resolved.device.seed.wrapping_add(number);
        other.shape.seed = other.device.seed;
        let served = &mut |served| progress(number * of_one_seed + served);
        means_us.push(entry(&other, requests, facts, &only_sums, served)?.report.response_us.mean);
    }
    first.spread = Some(Spread::of(&means_us));
    Ok(first)
}
