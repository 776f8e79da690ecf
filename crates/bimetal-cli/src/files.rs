//! The files of a command: what it reads, and what it writes. A command checks them before its work, so that no result
//! is lost after a long run, and no output replaces an input or another output.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::args::{HtmlArgs, JsonArgs, RunArgs, TraceArgs};
use crate::failure::Failure;
use crate::{output, setup};

/// The files of a command.
#[derive(Debug, Default)]
pub struct Files {
    read: Vec<PathBuf>,
    written: Vec<Written>,
}

#[derive(Debug)]
struct Written {
    /// The option that names the file, and the example of a name for it.
    option: &'static str,
    example: &'static str,
    path: PathBuf,
    /// Whether the file is replaced by a new one, and not written where it is.
    is_replaced: bool,
}

/// What a path denotes.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode of an existing file, which may have several paths.
    File(u64, u64),
    /// The path of a file that does not exist yet, with links of its folder resolved.
    New(PathBuf),
}

impl Files {
    /// Adds inputs; `-` is the standard input.
    pub fn reads<P: AsRef<Path>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.read.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// Adds the files that an option names, with an example of such a name.
    pub fn writes<P: AsRef<Path>>(
        self,
        option: &'static str,
        example: &'static str,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        self.adds(option, example, true, paths)
    }

    /// Adds a file to which lines are appended.
    pub fn appends<P: AsRef<Path>>(self, option: &'static str, example: &'static str, path: P) -> Self {
        self.adds(option, example, false, [path])
    }

    fn adds<P: AsRef<Path>>(
        mut self,
        option: &'static str,
        example: &'static str,
        is_replaced: bool,
        paths: impl IntoIterator<Item = P>,
    ) -> Self {
        let written = |path: P| Written { option, example, path: path.as_ref().to_owned(), is_replaced };
        self.written.extend(paths.into_iter().map(written));
        self
    }

    /// Adds the JSON output; `-` is the standard output, which is no file.
    pub fn json(self, json: &JsonArgs) -> Self {
        let file = json.json.as_ref().filter(|_| !output::is_standard_output(json));
        self.writes("--json", "figures.json", file)
    }

    /// Adds the JSON output and the report.
    pub fn results(self, json: &JsonArgs, html: &HtmlArgs) -> Self {
        self.json(json).writes("--html", "report.html", html.html.as_ref())
    }

    /// Adds all files of a replay.
    pub fn replay(self, trace: &TraceArgs, run: &RunArgs) -> Self {
        let exports = run.export.iter().map(|export| &export.file);
        let files = self.reads(&trace.traces).reads(setup::device_file(&run.device));
        files.results(&run.json, &run.html).writes("--export", "fio=results.json", exports)
    }

    /// Refuses outputs that are an input, are named twice, or cannot be written. Pipes and devices contain no data that
    /// could be lost, and may be named several times.
    pub fn check(&self) -> Result<(), Failure> {
        if let Some(Written { option, example, .. }) = self.written.iter().find(|file| is_hyphen(&file.path)) {
            return Err(Failure::usage(format!(
                "`{option} -`: this is written to a file; hint: name one, such as {example}"
            )));
        }
        self.check_inputs()?;
        self.check_outputs()?;
        let mut replaced = self.written.iter().filter(|file| file.is_replaced);
        replaced.try_for_each(|file| output::check_file(&file.path))
    }

    /// If the result is wrong, the source would be lost.
    fn check_inputs(&self) -> Result<(), Failure> {
        for Written { path, .. } in &self.written {
            let Some(written) = identity(path) else { continue };
            if let Some(input) = self.read.iter().find(|input| identity(input).as_ref() == Some(&written)) {
                let (path, input) = (path.display(), input.display());
                return Err(Failure::usage(format!(
                    "{path}: this is the input `{input}`; hint: write to another file"
                )));
            }
        }
        Ok(())
    }

    /// Only the last output would remain.
    fn check_outputs(&self) -> Result<(), Failure> {
        for (at, file) in self.written.iter().enumerate() {
            let Some(written) = identity(&file.path) else { continue };
            let mut before = self.written[..at].iter();
            if let Some(other) = before.find(|other| identity(&other.path).as_ref() == Some(&written)) {
                let (one, two, path) = (other.option, file.option, file.path.display());
                let who = if one == two { format!("several `{one}`") } else { format!("`{one}` and `{two}`") };
                return Err(Failure::usage(format!("{path}: {who} name this file; hint: name a file for each output")));
            }
        }
        Ok(())
    }
}

/// Whether this is the name of the standard input or output, and no file.
pub fn is_hyphen(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a path denotes, unless it is a pipe, a device or a directory.
fn identity(path: &Path) -> Option<Identity> {
    let path = if is_hyphen(path) { Path::new("/dev/stdin") } else { path };
    match path.metadata() {
        Ok(found) => found.is_file().then(|| Identity::File(found.dev(), found.ino())),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
            Some(Identity::New(folder.join(path.file_name()?)))
        }
    }
}
