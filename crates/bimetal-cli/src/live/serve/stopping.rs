//! The end of serving: at a signal, or with the command of `--run`.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bimetal_live::nbd::Stop;
use bimetal_live::runtime::{at_signals, systemd};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::failure::Failure;
use crate::inform;

/// Time for the command to end, after the signal that stops the server.
const COMMAND_PATIENCE: Duration = Duration::from_millis(300);

/// Target of a stop signal.
#[derive(Default)]
pub struct Stopping(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Time of the first signal.
    told_at: Option<Instant>,
    /// The command. Its process number is not reused while this is open.
    command: Option<OwnedFd>,
}

impl State {
    /// Tells the command to end, if there is one and a signal has arrived.
    fn end_command(&self) {
        if let (Some(_), Some(command)) = (self.told_at, &self.command) {
            // An error means that it has ended already.
            let _ = pidfd_send_signal(command, Signal::TERM);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stopping {
    /// Stops the server at the first signal; a later one ends the process as if there were no handler.
    pub fn at_signals(stop: Stop) -> Result<Self, Failure> {
        let stopping = Self::default();
        let state = Arc::clone(&stopping.0);
        at_signals(move || {
            inform("stopping");
            let mut state = lock(&state);
            state.told_at = Some(Instant::now());
            state.end_command();
            stop.stop();
        })?;
        Ok(stopping)
    }

    /// Runs `command` with these variables and this process's original limit of open files. Stops the server when it
    /// ends.
    pub fn run(
        &self,
        command: &str,
        variables: Vec<(&str, OsString)>,
        open_files: Option<u64>,
        stop: Stop,
    ) -> io::Result<Receiver<io::Result<ExitStatus>>> {
        let files = open_files.map_or_else(|| "unlimited".to_owned(), |files| files.to_string());
        let script = "ulimit -S -n \"$1\"; exec sh -c \"$2\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh", &files, command]).envs(variables);
        // These variables are for this process, not for the command.
        for variable in systemd::VARIABLES {
            shell.env_remove(variable);
        }
        let mut child = shell.spawn()?;
        // An old system may not support this; then the command is not told to end.
        let held = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let mut state = lock(&self.0);
        state.command = held;
        state.end_command();
        drop(state);
        let (sender, ended) = channel();
        thread::spawn(move || {
            // If it took too long to end, the result is not awaited any more.
            let _ = sender.send(child.wait());
            stop.stop();
        });
        Ok(ended)
    }

    /// Exit status of the command; `None` if it was told to end, because its status then has no meaning.
    pub fn ended(&self, command: &Receiver<io::Result<ExitStatus>>) -> Result<Option<ExitStatus>, Failure> {
        let Some(told_at) = lock(&self.0).told_at else { return Ok(command.recv().ok().transpose()?) };
        if command.recv_timeout(COMMAND_PATIENCE.saturating_sub(told_at.elapsed())).is_err() {
            inform("the command of `--run` has not ended yet");
        }
        Ok(None)
    }
}
