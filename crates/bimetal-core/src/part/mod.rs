//! Parts that schemes are composed of.

pub mod dual_pool;
pub mod lru;
pub mod page_merge;
pub mod probed_hash;
pub mod random;
pub mod real;
pub mod two_means;
