//! Lines for people, on the standard error.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

/// Whether only warnings and errors are wanted: `--quiet`.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only warnings and errors are said, and no progress is shown.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether that is so.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Warns of what a user should know before trusting a result.
pub fn warn(text: &str) {
    say("warning", AnsiColor::Yellow, text);
}

/// Says why the command ends without success.
pub fn error(text: &str) {
    say("error", AnsiColor::Red, text);
}

/// Reports completed work.
pub fn inform(text: &str) {
    if !is_quiet() {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// One line; nobody listening there is no reason to fail.
fn say(kind: &str, color: AnsiColor, text: &str) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    let line = text.replace('\n', "; ");
    let _ = writeln!(anstream::stderr().lock(), "{style}{kind}:{style:#} {line}");
}
