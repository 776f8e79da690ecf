//! A process that receives points. Between points it keeps the latest traces, and it tracks the memory in use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bimetal_core::replay::Progress;

use super::failure::Failure;
use super::point::Point;
use super::row::Row;
use super::run::run_on;
use super::schedule::{Gate, lock};
use super::source::{Loaded, Origin, TraceSource};

/// Number of traces kept: with several threads, some points already use the next trace.
const TRACES_KEPT: usize = 2;

/// State that a process keeps between points.
#[derive(Debug, Default)]
pub struct Worker {
    /// The last traces, the latest first.
    traces: Mutex<Vec<(Content, Slot)>>,
    memory: Gate,
}

/// A trace, filled in by the first thread that needs and decodes it.
type Slot = Arc<Mutex<Option<Arc<Loaded>>>>;

/// Identity of a trace. It is decoded again if this changes.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    source: TraceSource,
    folder: PathBuf,
    /// Length and modification time of its files.
    files: Vec<Option<(u64, SystemTime)>>,
}

impl Content {
    fn of(source: &TraceSource, folder: &Path) -> Self {
        let paths = if let Origin::Files { paths, .. } = &source.from { paths.as_slice() } else { &[] };
        let file = |path: &String| {
            let metadata = folder.join(path).metadata().ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        };
        Self { source: source.clone(), folder: folder.to_owned(), files: paths.iter().map(file).collect() }
    }
}

impl Worker {
    /// Runs a point; several threads may call it. `folder` is the folder of the study file. The row contains any error,
    /// including a stop by `served`.
    pub fn run(&self, point: &Point, folder: &Path, served: Progress<'_>) -> Row {
        let load = catch_unwind(AssertUnwindSafe(|| self.load(&point.trace, folder)));
        match load.unwrap_or_else(|panic| Err(Failure::panic(panic.as_ref()))) {
            Ok(trace) => run_on(point, &trace, &|bytes| self.memory.enter(bytes), served),
            Err(failure) => Row::failed(point, "", failure),
        }
    }

    fn load(&self, source: &TraceSource, folder: &Path) -> Result<Arc<Loaded>, Failure> {
        let content = Content::of(source, folder);
        let slot = {
            let mut traces = lock(&self.traces);
            let known = traces.iter().position(|(known, _)| *known == content);
            let entry = known.map_or_else(|| (content, Slot::default()), |at| traces.remove(at));
            let slot = Arc::clone(&entry.1);
            traces.truncate(TRACES_KEPT - 1);
            traces.insert(0, entry);
            slot
        };
        let mut loaded = lock(&slot);
        if let Some(trace) = &*loaded {
            return Ok(Arc::clone(trace));
        }
        let trace = Arc::new(source.load(folder)?);
        *loaded = Some(Arc::clone(&trace));
        Ok(trace)
    }
}

#[cfg(test)]
mod tests {
    use bimetal_core::replay::to_the_end;

    use super::*;
    use crate::sweep::failure::FailureKind;
    use crate::sweep::run;
    use crate::sweep::study::Study;

    #[test]
    fn traces_are_decoded_once_as_long_as_they_do_not_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.spc");
        std::fs::write(&path, "0,0,4096,w,0.0\n").unwrap();
        let text = "traces = [{ files = \"t.spc\" }, { limit = 200 }, { generate = \"zipf\", set = { requests = 300 } }]\n\
                    [[grids]]\nscheme = \"pagemap\"";
        let study = Study::parse(text, folder.path()).unwrap();
        let [file, sample, zipf] = [0, 1, 2].map(|at| &study.points[at].point);
        let worker = Worker::default();
        let load = |point: &Point| worker.load(&point.trace, folder.path()).unwrap();
        let first = load(file);
        load(sample);
        assert!(Arc::ptr_eq(&first, &load(file)));
        load(zipf);
        load(sample);
        assert!(!Arc::ptr_eq(&first, &load(file)), "two others were asked for since");
        std::fs::write(&path, "0,0,4096,w,0.0\n0,8,4096,w,1.0\n").unwrap();
        assert_eq!(load(file).workload.requests.len(), 2);
        for point in [file, sample, zipf] {
            let row = worker.run(point, folder.path(), &mut to_the_end);
            assert_eq!(row.without_speed(), run::run(point, folder.path(), &mut to_the_end).without_speed());
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(worker.run(file, folder.path(), &mut to_the_end).failure.unwrap().kind, FailureKind::Trace);
    }
}
