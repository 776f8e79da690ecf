//! Messages for users, on the standard error.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

/// Whether only warnings and errors are wanted: `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only warnings and errors are printed, and no progress is shown.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether only warnings and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a warning that a user should know before trusting a result.
pub fn warn(text: &str) {
    say("warning", AnsiColor::Yellow, text);
}

/// Prints the reason for a failure.
pub fn error(text: &str) {
    say("error", AnsiColor::Red, text);
}

/// Reports completed work.
pub fn inform(text: &str) {
    if !is_quiet() {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// Prints one line. Errors are ignored.
fn say(kind: &str, color: AnsiColor, text: &str) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    let line = text.replace('\n', "; ");
    let _ = writeln!(anstream::stderr().lock(), "{style}{kind}:{style:#} {line}");
}
