//! The parameters of `chang`; their defaults are the paper's values where it gives any.

use crate::part::probed_hash::Probing;
use crate::part::two_means::Search;
use crate::region::chains::Victims;

crate::choices! {
    /// Unit of the hash table's keys.
    pub enum Key {
        /// As many sectors as a fast page has, or a slow page if that is smaller. If a write covers only a part of
        /// them, the rest is read and written with it.
        Page = "page",
        /// A host sector of 512 bytes.
        Sector = "sector",
    }
}

crate::parameters! {
    super::SPEC.name;
    /// Parameters of `chang`.
    pub struct Parameters {
        /// How the threshold between small and large writes is found (Algorithm 1).
        pub threshold_mode: Search = Search::Exhaustive;
        /// Initial threshold, in sectors (section 3.2).
        pub initial_threshold: u32 = 8, in 1..=1024;
        /// Writes between two searches for the threshold (section 3.2).
        pub threshold_period: u32 = 1000, in 1..=1_000_000_000;
        /// Whether the histogram of sizes is halved at each search.
        pub histogram_halving: bool = false;
        /// Largest distance of the log's head from its tail, in blocks; 0: all but two (k, section 3.3).
        pub k: u32 = 0, in 0..=1_000_000_000;
        /// Blocks by which the throttle shortens the log and lengthens it again (section 3.4).
        pub k_step: u32 = 100, in 0..=1_000_000_000;
        /// Small writes between two steps of the throttle (section 3.4).
        pub k_period: u32 = 1000, in 1..=1_000_000_000;
        /// Least length of the log, in percent of the fast region's blocks and at least two blocks.
        pub k_min_percent: f64 = 1.0, in 0.0..=100.0;
        /// Whether writes are rejected while the fast region is worn more than its share (section 3.4).
        pub throttle: bool = true;
        /// Entries of the hash table; 0: half as many as the fast region has pages (H_n, section 3.3).
        pub hash_entries: u32 = 0, in 0..=67_108_864;
        /// Unit of an entry's key (table 3 and section 4.2; section 5.4 differs).
        pub hash_key: Key = Key::Page;
        /// How collisions are resolved (section 5.4).
        pub hash_probing: Probing = Probing::Linear;
        /// Buckets tried for a key (section 5.4).
        pub hash_probes: u32 = 8, in 1..=1024;
        /// Whether tail data whose logical block has no log block stay in the fast region (section 3.6).
        pub slc_writeback: bool = true;
        /// Whether folds include data in the fast region (section 3.6).
        pub mlc_writeback: bool = true;
        /// Accepted writes over which the share of updates is measured (section 3.6).
        pub update_window: u32 = 1000, in 1..=1_000_000_000;
        /// Weight of the latest window in the usual share of updates.
        pub update_weight: f64 = 0.125, in 0.0..=1.0;
        /// Fraction of the usual share below which the fast side's write-back is suspended.
        pub update_low: f64 = 0.8, in 0.0..=1.0;
        /// Fraction of the usual share from which on the write-back is active again.
        pub update_high: f64 = 0.95, in 0.0..=1.0;
        /// Erased slow blocks that are kept when a log block is taken; folding starts at this number (section 3.5).
        pub spare_low: u32 = 1, in 1..=1024;
        /// Number of chains whose second-level map is cached; 0: a scan at every access. 384 gives the p1 of table 3
        /// (section 3.5).
        pub map_cache_chains: u32 = 384, in 0..=1_000_000;
        /// Whether a map-cache miss reads all pages of the data block instead of one (section 3.5).
        pub scan_data_block: bool = false;
        /// Chain to fold if none can be switched (section 3.5).
        pub gc_victim: Victims = Victims::Longest;
        /// Whether slow blocks are exchanged by the dual-pool algorithm (section 5.1).
        pub wear_levelling: bool = true;
        /// Difference of erase counts at which blocks are exchanged, in cycles: TH (section 5.1).
        pub wear_threshold: u32 = 16, in 1..=1_000_000;
    }
}
