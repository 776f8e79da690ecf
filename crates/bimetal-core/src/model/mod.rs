//! Analytic models: closed forms to which simulations are compared, and on which schemes base decisions.

pub mod chang;
pub mod cleaning;
pub mod hyssd;
pub mod metadata;
pub mod opfcl;
pub mod queueing;
pub mod wear_balance;
pub mod write_amplification;
