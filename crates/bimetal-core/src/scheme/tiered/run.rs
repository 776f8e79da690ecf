//! Mapping units of a request that are handled together.

use crate::request::Request;
use crate::units::{Division, Span};

/// Consecutive units of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first unit.
    pub unit: u32,
    /// Number of units.
    pub count: u32,
    /// First sector within the first unit.
    pub first: u32,
    /// Number of sectors, over all units.
    pub sectors: u32,
    /// First sector within the request.
    pub at: u32,
}

impl Run {
    /// A run of one unit.
    #[inline]
    pub fn of(span: Span) -> Self {
        Self { unit: span.page, count: 1, first: span.first, sectors: span.sectors, at: span.at }
    }

    /// All of a request, divided into mapping units.
    #[inline]
    pub fn whole(units: &Division, request: &Request) -> Self {
        let (unit, first) = units.page_of(request.sector);
        let count = (first + request.sectors).div_ceil(units.page_sectors());
        Self { unit, count, first, sectors: request.sectors, at: 0 }
    }

    /// Adds the next unit.
    #[inline]
    pub fn push(&mut self, span: Span) {
        debug_assert_eq!(span.page, self.unit + self.count);
        self.count += 1;
        self.sectors += span.sectors;
    }

    /// Cuts off the units at the front that lie before the next multiple of `group` units, and returns them: a slow
    /// page's share of the run.
    #[inline]
    pub fn take_group(&mut self, group: u32, unit_sectors: u32) -> Option<Self> {
        self.take(group - self.unit % group, unit_sectors)
    }

    /// Cuts off up to `units` units at the front and returns them; `None` if the run is empty.
    #[inline]
    pub fn take(&mut self, units: u32, unit_sectors: u32) -> Option<Self> {
        if self.count == 0 {
            return None;
        }
        let count = units.min(self.count);
        let sectors = (count * unit_sectors - self.first).min(self.sectors);
        let front = Self { count, sectors, ..*self };
        *self = Self {
            unit: self.unit + count,
            count: self.count - count,
            first: 0,
            sectors: self.sectors - sectors,
            at: self.at + sectors,
        };
        Some(front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    fn units() -> Division {
        Division::by(8)
    }

    #[test]
    fn a_request_is_cut_into_units() {
        let request = Request { arrival_ns: 0, sector: 13, sectors: 12, op: Op::Write, handle: 0 };
        let spans: Vec<_> = units().spans(&request).map(|s| (s.page, s.first, s.sectors, s.at)).collect();
        assert_eq!(spans, [(1, 5, 3, 0), (2, 0, 8, 3), (3, 0, 1, 11)]);
        let whole = Run::whole(&units(), &request);
        let mut pushed: Option<Run> = None;
        for span in units().spans(&request) {
            match &mut pushed {
                Some(run) => run.push(span),
                None => pushed = Some(Run::of(span)),
            }
        }
        assert_eq!(pushed, Some(whole));
    }

    #[test]
    fn runs_are_cut_from_the_front() {
        let mut run = Run { unit: 5, count: 5, first: 3, sectors: 36, at: 7 };
        let front = run.take_group(4, 8).unwrap();
        assert_eq!(front, Run { unit: 5, count: 3, first: 3, sectors: 21, at: 7 });
        assert_eq!(run, Run { unit: 8, count: 2, first: 0, sectors: 15, at: 28 });
        assert_eq!(run.take(1, 8), Some(Run { unit: 8, count: 1, first: 0, sectors: 8, at: 28 }));
        assert_eq!(run.take(9, 8), Some(Run { unit: 9, count: 1, first: 0, sectors: 7, at: 36 }));
        assert_eq!(run.take(1, 8), None);
    }
}
