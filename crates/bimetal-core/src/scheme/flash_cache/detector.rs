//! The sequential I/O detector: which requests bypass the cache.
//!
//! It follows one stream, like the authors' code: requests that each begin where the previous one ended, reads and
//! writes alike.

use serde::{Deserialize, Serialize};

use crate::request::Request;

/// The stream of the last request.
#[derive(Debug, Serialize, Deserialize)]
pub struct SequentialDetector {
    /// Sectors beyond which a stream is sequential; 0: never.
    #[serde(with = "crate::save::fixed")]
    unit_sectors: u64,
    /// Sector at which the stream continues.
    next_sector: u64,
    sectors: u64,
}

impl SequentialDetector {
    /// Streams of more than `unit_bytes` bytes are sequential ("greater than 128KB", section 5); if it is 0, none is.
    pub fn new(unit_bytes: u64) -> Self {
        // No request begins at the last sector that a number can express.
        Self { unit_sectors: unit_bytes.div_ceil(512), next_sector: u64::MAX, sectors: 0 }
    }

    /// Whether a request belongs to a stream that is already sequential.
    #[inline]
    pub fn is_sequential(&mut self, request: &Request) -> bool {
        if request.sector != self.next_sector {
            self.sectors = 0;
        }
        self.sectors += u64::from(request.sectors);
        self.next_sector = request.end();
        self.unit_sectors > 0 && self.sectors > self.unit_sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Op;

    fn sequential(detector: &mut SequentialDetector, requests: &[(u64, u32)]) -> Vec<bool> {
        let request = |&(sector, sectors)| Request { arrival_ns: 0, sector, sectors, op: Op::Read, handle: 0 };
        requests.iter().map(|entry| detector.is_sequential(&request(entry))).collect()
    }

    #[test]
    fn a_stream_is_sequential_beyond_its_unit() {
        let mut detector = SequentialDetector::new(128 << 10);
        let stream = [(1000, 128), (1128, 128), (1256, 1), (1257, 8), (1266, 8), (0, 256), (300, 257), (557, 1)];
        assert_eq!(
            sequential(&mut detector, &stream),
            [false, false, true, true, false, false, true, true],
            "a gap ends a stream; a large request is one by itself"
        );
    }

    #[test]
    fn without_a_unit_nothing_is_sequential() {
        assert_eq!(sequential(&mut SequentialDetector::new(0), &[(0, 4096), (4096, 4096)]), [false, false]);
        assert_eq!(sequential(&mut SequentialDetector::new(4096), &[(0, 8), (10, 9)]), [false, true]);
    }
}
