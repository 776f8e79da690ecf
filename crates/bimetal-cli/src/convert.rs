//! `bimetal convert`: traces from one format to another.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bimetal_core::trace::Trace;
use bimetal_study::writer;

use crate::args::{ConvertArgs, TargetArgs};
use crate::failure::Failure;
use crate::{output, setup, warn};

/// Runs the command.
pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    check(&args.output, &args.target)?;
    keep_inputs(&args.output, &args.inputs)?;
    let mut trace = setup::trace(&args.inputs, &args.options)?;
    for warning in &trace.warnings {
        warn(warning);
    }
    if let Some(limit) = args.options.limit {
        trace = writer::limited(trace, usize::try_from(limit).unwrap_or(usize::MAX));
    }
    write(&trace, &args.output, &args.target)
}

/// Refuses unwritable outputs before any work is done.
pub fn check(path: &Path, target: &TargetArgs) -> Result<(), Failure> {
    writer::choose(target.to.as_deref(), path).map_err(Failure::usage)?;
    // A directory is refused later, by the write; pipes and devices contain no data that could be lost.
    if path.is_file() && !target.force {
        return Err(Failure::failed(format!("{}: the file exists; hint: add `--force` to replace it", path.display())));
    }
    Ok(())
}

/// Refuses to write to an input file, even under another name: if the result is wrong, the source would be lost.
fn keep_inputs(output: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    let file = |path: &Path| path.metadata().ok().filter(Metadata::is_file).map(|found| (found.dev(), found.ino()));
    let written = file(output);
    match inputs.iter().find(|input| written.is_some() && file(input) == written) {
        Some(input) => Err(Failure::usage(format!(
            "{}: this is the input `{}`; hint: write to another file",
            output.display(),
            input.display()
        ))),
        None => Ok(()),
    }
}

/// Writes a trace in the chosen format and reports it.
pub fn write(trace: &Trace, path: &Path, target: &TargetArgs) -> Result<(), Failure> {
    let writer = writer::choose(target.to.as_deref(), path).map_err(Failure::usage)?;
    let bytes = (writer.encode)(trace)?;
    output::write_file(path, &bytes)?;
    let requests = crate::number::thousands(trace.requests.len() as u64);
    let size = crate::number::with_unit(crate::number::SIZES, bytes.len() as f64);
    crate::inform(&format!("{requests} requests written to {} as `{}` ({size})", path.display(), writer.format));
    Ok(())
}
