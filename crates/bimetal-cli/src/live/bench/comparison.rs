//! One front end of a store, compared with one other server.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bimetal_core::scheme::{self, SchemeSpec};
use bimetal_live::store::Store;
use tempfile::TempDir;

use super::client::Client;
use super::measure::Pair;
use super::workload::Workload;
use super::{LARGE_WORKLOADS, ROOMY, WORKLOADS, folder, stores};
use crate::args::MeasureArgs;
use crate::benchmarked::Row;
use crate::failure::Failure;
use crate::progress::StepBar;

/// A run: the client, the workloads, and a folder that is removed at the end.
pub(super) struct Comparison<'a> {
    pub(super) client: Client<'a>,
    folder: TempDir,
    scheme: &'static SchemeSpec,
    workloads: Vec<Workload>,
    bar: StepBar,
}

impl<'a> Comparison<'a> {
    /// Prepares a run of the workloads of all benchmarks and then of these, in which each write is followed by a flush.
    pub(super) fn new(args: &'a MeasureArgs, synchronous: &[Workload]) -> Result<Self, Failure> {
        let client = Client::new(args)?;
        let scheme = scheme::find(&args.scheme)?;
        let folder = folder(args)?;
        let workloads = [&LARGE_WORKLOADS[..], &WORKLOADS, synchronous].concat();
        let bar = StepBar::new((workloads.len() * usize::from(args.rounds) + 1) as u64);
        Ok(Self { client, folder, scheme, workloads, bar })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file of zeros, of the measured size, for the other server.
    pub(super) fn image(&self) -> Result<PathBuf, Failure> {
        let image = self.path("image");
        File::create(&image)?.set_len(self.client.args.bytes())?;
        Ok(image)
    }

    /// The store, of which a quarter is in use.
    pub(super) fn store(&self) -> Result<Arc<Store>, Failure> {
        let bytes = self.client.args.bytes();
        let progress = (&self.client.interrupted, &self.bar);
        stores::preconditioned(self.scheme, &self.path("store"), bytes * ROOMY, bytes, progress)
    }

    /// Runs all workloads on both servers in turns, and removes the progress bar.
    pub(super) fn rows(&self, pair: &Pair<'_>) -> Result<Vec<Row>, Failure> {
        let rows = self.workloads.iter().map(|workload| pair.measure(&self.client, workload, &self.bar)).collect();
        self.bar.finish();
        rows
    }
}
