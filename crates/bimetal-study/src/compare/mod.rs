//! Schemes side by side on the same requests.
//!
//! Each scheme runs on its own simulated device, several in parallel on threads. Results are in the order of the given
//! schemes. Everything in them but `speed` is independent of the number of threads.

//!
//! An [`entry`] is the result of one scheme, with the [`parts`] of its device. [`one`] replays a device, [`every`]
//! replays all devices of a comparison, and [`warnings`] lists caveats for the user.

mod entry;
mod every;
mod one;
mod parts;
#[cfg(test)]
pub(crate) mod testing;
mod warnings;

use bimetal_core::report::TraceFacts;
use bimetal_core::request;
use serde::Serialize;

pub use crate::replays::{Progress, Quiet};
pub use entry::{Entry, Relative, Speed, Spread, worn_names};
pub use one::entry;
pub use parts::{DiskFacts, RegionFacts};

use crate::prepare::{Addresses, Prepared};
use crate::replays::Replays;
use crate::{StudyError, arrivals};

/// Version of the results schema.
pub const RESULTS_SCHEMA: u32 = 1;

/// The JSON output of `compare` and `replay`.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Version of this program.
    pub bimetal: &'static str,
    /// Version of the results schema. It increases if a field is removed, renamed or changes its meaning.
    pub schema: u32,
    /// The trace.
    pub trace: TraceFacts,
    /// Digest of the trace's requests as 16 hexadecimal digits, identical on every machine.
    pub trace_digest: String,
    /// Addresses of the trace on the devices.
    pub addresses: Addresses,
    /// The replay.
    pub replay: ReplayFacts,
    /// Caveats that a user should know before trusting a figure.
    pub warnings: Vec<String>,
    /// One entry for each scheme.
    pub results: Vec<Entry>,
}

/// The replay of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReplayFacts {
    /// `closed:DEPTH` or `trace:SPEED`.
    pub arrivals: String,
    /// Whether each scheme was also replayed with one request at a time for service times.
    pub service: bool,
    /// Number of passes over the trace.
    pub passes: u32,
    /// Number of last passes that were measured.
    pub measured_passes: u32,
    /// Data on the devices before the first pass: `device`, `trace` or `none`.
    pub fill: String,
}

/// Runs every prepared device, at most `jobs` replays at once; 0 means one for each processor. The main replay runs
/// with `seeds` seeds. The figures are those of the device's own seed, and further seeds add the spread of the mean
/// response.
///
/// # Errors
/// A device does not suit its scheme, memory is insufficient, or `progress` stopped it.
pub fn run(
    prepared: &Prepared,
    replays: &Replays,
    seeds: u32,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Comparison, StudyError> {
    let workload = &prepared.workload;
    let results = entry::beside_the_first(every::replayed(prepared, replays, seeds, jobs, progress)?);
    let mut warnings = workload.warnings.clone();
    warnings.extend(prepared.warnings.iter().cloned());
    warnings.extend(warnings::of(&results));
    let plan = &replays.main;
    Ok(Comparison {
        bimetal: env!("CARGO_PKG_VERSION"),
        schema: RESULTS_SCHEMA,
        trace: workload.facts.clone(),
        trace_digest: format!("{:016x}", request::digest(&workload.requests)),
        addresses: prepared.addresses,
        replay: ReplayFacts {
            arrivals: arrivals::name(plan.arrivals),
            service: replays.is_service() || replays.service.is_some(),
            passes: plan.passes,
            measured_passes: plan.measured_passes,
            fill: plan.fill.to_string(),
        },
        warnings,
        results,
    })
}

#[cfg(test)]
mod tests {
    use super::testing::{Sketch, both, closed, entries};
    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bimetal_core::chip::Cell;
    use bimetal_core::device::{BARE_DIES, preset};

    use super::*;
    use crate::prepare::{Schemes, Workload, prepare};

    /// The replay is repeated this number of times.
    struct Impatient(AtomicUsize);

    impl Progress for Impatient {
        fn served(&self, _run: usize, _requests: u64) -> ControlFlow<()> {
            match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
                Ok(_) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        }

        fn done(&self, _run: usize) {}
    }

    #[test]
    fn a_comparison_that_is_stopped_has_no_result() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "40000".into())], 1).unwrap();
        let prepared = prepare(Workload::of(trace, None), None, &Schemes::all(), &[]).unwrap();
        for (jobs, patience) in [(1, 0), (1, 2), (3, 5)] {
            for replays in [closed(), both()] {
                let progress = Impatient(AtomicUsize::new(patience));
                let stopped = run(&prepared, &replays, 1, jobs, &progress);
                assert!(matches!(stopped, Err(StudyError::Stopped)), "{jobs} {patience}");
            }
        }
    }

    #[test]
    fn seeds_spread_only_what_is_random() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "3000".into())], 1).unwrap();
        let workload = Workload::of(trace, None);
        let spread = |settings: &[(&str, &str)], seeds| {
            let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let schemes = Schemes::named(&["pagemap".to_owned()]).unwrap();
            let prepared = prepare(workload.clone(), None, &schemes, &settings).unwrap();
            let entry = run(&prepared, &closed(), seeds, 1, &Quiet).unwrap().results.remove(0);
            (entry.report.response_us.mean, entry.spread)
        };
        let faults = [("slow.program_fail_ppm", "20000"), ("slow.replacement_blocks", "100000")];
        assert_eq!(spread(&faults, 1).1, None);
        let (first, of_three) = spread(&faults, 3);
        let of_three = of_three.unwrap();
        let means: Vec<f64> =
            ["1", "2", "3"].iter().map(|&seed| spread(&[&faults[..], &[("seed", seed)]].concat(), 1).0).collect();
        assert_eq!((first, of_three), (means[0], Spread::of(&means)));
        assert!(of_three.half_range_us() > 0.0 && of_three.seeds == 3);
        let (mean, unmoved) = spread(&[], 3);
        assert_eq!(unmoved.map(|spread| (spread.min_us, spread.max_us)), Some((mean, mean)));
    }

    #[test]
    fn a_speed_up_is_that_of_the_means_over_all_seeds() {
        let a = Sketch { scheme: "a", mean_us: 10.0, years: None, usd: 1.0, disk: false, growing: false };
        let mut some = entries(&[a, Sketch { scheme: "b", ..a }]);
        for (entry, mean_us) in some.iter_mut().zip([12.0, 8.0]) {
            entry.spread = Some(Spread { seeds: 2, min_us: mean_us, max_us: mean_us, mean_us });
        }
        let speed_up = |entry: &Entry| entry.relative.as_ref().and_then(|relative| relative.response_speedup);
        assert_eq!(entry::beside_the_first(some).iter().map(speed_up).collect::<Vec<_>>(), [None, Some(1.5)]);
    }

    #[test]
    fn service_times_and_responses_are_those_of_their_own_replays() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "3000".into())], 1).unwrap();
        let schemes = Schemes::named(&["pagemap".to_owned(), "chang".to_owned()]).unwrap();
        let prepared = prepare(Workload::of(trace, None), None, &schemes, &[]).unwrap();
        let results = |replays: Replays, jobs| run(&prepared, &replays, 1, jobs, &Quiet).unwrap().results;
        let (alone, beside) = (results(closed(), 1), results(both(), 2));
        let open = results(Replays { service: None, ..both() }, 1);
        // Responses that are marked beside service times need no warning.
        assert_eq!(run(&prepared, &both(), 1, 1, &Quiet).unwrap().warnings, [""; 0]);
        for ((closed, both), open) in alone.iter().zip(&beside).zip(&open) {
            let service = Some(closed.report.response_us);
            assert_eq!((closed.service_us, closed.service_beside(), open.service_us), (service, None, None));
            assert_eq!((both.service_us, both.service_beside()), (service, service.as_ref()));
            assert_eq!(
                (both.service_read_us, both.service_write_us),
                (closed.service_read_us, closed.service_write_us)
            );
            assert_eq!((&both.report, both.arrivals.as_str()), (&open.report, "trace"));
            assert_ne!(both.report.response_us, closed.report.response_us);
            let written = prepared.workload.facts.write_bytes as f64 / both.device.logical.0 as f64;
            assert!((both.lifetime_overwrites - written).abs() < 1e-9, "{written}");
            let has_life = both.report.key_figures.lifetime_host_bytes.is_some();
            assert_eq!(both.is_extrapolated(), has_life && written < 1.0);
        }
    }

    #[test]
    fn regions_say_how_old_their_parts_and_prices_are() {
        let trace = crate::generate::trace("zipf", &[("requests".into(), "20".into())], 1).unwrap();
        let workload = Workload::of(trace, None);
        let region = |settings: &[(&str, &str)]| {
            let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            let schemes = Schemes::named(&["pagemap".to_owned()]).unwrap();
            let prepared = prepare(workload.clone(), preset(BARE_DIES).ok(), &schemes, &settings).unwrap();
            run(&prepared, &closed(), 1, 1, &Quiet).unwrap().results.remove(0).regions.remove(0)
        };
        let of_2019 = region(&[("slow.chip", "tlc-3d-2019"), ("slow.channels", "2")]);
        assert_eq!((of_2019.cell, of_2019.year, of_2019.price_year), (Cell::Tlc, Some(2019), Some(2026)));
        assert_eq!((of_2019.dies, of_2019.channels), (2, 2));
        let cheaper = region(&[("slow.chip", "tlc-3d-2019"), ("slow.usd_per_gib", "0.1")]);
        assert_eq!((cheaper.year, cheaper.price_year), (Some(2019), None));
    }
}
