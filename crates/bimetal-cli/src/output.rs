//! Writes results: tables and JSON to the standard output, and files atomically.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bimetal_core::profile::Profile;
use bimetal_core::trace::WriteError;
use bimetal_study::compare::Comparison;
use bimetal_study::ranking::Sort;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::{ExportTo, HtmlArgs, JsonArgs};
use crate::failure::Failure;

/// Writes results in the formats of other programs.
pub fn write_exports(exports: &[ExportTo], comparison: &Comparison) -> Result<(), Failure> {
    exports.iter().try_for_each(|export| {
        let bytes = export.format.write(comparison).map_err(Failure::failed)?;
        write_file(&export.file, &bytes)
    })
}

/// Writes a page if it was requested.
pub fn write_html(html: &HtmlArgs, page: impl FnOnce() -> String) -> Result<(), Failure> {
    html.html.as_ref().map_or(Ok(()), |path| write_file(path, page().as_bytes()))
}

/// Writes the report of a comparison if it was requested; in this case the profile is present.
pub fn write_report(
    html: &HtmlArgs,
    comparison: &Comparison,
    sort: Sort,
    profile: Option<&Profile>,
) -> Result<(), Failure> {
    let Some(profile) = profile else { return Ok(()) };
    write_html(html, || bimetal_study::html::comparison(comparison, sort, profile, &command_line()))
}

/// The command line as it would be typed.
pub fn command_line() -> String {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().to_owned();
    let words = std::iter::once(name).chain(arguments).map(|word| word.to_string_lossy().into_owned());
    bimetal_study::command::line(words)
}

/// Writes the JSON if it was requested, and prints the text unless JSON replaces it.
pub fn emit<T: Serialize>(json: &JsonArgs, value: &T, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if json.json.is_none() {
        return print(&text());
    }
    emit_bytes(json, &encoded(value)?, || Ok(text()))
}

/// Writes the JSON if it was requested.
pub fn write_json<T: Serialize>(json: &JsonArgs, value: &T) -> Result<(), Failure> {
    if json.json.is_none() { Ok(()) } else { write_bytes(json, &encoded(value)?) }
}

fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>, Failure> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(Failure::failed)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The same for encoded JSON.
pub fn emit_bytes(
    json: &JsonArgs,
    bytes: &[u8],
    text: impl FnOnce() -> Result<String, Failure>,
) -> Result<(), Failure> {
    write_bytes(json, bytes)?;
    if is_standard_output(json) { Ok(()) } else { print(&text()?) }
}

/// Whether JSON replaces the text on the standard output.
pub fn is_standard_output(json: &JsonArgs) -> bool {
    json.json.as_deref().is_some_and(|path| path.as_os_str() == "-")
}

/// Writes encoded JSON if it was requested.
pub fn write_bytes(json: &JsonArgs, bytes: &[u8]) -> Result<(), Failure> {
    match &json.json {
        Some(_) if is_standard_output(json) => print_bytes(bytes),
        Some(target) => write_file(target, bytes),
        None => Ok(()),
    }
}

/// Prints text, without styles if they cannot be shown.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| unprintable(&error))
}

/// Writes bytes to the standard output.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    print_with(|out| Ok(out.write_all(bytes)?))
}

/// Writes to the standard output with `write`.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = write(&mut stdout).and_then(|()| Ok(stdout.flush()?));
    written.map_err(|error| failed(error, unprintable))
}

/// The failure to write to the standard output.
pub fn unprintable(error: &io::Error) -> Failure {
    unwritten("the standard output", error)
}

/// Writes a file completely or not at all: to a temporary file beside it, which then replaces it. A target that is not
/// a regular file, such as a pipe, is written directly.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_file_with(path, |out| Ok(out.write_all(bytes)?))
}

/// Writes a file with `write`, like [`write_file`].
pub fn write_file_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>,
) -> Result<(), Failure> {
    let written = match place(path)? {
        Place::Stream => File::create(path).map_err(WriteError::from).and_then(|mut file| write(&mut file)),
        Place::File(path) => replace(&path, write),
    };
    written.map_err(|error| failed(error, |error| unwritable(path, error)))
}

fn failed(error: WriteError, unwritten: impl FnOnce(&io::Error) -> Failure) -> Failure {
    match error {
        WriteError::Sink(error) => unwritten(&error),
        WriteError::Trace(error) => error.into(),
    }
}

/// Checks that a file can be written.
pub fn check_file(path: &Path) -> Result<(), Failure> {
    match place(path)? {
        Place::Stream => Ok(()),
        Place::File(file) => beside(&file).map(|_| ()).map_err(|error| unwritable(path, &error)),
    }
}

/// Kind of output.
enum Place {
    /// A pipe or a device.
    Stream,
    /// An existing file, with links resolved, or a new one.
    File(PathBuf),
}

fn place(path: &Path) -> Result<Place, Failure> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            Err(Failure::failed(format!("{}: this is a directory; hint: name a file in it", path.display())))
        }
        Ok(metadata) if !metadata.is_file() => Ok(Place::Stream),
        Ok(_) => path.canonicalize().map(Place::File).map_err(|error| unwritable(path, &error)),
        Err(_) => Ok(Place::File(path.to_owned())),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    unwritten(&format!("{}: the file", path.display()), error)
}

fn unwritten(what: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::failed(format!("{what} cannot be written: {error}")),
    }
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>) -> Result<(), WriteError> {
    let mut file = beside(path)?;
    write(&mut file)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(io::Error::from)?;
    Ok(())
}

/// A temporary file in the same folder, to be renamed.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bimetal-");
    set_mode(&mut builder, path);
    folder.metadata()?;
    // The error omits the name of the temporary file, which means nothing to the user.
    builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))
}

/// Sets the permissions of the existing file, or those of a new file.
#[cfg(unix)]
fn set_mode(builder: &mut tempfile::Builder<'_, '_>, path: &Path) {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let permissions = path.metadata().map_or_else(|_| Permissions::from_mode(0o666), |metadata| metadata.permissions());
    builder.permissions(permissions);
}

#[cfg(not(unix))]
fn set_mode(_builder: &mut tempfile::Builder<'_, '_>, _path: &Path) {}
