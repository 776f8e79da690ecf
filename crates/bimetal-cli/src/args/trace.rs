//! Arguments for traces: their files, and options for reading them.

use std::path::PathBuf;

use bimetal_core::trace::{self, Action, Columns, Format, Objects, TimeUnit};
use clap::Args;

use super::whole;

/// Trace files.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Trace files, plain or compressed; several files are joined; `-` is the standard input. By default the built-in
    /// real trace
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub options: TraceOptions,
}

/// Options for reading a trace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Trace options")]
pub struct TraceOptions {
    /// Trace format; detected if not given (see `bimetal list formats`)
    #[arg(long, value_parser = trace::format)]
    pub format: Option<&'static Format>,
    /// Unit of the time stamps, if the format does not define it: ps, ns, 100ns, us, ms or s
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// Meaning of the columns of delimited text, JSON lines, Parquet or Arrow files, if their names do not show it. By
    /// position: `time:ms,op,offset:bytes,size:bytes`. By name: `time=started:us,op=rw,offset=lba:sectors,size=len`.
    /// Units of times are those of `--time-unit`; units of offset and size are `bytes` (the default), `sectors`, `kib`,
    /// `4kib`; `op:0=read` or `op:1=read` for digits; `device` for several disks; `-` skips a column
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub columns: Option<Columns>,
    /// How objects in a cache trace are mapped to addresses. `slots`: each object gets its own range of sectors, in
    /// order of first appearance. `bytes`, `sectors`, `kib` or `4kib`: the object's id is its address in that unit. Add
    /// `insert` (`slots,insert`, or `insert` alone) to model an initially empty cache, in which a read of a missing
    /// object becomes a write
    #[arg(long, value_name = "PLACES")]
    pub objects: Option<Objects>,
    /// Record that counts as the request in blktrace and blkparse files: Q (queue), D (issue) or C (complete)
    #[arg(long)]
    pub action: Option<Action>,
    /// Take only these volumes of the trace (ASU, disk, LUN or volume numbers), laid end to end
    #[arg(long, value_name = "ID,...", value_delimiter = ',', value_parser = whole(0..=u64::MAX))]
    pub volumes: Option<Vec<u64>>,
    /// Take only the first N requests
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX), allow_negative_numbers = true)]
    pub limit: Option<u64>,
}

impl TraceOptions {
    /// Whether any option other than the number of requests is given.
    pub fn reads_otherwise(&self) -> bool {
        let Self { format, time_unit, columns, objects, action, volumes, limit: _ } = self;
        let how = format.is_some() || time_unit.is_some() || columns.is_some() || objects.is_some();
        how || action.is_some() || volumes.is_some()
    }
}
