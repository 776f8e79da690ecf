//! What requests pass on their way to the scheme: a controller, or nothing.

use crate::media::Simulation;
use crate::request::Request;
use crate::scheme::{Metrics, Scheme};

/// What stands in front of the scheme. The replay is compiled for each, so that its loop without a controller has no trace of one.
pub trait Front {
    /// Serves a request that the host issues at `issue_ns`. Returns when it is completed.
    fn serve<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        issue_ns: u64,
    ) -> u64;

    /// Brings the scheme's map entry of a request and the page that another one's entry leads to into the processor's cache.
    fn prefetch<M: Simulation>(&self, scheme: &dyn Scheme<M>, far: &Request, near: &Request);

    /// The host is idle from `at_ns` on.
    fn idle<M: Simulation>(&mut self, _media: &mut M, _scheme: &mut dyn Scheme<M>, _at_ns: u64) {}

    /// Hands over all data that the scheme does not have yet.
    fn drain<M: Simulation>(&mut self, _media: &mut M, _scheme: &mut dyn Scheme<M>, _at_ns: u64) {}

    /// Forgets counts.
    fn reset_counts(&mut self) {}

    /// Its figures since measuring started.
    fn metrics(&self, _metrics: &mut Metrics) {}
}

/// Nothing: the scheme gets requests when the host issues them.
#[derive(Clone, Copy, Debug)]
pub struct Direct;

impl Front for Direct {
    #[inline(always)]
    fn serve<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        issue_ns: u64,
    ) -> u64 {
        media.begin(request, issue_ns);
        scheme.serve(media, request);
        media.end()
    }

    #[inline(always)]
    fn prefetch<M: Simulation>(&self, scheme: &dyn Scheme<M>, far: &Request, near: &Request) {
        scheme.prefetch(far, near);
    }
}
