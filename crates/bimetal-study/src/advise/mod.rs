//! Advice: the cheapest devices that meet goals, under a trace.
pub mod goals;
pub mod prices;
pub mod space;
