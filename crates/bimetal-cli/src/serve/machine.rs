//! What the system lets a server have open.

use bimetal_live::nbd::Options;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;
use crate::warn;

/// File descriptors reserved for the store; connections cannot use them.
const RESERVE: usize = 16;
/// File descriptors of the server itself: listening socket, wake-up pipe, signal pipe, the command of `--run`.
const OWN: usize = 8;

/// Raises the limit of open files as far as this process may; what it was before.
pub fn raise_open_files() -> Result<Option<u64>, Failure> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).map_err(std::io::Error::from)?;
    }
    Ok(current)
}

/// Limits the number of clients so that enough open files are left for the store, the rest, and `conversations` with those
/// who ask for figures. Everything else has been opened by now.
pub fn limit_connections(options: &mut Options, conversations: usize) -> Result<(), Failure> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let open = std::fs::read_dir("/proc/self/fd").map_or(RESERVE, Iterator::count);
    let needed = open + OWN + RESERVE + conversations;
    // One more is accepted, to be turned away.
    let most = limit.saturating_sub(needed + 1);
    if most == 0 {
        return Err(Failure::failed(format!(
            "this process may have {limit} files open, and needs {} to serve one client; raise the limit (`ulimit -n`)",
            needed + 2
        )));
    }
    if options.connections > most {
        warn(&format!(
            "only {most} of {} connections are served: this process may have {limit} files open, and keeps some for the \
             store; raise the limit (`ulimit -n`)",
            options.connections
        ));
        options.connections = most;
    }
    Ok(())
}

/// Whether the process was started so that it survives the end of its terminal.
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit is that of the first signal, SIGHUP.
    ignored.is_some_and(|mask| mask & 1 != 0)
}
