//! The sequential I/O detector: which requests bypass the cache.
//!
//! It follows one stream, like the authors' code: requests that each begin where the previous one ended, reads and
//! writes alike.

use serde::{Deserialize, Serialize};

use crate::request::Request;
use crate::units::ByteSize;

crate::choices! {
    /// Streams that are sequential.
    pub enum SequentialRule {
        /// Those longer than the unit: "greater than 128KB" (section 5).
        Longer = "longer",
        /// Those as long as the unit, too, as in the authors' program.
        AsLong = "as_long",
    }
}

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
    /// Streams of more than `unit` bytes are sequential, or of as many; if it is 0, none is.
    ///
    /// # Errors
    /// A unit with which every request is sequential.
    pub fn new(unit: ByteSize, rule: SequentialRule) -> Result<Self, String> {
        let sectors = unit.0.div_ceil(512);
        let unit_sectors = match rule {
            SequentialRule::Longer => sectors,
            SequentialRule::AsLong if sectors == 1 => {
                return Err("with `sequential_rule=as_long` a `sequential_unit` of one sector makes every request \
                    sequential, so that nothing is cached; enlarge the unit"
                    .into());
            }
            SequentialRule::AsLong => sectors.saturating_sub(1),
        };
        // No request begins at the last sector that a number can express.
        Ok(Self { unit_sectors, next_sector: u64::MAX, sectors: 0 })
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
        let stream = [(1000, 128), (1128, 128), (1256, 1), (1257, 8), (1266, 8), (0, 256), (300, 257), (557, 1)];
        let found = |rule| sequential(&mut SequentialDetector::new(ByteSize(128 << 10), rule).unwrap(), &stream);
        assert_eq!(
            found(SequentialRule::Longer),
            [false, false, true, true, false, false, true, true],
            "a gap ends a stream; a large request is one by itself"
        );
        assert_eq!(found(SequentialRule::AsLong), [false, true, true, true, false, true, true, true]);
    }

    #[test]
    fn without_a_unit_nothing_is_sequential() {
        let detector = |bytes, rule| SequentialDetector::new(ByteSize(bytes), rule);
        for rule in [SequentialRule::Longer, SequentialRule::AsLong] {
            assert_eq!(sequential(&mut detector(0, rule).unwrap(), &[(0, 4096), (4096, 4096)]), [false, false]);
        }
        let requests = [(0, 8), (10, 9)];
        assert_eq!(sequential(&mut detector(4096, SequentialRule::Longer).unwrap(), &requests), [false, true]);
        assert_eq!(sequential(&mut detector(4096, SequentialRule::AsLong).unwrap(), &requests), [true, true]);
        assert!(detector(512, SequentialRule::AsLong).unwrap_err().contains("every request"));
    }
}
