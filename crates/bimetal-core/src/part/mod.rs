//! Parts that schemes are composed of.

pub mod random;
pub mod real;
