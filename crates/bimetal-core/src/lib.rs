//! The pure core of Bimetal: models of flash, the schemes that manage it, and their figures.
//!
//! ```text
//! trace ─▶ requests ─▶ Controller ─▶ Scheme ─▶ media operations ─▶ SimMedia ─▶ Ledger ─▶ Report
//! ```
//!
//! One direction, no back edge. Nothing here opens a file or a socket, reads a clock or starts a thread.

pub mod chip;
pub mod compact;
pub mod controller;
pub mod device;
pub mod drive;
pub mod hit_rates;
pub mod ledger;
pub mod media;
pub mod model;
pub mod operation;
pub mod part;
pub mod profile;
pub mod region;
pub mod registry;
pub mod replay;
pub mod report;
pub mod request;
pub mod save;
pub mod scheme;
pub mod toml_file;
mod touched;
pub mod trace;
pub mod units;
pub mod workload;
