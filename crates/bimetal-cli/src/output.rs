//! Writing results: tables and JSON to the standard output, files whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::args::JsonArgs;
use crate::failure::Failure;

/// Writes the JSON where it was asked for, and the text unless JSON takes its place.
pub fn emit<T: Serialize>(json: &JsonArgs, value: &T, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(target) = &json.json else { return print(&text()) };
    let mut bytes = serde_json::to_vec_pretty(value).map_err(Failure::failed)?;
    bytes.push(b'\n');
    if target.as_os_str() == "-" {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&bytes)?;
        return Ok(stdout.flush()?);
    }
    write_file(target, &bytes)?;
    print(&text())
}

/// Prints text, without its styles where they cannot be shown.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Writes a file whole or not at all: beside its place, then moved there. What is no regular file, such as a pipe, is
/// written to as it is.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::ClosedPipe,
        _ => Failure::failed(format!("{}: the file cannot be written: {error}", path.display())),
    };
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            return Err(Failure::failed(format!("{}: this is a directory; hint: name a file in it", path.display())));
        }
        Ok(metadata) if !metadata.is_file() => return std::fs::write(path, bytes).map_err(failed),
        // Through a link, so that the link stays.
        Ok(_) => return replace(&path.canonicalize().map_err(failed)?, bytes).map_err(failed),
        Err(_) => {}
    }
    replace(path, bytes).map_err(failed)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bimetal-");
    set_mode(&mut builder, path);
    folder.metadata()?;
    // Without the name of the temporary file, which means nothing to anyone.
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// The file's own permissions, or those of any new file.
#[cfg(unix)]
fn set_mode(builder: &mut tempfile::Builder<'_, '_>, path: &Path) {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    let permissions = path.metadata().map_or_else(|_| Permissions::from_mode(0o666), |metadata| metadata.permissions());
    builder.permissions(permissions);
}

#[cfg(not(unix))]
fn set_mode(_builder: &mut tempfile::Builder<'_, '_>, _path: &Path) {}
