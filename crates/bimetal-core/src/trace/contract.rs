//! The contract of a trace format: its author writes a [`Format`]. For text with one record on each line that is little
//! more than a function for one line.
//!
//! The helpers here also serve the formats of this crate. They handle headers, comments, devices and clocks, report the
//! line and the field of an error, and lay the devices out in one address space.
//!
//! ```
//! use bimetal_core::request::Op;
//! use bimetal_core::trace::contract::{Fields, Input, Likeness, Parsed, Row, Sample, Shared, decode_lines, probe_lines};
//! use bimetal_core::trace::{self, Format, Options, TimeUnit, Trace, TraceError};
//!
//! static FORMAT: Format = Format {
//!     name: "ours",
//!     aliases: &[],
//!     summary: "what our driver logs",
//!     layout: "time;sector;sectors: milliseconds, 512-byte sectors, all of them writes",
//!     time_unit: Some(TimeUnit::Milliseconds),
//!     has_actions: false,
//!     has_objects: false,
//!     has_columns: false,
//!     shared: Shared::Nothing,
//!     probe,
//!     decode,
//! };
//!
//! fn row(line: &[u8], unit: TimeUnit) -> Parsed<Option<Row>> {
//!     let line = line.strip_prefix(b"write ").unwrap_or_default();
//!     let mut fields = Fields::blanks(line);
//!     let time_ns = fields.time("time", unit)?;
//!     let (offset, bytes) = (fields.sectors("sector")?, fields.sectors("sectors")?);
//!     fields.end()?;
//!     Ok(Some(Row { time_ns, device: 0, offset, bytes, op: Op::Write }))
//! }
//!
//! fn probe(sample: &Sample<'_>) -> Likeness {
//!     probe_lines(sample, "", |line| row(line, TimeUnit::Milliseconds))
//! }
//!
//! fn decode(input: &Input<'_>) -> Result<Trace, TraceError> {
//!     decode_lines(input, "", |line| row(line, input.time_unit()))?.finish(input)
//! }
//!
//! trace::add(&[&FORMAT])?;
//! let trace = trace::decode("log", b"write 0.5 800 8\nwrite 0.75 808 8\n", &Options::default())?;
//! assert_eq!((trace.format, trace.writes, trace.duration_ns()), ("ours", 2, 250_000));
//! let error = trace::decode("log", b"write 0.5 800 8\nwrite 0.75 8oo 8\n", &Options::default()).unwrap_err();
//! assert!(error.to_string().starts_with("log: line 2: field `sector` is not a whole number: `8oo`"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub use super::collect::{Collector, Row};
pub use super::detect::{Likeness, Sample, probe as probe_lines};
pub use super::error::{Fault, Parsed};
pub use super::input::{Bytes, Input};
pub use super::lines::{Fields, decode as decode_lines};
pub use super::table::{Table, TableColumn};
pub use super::{Format, Shared};
