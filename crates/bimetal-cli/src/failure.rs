//! Failure of a command: one line of text, and the exit status.

use std::fmt;
use std::io;
use std::path::Path;

use bimetal_core::device::DeviceError;
use bimetal_core::scheme::BuildError;
use bimetal_core::trace::{ErrorKind, TraceError};
use bimetal_study::StudyError;
use bimetal_study::input::InputError;

/// The work failed.
const FAILED: u8 = 1;
/// The request is invalid.
const USAGE: u8 = 2;

/// Failure of a command.
#[derive(Debug)]
pub enum Failure {
    /// The message, and the exit status.
    Message { status: u8, text: String },
    /// The reader of the output is gone; nothing is reported.
    ClosedPipe,
}

impl Failure {
    /// The work failed.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::Message { status: FAILED, text: text.to_string() }
    }

    /// The request is invalid.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::Message { status: USAGE, text: text.to_string() }
    }

    /// The same, with the file to which it is due.
    pub fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Message { status, text } => Self::Message { status, text: format!("{}: {text}", path.display()) },
            Self::ClosedPipe => Self::ClosedPipe,
        }
    }

    /// A wrong command line.
    pub fn command_line(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        // An option that does not exist is rarely meant as a value.
        let is_of_use = |tip: &&str| !tip.starts_with("to pass ");
        let hint = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).filter(is_of_use);
        let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.strip_prefix("error: ").unwrap_or(&line);
        let line = with_backticks(line);
        let hint = hint.map_or_else(|| "see `--help`".to_owned(), with_backticks);
        Self::usage(format!("{line}; hint: {hint}"))
    }
}

/// Quotes around words as backticks. An apostrophe within or after a word remains.
fn with_backticks(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut is_open, mut is_in_word) = (false, false);
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let goes_on = rest.peek().is_some_and(|next| next.is_alphanumeric());
        let is_quote = character == '\'' && if is_open { !goes_on || !is_in_word } else { !is_in_word };
        is_open ^= is_quote;
        is_in_word = character.is_alphanumeric();
        shown.push(if is_quote { '`' } else { character });
    }
    shown
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::failed(error) }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Unknown { .. } => Self::usage(format!("{error}, or the path of a device file")),
            _ => Self::failed(error),
        }
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::usage(error)
    }
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        match error.kind() {
            ErrorKind::Option | ErrorKind::Device => Self::usage(error),
            _ => Self::failed(error),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Trace(error) => error.into(),
            InputError::NoFile | InputError::Device { .. } => Self::usage(error),
            _ => Self::failed(error),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_become_backticks_and_apostrophes_remain() {
        for (text, shown) in [
            ("unexpected argument '--nosuch' found", "unexpected argument `--nosuch` found"),
            ("'--limit <N>' but none", "`--limit <N>` but none"),
            ("value '' for '-x': the trace's speed", "value `` for `-x`: the trace's speed"),
            ("value 'it's' of the readers' kind", "value `it's` of the readers' kind"),
        ] {
            assert_eq!(with_backticks(text), shown);
        }
    }
}
