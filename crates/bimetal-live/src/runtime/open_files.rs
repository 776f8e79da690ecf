//! The limit of open files.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{ServeError, Warning};
use crate::nbd::Options;

/// File descriptors reserved for the store; connections cannot use them.
const RESERVE: usize = 16;
/// File descriptors of the server itself: listening socket, wake-up pipe, signal pipe, a command that it runs.
const OWN: usize = 8;

/// Raises the limit of open files as far as this process may. Returns the previous limit; `None` if there was none.
///
/// # Errors
/// The system refused.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(current)
}

/// Limits the number of clients so that enough open files are left for the store, the server, and `conversations` of
/// other endpoints. All other files are open by now.
pub(super) fn limit_connections(options: &mut Options, conversations: usize) -> Result<Option<Warning>, ServeError> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(None) };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let open = std::fs::read_dir("/proc/self/fd").map_or(RESERVE, Iterator::count);
    let needed = open + OWN + RESERVE + conversations;
    // One further client is accepted, to be refused.
    let most = limit.saturating_sub(needed + 1);
    if most == 0 {
        return Err(ServeError::OpenFiles { limit, needed: needed + 2 });
    }
    let wanted = options.connections;
    if wanted <= most {
        return Ok(None);
    }
    options.connections = most;
    Ok(Some(Warning::FewerConnections { served: most, wanted, limit }))
}
