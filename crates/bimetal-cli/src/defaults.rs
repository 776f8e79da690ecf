//! Default options for commands, from the user's configuration file.
//!
//! The file is `$BIMETAL_CONFIG`, or `bimetal/config.toml` in the folder of the user's configuration. It has a table for each command,
//! with the long names of its options:
//!
//! ```toml
//! [compare]
//! schemes = ["pagemap", "wlaftl", "hyssd"]
//! details = true
//! ```
//!
//! An option on the command line replaces that in the file. The options taken from the file are printed on the standard
//! error.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bimetal_core::toml_file;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use toml::{Table, Value};

use crate::failure::Failure;
use crate::messages::warn;

/// Variable with the path of the file; if it is empty, no file is read.
const VARIABLE: &str = "BIMETAL_CONFIG";

/// Commands that only some builds have: a file for several builds may have their tables.
const IN_SOME_BUILDS: [&str; 8] = ["create", "serve", "stat", "copy", "grow", "check", "dump", "bench"];

/// The failure if the error is that of a command which other builds have.
pub fn not_in_this_build(error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    IN_SOME_BUILDS.contains(&name.as_str()).then(|| {
        Failure::usage(format!(
            "`{name}` is not in this build, which has no stores; hint: build on Linux with the feature `live`, which is a default \
             of `cargo install --path crates/bimetal-cli`"
        ))
    })
}

/// Arguments of the process, with and without the options of the file.
#[derive(Debug)]
pub struct Arguments {
    /// As given.
    pub given: Vec<OsString>,
    /// The options of the file for this command, if there are any.
    pub defaults: Option<Defaults>,
}

/// Options of the file for a command.
#[derive(Debug)]
pub struct Defaults {
    /// The file.
    pub path: PathBuf,
    /// Its options.
    pub options: Vec<String>,
    /// Place among the arguments before which they are inserted.
    at: usize,
}

impl Arguments {
    /// All arguments, with the options of the file after the name of the command.
    pub fn all(&self) -> Vec<OsString> {
        let Some(Defaults { options, at, .. }) = &self.defaults else { return self.given.clone() };
        let (before, after) = self.given.split_at(*at);
        [before, &options.iter().map(OsString::from).collect::<Vec<_>>(), after].concat()
    }
}

/// The arguments of the process, and the defaults of its command.
pub fn arguments(program: &Command) -> Result<Arguments, Failure> {
    let given: Vec<OsString> = env::args_os().collect();
    let defaults = defaults(program, &given)?;
    Ok(Arguments { given, defaults })
}

/// The defaults of the command among the arguments; none for its help.
fn defaults(program: &Command, given: &[OsString]) -> Result<Option<Defaults>, Failure> {
    let is_option = |argument: &OsString| argument.to_string_lossy().starts_with('-');
    // `help` is no command of its own here, so that the command of which it shows the help gets no options.
    let Some(at) = given.iter().skip(1).position(|argument| !is_option(argument)).map(|at| at + 2) else {
        return Ok(None);
    };
    let Some(command) = program.get_subcommands().find(|command| given[at - 1] == *command.get_name()) else {
        return Ok(None);
    };
    let after = &given[at..];
    if after.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--help" || argument == "-h") {
        return Ok(None);
    }
    let Some((path, text)) = file()? else { return Ok(None) };
    let options = options(program, command, &text, after);
    let options = options.map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
    Ok((!options.is_empty()).then_some(Defaults { path, options, at }))
}

/// The file, if there is one.
fn file() -> Result<Option<(PathBuf, String)>, Failure> {
    let named = env::var_os(VARIABLE).map(PathBuf::from);
    let folder = || {
        let folder = |name, below: &str| {
            env::var_os(name).filter(|path| !path.is_empty()).map(|path| Path::new(&path).join(below))
        };
        folder("XDG_CONFIG_HOME", "").or_else(|| folder("HOME", ".config"))
    };
    let is_named = named.is_some();
    let Some(path) =
        named.or_else(|| Some(folder()?.join("bimetal/config.toml"))).filter(|path| !path.as_os_str().is_empty())
    else {
        return Ok(None);
    };
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == ErrorKind::NotFound && !is_named => Ok(None),
        // Another user's home, as with `runuser` or `setpriv`.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_named => {
            warn(&format!("{}: {error}: no defaults are read", path.display()));
            Ok(None)
        }
        Err(error) => {
            let hint = if is_named { format!(" (the variable `{VARIABLE}` names it)") } else { String::new() };
            Err(Failure::usage(format!("{}: {error}{hint}", path.display())))
        }
    }
}

/// The options of the file for a command, without those on the command line.
fn options(program: &Command, command: &Command, text: &str, given: &[OsString]) -> Result<Vec<String>, String> {
    let tables: Table = toml_file::parse(text).map_err(|error| error.to_string())?;
    if let Some(unknown) = tables.keys().find(|name| !is_command(program, name)) {
        return Err(format!("`{unknown}` is no command; name each table after a command, as `[compare]`"));
    }
    let Some(table) = tables.get(command.get_name()) else { return Ok(Vec::new()) };
    let table = table.as_table().ok_or_else(|| format!("`{}` has to be a table", command.get_name()))?;
    let mut added = Vec::new();
    for (name, value) in table {
        let known = command.get_arguments().chain(program.get_arguments().filter(|option| option.is_global_set()));
        let option = known.into_iter().find(|option| option.get_long() == Some(name));
        let option = option.ok_or_else(|| format!("`{}` has no option `--{name}`", command.get_name()))?;
        if !is_given(option, name, given) {
            added.extend(written(option, name, value)?);
        }
    }
    Ok(added)
}

/// Whether this or another build has such a command.
fn is_command(program: &Command, name: &str) -> bool {
    program.find_subcommand(name).is_some() || IN_SOME_BUILDS.contains(&name)
}

/// Whether the command line has an option.
fn is_given(option: &Arg, name: &str, given: &[OsString]) -> bool {
    let short = option.get_short().map(|short| format!("-{short}"));
    given.iter().take_while(|argument| *argument != "--").any(|argument| {
        let argument = argument.to_string_lossy();
        let long = argument.strip_prefix("--").map(|long| long.split_once('=').map_or(long, |(long, _)| long));
        long == Some(name) || short.as_ref().is_some_and(|short| argument.starts_with(short))
    })
}

/// An option as it would be on the command line.
fn written(option: &Arg, name: &str, value: &Value) -> Result<Vec<String>, String> {
    if !option.get_action().takes_values() {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{name}")]),
            Value::Boolean(false) => Ok(Vec::new()),
            _ => Err(format!("`{name}` is `true` or `false`")),
        };
    }
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Float(_) => Ok(value.to_string()),
        _ => Err(format!("`{name}` has to be a text, a number or a list of these")),
    };
    let values = match value {
        Value::Array(values) => values.iter().map(one).collect::<Result<Vec<_>, _>>()?,
        value => vec![one(value)?],
    };
    match (option.get_value_delimiter(), option.get_action()) {
        (Some(delimiter), _) => Ok(vec![format!("--{name}={}", values.join(&delimiter.to_string()))]),
        (None, ArgAction::Append) => Ok(values.iter().map(|value| format!("--{name}={value}")).collect()),
        (None, _) if values.len() == 1 => Ok(vec![format!("--{name}={}", values[0])]),
        _ => Err(format!("`{name}` takes one value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_commands_of_another_build_do_not_matter() {
        let compare = Command::new("compare").arg(Arg::new("limit").long("limit"));
        let program = Command::new("bimetal").subcommand(compare.clone());
        let of = |text: &str| options(&program, &compare, text, &[]);
        assert_eq!(of("[compare]\nlimit = 5\n[serve]\nlog = \"info\"\n"), Ok(vec!["--limit=5".to_owned()]));
        assert!(of("[serv]\nlog = \"info\"\n").unwrap_err().contains("`serv` is no command"));
    }

    #[cfg(live)]
    #[test]
    fn all_commands_that_only_some_builds_have_are_known() {
        use clap::Subcommand;
        let live = crate::args::LiveCommand::augment_subcommands(Command::new("bimetal"));
        let names: Vec<&str> = live.get_subcommands().map(Command::get_name).collect();
        assert_eq!(names, IN_SOME_BUILDS);
    }

    #[test]
    fn a_command_of_other_builds_is_named() {
        let said = |name: &str| {
            let error =
                Command::new("bimetal").subcommand(Command::new("compare")).try_get_matches_from(["bimetal", name]);
            not_in_this_build(&error.unwrap_err())
        };
        let Some(Failure::Message { text, .. }) = said("serve") else { panic!("no failure") };
        assert!(text.starts_with("`serve` is not in this build"), "{text}");
        assert!(said("server").is_none());
    }
}
