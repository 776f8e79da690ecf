//! Parts that schemes are composed of.

pub mod random;
