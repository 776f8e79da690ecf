//! `bimetal convert`: traces from one format to another.

use std::io::{self, Write};
use std::path::Path;

use bimetal_core::trace::Trace;
use bimetal_study::writer;

use crate::args::{ConvertArgs, TargetArgs};
use crate::failure::Failure;
use crate::files::{Files, is_hyphen};
use crate::{output, setup, warn};

/// Runs the command.
pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    Files::default().reads(&args.inputs).writes("OUT", "out.bimetal", file(&args.output)).check()?;
    check(&args.output, &args.target)?;
    let mut trace = setup::trace(&args.inputs, &args.options)?;
    for warning in &trace.warnings {
        warn(warning);
    }
    if let Some(limit) = args.options.limit {
        trace.keep_first(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    write(&trace, &args.output, &args.target)
}

/// Refuses unwritable outputs before any work is done.
pub fn check(path: &Path, target: &TargetArgs) -> Result<(), Failure> {
    writer::choose(target.to.as_deref(), path).map_err(Failure::usage)?;
    // A directory is refused later, by the write; pipes and devices contain no data that could be lost.
    if !is_hyphen(path) && path.is_file() && !target.force {
        return Err(Failure::failed(format!("{}: the file exists; hint: add `--force` to replace it", path.display())));
    }
    Ok(())
}

/// The output, unless it is `-`, the standard output.
pub fn file(output: &Path) -> Option<&Path> {
    Some(output).filter(|path| !is_hyphen(path))
}

/// Writes a trace in the chosen format and reports it.
pub fn write(trace: &Trace, path: &Path, target: &TargetArgs) -> Result<(), Failure> {
    let writer = writer::choose(target.to.as_deref(), path).map_err(Failure::usage)?;
    let mut bytes = 0;
    let encode = |out: &mut dyn Write| (writer.encode)(trace, &mut Counted { out, bytes: &mut bytes });
    let shown = if is_hyphen(path) {
        output::print_with(encode)?;
        "the standard output".to_owned()
    } else {
        output::write_file_with(path, encode)?;
        path.display().to_string()
    };
    let requests = crate::number::counted(trace.requests.len() as u64, "request");
    let size = crate::number::with_unit(crate::number::SIZES, bytes as f64);
    for warning in writer.warnings(trace) {
        warn(&warning);
    }
    crate::inform(&format!("{requests} written to {shown} as `{}` ({size})", writer.format));
    Ok(())
}

/// A writer that counts its bytes.
struct Counted<'a> {
    out: &'a mut dyn Write,
    bytes: &'a mut u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.out.write(buffer)?;
        *self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
