//! The NBD server: its protocol byte by byte, its sockets, and real clients.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap is a failed test")]

mod client;
mod devices;
mod extended;
mod limits;
mod model;
mod negotiation;
mod programs;
mod running;
mod server;
#[cfg(feature = "tls")]
mod tls;
mod transmission;
