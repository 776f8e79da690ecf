//! The link between host and drive.

use super::write_buffer::UNIT_SECTORS;
use crate::request::Request;
use crate::units::Nanos;

/// Transfer times are in picoseconds, so that the rate of a fast link is exact enough for a sector.
const PS_PER_NS: u64 = 1000;

/// A moment. All of its picoseconds in one number would overflow after 213 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    ns: u64,
    /// Below 1000.
    ps: u64,
}

impl Moment {
    #[inline]
    fn at(ns: u64) -> Self {
        Self { ns, ps: 0 }
    }

    #[inline]
    fn after(self, time_ps: u64) -> Self {
        let ps = self.ps + time_ps;
        Self { ns: self.ns + ps / PS_PER_NS, ps: ps % PS_PER_NS }
    }

    /// In nanoseconds, rounded up.
    #[inline]
    fn ceil_ns(self) -> u64 {
        self.ns + u64::from(self.ps > 0)
    }
}

/// The times at which each direction of the link is free.
#[derive(Debug)]
pub(super) struct Link {
    sector_ps: u64,
    is_half_duplex: bool,
    /// To the host, from the host.
    free_at: [Moment; 2],
    /// Transfer time of each direction since the counts were reset.
    busy_ps: [u64; 2],
}

const TO_HOST: usize = 0;
const FROM_HOST: usize = 1;

impl Link {
    /// A link with a rate in MB/s, for each direction unless it is half duplex.
    pub(super) fn new(mb_per_s: f64, is_half_duplex: bool) -> Self {
        let sector_ps = (512e6 / mb_per_s).round() as u64;
        Self { sector_ps, is_half_duplex, free_at: [Moment::at(0); 2], busy_ps: [0; 2] }
    }

    /// Moves sectors of a write to the controller, which takes them from `ready_ns` on. The host has them at `start_ns`:
    /// until they are taken, the link moves other data. Returns the end of the transfer.
    #[inline]
    pub(super) fn receive(&mut self, sectors: u32, start_ns: u64, ready_ns: u64) -> u64 {
        let time = u64::from(sectors) * self.sector_ps;
        let end = self.occupy(FROM_HOST, start_ns, time);
        end.max(Moment::at(ready_ns).after(time)).ceil_ns()
    }

    /// Moves the data of a read to the host. The flash has all of them at `ready_ns`, and pieces of them from
    /// `start_ns` on. Returns the end of the transfer.
    #[inline]
    pub(super) fn send(&mut self, request: &Request, start_ns: u64, ready_ns: u64) -> u64 {
        let last = u64::from(request.sectors.min(UNIT_SECTORS)) * self.sector_ps;
        let all = u64::from(request.sectors) * self.sector_ps;
        let end = self.occupy(TO_HOST, start_ns, all);
        end.max(Moment::at(ready_ns).after(last)).ceil_ns()
    }

    fn occupy(&mut self, direction: usize, at_ns: u64, time_ps: u64) -> Moment {
        let direction = if self.is_half_duplex { TO_HOST } else { direction };
        let free_at = &mut self.free_at[direction];
        *free_at = (*free_at).max(Moment::at(at_ns)).after(time_ps);
        self.busy_ps[direction] += time_ps;
        *free_at
    }

    /// Resets the transfer time.
    pub(super) fn reset_counts(&mut self) {
        self.busy_ps = [0; 2];
    }

    /// Transfer time of both directions, in seconds.
    pub(super) fn busy_s(&self) -> f64 {
        self.busy_ps.iter().sum::<u64>() as f64 / 1e12
    }

    /// Transfer time of the busier direction.
    pub(super) fn busiest(&self) -> Nanos {
        Nanos(self.busy_ps.into_iter().max().unwrap_or(0) / PS_PER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_takes_as_long_after_a_year_as_at_once() {
        let year_ns = 365 * 86_400 * 1_000_000_000;
        // 146.285714… ns for a sector.
        let took_ns = [0, year_ns].map(|at_ns| {
            let mut link = Link::new(3500.0, false);
            let first = link.receive(1, at_ns, at_ns);
            [first - at_ns, link.receive(8, at_ns, at_ns) - at_ns]
        });
        assert_eq!(took_ns, [[147, 1317]; 2]);
    }
}
