//! Analytic models: closed forms that simulations are held against.

pub mod write_amplification;
