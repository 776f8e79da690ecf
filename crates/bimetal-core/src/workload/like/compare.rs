//! Similarity of generated requests to a trace, in fitted statistics and in others.

use serde::Serialize;

use super::{FitError, Model};
use crate::compact;
use crate::hit_rates::{self, HitRatePoint, HitRates, references};
use crate::profile::{CurvePlan, OpProfile, Profile, distinct_pages};
use crate::request::{PAGE_BYTES, Request, data};

/// Cache sizes as shares of the pages that the trace touches.
const CACHES: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 1.0];

/// Length of the windows for request counts, in mean intervals of the trace.
const WINDOW: f64 = 100.0;

/// Unit of a statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// A share from 0 to 1, whose differences are absolute.
    Share,
    /// Bytes. Differences are relative, like those of all units below.
    Bytes,
    /// Microseconds.
    Microseconds,
    /// A number, or a mean of numbers.
    Number,
}

/// A statistic of the trace and of the generated requests.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Compared {
    /// The measured quantity.
    pub name: String,
    /// The unit of the values.
    pub unit: Statistic,
    /// Value of the trace.
    pub trace: f64,
    /// Value of the generated requests.
    pub generated: f64,
    /// Generated minus trace. For units other than shares it is divided by the trace's value.
    pub difference: f64,
}

/// Similarity of generated requests to a trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Number of first requests that were compared.
    pub requests: u64,
    /// Statistics to which the model was fitted.
    pub fitted: Vec<Compared>,
    /// Statistics that the model does not contain.
    pub held_back: Vec<Compared>,
}

/// Both values; none if one of them is undefined.
fn compared(name: impl Into<String>, unit: Statistic, values: [Option<f64>; 2]) -> Option<Compared> {
    let [trace, generated] = values;
    let (trace, generated) = (trace?, generated?);
    let difference = match unit {
        Statistic::Share => generated - trace,
        _ if trace == 0.0 => return None,
        _ => generated / trace - 1.0,
    };
    Some(Compared { name: name.into(), unit, trace, generated, difference })
}

/// Compares a trace with requests that were generated from its model. Only the beginning of the longer one counts. For
/// the second half of the trace, requests are generated from a model of its first half.
///
/// # Errors
/// A trace to which no model can be fitted.
pub fn compare(trace: &[Request], generated: &[Request], seed: u64) -> Result<Comparison, FitError> {
    let length = trace.len().min(generated.len());
    let both = [&trace[..length], &generated[..length]];
    let profiles = both.map(|requests| Profile::of(requests, &CurvePlan { points: 0, sampling_rate: None }));
    let mut held_back = held_back(both, &profiles);
    let half = length / 2;
    if references(&trace[..half]) > 0 {
        let like_half: Vec<Request> = Model::fit(&trace[..half])?.generate(length as u64, seed).collect();
        held_back.extend(second_half([both[0], &like_half], half, &profiles[0]));
    }
    Ok(Comparison { requests: length as u64, fitted: fitted(&profiles), held_back })
}

fn fitted(profiles: &[Profile; 2]) -> Vec<Compared> {
    use Statistic::{Bytes, Microseconds, Share};
    let [trace, generated] = profiles;
    let of = |measure: &dyn Fn(&Profile) -> Option<f64>| [measure(trace), measure(generated)];
    let share_of = |kind: fn(&Profile) -> &OpProfile| {
        of(&|profile| (kind(trace).requests > 0).then(|| kind(profile).requests as f64 / profile.requests as f64))
    };
    let mean_of = |kind: fn(&Profile) -> &OpProfile| {
        of(&|profile| (kind(profile).requests > 0).then_some(kind(profile).mean_bytes))
    };
    let arrivals =
        |measure: fn(&crate::profile::Arrivals) -> f64| of(&|profile| profile.arrivals.as_ref().map(measure));
    let rows = [
        compared("reads", Share, share_of(|profile| &profile.reads)),
        compared("trims", Share, share_of(|profile| &profile.trims)),
        compared("mean size of a read", Bytes, mean_of(|profile| &profile.reads)),
        compared("mean size of a write", Bytes, mean_of(|profile| &profile.writes)),
        compared("aligned to 4 KiB", Share, of(&|profile| profile.aligned_share)),
        compared("sequential", Share, of(&|profile| profile.sequential_share)),
        compared("sequential among reads", Share, of(&|profile| profile.reads.sequential_share)),
        compared("sequential among writes", Share, of(&|profile| profile.writes.sequential_share)),
        compared("pages touched", Bytes, of(&|profile| Some(profile.footprint.touched_bytes as f64))),
        compared("pages read", Bytes, of(&|profile| Some(profile.footprint.read_bytes as f64))),
        compared("pages written", Bytes, of(&|profile| Some(profile.footprint.written_bytes as f64))),
        compared("pages read and written", Bytes, of(&|profile| Some(profile.footprint.both_bytes as f64))),
        compared("end of the last page", Bytes, of(&|profile| Some(profile.footprint.span_bytes as f64))),
        compared("mean interval", Microseconds, arrivals(|arrivals| arrivals.interval_mean_us)),
        compared("median interval", Microseconds, arrivals(|arrivals| arrivals.interval_p50_us)),
        compared("99th percentile of intervals", Microseconds, arrivals(|arrivals| arrivals.interval_p99_us)),
    ];
    rows.into_iter().flatten().collect()
}

/// Cache sizes in pages, as shares of the pages that a trace touches.
fn caches(profile: &Profile) -> Vec<u32> {
    let touched = profile.footprint.touched_bytes / PAGE_BYTES;
    let mut sizes: Vec<u32> =
        CACHES.iter().map(|part| (touched as f64 * part).round().clamp(1.0, f64::from(u32::MAX)) as u32).collect();
    sizes.dedup();
    sizes
}

fn curve(requests: &[Request], sizes: &[u32]) -> Option<HitRates> {
    HitRates::of(requests, sizes, hit_rates::default_rate(requests, distinct_pages(data(requests))))
}

fn cache_name(pages: u32) -> String {
    let kib = u64::from(pages) * PAGE_BYTES / 1024;
    if kib < 10 * 1024 { format!("{kib} KiB") } else { format!("{} MiB", (kib + 512) / 1024) }
}

fn held_back(both: [&[Request]; 2], profiles: &[Profile; 2]) -> Vec<Compared> {
    use Statistic::{Number, Share};
    let sizes = caches(&profiles[0]);
    let curves = both.map(|requests| curve(requests, &sizes));
    let mut rows = Vec::new();
    let points = |at: usize| curves.each_ref().map(|curve| curve.as_ref().and_then(|curve| curve.points.get(at)));
    let mut rates = |what: &str, at: usize, rate: fn(&HitRatePoint) -> Option<f64>| {
        let name = format!("{what}, cache of {}", cache_name(sizes[at]));
        rows.extend(compared(name, Share, points(at).map(|point| point.and_then(rate))));
    };
    for at in 0..sizes.len() {
        rates("hits", at, |point| point.all);
    }
    let middle = sizes.len() / 2;
    rates("read hits", middle, |point| point.reads);
    rates("write hits", middle, |point| point.writes);
    rates("read hits of written", middle, |point| point.reads_of_written);
    rates("write hits of written", middle, |point| point.writes_of_written);
    let of = |measure: &dyn Fn(&Profile) -> Option<f64>| profiles.each_ref().map(measure);
    let hottest = |percent: u32| {
        of(&move |profile| {
            let hot = profile.hot_set.as_ref()?;
            hot.hottest.iter().find(|share| share.percent_of_pages == percent).map(|share| share.share_of_writes)
        })
    };
    rows.extend(compared("writes to the hottest 1 % of pages", Share, hottest(1)));
    rows.extend(compared("writes to the hottest 10 %", Share, hottest(10)));
    rows.extend(compared("writes of a written sector", Number, of(&|profile| profile.update_ratio)));
    let extents = both.map(|requests| Some(compact::Extents::of(requests).count() as f64));
    rows.extend(compared("touched extents of 64 KiB", Number, extents));
    if let Some(arrivals) = &profiles[0].arrivals {
        let window_ns = (arrivals.interval_mean_us * 1e3 * WINDOW) as u64;
        let name = format!("requests in the busiest 1 % of windows of {WINDOW} mean intervals");
        rows.extend(compared(name, Number, both.map(|requests| busiest(requests, window_ns))));
    }
    rows
}

/// 99th percentile of the number of requests in a window.
fn busiest(requests: &[Request], window_ns: u64) -> Option<f64> {
    let (first, last) = (requests.first()?.arrival_ns, requests.last()?.arrival_ns);
    let windows = ((last - first) / window_ns.max(1) + 1) as usize;
    if window_ns == 0 {
        return None;
    }
    let mut counts = vec![0u32; windows.min(requests.len() * 100)];
    for request in requests {
        if let Some(count) = counts.get_mut(((request.arrival_ns - first) / window_ns) as usize) {
            *count += 1;
        }
    }
    counts.sort_unstable();
    Some(f64::from(counts[(counts.len() * 99).div_ceil(100) - 1]))
}

/// Hit rates in the second half after a warm-up with the first, and the share of new pages in it.
fn second_half(both: [&[Request]; 2], half: usize, of_trace: &Profile) -> Vec<Compared> {
    let sizes = caches(of_trace);
    let mut rows = Vec::new();
    let curves = both.map(|requests| [curve(requests, &sizes), curve(&requests[..half], &sizes)]);
    let referred = both.map(|requests| [references(requests), references(&requests[..half])].map(|count| count as f64));
    let rate = |of: usize, at: usize| {
        let hits = |part: usize| Some(curves[of][part].as_ref()?.points.get(at)?.all? * referred[of][part]);
        let references = referred[of][0] - referred[of][1];
        (references > 0.0).then_some((hits(0)? - hits(1)?) / references)
    };
    for (at, &size) in sizes.iter().enumerate().skip(sizes.len() / 2) {
        let name = format!("hits in the second half, like the first, cache of {}", cache_name(size));
        rows.extend(compared(name, Statistic::Share, [rate(0, at), rate(1, at)]));
    }
    let new = both.map(|requests| {
        let touched = |requests| distinct_pages(data(requests));
        Some(((touched(requests) - touched(&requests[..half])) * PAGE_BYTES) as f64)
    });
    rows.extend(compared("pages new in the second half, like the first", Statistic::Bytes, new));
    rows
}
