//! Analytic models: closed forms that simulations are held against.

pub mod chang;
pub mod queueing;
pub mod wear_balance;
pub mod write_amplification;
