//! Properties of every registered scheme behind a controller, on a drive of today.

use crate::support::mixed_requests;
use allocation_counter::measure;
use bimetal_core::device::{Resolved, Template};
use bimetal_core::media::SimMedia;
use bimetal_core::replay::{self, Arrivals, Fill, Outcome, Plan};
use bimetal_core::request::Request;
use bimetal_core::scheme::{SCHEMES, SchemeSpec};

const SECTORS: u64 = 64 << 11;

fn today(spec: &SchemeSpec) -> Resolved {
    let template = Template::for_trace(None, &[], SECTORS * 512).unwrap();
    template.resolve(spec, &[]).unwrap()
}

fn replayed(spec: &SchemeSpec, requests: &[Request], arrivals: Arrivals) -> Outcome {
    let resolved = today(spec);
    let (mut media, mut scheme) = (resolved.media(), resolved.build::<SimMedia>().unwrap());
    let plan = Plan { arrivals, controller: resolved.controller.clone(), ..Plan::default() };
    let outcome = replay::run(&mut media, scheme.as_mut(), requests, &plan, &mut replay::to_the_end);
    scheme.check().unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    outcome
}

#[test]
fn a_replay_through_a_controller_is_the_same_every_time() {
    let requests = mixed_requests(3, 6_000, SECTORS);
    for spec in SCHEMES {
        for arrivals in [Arrivals::Closed { depth: 8 }, Arrivals::Trace { speed: 1.0 }] {
            let [first, second] = [0, 1].map(|_| replayed(spec, &requests, arrivals));
            assert_eq!(first.course.controller, second.course.controller, "{}", spec.name);
            let [first, second] = [first.measured, second.measured];
            assert_eq!(first.simulated_ns, second.simulated_ns, "{}", spec.name);
            assert_eq!(first.metrics, second.metrics, "{}", spec.name);
            assert_eq!(first.ledger.erases, second.ledger.erases, "{}", spec.name);
        }
    }
}

/// A replay makes its buffers first: twice as many requests allocate no more.
#[test]
fn a_controller_allocates_nothing_for_a_request() {
    let requests = mixed_requests(5, 12_000, SECTORS);
    let spec = SCHEMES.iter().find(|spec| spec.name == "pagemap").unwrap();
    let resolved = today(spec);
    let (mut media, mut scheme) = (resolved.media(), resolved.build::<SimMedia>().unwrap());
    let plan =
        Plan { arrivals: Arrivals::Closed { depth: 8 }, controller: resolved.controller.clone(), ..Plan::default() };
    replay::run(&mut media, scheme.as_mut(), &requests, &plan, &mut replay::to_the_end);
    let plan = Plan { fill: Fill::None, ..plan };
    let mut allocated = |count: usize| {
        let mut run = || replay::run(&mut media, scheme.as_mut(), &requests[..count], &plan, &mut replay::to_the_end);
        measure(|| drop(run())).count_total
    };
    assert_eq!(allocated(6_000), allocated(12_000));
}
