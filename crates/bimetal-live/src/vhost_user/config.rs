//! Features of the device, and its configuration space: `struct virtio_blk_config` of the virtio standard, section 5.2.4.

use vhost::vhost_user::message::VhostUserVirtioFeatures;
use virtio_bindings::virtio_blk::*;
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

use super::request::{DISCARD_RANGES_MAX, SEGMENT_BYTES_MAX, SEGMENTS_MAX};
use crate::block_device::{BlockDevice, SECTOR_BYTES};
use crate::requests::{DISCARD_SECTORS_MAX, PHYSICAL_BLOCK_BYTES, ZERO_SECTORS_MAX};

/// Maximum number of queues. QEMU uses one for each processor of the guest by default, and fails if the device has
/// fewer.
pub const QUEUES: u16 = 64;
/// Maximum number of entries of a queue.
pub const QUEUE_ENTRIES: u16 = 1024;
/// Offset of the field `writeback`, the only one that a driver may write.
pub const WRITEBACK_AT: u32 = 32;
/// Bytes of the configuration space, up to the fields of features that are not offered.
const BYTES: usize = 60;

/// The offered features.
pub fn features(read_only: bool) -> u64 {
    let always = [
        VIRTIO_F_VERSION_1,
        VIRTIO_RING_F_EVENT_IDX,
        VIRTIO_RING_F_INDIRECT_DESC,
        VIRTIO_BLK_F_SIZE_MAX,
        VIRTIO_BLK_F_SEG_MAX,
        VIRTIO_BLK_F_BLK_SIZE,
        VIRTIO_BLK_F_TOPOLOGY,
        VIRTIO_BLK_F_FLUSH,
        VIRTIO_BLK_F_CONFIG_WCE,
        VIRTIO_BLK_F_MQ,
    ];
    let by_access: &[u32] =
        if read_only { &[VIRTIO_BLK_F_RO] } else { &[VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_WRITE_ZEROES] };
    let bits = always.iter().chain(by_access).fold(0, |bits, feature| bits | 1 << feature);
    bits | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits()
}

/// Whether the guest flushes. If not, each write must be durable when it completes.
pub fn has_flush(features: u64) -> bool {
    features & (1 << VIRTIO_BLK_F_FLUSH) != 0
}

/// `bytes` bytes of the configuration space from `offset` on; zeros beyond its end.
pub fn read(device: &dyn BlockDevice, writeback: bool, offset: u32, bytes: u32) -> Vec<u8> {
    let exponent = (PHYSICAL_BLOCK_BYTES / SECTOR_BYTES).ilog2() as u8;
    let sectors_per_block = (PHYSICAL_BLOCK_BYTES / SECTOR_BYTES) as u32;
    let mut space = [0; BYTES];
    let mut put = |at: usize, value: &[u8]| space[at..at + value.len()].copy_from_slice(value);
    put(0, &device.sectors().to_le_bytes());
    put(8, &(SEGMENT_BYTES_MAX as u32).to_le_bytes());
    put(12, &(SEGMENTS_MAX as u32).to_le_bytes());
    put(20, &(SECTOR_BYTES as u32).to_le_bytes());
    put(24, &[exponent]);
    put(WRITEBACK_AT as usize, &[writeback.into()]);
    put(34, &QUEUES.to_le_bytes());
    put(36, &(DISCARD_SECTORS_MAX as u32).to_le_bytes());
    put(40, &(DISCARD_RANGES_MAX as u32).to_le_bytes());
    put(44, &sectors_per_block.to_le_bytes());
    put(48, &(ZERO_SECTORS_MAX as u32).to_le_bytes());
    // One range per request, which may become a hole.
    put(52, &1_u32.to_le_bytes());
    put(56, &[1]);
    let asked = space.iter().copied().chain(std::iter::repeat(0));
    asked.skip(offset as usize).take(bytes as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn the_space_is_that_of_the_standard() {
        let device = MemoryDevice::new(0x1234);
        let space = read(&device, true, 0, 96);
        assert_eq!(space.len(), 96);
        assert_eq!(space[..8], 0x1234_u64.to_le_bytes());
        assert_eq!((space[20..24].to_vec(), space[24], space[32]), (512_u32.to_le_bytes().to_vec(), 3, 1));
        assert_eq!((space[34], space[56], &space[60..]), (64, 1, &[0; 36][..]));
        assert_eq!(read(&device, false, WRITEBACK_AT, 1), [0]);
        assert_eq!(read(&device, false, u32::MAX, 2), [0, 0]);
    }

    #[test]
    fn a_read_only_device_offers_no_trims() {
        assert!(features(true) & (1 << VIRTIO_BLK_F_RO) != 0 && features(false) & (1 << VIRTIO_BLK_F_RO) == 0);
        assert!(
            features(true) & (1 << VIRTIO_BLK_F_DISCARD) == 0 && features(false) & (1 << VIRTIO_BLK_F_DISCARD) != 0
        );
        assert!(has_flush(features(true)) && !has_flush(0));
    }
}
