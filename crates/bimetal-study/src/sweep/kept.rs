//! The rows of a running study, whose points may run on other machines: rows of the results file, and new rows, which
//! are appended to it.

use std::path::Path;

use super::failure::{Failure, FailureKind};
use super::results::{Results, ResultsError};
use super::row::Row;
use super::source::TraceSource;
use super::study::Planned;

/// The rows so far, and the remaining points.
#[derive(Debug)]
pub struct Kept {
    rows: Vec<Option<Row>>,
    results: Option<Results>,
    /// Fingerprint of each trace, in the order of first use. None as long as it is unknown.
    fingerprints: Vec<Option<String>>,
    /// The trace of each point.
    traces: Vec<usize>,
}

impl Kept {
    /// Takes over the rows of the results file.
    pub fn new(points: &[Planned], folder: &Path, mut results: Option<Results>) -> Self {
        let mut known: Vec<&TraceSource> = Vec::new();
        let mut fingerprints: Vec<Option<String>> = Vec::new();
        let mut traces = Vec::with_capacity(points.len());
        let mut rows = Vec::with_capacity(points.len());
        for Planned { point, .. } in points {
            let trace = known.iter().position(|&source| *source == point.trace).unwrap_or_else(|| {
                known.push(&point.trace);
                // Only rows of a results file are looked up by fingerprint.
                fingerprints.push(results.as_ref().and_then(|_| point.trace.fingerprint(folder).ok()));
                known.len() - 1
            });
            let found = fingerprints[trace].as_ref().and_then(|trace| results.as_mut()?.take(&point.key(trace)));
            traces.push(trace);
            rows.push(found);
        }
        Self { rows, results, fingerprints, traces }
    }

    /// The points without a row, grouped by trace: index of the trace and index of the point.
    pub fn left(&self) -> Vec<(usize, usize)> {
        let places = self.traces.iter().copied().zip(0..);
        let mut left: Vec<(usize, usize)> = places.filter(|&(_, at)| self.rows[at].is_none()).collect();
        left.sort_by_key(|&(trace, _)| trace);
        left
    }

    /// Stores the row of a point.
    ///
    /// # Errors
    /// The results file cannot be written. The row is stored nevertheless.
    pub fn keep(&mut self, at: usize, row: Row) -> Result<(), ResultsError> {
        // An unreadable trace has no fingerprint, so that its row cannot be looked up. Its points run again each time.
        let is_found_again = !row.trace_fingerprint.is_empty();
        let results = self.results.as_mut().filter(|_| is_found_again);
        let written = results.map_or(Ok(()), |results| results.append(&row));
        self.rows[at] = Some(row);
        written
    }

    /// Stores the row that a remote worker wrote for a point. The point fails if the worker has a different version, or
    /// if its trace differs from the trace of other workers.
    ///
    /// # Errors
    /// The results file cannot be written.
    pub fn keep_foreign(&mut self, at: usize, planned: &Planned, json: &str) -> Result<(), ResultsError> {
        let row = match self.read(at, planned, json) {
            Ok(row) => row,
            Err(failure) => self.failed(at, planned, failure),
        };
        self.keep(at, row)
    }

    /// Stores a failure of a point whose workers were lost.
    ///
    /// # Errors
    /// The results file cannot be written.
    pub fn lose(&mut self, at: usize, planned: &Planned, what: &str) -> Result<(), ResultsError> {
        self.keep(at, self.failed(at, planned, Failure { kind: FailureKind::Worker, what: what.to_owned() }))
    }

    fn failed(&self, at: usize, planned: &Planned, failure: Failure) -> Row {
        let fingerprint = self.fingerprints[self.traces[at]].as_deref().unwrap_or_default();
        Row::failed(&planned.point, fingerprint, failure)
    }

    fn read(&mut self, at: usize, planned: &Planned, json: &str) -> Result<Row, Failure> {
        let worker = |what: String| Failure { kind: FailureKind::Worker, what };
        let row: Row = serde_json::from_str(json)
            .map_err(|error| worker(format!("the worker is of another version: its row cannot be read: {error}")))?;
        let own = self.failed(at, planned, worker(String::new()));
        if (&row.bimetal, row.scheme_version) != (&own.bimetal, own.scheme_version) || row.point != own.point {
            return Err(worker(format!(
                "the worker is of version {} (scheme {}), and this is {} (scheme {})",
                row.bimetal, row.scheme_version, own.bimetal, own.scheme_version
            )));
        }
        if !row.trace_fingerprint.is_empty() {
            let known = self.fingerprints[self.traces[at]].get_or_insert_with(|| row.trace_fingerprint.clone());
            if *known != row.trace_fingerprint {
                return Err(Failure::trace("the worker has a different file with the name of this trace"));
            }
        }
        Ok(row)
    }

    /// The rows in the order of the points, without points that have no row.
    pub fn into_rows(self) -> Vec<Row> {
        self.rows.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::run;
    use crate::sweep::study::Study;

    #[test]
    fn what_comes_from_elsewhere_is_held_against_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.spc");
        std::fs::write(&path, "0,0,4096,w,0.0\n").unwrap();
        let text = "traces = [{ files = \"t.spc\" }]\n[[grids]]\nscheme = \"pagemap\"\n\
                    set.\"slow.spare\" = [\"80%\", \"85%\", \"90%\", \"95%\", \"96%\"]";
        let study = Study::parse(text, folder.path()).unwrap();
        let results = folder.path().join("r.jsonl");
        let open = || Some(Results::open(&results, false).unwrap());
        let mut kept = Kept::new(&study.points, folder.path(), open());
        let run = |at: usize| {
            let row = run::run(&study.points[at].point, folder.path(), &mut bimetal_core::replay::to_the_end);
            serde_json::to_string(&row).unwrap()
        };
        let mut keep = |at: usize, json: &str| kept.keep_foreign(at, &study.points[at], json).unwrap();
        keep(0, &run(0));
        keep(1, &run(1).replacen("\"bimetal\":\"", "\"bimetal\":\"9", 1));
        keep(2, "{}");
        std::fs::write(&path, "0,8,4096,w,0.0\n").unwrap();
        keep(3, &run(3));
        kept.lose(4, &study.points[4], "lost").unwrap();
        assert_eq!(kept.left(), []);
        let failures: Vec<_> =
            kept.into_rows().into_iter().map(|row| row.failure.map(|failure| failure.kind)).collect();
        let worker = Some(FailureKind::Worker);
        assert_eq!(failures, [None, worker, worker, Some(FailureKind::Trace), worker]);
        // All points but the first run again.
        std::fs::write(&path, "0,0,4096,w,0.0\n").unwrap();
        assert_eq!(Kept::new(&study.points, folder.path(), open()).left(), [(0, 1), (0, 2), (0, 3), (0, 4)]);
        // Without a results file the first row determines the fingerprint of the trace.
        let mut kept = Kept::new(&study.points, folder.path(), None);
        kept.keep_foreign(0, &study.points[0], &run(0)).unwrap();
        std::fs::write(&path, "0,8,4096,w,0.0\n").unwrap();
        kept.keep_foreign(1, &study.points[1], &run(1)).unwrap();
        let kinds: Vec<_> = kept.into_rows().into_iter().map(|row| row.failure.map(|failure| failure.kind)).collect();
        assert_eq!(kinds, [None, Some(FailureKind::Trace)]);
    }
}
