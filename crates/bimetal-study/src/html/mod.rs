//! Reports as web pages: one HTML file that opens offline, with plots and their numbers.
//!
//! Every diagram is a [`Plot`](crate::figure::Plot): [`chart`] draws it with plotly, whose script is inside the page,
//! and [`table`] lists the same points. A page loads nothing, and equal results give identical pages.

mod advice;
mod axis;
mod chart;
mod comparison;
mod configuration;
mod drives;
pub mod markup;
mod over_time;
pub mod page;
mod style;
mod sweep;
pub mod table;
mod times;
mod workload;

pub use advice::advice;
pub use comparison::comparison;
pub use drives::drives;
pub use sweep::sweep;

/// A name and a function that returns the figure.
type Named<T, V> = (&'static str, fn(&T) -> V);
