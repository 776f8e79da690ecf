//! Analytic models: closed forms that simulations are held against, and by which schemes decide.

pub mod chang;
pub mod cleaning;
pub mod hyssd;
pub mod metadata;
pub mod opfcl;
pub mod queueing;
pub mod wear_balance;
pub mod write_amplification;
