//! A store of each scheme, compared with `nbdkit file`: the cost of a scheme's state after random writes have scattered
//! it.

use std::path::Path;
use std::sync::Arc;

use bimetal_core::scheme::SchemeSpec;

use super::client::Client;
use super::measure::Pair;
use super::servers::{Ours, Served};
use super::workload::Workload;
use super::{REQUEST_BYTES, stores};
use crate::benchmarked::Row;
use crate::failure::Failure;
use crate::progress::StepBar;

/// The reads come first: large writes put the pages of a store in order.
pub(super) const WORKLOADS: [Workload; 2] = [
    Workload::new("read 4K, depth 32", "randread", REQUEST_BYTES, 32),
    Workload::new("write 1M in order", "write", 1 << 20, 4),
];

/// Rows of full stores after random writes.
pub(super) fn rows(
    client: &Client<'_>,
    schemes: &[&'static SchemeSpec],
    folder: &Path,
    bytes: u64,
    nbdkit: &Served,
    bar: &StepBar,
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for scheme in schemes {
        let path = folder.join("scheme");
        let store = stores::preconditioned(scheme, &path, bytes, bytes, (&client.interrupted, bar))?;
        let ours = Ours::serve(Arc::clone(&store) as _, &folder.join("scheme.sock"))?;
        let pair = Pair { backing: scheme.name.to_owned(), ours: &ours.served, theirs: nbdkit, store: Some(&store) };
        for workload in &WORKLOADS {
            rows.push(pair.measure(client, workload, bar)?);
        }
        drop(ours);
        drop(store);
        std::fs::remove_dir_all(&path)?;
    }
    Ok(rows)
}
