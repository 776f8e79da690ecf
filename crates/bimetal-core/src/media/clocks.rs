//! Clocks of dies and channels: one busy-until time each.
//!
//! An operation starts when its input is ready and its die is free, and occupies the channel for its transfer. A
//! channel does not wait for data that are not ready: it transfers other pages first. Background work is a backlog of
//! its die, which is worked off while the die is idle.
//!
//! Dies that read and program pages together have registers. One holds the sensed pages, which leave over the channel
//! while the die does other work. Another holds the next wordline, which is transferred while the array programs the
//! previous one. A host read takes precedence over other work of its die and channel, and suspends a program or an
//! erase.

use serde::{Deserialize, Serialize};

use crate::ledger::Timing;
use crate::save::Table;
use crate::units::Nanos;

/// A die.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Die {
    /// Time at which the last foreground operation ends.
    free_at: u64,
    #[serde(with = "crate::save::fixed")]
    channel: u32,
    /// Background work not yet done at `free_at`.
    backlog_ns: u64,
    /// Mean duration of the operations in the backlog, each weighted by its duration: that of the operation which is in
    /// progress at a random time.
    backlog_op_ns: u64,
}

impl Die {
    /// Time at which a foreground operation that is ready at `ready` can start. The idle time before it is used for the
    /// backlog.
    #[inline]
    fn start(&mut self, ready: u64) -> u64 {
        if self.backlog_ns == 0 {
            return ready.max(self.free_at);
        }
        self.work_off(ready)
    }

    /// Whether background work is left when a read arrives at `now` that need not wait for it. The idle time before
    /// `now` is used for the backlog.
    #[inline]
    fn is_behind(&mut self, now: u64) -> bool {
        if self.backlog_ns > 0 && now > self.free_at {
            self.backlog_ns = self.backlog_ns.saturating_sub(now - self.free_at);
            self.backlog_op_ns = if self.backlog_ns == 0 { 0 } else { self.backlog_op_ns };
            self.free_at = now;
        }
        self.backlog_ns > 0
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
        // The operation in progress cannot be interrupted, so wait for its end.
        let into_op = idle % self.backlog_op_ns;
        let rest = if into_op == 0 { 0 } else { self.backlog_op_ns - into_op };
        let worked = (idle + rest).min(self.backlog_ns);
        self.backlog_ns -= worked;
        self.free_at + worked
    }
}

/// The registers of a die that reads and programs pages together.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Registers {
    /// The group of pages that was sensed last, the request for which it was sensed, and the time at which it was in
    /// the registers; 0 if never.
    sensed_group: u32,
    sensed_for: u64,
    sensed_at: u64,
    /// Time at which all sensed pages have left the registers.
    sent_at: u64,
    /// Time at which the host reads that suspended other operations have ended.
    reads_end: u64,
    /// Time at which the pages of the wordline being loaded have arrived.
    loaded_at: u64,
    /// Time from which the next wordline can be loaded.
    free_at: u64,
}

impl Registers {
    /// Whether the registers hold this group of pages, sensed for the same request.
    #[inline]
    fn has_sensed(&self, group: u32, sensed_for: u64) -> bool {
        group != NO_GROUP && self.sensed_group == group && self.sensed_for == sensed_for && self.sensed_at > 0
    }

    fn sense(&mut self, group: u32, sensed_for: u64, sensed_at: u64) {
        (self.sensed_group, self.sensed_for, self.sensed_at) = (group, sensed_for, sensed_at);
    }

    /// Time at which pages can be sensed ahead of the die's other work. That work resumes when the die has been used
    /// for `share_ns`.
    fn start_first(&mut self, die: &mut Die, now: u64, suspend_ns: u64, share_ns: u64) -> u64 {
        let turn = now.max(self.reads_end);
        let is_busy = die.free_at > turn || die.is_behind(turn);
        let start = if is_busy { turn + suspend_ns } else { turn };
        self.reads_end = start + share_ns;
        die.free_at = if die.free_at > turn { die.free_at + (self.reads_end - turn) } else { self.reads_end };
        start
    }
}

/// Group number of pages that are sensed alone.
pub(super) const NO_GROUP: u32 = u32::MAX;

/// Time that marks pages sensed in the background.
const IN_BACKGROUND: u64 = u64::MAX;

/// The times at which all pages of a channel that are read in each cell mode can have arrived. No page can arrive sooner
/// than one sensing time from now.
type OfModes = [u64; 2];

/// The clocks of a device. Times are in nanoseconds; a foreground operation returns its end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Clocks {
    #[serde(with = "crate::save::sized")]
    dies: Vec<Die>,
    /// By channel: time at which all transfers so far end, if their data are ready.
    channels: Table<u64>,
    /// The same for host reads, which take precedence, on channels of dies with registers.
    read_channels: Table<u64>,
    /// By channel. They are not saved: the first use after a restart makes them again.
    #[serde(skip)]
    mode_reads: Vec<OfModes>,
    #[serde(with = "crate::save::sized")]
    registers: Vec<Registers>,
}

impl Clocks {
    /// Adds dies, spread over `channels` channels that only they use. Returns the number of the first die.
    pub(super) fn add(&mut self, dies: u32, channels: u32) -> u32 {
        let (first_die, first_channel) = (self.dies.len() as u32, self.channels.len() as u32);
        self.channels = vec![0; (first_channel + channels) as usize].into();
        self.read_channels = self.channels.clone();
        self.mode_reads = vec![OfModes::default(); self.channels.len()];
        self.registers.resize(self.dies.len() + dies as usize, Registers::default());
        self.dies.extend((0..dies).map(|die| Die { channel: first_channel + die % channels, ..Die::default() }));
        first_die
    }

    /// A page read: the die's array time, then the transfer.
    #[inline(always)]
    pub(super) fn read(&mut self, (die, mode): (u16, u8), now: u64, timing: &Timing) -> u64 {
        let die = &mut self.dies[usize::from(die)];
        let mut end = die.start(now) + timing.read.0;
        // Array times without a transfer include it.
        if timing.transfer.0 > 0 {
            let queue = queued(&mut self.channels[die.channel as usize], now, timing.transfer);
            let reads = of_mode(&mut self.mode_reads, &self.channels, die.channel, mode);
            end = (end + timing.transfer.0).max(queue).max(queued(reads, now + timing.read.0, timing.transfer));
        }
        die.free_at = end;
        end
    }

    /// A page program: the transfer, then the die's array time.
    #[inline(always)]
    pub(super) fn program(
        &mut self,
        die: u16,
        (now, ready): (u64, u64),
        (transfer, array_time): (Nanos, Nanos),
    ) -> u64 {
        let die = &mut self.dies[usize::from(die)];
        let mut loaded = die.start(ready);
        if transfer.0 > 0 {
            let queue = queued(&mut self.channels[die.channel as usize], now, transfer);
            loaded = (loaded + transfer.0).max(queue);
        }
        die.free_at = loaded + array_time.0;
        die.free_at
    }

    /// An operation that occupies its die for `time`.
    #[inline]
    pub(super) fn work(&mut self, die: u16, ready: u64, time: Nanos) -> u64 {
        let die = &mut self.dies[usize::from(die)];
        die.free_at = die.start(ready) + time.0;
        die.free_at
    }

    /// Reads and programs that follow each other on one die and take `time` together. The die is the bottleneck of its
    /// own channel, so the sum of the times is exact once the first transfer has got the channel. The last program takes
    /// `program` after its transfer.
    #[inline]
    pub(super) fn copy_run(&mut self, die: u16, ready: u64, time: Nanos, program: Nanos) -> u64 {
        let end = self.work(die, ready, time);
        let channel = self.dies[usize::from(die)].channel;
        self.channels[channel as usize] = end - program.0;
        end
    }

    /// A page read by a die that senses the pages of a group together. Returns the time at which the page is in the
    /// controller, and whether it was sensed together with the previous page. A host read takes precedence.
    pub(super) fn read_grouped(
        &mut self,
        (die, mode): (u16, u8),
        now: u64,
        group: u32,
        host: bool,
        timing: &Timing,
    ) -> (u64, bool) {
        let (die, registers) = (&mut self.dies[usize::from(die)], &mut self.registers[usize::from(die)]);
        let together = registers.has_sensed(group, now);
        let [first, further] = timing.read_share;
        let suspend = timing.suspend.filter(|_| host);
        if together {
            die.free_at += further.0;
            registers.reads_end += if suspend.is_some() { further.0 } else { 0 };
        } else {
            let start = match suspend {
                Some(suspend) => registers.start_first(die, now, suspend.0, first.0),
                None => {
                    let start = die.start(now);
                    die.free_at = start + first.0;
                    start
                }
            };
            registers.sense(group, now, (start + timing.read.0).max(registers.sent_at));
        }
        let (transfer, arrived, channel) =
            (timing.transfer, registers.sensed_at + timing.transfer.0, die.channel as usize);
        let queue = queued(&mut self.channels[channel], now, transfer);
        let end = if host {
            let of_host = queued(&mut self.read_channels[channel], now, transfer);
            let reads = of_mode(&mut self.mode_reads, &self.channels, die.channel, mode);
            arrived.max(of_host).max(queued(reads, now + timing.read.0, transfer))
        } else {
            arrived.max(queue)
        };
        registers.sent_at = registers.sent_at.max(end);
        (end, together)
    }

    /// Loads a page into the registers of a die. If it is the `last` page of its wordline, the wordline is programmed
    /// in `array_time`. Returns the end of the program; for a page that is not the last, the end as if it were. Until
    /// then the controller keeps the page, since a program may fail.
    ///
    /// A channel does not wait for a page that cannot be loaded yet: it transfers other pages first.
    pub(super) fn program_grouped(
        &mut self,
        die: u16,
        (now, ready): (u64, u64),
        last: bool,
        (transfer, array_time): (Nanos, Nanos),
    ) -> u64 {
        let (die, registers) = (&mut self.dies[usize::from(die)], &mut self.registers[usize::from(die)]);
        let queue = queued(&mut self.channels[die.channel as usize], now, transfer);
        let loaded = (ready.max(registers.free_at) + transfer.0).max(queue);
        registers.loaded_at = registers.loaded_at.max(loaded);
        if !last {
            return registers.loaded_at.max(die.free_at) + array_time.0;
        }
        let start = die.start(registers.loaded_at);
        registers.free_at = start;
        die.free_at = start + array_time.0;
        die.free_at
    }

    /// Adds a background page read to a die's backlog. Returns whether the page is sensed together with the previous
    /// one.
    pub(super) fn defer_read_grouped(&mut self, die: u16, group: u32, timing: &Timing) -> bool {
        let registers = &mut self.registers[usize::from(die)];
        let together = registers.has_sensed(group, IN_BACKGROUND);
        if !together {
            registers.sense(group, IN_BACKGROUND, 1);
        }
        self.defer(die, if together { timing.transfer } else { timing.read + timing.transfer });
        together
    }

    /// Adds a background operation to a die's backlog.
    #[inline]
    pub(super) fn defer(&mut self, die: u16, time: Nanos) {
        let die = &mut self.dies[usize::from(die)];
        die.backlog_op_ns = mean_with(die.backlog_op_ns, die.backlog_ns, time.0);
        die.backlog_ns += time.0;
    }

    /// Time at which a die's last foreground operation ends.
    pub(super) fn free_at(&self, die: u16) -> u64 {
        self.dies[usize::from(die)].free_at
    }

    /// Keeps a die busy until `end` with work that is not timed here.
    pub(super) fn occupy_until(&mut self, die: u16, end: u64) {
        self.dies[usize::from(die)].free_at = end;
    }

    /// Background work of the die with the largest backlog at `at_ns`, if no more foreground work arrives before.
    pub(super) fn backlog_ns(&self, at_ns: u64) -> u64 {
        let left = |die: &Die| die.backlog_ns.saturating_sub(at_ns.saturating_sub(die.free_at));
        self.dies.iter().map(left).max().unwrap_or(0)
    }

    /// Checks that no clock is beyond `far_ns`, and that a backlog consists of operations.
    ///
    /// # Errors
    /// The first violation.
    pub(super) fn check(&self, far_ns: u64) -> Result<(), String> {
        let near = |moment: &u64| *moment <= far_ns;
        let are_near = |registers: &Registers| {
            let Registers { sensed_at, sent_at, reads_end, loaded_at, free_at, .. } = registers;
            [sensed_at, sent_at, reads_end, loaded_at, free_at].into_iter().all(near)
        };
        let is_sound =
            |die: &Die| near(&die.free_at) && near(&die.backlog_ns) && (die.backlog_ns == 0 || die.backlog_op_ns > 0);
        match self.dies.iter().position(|die| !is_sound(die)) {
            Some(die) => Err(format!("a time of die {die} is too far in the future")),
            None if !self.registers.iter().all(are_near) => Err("a time of registers is too far in the future".into()),
            None if self.channels.iter().chain(&self.read_channels).all(near) => Ok(()),
            None => Err("a time of a channel is too far in the future".into()),
        }
    }

    /// Resets all clocks to 0 and clears the backlogs.
    pub(super) fn reset(&mut self) {
        for die in &mut self.dies {
            *die = Die { channel: die.channel, ..Die::default() };
        }
        self.channels.fill(0);
        self.read_channels.fill(0);
        self.mode_reads.fill(OfModes::default());
        self.registers.fill(Registers::default());
    }
}

/// The mean duration of operations that take `total` together, each weighted by its duration, with one more of `own`.
#[inline]
fn mean_with(mean: u64, total: u64, own: u64) -> u64 {
    if own == mean || total == 0 {
        return own;
    }
    // Short backlogs of short operations, which are nearly all, need no wide division.
    let narrow = mean.checked_mul(total).zip(own.checked_mul(own)).and_then(|(past, own)| past.checked_add(own));
    match narrow {
        Some(weighted) => weighted / (total + own),
        None => {
            let [mean, total, own] = [mean, total, own].map(u128::from);
            ((mean * total + own * own) / (total + own)) as u64
        }
    }
}

/// The clock of a channel for pages in one cell mode.
#[inline(always)]
fn of_mode<'a>(reads: &'a mut Vec<OfModes>, channels: &Table<u64>, channel: u32, mode: u8) -> &'a mut u64 {
    if reads.is_empty() {
        reads.resize(channels.len(), OfModes::default());
    }
    &mut reads[channel as usize][usize::from(mode)]
}

/// Adds a transfer that may begin at `from` to those of a channel. Returns the time at which all of them can have ended.
#[inline(always)]
fn queued(clock: &mut u64, from: u64, time: Nanos) -> u64 {
    *clock = (*clock).max(from) + time.0;
    *clock
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::random::below;

    /// The mean is that of exact arithmetic, also where that needs more than 64 bits.
    #[test]
    fn a_mean_is_exact_for_short_and_for_long_backlogs() {
        let (mut state, mut wide) = (1, 0);
        for _ in 0..10_000 {
            let mut draw = |bits_max| {
                let bits = below(&mut state, bits_max);
                below(&mut state, 1 << bits)
            };
            let [mean, total, own] = [40, 60, 40].map(&mut draw);
            let [of, over, one] = [mean, total, own].map(u128::from);
            let weighted = of * over + one * one;
            wide += u32::from(weighted > u128::from(u64::MAX));
            assert_eq!(u128::from(mean_with(mean, total, own)), weighted.checked_div(over + one).unwrap_or(0));
        }
        assert!((100..5000).contains(&wide), "{wide}");
        assert_eq!([mean_with(7, 21, 7), mean_with(0, 0, 5), mean_with(0, 0, 0)], [7, 5, 0]);
    }
}
