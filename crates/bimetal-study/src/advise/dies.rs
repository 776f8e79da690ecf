//! Numbers of dies and channels to search, within the limits of a controller.
//!
//! The numbers apply to the whole device; a device with two regions divides them. The price of flash does not depend on
//! the number of dies, and channels are free. Hence, for each number of dies, only the layout with the most channels is
//! searched, which is never slower. The cost of more dies is the larger minimum number of blocks.

use std::collections::BTreeMap;

/// Numbers of channels to search.
const CHANNELS: [u32; 5] = [1, 2, 4, 8, 16];
/// Numbers of dies on each channel to search.
const DIES_PER_CHANNEL: [u32; 4] = [1, 2, 4, 8];
/// Largest number of channels, and of dies on a channel.
pub const COUNT_MAX: u32 = 64;

/// A number of channels and of dies on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dies {
    /// Channels.
    pub channels: u32,
    /// Dies on each of them.
    pub per_channel: u32,
}

impl Dies {
    /// Total number of dies.
    pub fn count(self) -> u32 {
        self.channels * self.per_channel
    }

    /// The dies of a fast and of a slow region, half of the dies each; none if there are too few. Each region has at
    /// least one channel.
    pub fn shared(self) -> Option<(Self, Self)> {
        let halves = |count: u32| (count / 2, count - count / 2);
        let (fast, slow) = if self.channels > 1 {
            let (fast, slow) = halves(self.channels);
            (Self { channels: fast, ..self }, Self { channels: slow, ..self })
        } else {
            let (fast, slow) = halves(self.per_channel);
            (Self { per_channel: fast, ..self }, Self { per_channel: slow, ..self })
        };
        (fast.count() > 0).then_some((fast, slow))
    }
}

/// All layouts to search, from few to many dies. A given number of channels or dies on each replaces the list.
pub fn searched(channels: Option<u32>, per_channel: Option<u32>) -> Vec<Dies> {
    let asked = |count: Option<u32>, usual: &[u32]| count.map_or_else(|| usual.to_vec(), |count| vec![count]);
    let mut by_count: BTreeMap<u32, Dies> = BTreeMap::new();
    for channels in asked(channels, &CHANNELS) {
        for per_channel in asked(per_channel, &DIES_PER_CHANNEL) {
            let dies = Dies { channels, per_channel };
            let kept = by_count.entry(dies.count()).or_insert(dies);
            *kept = (*kept).max(dies);
        }
    }
    by_count.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_regions_have_no_more_dies_than_one() {
        for dies in searched(None, None).into_iter().chain(searched(Some(3), None)) {
            let Some((fast, slow)) = dies.shared() else {
                assert_eq!(dies.count(), 1);
                continue;
            };
            assert_eq!(fast.count() + slow.count(), dies.count(), "{dies:?}");
        }
        assert_eq!(
            searched(Some(1), Some(4))[0].shared().map(|(fast, slow)| (fast.count(), slow.count())),
            Some((2, 2))
        );
    }

    #[test]
    fn of_as_many_dies_those_on_most_channels_are_searched() {
        let counts = |channels, per_channel| -> Vec<(u32, u32)> {
            searched(channels, per_channel).iter().map(|dies| (dies.count(), dies.channels)).collect()
        };
        let all = [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 16), (64, 16), (128, 16)];
        assert_eq!(counts(None, None), all);
        assert_eq!(counts(Some(2), None), [(2, 2), (4, 2), (8, 2), (16, 2)]);
        assert_eq!(counts(Some(3), Some(5)), [(15, 3)]);
    }
}
