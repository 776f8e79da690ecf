//! How serving ends: at signals, and with the command that it was for.

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

/// How long the command has to end after the signal that stops the server.
const COMMAND_PATIENCE: Duration = Duration::from_millis(300);

/// Target of a stop signal.
#[derive(Default)]
pub struct Stopping(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// When a signal came.
    told_at: Option<Instant>,
    /// The command. Its number is not used for another process as long as this is open.
    command: Option<OwnedFd>,
}

impl State {
    /// Tells the command to end, if there is one and a signal has come.
    fn end_command(&self) {
        if let (Some(_), Some(command)) = (self.told_at, &self.command) {
            // One that has ended already is as it should be.
            let _ = pidfd_send_signal(command, Signal::TERM);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stopping {
    /// Stops the server at the first signal; another one ends the process as if there were no handler.
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

    /// Runs `command` with these variables, and with as many open files as this process could have at first, and stops the server
    /// when it ends.
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
        // They are for this process, not for the command.
        for variable in systemd::VARIABLES {
            shell.env_remove(variable);
        }
        let mut child = shell.spawn()?;
        // The system may be too old for this; then the command is left to itself.
        let held = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let mut state = lock(&self.0);
        state.command = held;
        state.end_command();
        drop(state);
        let (sender, ended) = channel();
        thread::spawn(move || {
            // Nobody listens any more if it took too long to end.
            let _ = sender.send(child.wait());
            stop.stop();
        });
        Ok(ended)
    }

    /// How the command ended; nothing if it was told to, for what becomes of it then says nothing.
    pub fn ended(&self, command: &Receiver<io::Result<ExitStatus>>) -> Result<Option<ExitStatus>, Failure> {
        let Some(told_at) = lock(&self.0).told_at else { return Ok(command.recv().ok().transpose()?) };
        if command.recv_timeout(COMMAND_PATIENCE.saturating_sub(told_at.elapsed())).is_err() {
            inform("the command of `--run` has not ended yet");
        }
        Ok(None)
    }
}
