//! The pure core of Bimetal.

pub mod request;
pub mod trace;
