//! Made-up results, for tests of the code that shows results.

use super::{Entry, Quiet, Relative, run};
use crate::prepare::{Schemes, Workload, prepare};
use crate::replays::Replays;
use bimetal_core::device::{BARE_DIES, preset};
use bimetal_core::replay::{Arrivals, Plan};
use bimetal_core::report::Overload;

/// One request at a time.
pub fn closed() -> Replays {
    Replays { main: Plan::default(), service: None }
}

/// At the trace's times, and one request at a time.
pub fn both() -> Replays {
    let main = Plan { arrivals: Arrivals::Trace { speed: 1.0 }, ..Plan::default() };
    Replays { main, service: Some(Plan::default()) }
}

/// The figures that a result should have.
#[derive(Clone, Copy, Debug)]
pub struct Sketch {
    pub scheme: &'static str,
    pub mean_us: f64,
    pub years: Option<f64>,
    pub usd: f64,
    pub disk: bool,
    pub growing: bool,
}

/// Results with these figures, made from replays of small devices.
pub fn entries(sketches: &[Sketch]) -> Vec<Entry> {
    let trace = crate::generate::trace("zipf", &[("requests".into(), "20".into())], 1).unwrap();
    let schemes = Schemes::named(&["pagemap".to_owned(), "opfcl".to_owned()]).unwrap();
    let prepared = prepare(Workload::of(trace, None), preset(BARE_DIES).ok(), &schemes, &[]).unwrap();
    let [flash, over_disk] = run(&prepared, &closed(), 1, 1, &Quiet).unwrap().results.try_into().unwrap();
    let entry = |sketch: &Sketch| {
        let mut entry = if sketch.disk { over_disk.clone() } else { flash.clone() };
        let report = &mut entry.report;
        report.scheme = sketch.scheme.to_owned();
        (report.response_us.mean, report.response_us.p99) = (sketch.mean_us, sketch.mean_us * 9.0);
        (report.key_figures.lifetime_years, report.key_figures.lifetime_host_bytes) =
            (sketch.years, sketch.years.map(|years| years * 1e12));
        report.key_figures.cost_usd = sketch.usd;
        report.load.overload = if sketch.growing { Overload::Growing } else { Overload::None };
        (entry.relative, entry.lifetime_overwrites) = (None, 1.0);
        entry
    };
    let mut entries: Vec<Entry> = sketches.iter().map(entry).collect();
    if let Some((first, others)) = entries.split_first_mut() {
        for other in others {
            other.relative = Some(Relative::of(first, other));
        }
    }
    entries
}
