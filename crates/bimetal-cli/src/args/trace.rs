//! Arguments for traces: their files, and how these are read.

use std::path::PathBuf;

use bimetal_core::trace::{self, Action, Columns, Format, Objects, TimeUnit};
use clap::Args;

/// Which requests.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Trace files, plain or compressed; several are put together; `-` is the standard input. Without any: a real trace
    /// that is inside the program
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub options: TraceOptions,
}

/// How to read a trace.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Trace options")]
pub struct TraceOptions {
    /// Trace format; detected if not given (see `bimetal list formats`)
    #[arg(long, value_parser = trace::format)]
    pub format: Option<&'static Format>,
    /// Unit of the time stamps, where the format leaves it open: ps, ns, 100ns, us, ms or s
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<TimeUnit>,
    /// The columns of delimited text, JSON lines or Parquet files, where a header or keys do not say:
    /// `time:ms,op,offset:bytes,size:bytes` in their order, or by name,
    /// `time=started:us,op=rw,offset=lba:sectors,size=len`. Units of times as `--time-unit`; of offset and size `bytes`
    /// (if none is given), `sectors`, `kib`, `4kib`; `op:0=read` or `op:1=read` for digits; `device` for several disks;
    /// `-` for a field to leave out
    #[arg(long, value_name = "LIST")]
    pub columns: Option<Columns>,
    /// How the objects of a cache's trace become addresses: `slots` gives each a place of its own, by first appearance;
    /// `bytes`, `sectors`, `kib` or `4kib` says that ids are addresses in that unit. With `insert` (`slots,insert`, or alone)
    /// a read of an object that is not there writes it, as a cache does that was empty at first
    #[arg(long, value_name = "PLACES")]
    pub objects: Option<Objects>,
    /// Which record of a request counts in blktrace and blkparse files: Q (queue), D (issue) or C (complete)
    #[arg(long)]
    pub action: Option<Action>,
    /// Take only these volumes of the trace (ASU, disk, LUN or volume numbers), laid end to end
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub volumes: Option<Vec<u64>>,
    /// Take only the first N requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), allow_negative_numbers = true)]
    pub limit: Option<u64>,
}

impl TraceOptions {
    /// Whether anything but the number of requests is said.
    pub fn reads_otherwise(&self) -> bool {
        let Self { format, time_unit, columns, objects, action, volumes, limit: _ } = self;
        let how = format.is_some() || time_unit.is_some() || columns.is_some() || objects.is_some();
        how || action.is_some() || volumes.is_some()
    }
}
