//! The endpoint at which `bimetal copy` asks for a backup of a store that is served, and the end of a backup when the
//! server stops.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::backup::{Backups, wire};
use crate::endpoint::Endpoint;
use crate::nbd::{Address, ListenError, Remote, Stop};
use crate::store::Store;

/// Name of the socket for `bimetal copy`, in the store's directory.
pub const BACKUP_SOCKET: &str = "backup.sock";

/// Maximum number of clients: one that gets a backup, and another that is refused.
pub(super) const CLIENTS: usize = 2;

/// Serves clients that ask for a backup.
pub(super) fn open(directory: &Path, store: &Arc<Store>, backups: &Arc<Backups>) -> Result<Endpoint, ListenError> {
    let (store, backups) = (Arc::clone(store), Arc::clone(backups));
    // No client is replaced: a backup may take any time.
    Endpoint::with(
        &Address::Unix(directory.join(BACKUP_SOCKET)),
        Remote::Refused,
        CLIENTS,
        |_| None,
        move |client| wire::serve(client, &store, &backups),
    )
}

/// Waits until a service is to stop, ends its backup, and stops its server. A server waits for its clients, and their
/// changes for the backup, which may take any time.
pub(super) fn end_at_stop(service: &Stop, woken: &OwnedFd, backups: &Backups, server: &Stop) {
    while !service.wanted() {
        match poll(&mut [PollFd::new(woken, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(%error, "the server stops, because nothing else could stop it");
                break;
            }
        }
    }
    backups.close();
    server.stop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::thread;

    use crate::MemoryDevice;
    use crate::backup::Sink;

    struct Nowhere;

    impl Sink for Nowhere {
        fn take(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }

        fn lose(&mut self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_backup_ends_before_the_server_stops() {
        let backups = Backups::new(Arc::new(MemoryDevice::new(8)));
        let [(service, woken), (server, _woken)] = [Stop::new().unwrap(), Stop::new().unwrap()];
        let mut running = backups.begin(Box::new(Nowhere)).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| end_at_stop(&service, &woken, &backups, &server));
            assert!(!waiting.is_finished() && !server.wanted());
            service.stop();
            waiting.join().unwrap();
        });
        assert!(server.wanted() && running.step().is_err());
    }
}
