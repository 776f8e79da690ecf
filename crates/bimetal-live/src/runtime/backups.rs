//! The endpoint at which `bimetal copy` asks for a backup of a store that is served.

use std::path::Path;
use std::sync::Arc;

use crate::backup::{Backups, wire};
use crate::endpoint::Endpoint;
use crate::nbd::{Address, ListenError, Remote};
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
