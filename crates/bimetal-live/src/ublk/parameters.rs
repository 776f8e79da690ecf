//! The parameters of a disk: `struct ublk_params` of the kernel's `linux/ublk_cmd.h`.

use libublk::sys::*;

use crate::block_device::SECTOR_BYTES;
use crate::requests::{DISCARD_SECTORS_MAX, PHYSICAL_BLOCK_BYTES, ZERO_SECTORS_MAX};

/// Maximum number of requests of a queue.
pub const DEPTH: u16 = 128;
/// Maximum data of a request, in bytes.
pub const DATA_BYTES_MAX: u32 = 1 << 20;

/// The parameters of a disk of `sectors` sectors.
pub fn parameters(sectors: u64, read_only: bool) -> ublk_params {
    let physical = PHYSICAL_BLOCK_BYTES.ilog2() as u8;
    let basic = ublk_param_basic {
        attrs: UBLK_ATTR_VOLATILE_CACHE | if read_only { UBLK_ATTR_READ_ONLY } else { UBLK_ATTR_FUA },
        logical_bs_shift: SECTOR_BYTES.ilog2() as u8,
        physical_bs_shift: physical,
        io_opt_shift: physical,
        io_min_shift: physical,
        max_sectors: DATA_BYTES_MAX / SECTOR_BYTES as u32,
        dev_sectors: sectors,
        ..Default::default()
    };
    if read_only {
        return ublk_params { types: UBLK_PARAM_TYPE_BASIC, basic, ..Default::default() };
    }
    let discard = ublk_param_discard {
        discard_granularity: PHYSICAL_BLOCK_BYTES as u32,
        max_discard_sectors: DISCARD_SECTORS_MAX as u32,
        max_write_zeroes_sectors: ZERO_SECTORS_MAX as u32,
        // The driver supports no more.
        max_discard_segments: 1,
        ..Default::default()
    };
    ublk_params { types: UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD, basic, discard, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_a_cache_and_takes_discards() {
        let parameters = parameters(0x1234, false);
        assert_eq!(parameters.types, UBLK_PARAM_TYPE_BASIC | UBLK_PARAM_TYPE_DISCARD);
        let basic = parameters.basic;
        assert_eq!((basic.dev_sectors, basic.logical_bs_shift, basic.physical_bs_shift), (0x1234, 9, 12));
        assert_eq!((basic.attrs, basic.max_sectors), (UBLK_ATTR_VOLATILE_CACHE | UBLK_ATTR_FUA, 2048));
        let discard = parameters.discard;
        assert_eq!((discard.discard_granularity, discard.max_discard_segments), (4096, 1));
        assert_eq!((discard.max_discard_sectors, discard.max_write_zeroes_sectors), (1 << 21, 1 << 16));
    }

    #[test]
    fn a_read_only_disk_takes_no_discards() {
        let parameters = parameters(8, true);
        assert_eq!(parameters.types, UBLK_PARAM_TYPE_BASIC);
        assert_eq!(parameters.basic.attrs & (UBLK_ATTR_READ_ONLY | UBLK_ATTR_FUA), UBLK_ATTR_READ_ONLY);
    }
}
