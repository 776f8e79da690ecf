//! `bimetal completions` and `bimetal man`: the command line, for shells and for `man`.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::files::is_hyphen;
use crate::messages::inform;
use crate::output;

/// Prints the script that completes the command line in a shell.
pub fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "bimetal", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Writes a page for the program and one for each command.
pub fn pages(folder: &Path) -> Result<(), Failure> {
    if is_hyphen(folder) {
        return Err(Failure::usage("`-`: the pages are written into a folder; hint: name one, such as pages"));
    }
    let failed = |error| Failure::failed(format!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)?;
    inform(&format!("manual pages written to {0}; `man {0}/bimetal.1` shows the first", folder.display()));
    Ok(())
}
