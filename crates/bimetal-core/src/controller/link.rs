//! The link between host and drive.

use super::write_buffer::UNIT_SECTORS;
use crate::request::Request;

/// Times are in picoseconds, so that the rate of a fast link is exact enough for a sector.
const PS_PER_NS: u64 = 1000;

/// The times at which each direction of the link is free.
#[derive(Debug)]
pub(super) struct Link {
    sector_ps: u64,
    is_half_duplex: bool,
    /// To the host, from the host.
    free_at_ps: [u64; 2],
    /// Transfer time of both directions since the counts were reset.
    busy_ps: u64,
}

const TO_HOST: usize = 0;
const FROM_HOST: usize = 1;

impl Link {
    /// A link with a rate in MB/s, for each direction unless it is half duplex.
    pub(super) fn new(mb_per_s: f64, is_half_duplex: bool) -> Self {
        Self { sector_ps: (512e6 / mb_per_s).round() as u64, is_half_duplex, free_at_ps: [0; 2], busy_ps: 0 }
    }

    /// Moves sectors to the controller from `at_ns` on. Returns the end of the transfer.
    #[inline]
    pub(super) fn receive(&mut self, sectors: u32, at_ns: u64) -> u64 {
        self.occupy(FROM_HOST, at_ns * PS_PER_NS, u64::from(sectors) * self.sector_ps).div_ceil(PS_PER_NS)
    }

    /// Moves the data of a read to the host. The flash has all of them at `ready_ns`, and pieces of them from
    /// `start_ns` on. Returns the end of the transfer.
    #[inline]
    pub(super) fn send(&mut self, request: &Request, start_ns: u64, ready_ns: u64) -> u64 {
        let last = u64::from(request.sectors.min(UNIT_SECTORS)) * self.sector_ps;
        let all = u64::from(request.sectors) * self.sector_ps;
        let end = self.occupy(TO_HOST, start_ns * PS_PER_NS, all);
        end.max(ready_ns * PS_PER_NS + last).div_ceil(PS_PER_NS)
    }

    fn occupy(&mut self, direction: usize, at_ps: u64, time_ps: u64) -> u64 {
        let direction = if self.is_half_duplex { TO_HOST } else { direction };
        let free_at_ps = &mut self.free_at_ps[direction];
        *free_at_ps = (*free_at_ps).max(at_ps) + time_ps;
        self.busy_ps += time_ps;
        *free_at_ps
    }

    /// Resets the transfer time.
    pub(super) fn reset_counts(&mut self) {
        self.busy_ps = 0;
    }

    /// Transfer time of both directions, in seconds.
    pub(super) fn busy_s(&self) -> f64 {
        self.busy_ps as f64 / 1e12
    }
}
