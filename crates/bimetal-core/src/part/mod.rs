//! Parts that schemes are composed of.

pub mod dual_pool;
pub mod hit_curve;
pub mod live_stamps;
pub mod lru;
pub mod page_index;
pub mod probed_hash;
pub mod random;
pub mod real;
pub mod reuse_stack;
pub mod reuse_tracker;
pub mod run_length;
pub mod two_means;
