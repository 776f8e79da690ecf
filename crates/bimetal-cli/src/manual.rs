//! `bimetal completions` and `bimetal man`: the command line, for shells and for `man`.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::files::is_hyphen;
use crate::messages::inform;
use crate::output;

/// The command line under the name with which this program was started: `bimetal`, or that of a program with schemes of
/// its own.
fn command() -> Command {
    Cli::command().display_name(program_name()).bin_name(program_name())
}

/// Name of the program's file.
pub fn program_name() -> String {
    let started = std::env::args_os().next().unwrap_or_default();
    Path::new(&started).file_stem().map_or_else(|| "bimetal".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Prints the script that completes the command line in a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), program_name(), &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes a page for the program and one for each command.
pub fn pages(folder: &Path) -> Result<(), Failure> {
    if is_hyphen(folder) {
        return Err(Failure::usage("`-`: the pages are written into a folder; hint: name one, such as pages"));
    }
    let failed = |error| Failure::failed(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command(), folder).map_err(failed)?;
    let first = folder.join(program_name()).with_extension("1");
    inform(&format!("manual pages written to {}; `man {}` shows the first", folder.display(), first.display()));
    Ok(())
}
