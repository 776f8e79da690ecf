//! Signals that end serving.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

/// Signals within this time are one request to stop: `timeout` sends one to its child, and then to the whole process group.
const TOGETHER: Duration = Duration::from_millis(200);

/// Calls `stop` at the first SIGTERM, SIGINT or SIGHUP. A later one ends the process as if there were no handler. SIGHUP means
/// nothing under `nohup`. A write beyond the process's limit of file sizes becomes an error instead of the end (SIGXFSZ).
///
/// # Errors
/// The system refused a pipe or a thread.
pub fn at_signals(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut handled = vec![SIGINT, SIGTERM];
    if !ignores_hangup() {
        handled.push(SIGHUP);
    }
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let mut signals = Signals::new(handled)?;
    let wait = move || {
        let mut arrived = signals.forever();
        if arrived.next().is_none() {
            return;
        }
        let stopped_at = Instant::now();
        stop();
        // The end of a session sends SIGHUP in addition to another signal: that is not a second request.
        if let Some(signal) = arrived.find(|&signal| signal != SIGHUP && stopped_at.elapsed() > TOGETHER) {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    };
    thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// Whether the process was started so that it survives the end of its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is that of the first signal, SIGHUP.
    ignored.is_some_and(|mask| mask & 1 != 0)
}
