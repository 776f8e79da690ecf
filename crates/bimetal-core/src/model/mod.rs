//! Analytic models: closed forms that simulations are held against.

pub mod chang;
pub mod write_amplification;
