//! The results file: a line for each row, appended at once, so that an interrupted study can continue.
//!
//! The first line is a header. A last line without a line break was cut off when the program was killed, and is
//! dropped. The file is locked while it is open.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::row::Row;

/// Version of the file format.
const FORMAT: u32 = 1;
/// Start of every results file, in all versions.
const START: &str = "{\"bimetal-sweep\":";

/// The first line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    #[serde(rename = "bimetal-sweep")]
    format: u32,
    bimetal: String,
}

/// Error of a results file. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The file cannot be opened, read or written.
    #[error("{}: the results file cannot be {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a results file.
    #[error("{}: this is no results file of a sweep; hint: name another one with `--results`", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another version of the program wrote it.
    #[error(
        "{}: these results are of version {found}, and this is {}; hint: `--restart` discards them, `--results` names another \
         file", path.display(), env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The program version that wrote it.
        found: String,
    },
    /// A line in the middle is damaged.
    #[error("{}: line {line} is damaged: {what}; hint: `--restart` discards the results", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// Another sweep has the file open.
    #[error("{}: another sweep is writing these results; hint: wait for it, or name another file with `--results`", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
}

/// An open results file.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    file: File,
    /// Rows of the file when it was opened, by key; the last row of each key.
    rows: BTreeMap<String, Row>,
}

impl Results {
    /// Opens or creates a results file. `restart` discards its rows.
    ///
    /// # Errors
    /// The file is not a results file, is damaged, or is in use.
    pub fn open(path: &Path, restart: bool) -> Result<Self, ResultsError> {
        let failed = |action| move |source| ResultsError::Io { path: path.to_owned(), action, source };
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(failed("opened"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ResultsError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed("locked")(source)),
        }
        let mut results = Self { path: path.to_owned(), file, rows: BTreeMap::new() };
        let whole = results.read(restart)?;
        results.file.set_len(whole).map_err(failed("written"))?;
        results.file.seek(SeekFrom::Start(whole)).map_err(failed("written"))?;
        if whole == 0 {
            let header = Header { format: FORMAT, bimetal: env!("CARGO_PKG_VERSION").to_owned() };
            results.append_line(&header)?;
        }
        Ok(results)
    }

    /// Reads all complete lines; returns their length in bytes.
    fn read(&mut self, restart: bool) -> Result<u64, ResultsError> {
        let path = || self.path.clone();
        let failed = |source| ResultsError::Io { path: path(), action: "read", source };
        let mut reader = BufReader::new(&self.file);
        let (mut whole, mut line, mut text) = (0, 0, Vec::new());
        loop {
            text.clear();
            let read = reader.read_until(b'\n', &mut text).map_err(failed)?;
            line += 1;
            let is_start = text.starts_with(START.as_bytes()) || START.as_bytes().starts_with(&text);
            if line == 1 && !is_start {
                return Err(ResultsError::Foreign { path: path() });
            }
            if restart || text.last() != Some(&b'\n') {
                return Ok(whole);
            }
            let damaged =
                |error: serde_json::Error| ResultsError::Damaged { path: path(), line, what: error.to_string() };
            if line == 1 {
                let header: Header = serde_json::from_slice(&text).map_err(damaged)?;
                if (header.format, header.bimetal.as_str()) != (FORMAT, env!("CARGO_PKG_VERSION")) {
                    let found = format!("{} (form {})", header.bimetal, header.format);
                    return Err(ResultsError::Version { path: path(), found });
                }
            } else {
                let row: Row = serde_json::from_slice(&text).map_err(damaged)?;
                self.rows.insert(row.key.clone(), row);
            }
            whole += read as u64;
        }
    }

    /// Removes and returns the file's row for a key. None for a row whose failure may pass, so that its point runs
    /// again.
    pub fn take(&mut self, key: &str) -> Option<Row> {
        let row = self.rows.remove(key)?;
        (!row.failure.as_ref().is_some_and(super::failure::Failure::may_pass)).then_some(row)
    }

    /// Appends a complete row and writes it to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, row: &Row) -> Result<(), ResultsError> {
        self.append_line(row)
    }

    fn append_line(&mut self, value: &impl Serialize) -> Result<(), ResultsError> {
        let failed = |source| ResultsError::Io { path: self.path.clone(), action: "written", source };
        let mut line = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::run;
    use crate::sweep::study::Study;

    const STUDY: &str = "traces = [{ limit = 300 }]\n[[grids]]\nscheme = [\"pagemap\", \"chang\"]\n\
                         set.\"slow.spare\" = [\"9%\", \"0%\"]";

    fn rows() -> Vec<Row> {
        let study = Study::parse(STUDY, Path::new(".")).unwrap();
        let rows: Vec<Row> = study
            .points
            .iter()
            .map(|planned| run::run(&planned.point, Path::new("."), &mut bimetal_core::replay::to_the_end))
            .collect();
        assert_eq!(rows.iter().filter(|row| row.failure.is_some()).count(), 2);
        rows
    }

    #[test]
    fn rows_come_back_as_they_were_and_torn_ones_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let rows = rows();
        let mut results = Results::open(&path, false).unwrap();
        let mut ends = vec![std::fs::metadata(&path).unwrap().len()];
        for row in &rows {
            results.append(row).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len());
        }
        assert!(matches!(Results::open(&path, false), Err(ResultsError::Locked { .. })));
        drop(results);
        let whole = std::fs::read(&path).unwrap();
        // Every byte of the header and of the last two rows.
        let length = |end: u64| usize::try_from(end).unwrap();
        for cut in (0..=length(ends[0])).chain(length(ends[ends.len() - 3])..=whole.len()) {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut results = Results::open(&path, false).unwrap();
            let complete = ends.iter().filter(|&&end| end <= cut as u64).count();
            let expected = &rows[..complete.saturating_sub(1)];
            assert_eq!(results.rows.len(), expected.len(), "cut at {cut}");
            // A file without a complete header gets a new one.
            let left = ends[complete.max(1) - 1];
            assert_eq!(std::fs::metadata(&path).unwrap().len(), left, "cut at {cut}");
            for row in expected {
                assert_eq!(results.take(&row.key).as_ref(), Some(row));
            }
        }
    }

    #[test]
    fn what_is_no_results_file_is_never_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let refuse = |text: &str, restart: bool| {
            std::fs::write(&path, text).unwrap();
            let error = Results::open(&path, restart).unwrap_err().to_string();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            error
        };
        for restart in [false, true] {
            assert!(refuse("0,0,4096,w,0.0\n", restart).contains("`--results`"));
            assert!(refuse("{}\n", restart).contains("no results file"));
        }
        let old = "{\"bimetal-sweep\":0,\"bimetal\":\"0.0.1\"}\n{}\n";
        let error = refuse(old, false);
        assert!(error.contains("0.0.1 (form 0)") && error.contains("--restart"), "{error}");
        let header = format!("{START}{FORMAT},\"bimetal\":\"{}\"}}\n", env!("CARGO_PKG_VERSION"));
        let error = refuse(&format!("{header}{{\"key\":1}}\n{{}}\n"), false);
        assert!(error.contains("line 2 is damaged") && error.contains("--restart"), "{error}");
        std::fs::write(&path, old).unwrap();
        assert!(Results::open(&path, true).unwrap().rows.is_empty());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), header);
    }

    #[test]
    fn what_may_pass_next_time_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        let mut memory = rows().remove(0);
        memory.failure = Some(crate::StudyError::Memory { needed_mib: 2, available_mib: 1 }.into());
        Results::open(&path, false).unwrap().append(&memory).unwrap();
        assert_eq!(Results::open(&path, false).unwrap().take(&memory.key), None);
    }
}
