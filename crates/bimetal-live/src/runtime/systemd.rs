//! systemd: notifications (`Type=notify`), the watchdog, socket activation.
//!
//! systemd asks for these by environment variables. Without them, nothing here has an effect.

use std::env::VarError;
use std::os::fd::OwnedFd;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;

use crate::nbd::{ListenError, Listener, Remote};
use crate::store::{Status, Store};

/// The environment variables of systemd for this process. A child process should not inherit them.
pub const VARIABLES: [&str; 7] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "LISTEN_FDS_FIRST_FD",
];

/// Shortest time between two messages to the watchdog.
const WATCHDOG_MIN: Duration = Duration::from_millis(1);

/// The socket that systemd has passed to this process (`LISTEN_FDS`), if any. `remote` and `encrypted` decide whether
/// other machines may connect. To be called once, before threads are started, as it clears these variables.
///
/// # Errors
/// More than one was passed, or one that cannot be used.
pub fn passed_listener(remote: Remote, encrypted: bool) -> Result<Option<Listener>, ListenError> {
    // Before `ListenFd` makes a list of all of them, for which a wrong number leaves no memory.
    if let Some(many @ 2..) = passed_sockets() {
        return Err(ListenError::PassedMany(many));
    }
    let mut passed = ListenFd::from_env();
    match passed.len() {
        0 => return Ok(None),
        1 => {}
        many => return Err(ListenError::PassedMany(many)),
    }
    let unix = passed.take_unix_listener(0).ok().flatten().map(OwnedFd::from);
    let fd = unix.or_else(|| passed.take_tcp_listener(0).ok().flatten().map(OwnedFd::from));
    let fd = fd.ok_or(ListenError::Passed("is no socket for streams"))?;
    Listener::adopt(fd, remote, encrypted).map(Some)
}

/// Number of sockets that the environment has for this process. `LISTEN_PID` is read as [`ListenFd`] reads it.
fn passed_sockets() -> Option<usize> {
    let is_for_us = match std::env::var("LISTEN_PID") {
        Ok(process) => process.is_empty() || process.parse() == Ok(std::process::id()),
        Err(error) => error == VarError::NotPresent,
    };
    let number = std::env::var("LISTEN_FDS").ok()?.parse().ok()?;
    is_for_us.then_some(number)
}

/// Whether systemd requests notifications.
pub(super) fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Notifies systemd, if it requests that. Failures are ignored: systemd has its own time limits.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}

/// Tells systemd that clients are served from now on.
pub(super) fn tell_ready(status: &Status) {
    let line = status_line(status.failure.as_deref(), status.is_full, 0);
    if let Err(error) = sd_notify::notify(&[NotifyState::Ready, NotifyState::Status(&line)]) {
        tracing::warn!(%error, "systemd was not told that clients are served");
    }
}

/// Tells systemd that the service is stopping.
pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("Closing the store")]);
}

/// Time between two messages to the watchdog, if there is one: half of the time after which it ends this process.
pub(super) fn watchdog_pause() -> Option<Duration> {
    sd_notify::watchdog_enabled().map(|limit| (limit / 2).max(WATCHDOG_MIN))
}

/// Tells the watchdog that the store answers. If the store does not, this call blocks, and systemd restarts the service.
pub(super) fn feed_watchdog(store: &Store) {
    store.events();
    tell(&[NotifyState::Watchdog]);
}

/// A line for `systemctl status`.
pub(super) fn tell_status(status: &Status, clients: u64) {
    let line = status_line(status.failure.as_deref(), status.is_full, clients);
    tell(&[NotifyState::Status(&line)]);
}

fn status_line(failure: Option<&str>, is_full: bool, clients: u64) -> String {
    match failure {
        Some(failure) => format!("Read-only: {}", failure.replace('\n', "; ")),
        None if is_full => "No room in the file system: writes are refused".into(),
        None if clients == 1 => "Serving 1 client".into(),
        None => format!("Serving {clients} clients"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_one_line_with_the_worst_first() {
        assert_eq!(status_line(None, false, 0), "Serving 0 clients");
        assert_eq!(status_line(None, false, 1), "Serving 1 client");
        assert_eq!(status_line(None, true, 1), "No room in the file system: writes are refused");
        assert_eq!(status_line(Some("a commit\nREADY=1"), true, 1), "Read-only: a commit; READY=1");
    }
}
