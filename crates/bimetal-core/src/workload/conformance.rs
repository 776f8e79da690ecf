//! Requirements of every workload, as functions that panic if a workload violates them. They serve the tests of
//! workloads here and in other crates, and need the feature `conformance` of this crate. A panic names the workload.

use super::{Requests, WorkloadSpec, build, settings};
use crate::profile::{CurvePlan, Profile};
use crate::request::{self, Op, Request, SECTOR_BYTES};

fn built(spec: &WorkloadSpec, settings: &[(&str, &str)], seed: u64) -> Requests {
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
    build(spec.name, &settings, seed).unwrap_or_else(|error| panic!("{}: {error}", spec.name))
}

fn generate(spec: &WorkloadSpec, settings: &[(&str, &str)], seed: u64) -> Vec<Request> {
    built(spec, settings, seed).collect()
}

/// The same settings and seed give the same requests. Their number is the requested one, which is known before they are
/// drawn. They arrive in order and have sectors.
pub fn repeats_to_the_bit(spec: &WorkloadSpec) {
    let settings = [("requests", "20000")];
    let requests = generate(spec, &settings, 7);
    assert_eq!(requests.len(), 20_000, "{}", spec.name);
    assert_eq!(built(spec, &settings, 7).size_hint().1, Some(20_000), "{}", spec.name);
    assert_eq!(requests, generate(spec, &settings, 7), "{}", spec.name);
    assert_ne!(requests, generate(spec, &settings, 8), "{}", spec.name);
    assert!(requests.is_sorted_by_key(|request| request.arrival_ns), "{}", spec.name);
    assert!(requests.iter().all(|request| request.sectors > 0 && request.op != Op::Trim), "{}", spec.name);
}

/// A digest of the workload's first requests, which distinguishes workloads. It is the same on every machine and with
/// every compiler.
pub fn digest(spec: &WorkloadSpec) -> u64 {
    request::digest(&generate(spec, &[("requests", "20000")], 7))
}

/// The workload stays within its span. A span that is too small or too large is either generated or refused.
pub fn stays_within_its_span(spec: &WorkloadSpec) {
    let keys: Vec<_> = (spec.parameters)().into_iter().map(|parameter| parameter.name).collect();
    assert!(keys.contains(&"requests") && keys.contains(&"span"), "{}", spec.name);
    let used = keys.contains(&"used").then_some(("used", "64MiB"));
    let settings: Vec<_> = [("requests", "20000"), ("span", "96MiB")].into_iter().chain(used).collect();
    let end = generate(spec, &settings, 3).iter().map(Request::end).max();
    assert!(end.is_some_and(|end| end <= (96 << 20) / SECTOR_BYTES), "{}: {end:?}", spec.name);
    for span in ["0", "512", "16KiB", "100TiB"] {
        if let Ok(requests) = build(spec.name, &[("span".into(), span.into())], 1) {
            requests.take(100).for_each(drop);
        }
    }
}

/// The parameters are accepted in their displayed form, and the workload has a summary and a source.
pub fn is_shown_as_it_is(spec: &WorkloadSpec) {
    let shown = settings(spec.name, &[]).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    assert_eq!(settings(spec.name, &shown).as_ref(), Ok(&shown), "{}", spec.name);
    assert!(!spec.summary.is_empty() && !spec.source.is_empty());
}

/// A small version of the workload meets its targets. Returns the number of targets.
pub fn meets_its_targets(spec: &WorkloadSpec) -> usize {
    let settings: Vec<_> = spec.in_small.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    let targets = (spec.targets)(&settings).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    let profile = Profile::of(&generate(spec, spec.in_small, 1), &CurvePlan { points: 0, sampling_rate: None });
    for judged in targets.iter().map(|target| target.judge(&profile)) {
        assert_eq!(judged.met, Some(true), "{}: {judged:?}", spec.name);
        assert!(!judged.name.is_empty() && !judged.source.is_empty());
    }
    targets.len()
}
