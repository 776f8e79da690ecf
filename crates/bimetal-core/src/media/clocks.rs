//! When dies and channels are free: one busy-until clock each.
//!
//! What is ready starts when its die is free, and takes the channel for its transfer when that is. Background work is a
//! backlog of its die and is worked off while the die is idle.

use serde::{Deserialize, Serialize};

use crate::ledger::Timing;
use crate::units::Nanos;

/// A die.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Die {
    /// When the last foreground operation ends.
    free_at: u64,
    #[serde(with = "crate::save::fixed")]
    channel: u32,
    /// Background work not yet done at `free_at`.
    backlog_ns: u64,
    /// Longest operation in the backlog: what a foreground operation may have to wait for.
    backlog_op_ns: u64,
}

impl Die {
    /// When a foreground operation that is ready at `ready` can start, after the idle time up to then went into the
    /// backlog.
    #[inline]
    fn start(&mut self, ready: u64) -> u64 {
        if self.backlog_ns == 0 {
            return ready.max(self.free_at);
        }
        self.work_off(ready)
    }

    #[cold]
    fn work_off(&mut self, ready: u64) -> u64 {
        if ready <= self.free_at {
            return self.free_at;
        }
        let idle = ready - self.free_at;
        if self.backlog_ns <= idle {
            self.backlog_ns = 0;
            self.backlog_op_ns = 0;
            return ready;
        }
        // The operation in progress cannot be interrupted: wait for its end.
        let into_op = idle % self.backlog_op_ns;
        let rest = if into_op == 0 { 0 } else { self.backlog_op_ns - into_op };
        let worked = (idle + rest).min(self.backlog_ns);
        self.backlog_ns -= worked;
        self.free_at + worked
    }
}

/// The clocks of a device. Moments are in nanoseconds; a foreground operation returns the one at which it ends.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Clocks {
    #[serde(with = "crate::save::sized")]
    dies: Vec<Die>,
    /// When the last transfer over each channel ends.
    #[serde(with = "crate::save::table")]
    channels: Vec<u64>,
}

impl Clocks {
    /// Adds dies, spread over channels of their own. Returns the number of the first.
    pub(super) fn add(&mut self, dies: u32, channels: u32) -> u32 {
        let (first_die, first_channel) = (self.dies.len() as u32, self.channels.len() as u32);
        self.channels.extend((0..channels).map(|_| 0));
        self.dies.extend((0..dies).map(|die| Die { channel: first_channel + die % channels, ..Die::default() }));
        first_die
    }

    /// A page read: the die's array time, then the transfer.
    #[inline(always)]
    pub(super) fn read(&mut self, die: u16, ready: u64, timing: &Timing) -> u64 {
        let die = &mut self.dies[usize::from(die)];
        let sensed = die.start(ready) + timing.read.0;
        die.free_at = transfer(&mut self.channels, die.channel, sensed, timing);
        die.free_at
    }

    /// A page program: the transfer, then the die's array time.
    #[inline(always)]
    pub(super) fn program(&mut self, die: u16, ready: u64, timing: &Timing) -> u64 {
        let die = &mut self.dies[usize::from(die)];
        let start = die.start(ready);
        die.free_at = transfer(&mut self.channels, die.channel, start, timing) + timing.program.0;
        die.free_at
    }

    /// An operation that takes `time` within its die.
    #[inline]
    pub(super) fn work(&mut self, die: u16, ready: u64, time: Nanos) -> u64 {
        let die = &mut self.dies[usize::from(die)];
        die.free_at = die.start(ready) + time.0;
        die.free_at
    }

    /// Reads and programs that follow each other on one die and take `time` together: the die is the bottleneck of its
    /// own channel, so that the sum of the times is exact once the first transfer has got the channel. `timing` is that
    /// of the programs.
    #[inline]
    pub(super) fn copy_run(&mut self, die: u16, ready: u64, time: Nanos, timing: &Timing) -> u64 {
        let end = self.work(die, ready, time);
        let channel = self.dies[usize::from(die)].channel;
        self.channels[channel as usize] = end - timing.program.0;
        end
    }

    /// Puts a background operation on a die's backlog.
    #[inline]
    pub(super) fn defer(&mut self, die: u16, time: Nanos) {
        let die = &mut self.dies[usize::from(die)];
        die.backlog_ns += time.0;
        die.backlog_op_ns = die.backlog_op_ns.max(time.0);
    }

    /// When a die's last foreground operation ends.
    pub(super) fn free_at(&self, die: u16) -> u64 {
        self.dies[usize::from(die)].free_at
    }

    /// Keeps a die busy with something else until then.
    pub(super) fn occupy_until(&mut self, die: u16, end: u64) {
        self.dies[usize::from(die)].free_at = end;
    }

    /// Background work of the die that has most, if no more foreground work comes until `at_ns`.
    pub(super) fn backlog_ns(&self, at_ns: u64) -> u64 {
        let left = |die: &Die| die.backlog_ns.saturating_sub(at_ns.saturating_sub(die.free_at));
        self.dies.iter().map(left).max().unwrap_or(0)
    }

    /// Checks that no clock is beyond `far_ns`, and that a backlog consists of operations.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check(&self, far_ns: u64) -> Result<(), String> {
        let near = |moment: &u64| *moment <= far_ns;
        let is_sound =
            |die: &Die| near(&die.free_at) && near(&die.backlog_ns) && (die.backlog_ns == 0 || die.backlog_op_ns > 0);
        match self.dies.iter().position(|die| !is_sound(die)) {
            Some(die) => Err(format!("the clock of die {die} has run away")),
            None if self.channels.iter().all(near) => Ok(()),
            None => Err("the clock of a channel has run away".into()),
        }
    }

    /// All are free from the beginning, and nothing is left to do.
    pub(super) fn reset(&mut self) {
        for die in &mut self.dies {
            *die = Die { channel: die.channel, ..Die::default() };
        }
        self.channels.fill(0);
    }
}

/// Moves a page over its channel once it is `ready`. Returns when it has got there: at once where the array times include
/// the transfer.
#[inline(always)]
fn transfer(channels: &mut [u64], channel: u32, ready: u64, timing: &Timing) -> u64 {
    if timing.transfer.0 == 0 {
        return ready;
    }
    let channel = &mut channels[channel as usize];
    *channel = ready.max(*channel) + timing.transfer.0;
    *channel
}
