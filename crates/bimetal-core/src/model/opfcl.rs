//! The cost model of OP-FCL (FAST 2012, section 4): the cost of an access to a flash cache in front of a disk, by the
//! share of the flash that holds data and the share of these data for reads.
//!
//! Sizes are counted in pages. As in the paper, they are approximate: blocks that the flash keeps erased are not
//! counted.

use serde::{Deserialize, Serialize};

use super::cleaning::CleaningCost;

/// A disk as a position and a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskCosts {
    /// `C_D_RPOS`: mean seek and rotation before a read, in microseconds.
    pub read_position_us: f64,
    /// `C_D_WPOS`: the same before a write, in microseconds.
    pub write_position_us: f64,
    /// `B`: transfer rate in MB/s (10^6 bytes).
    pub mb_per_s: f64,
}

impl DiskCosts {
    /// `C_DR`: reading a number of bytes, in microseconds.
    pub fn read_us(&self, bytes: u32) -> f64 {
        self.read_position_us + f64::from(bytes) / self.mb_per_s
    }

    /// `C_DW`: writing a number of bytes, in microseconds.
    pub fn write_us(&self, bytes: u32) -> f64 {
        self.write_position_us + f64::from(bytes) / self.mb_per_s
    }
}

/// A flash cache, its disk, and the cost of a page on either.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CacheCost {
    /// The flash's cost of cleaning.
    pub flash: CleaningCost,
    /// `C_DR`: a page read from the disk, in microseconds.
    pub disk_read_us: f64,
    /// `C_DW`: a page written to the disk, in microseconds.
    pub disk_write_us: f64,
    /// `S_F`: physical pages of the flash.
    pub flash_pages: f64,
}

/// Observations of a workload.
#[derive(Clone, Copy, Debug)]
pub struct CacheLoad<R, W> {
    /// `H_R`: hit rate of a read cache by its number of pages, among the references that the read cache serves.
    pub read_hits: R,
    /// `H_W`: hit rate of a write cache by its number of pages, among the reads and writes that the write cache serves.
    pub write_hits: W,
    /// `h'`: share of reads among the hits of the write cache.
    pub read_share_of_write_hits: f64,
    /// `IO_W`: share of the requests that the write cache serves. The rest, `IO_R`, is served by the read cache.
    pub write_cache_share: f64,
}

/// A division of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// `u`: share of the flash that holds data.
    pub utilisation: f64,
    /// `r`: share of these data for reads.
    pub read_share: f64,
    /// `C_HY` with this division, in microseconds.
    pub access_us: f64,
}

/// Pages of each part of the flash.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartitionPages {
    /// `S_R`: for reads.
    pub read: f64,
    /// `S_W`: for writes.
    pub write: f64,
    /// `S_OPS`: over-provisioned.
    pub spare: f64,
}

impl CacheCost {
    /// `S_R`, `S_W` and `S_OPS` for `u` and `r`.
    pub fn sizes(&self, utilisation: f64, read_share: f64) -> PartitionPages {
        let data = utilisation * self.flash_pages;
        let read = read_share * data;
        PartitionPages { read, write: data - read, spare: self.flash_pages - data }
    }

    /// `C_HR` in microseconds (equation 5): a miss is read from the disk and written to the flash.
    pub fn read_us(&self, utilisation: f64, hit_rate: f64) -> f64 {
        self.read_part_us(hit_rate, self.flash.page_write_us(utilisation))
    }

    /// `C_HW` in microseconds: a miss moves a page to the disk first.
    pub fn write_us(&self, utilisation: f64, hit_rate: f64, read_share_of_hits: f64) -> f64 {
        self.write_part_us(hit_rate, read_share_of_hits, self.flash.page_write_us(utilisation))
    }

    /// `C_HY` in microseconds (equation 6).
    pub fn access_us<R, W>(&self, utilisation: f64, read_share: f64, load: &CacheLoad<R, W>) -> f64
    where
        R: Fn(f64) -> f64,
        W: Fn(f64) -> f64,
    {
        self.shared_us(utilisation, read_share, self.flash.page_write_us(utilisation), load)
    }

    /// The cheapest division of a fixed cache: `r` from 0 to 1 in `read_steps` steps; the smallest of equals.
    pub fn optimum_at<R, W>(&self, utilisation: f64, load: &CacheLoad<R, W>, read_steps: u32) -> Partition
    where
        R: Fn(f64) -> f64,
        W: Fn(f64) -> f64,
    {
        let program_us = self.flash.page_write_us(utilisation);
        let mut best = Partition { utilisation, read_share: 0.0, access_us: f64::INFINITY };
        for step in 0..=read_steps {
            let read_share = f64::from(step) / f64::from(read_steps);
            let access_us = self.shared_us(utilisation, read_share, program_us, load);
            if access_us < best.access_us {
                best = Partition { utilisation, read_share, access_us };
            }
        }
        best
    }

    /// Algorithm 1: the cheapest of `u` between 0 and 1 in `steps` steps, both excluded, and `r` from 0 to 1 in
    /// `read_steps`; the first of equals. The paper has one number of steps: the size of the flash divided by that of a
    /// ghost segment.
    pub fn optimum<R, W>(&self, load: &CacheLoad<R, W>, steps: u32, read_steps: u32) -> Partition
    where
        R: Fn(f64) -> f64,
        W: Fn(f64) -> f64,
    {
        let utilisation = |step| f64::from(step) / f64::from(steps);
        let mut best = self.optimum_at(utilisation(1), load, read_steps);
        for step in 2..steps {
            let partition = self.optimum_at(utilisation(step), load, read_steps);
            if partition.access_us < best.access_us {
                best = partition;
            }
        }
        best
    }

    fn shared_us<R, W>(&self, utilisation: f64, read_share: f64, program_us: f64, load: &CacheLoad<R, W>) -> f64
    where
        R: Fn(f64) -> f64,
        W: Fn(f64) -> f64,
    {
        if program_us.is_infinite() {
            return f64::INFINITY;
        }
        let sizes = self.sizes(utilisation, read_share);
        let read_us = self.read_part_us((load.read_hits)(sizes.read), program_us);
        let write_us = self.write_part_us((load.write_hits)(sizes.write), load.read_share_of_write_hits, program_us);
        read_us * (1.0 - load.write_cache_share) + write_us * load.write_cache_share
    }

    fn read_part_us(&self, hit_rate: f64, program_us: f64) -> f64 {
        hit_rate * self.flash.costs().read_us + (1.0 - hit_rate) * (self.disk_read_us + program_us)
    }

    fn write_part_us(&self, hit_rate: f64, read_share_of_hits: f64, program_us: f64) -> f64 {
        let read_us = self.flash.costs().read_us;
        let hit_us = (1.0 - read_share_of_hits) * program_us + read_share_of_hits * read_us;
        hit_rate * hit_us + (1.0 - hit_rate) * (read_us + self.disk_write_us + program_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cleaning::{FlashCosts, VictimUtilisation};

    fn config_1() -> CacheCost {
        let slc =
            FlashCosts { read_us: 125.0, program_us: 300.0, copy_us: 225.0, erase_us: 1500.0, pages_per_block: 64 };
        let disk = DiskCosts { read_position_us: 4500.0, write_position_us: 4900.0, mb_per_s: 72.0 };
        CacheCost {
            flash: CleaningCost::new(slc, VictimUtilisation::Fifo),
            disk_read_us: disk.read_us(4096),
            disk_write_us: disk.write_us(4096),
            flash_pages: f64::from(1 << 20),
        }
    }

    #[test]
    fn costs_are_the_printed_sums() {
        let model = config_1();
        let program = model.flash.page_write_us(0.8);
        assert!((model.disk_read_us - 4556.9).abs() < 0.05 && (model.disk_write_us - 4956.9).abs() < 0.05);
        assert_eq!(model.read_us(0.8, 1.0), 125.0);
        assert_eq!(model.read_us(0.8, 0.0), model.disk_read_us + program);
        assert_eq!(model.write_us(0.8, 1.0, 0.0), program);
        assert_eq!(model.write_us(0.8, 1.0, 1.0), 125.0);
        assert_eq!(model.write_us(0.8, 0.0, 0.3), 125.0 + model.disk_write_us + program);
        let load = CacheLoad {
            read_hits: |_| 0.5,
            write_hits: |_| 0.25,
            read_share_of_write_hits: 0.2,
            write_cache_share: 0.7,
        };
        let expected = 0.3 * model.read_us(0.8, 0.5) + 0.7 * model.write_us(0.8, 0.25, 0.2);
        assert!((model.access_us(0.8, 0.1, &load) - expected).abs() < 1e-9);
    }

    #[test]
    fn parts_add_up_to_the_flash() {
        let model = config_1();
        for (utilisation, read_share) in [(0.64, 0.25), (0.0, 0.5), (1.0, 1.0)] {
            let sizes = model.sizes(utilisation, read_share);
            assert!((sizes.read + sizes.write + sizes.spare - model.flash_pages).abs() < 1e-6);
        }
    }

    /// Parts that no request uses get no space: all for reads, all for writes, little for data that fit into little.
    #[test]
    fn the_optimum_follows_the_load() {
        let model = config_1();
        let hits = |fits: f64| move |pages: f64| (pages / fits).min(1.0);
        let load = |fits: f64, write_cache_share: f64| CacheLoad {
            read_hits: hits(fits),
            write_hits: hits(fits),
            read_share_of_write_hits: 0.0,
            write_cache_share,
        };
        let all = model.flash_pages;
        assert_eq!(model.optimum(&load(all, 0.0), 64, 64).read_share, 1.0);
        assert_eq!(model.optimum(&load(all, 1.0), 64, 64).read_share, 0.0);
        let small = model.optimum(&load(all / 8.0, 1.0), 64, 64);
        assert_eq!((small.utilisation, small.read_share), (0.125, 0.0));
        assert!(model.optimum(&load(all, 1.0), 64, 64).utilisation > 0.5);
        // With u given, the same search over r.
        let load = load(all / 2.0, 0.5);
        let best = model.optimum(&load, 16, 16);
        assert_eq!(model.optimum_at(best.utilisation, &load, 16), best);
        assert_eq!(model.access_us(best.utilisation, best.read_share, &load), best.access_us);
    }
}
