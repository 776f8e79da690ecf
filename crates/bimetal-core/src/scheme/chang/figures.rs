//! The figures of `chang`: counts, wear, and the response in the paper's model (section 4.1) with the measured factors.

use serde::{Deserialize, Serialize};

use super::Chang;
use crate::media::CellMode;
use crate::model::chang::{self as model, LogFactors};
use crate::scheme::{Adaptation, Metrics, ratio};

/// The bound of the hot-data filter (section 3.2).
pub(super) const THRESHOLD: Adaptation = Adaptation {
    metric: "threshold_sectors",
    title: "Size of small writes",
    unit: "512-byte sectors",
    meaning: "Writes up to this size are taken for hot data and go to SLC; the clusters of the sizes so far decide it.",
};

/// The bound of the utilisation throttle (section 3.4).
pub(super) const LOG_BOUND: Adaptation = Adaptation {
    metric: "k_blocks",
    title: "Bound of the log k",
    unit: "blocks",
    meaning: "Length of the SLC log: shorter while the SLC is worn more than its endurance allows, longer while it is not.",
};

/// Counters since the start.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) writes: u64,
    pub(super) written_sectors: u64,
    pub(super) accepted_writes: u64,
    pub(super) accepted_sectors: u64,
    pub(super) hash_rejects: u64,
    pub(super) throttle_rejects: u64,
    pub(super) erases: u64,
    pub(super) tail_valid_pages: u64,
    pub(super) copied_back_pages: u64,
    pub(super) demoted_sectors: u64,
}

impl Chang {
    /// Figures of the log, the throttle, the model and the slow region.
    pub(super) fn figures(&self, metrics: &mut Metrics) {
        let counts = &self.counts;
        let (fast_wear, slow_wear) = self.wear.values(counts.erases, self.slow.erases());
        metrics.count(THRESHOLD.metric, u64::from(self.sizes.threshold_sectors()));
        metrics.count(LOG_BOUND.metric, u64::from(self.bound.blocks()));
        metrics.push("slc_write_share", ratio(counts.accepted_sectors, counts.written_sectors));
        metrics.push("slc_request_share", ratio(counts.accepted_writes, counts.writes));
        metrics.count("hash_entries_used", u64::from(self.tier.hash.used()));
        metrics.count("hash_rejects", counts.hash_rejects);
        metrics.count("throttle_rejects", counts.throttle_rejects);
        metrics.count("copied_back_pages", counts.copied_back_pages);
        metrics.count("demoted_sectors", counts.demoted_sectors);
        metrics.count("pulled_by_fold_sectors", self.tier.pulled_sectors);
        metrics.count("writeback_active", u64::from(self.slc_writeback && self.monitor.stable()));
        metrics.push("relative_wear_slc", fast_wear);
        metrics.push("relative_wear_mlc", slow_wear);
        metrics.push("model_lambda", ratio(counts.accepted_sectors, counts.written_sectors));
        metrics.push("model_n1_valid_pages", ratio(counts.tail_valid_pages, counts.erases));
        metrics.push("model_n2_copied_pages", ratio(counts.copied_back_pages, counts.erases));
        self.slow.metrics(metrics);
        metrics.push("model_write_us", self.model_write_us());
        metrics.count("metadata_bytes", self.metadata_bytes());
    }

    /// Bits of a number that identifies one of `count` things.
    fn bits(count: u64) -> u64 {
        u64::from(64 - count.saturating_sub(1).leading_zeros()).max(1)
    }

    /// Bytes of `L2P` and `LB` and of the hash table, whose entries hold a sector and a page number (§4.2).
    fn metadata_bytes(&self) -> u64 {
        let slow_pages =
            u64::from(self.slow.chains().logical_blocks()) * u64::from(self.slow.chains().pages(CellMode::Native));
        let keys = slow_pages * u64::from(self.slow.page_sectors() / self.tier.unit_sectors());
        let (key_bits, page_bits) = (Self::bits(keys), Self::bits(self.tier.slots.geometry().pages()));
        let entries = u64::from(self.tier.hash.entries());
        self.slow.metadata_bytes() + model::hash_table_bytes(entries, key_bits, page_bits)
    }

    /// The paper's model (§4.1) with the factors measured so far: mean response of a page write, in microseconds.
    fn model_write_us(&self) -> f64 {
        let counts = &self.counts;
        let factors = LogFactors {
            tail_valid_pages: ratio(counts.tail_valid_pages, counts.erases),
            copied_back_pages: ratio(counts.copied_back_pages, counts.erases),
        };
        let slc_share = ratio(counts.accepted_sectors, counts.written_sectors);
        model::hybrid_write_us(slc_share, model::log_write_us(&self.fast, factors), self.slow.model_write_us())
    }
}
