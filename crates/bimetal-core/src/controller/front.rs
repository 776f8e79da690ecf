//! The way of requests to the scheme: through a controller, or directly.

use crate::ledger::Server;
use crate::media::Simulation;
use crate::request::Request;
use crate::scheme::{Metrics, Scheme};

/// The part in front of the scheme. The replay is compiled for each, so that its loop without a controller contains no
/// code of one.
pub trait Front {
    /// Serves a request that the host issues at `issue_ns`. Returns its completion time.
    fn serve<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        issue_ns: u64,
    ) -> u64;

    /// Brings the scheme's map entry of `far` into the processor's cache, and the page to which the entry of `near`
    /// points.
    fn prefetch<M: Simulation>(&self, scheme: &dyn Scheme<M>, far: &Request, near: &Request);

    /// The host is idle from `at_ns` on.
    fn idle<M: Simulation>(&mut self, _media: &mut M, _scheme: &mut dyn Scheme<M>, _at_ns: u64) {}

    /// Hands over all data that the scheme does not have yet.
    fn drain<M: Simulation>(&mut self, _media: &mut M, _scheme: &mut dyn Scheme<M>, _at_ns: u64) {}

    /// Resets its counts.
    fn reset_counts(&mut self) {}

    /// Its busy times since measuring started.
    fn servers(&self) -> Vec<Server> {
        Vec::new()
    }

    /// Its figures since measuring started.
    fn metrics(&self, _metrics: &mut Metrics) {}
}

/// No controller: the scheme gets requests when the host issues them.
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
