//! The controller of a drive of today, between the host and the scheme.
//!
//! ```text
//!  host ──link──▶ command ──▶ write buffer ──whole wordlines──▶ scheme ──▶ flash
//!                    └─ read: sectors not in the buffer ──────────▲
//! ```
//!
//! A write is acknowledged when it is in the buffer. Sectors that are overwritten there never reach the flash. When all
//! of the buffer is full, writes wait for data on their way to the flash. A buffer that is protected against power cuts
//! keeps data in half of its room, so that they can be overwritten. An unprotected buffer writes out each wordline as
//! soon as it is full, and everything when the host is idle.
//!
//! The papers' devices have no controller: their requests go directly to the scheme.

mod front;
mod link;
mod map_cache;
mod write_buffer;

use serde::{Deserialize, Serialize};

pub use self::front::{Direct, Front};
use self::link::Link;
use self::map_cache::MapCache;
use self::write_buffer::{UNIT_SECTORS, WriteBuffer};
use crate::ledger::{Server, ServerKind};
use crate::media::Simulation;
use crate::request::{Op, Request, SECTOR_BYTES};
use crate::scheme::{Metrics, Scheme, ratio};
use crate::units::{ByteSize, Nanos};

/// A controller as a device file describes it: `[controller]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSettings {
    /// Rate of the host link in each direction, in MB/s (10^6 bytes), protocol included.
    pub link_mb_per_s: f64,
    /// Whether the link moves data in one direction at a time, as SATA does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half_duplex: bool,
    /// Time for which a command occupies the controller, in microseconds: its reciprocal limits the requests per
    /// second.
    #[serde(default)]
    pub command_us: f64,
    /// Time in which the controller moves and maps each 4 KiB of a command, in microseconds. With one command at a time
    /// it adds to the transfer; with several commands these times overlap.
    #[serde(default)]
    pub us_per_4kib: f64,
    /// Latency of a read in addition to the times above, its flash and its transfers, in microseconds: host, link and
    /// firmware.
    #[serde(default)]
    pub read_latency_us: f64,
    /// The same for a write, up to its acknowledgement.
    #[serde(default)]
    pub write_latency_us: f64,
    /// Size of the write buffer; 0: writes are acknowledged when the flash has them.
    #[serde(default)]
    pub buffer: ByteSize,
    /// Whether the buffer survives a power cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub power_protected: bool,
    /// Memory for the map if it does not hold the whole map: a page of the map that is not in it is read from flash
    /// first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache: Option<ByteSize>,
    /// Share of what the slow cells could do that folding into them reaches, above 0 and up to 1: the rest goes into firmware.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub fold_efficiency: f64,
}

fn all() -> f64 {
    1.0
}

fn is_all(share: &f64) -> bool {
    *share == 1.0
}

/// Longest latency or time that is accepted: a second.
const TIME_MAX_US: f64 = 1e6;
/// Largest size that is accepted: more than any drive has, and within the limits of the tables.
const BUFFER_MAX: u64 = 64 << 30;

/// Largest logical capacity with a write buffer, in bytes: it numbers units with 32 bits.
pub const BUFFERED_MAX: u64 = (UNIT_SECTORS as u64 * SECTOR_BYTES) << 32;

impl ControllerSettings {
    /// Checks each figure.
    ///
    /// # Errors
    /// The wrong field, and the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if !(self.link_mb_per_s > 0.0 && self.link_mb_per_s <= 1e6) {
            return Err(("link_mb_per_s", format!("{} is not above 0 and up to 1000000 MB/s", self.link_mb_per_s)));
        }
        let times = [
            ("command_us", self.command_us),
            ("us_per_4kib", self.us_per_4kib),
            ("read_latency_us", self.read_latency_us),
            ("write_latency_us", self.write_latency_us),
        ];
        if let Some(&(field, us)) = times.iter().find(|(_, us)| !(0.0..=TIME_MAX_US).contains(us)) {
            return Err((field, format!("{us} is not within 0 to {TIME_MAX_US} microseconds")));
        }
        if !(self.fold_efficiency > 0.0 && self.fold_efficiency <= 1.0) {
            return Err(("fold_efficiency", format!("{} is not above 0 and up to 1", self.fold_efficiency)));
        }
        for (field, bytes) in [("buffer", self.buffer), ("map_cache", self.map_cache.unwrap_or_default())] {
            if bytes.0 > BUFFER_MAX {
                return Err((field, format!("{bytes} is more than {}", ByteSize(BUFFER_MAX))));
            }
        }
        Ok(())
    }
}

/// A controller as the replay needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Its settings.
    pub settings: ControllerSettings,
    /// Sectors of a wordline of the slow cells, which the buffer writes out together.
    pub wordline_sectors: u32,
    /// Sectors that an entry of the map covers.
    pub mapping_sectors: u32,
    /// Sectors that the host sees.
    pub logical_sectors: u64,
}

/// Counts since measuring started.
#[derive(Clone, Debug, Default)]
struct Counts {
    written_sectors: u64,
    overwritten_sectors: u64,
    read_sectors: u64,
    hit_sectors: u64,
    waited_ns: u64,
    wordlines: u64,
    commands: u64,
}

/// The state of a controller during a replay.
#[derive(Debug)]
pub struct Controller {
    link: Link,
    command_ns: u64,
    sector_ps: u64,
    read_latency_ns: u64,
    write_latency_ns: u64,
    /// Until when commands occupy it.
    busy_until_ns: u64,
    buffer: Option<WriteBuffer>,
    /// Time at which the buffer had room for the previous sectors: data do not overtake each other.
    admitted_ns: u64,
    is_protected: bool,
    map_cache: Option<MapCache>,
    counts: Counts,
}

impl Controller {
    /// A controller with an empty buffer.
    pub fn new(spec: &Spec) -> Self {
        let Spec { settings, wordline_sectors, mapping_sectors, logical_sectors } = spec;
        let ns = |us: f64| (us * 1000.0).round() as u64;
        let units = (settings.buffer.0 / (u64::from(UNIT_SECTORS) * 512)) as u32;
        let wordline_units = wordline_sectors.div_ceil(UNIT_SECTORS).clamp(1, (units / 2).max(1));
        let frames = units / wordline_units;
        // Frames kept in the buffer to be overwritten: half of them if they survive a power cut.
        let kept_frames = if settings.power_protected { (frames / 2).max(1) } else { 1 };
        Self {
            link: Link::new(settings.link_mb_per_s, settings.half_duplex),
            command_ns: ns(settings.command_us),
            sector_ps: (settings.us_per_4kib * 1e6 / f64::from(UNIT_SECTORS)).round() as u64,
            read_latency_ns: ns(settings.read_latency_us),
            write_latency_ns: ns(settings.write_latency_us),
            busy_until_ns: 0,
            buffer: (units > 0).then(|| WriteBuffer::new(frames, wordline_units, kept_frames)),
            admitted_ns: 0,
            is_protected: settings.power_protected,
            map_cache: settings.map_cache.map(|bytes| MapCache::new(bytes, *mapping_sectors, *logical_sectors)),
            counts: Counts::default(),
        }
    }
}

impl Front for Controller {
    fn serve<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        issue_ns: u64,
    ) -> u64 {
        let start_ns = issue_ns.max(self.busy_until_ns) + self.command_ns;
        self.busy_until_ns = start_ns;
        self.counts.commands += 1;
        let moving_ns = u64::from(request.sectors) * self.sector_ps / 1000;
        match request.op {
            Op::Read => self.read(media, scheme, request, start_ns) + moving_ns,
            Op::Write => self.write(media, scheme, request, start_ns) + moving_ns,
            Op::Trim => {
                if let Some(buffer) = &mut self.buffer {
                    buffer.forget(request);
                }
                self.pass_on(media, scheme, request, start_ns)
            }
        }
    }

    /// A request that stays in the buffer does not need its map entry yet.
    #[inline]
    fn prefetch<M: Simulation>(&self, scheme: &dyn Scheme<M>, far: &Request, near: &Request) {
        let mut stays = false;
        if let Some(buffer) = &self.buffer {
            buffer.prefetch(near.sector);
            stays = buffer.keeps_frames();
        }
        if !(stays && far.op == Op::Write && near.op == Op::Write) {
            scheme.prefetch(far, near);
        }
    }

    /// Writes out a buffer that does not survive a power cut.
    fn idle<M: Simulation>(&mut self, media: &mut M, scheme: &mut dyn Scheme<M>, at_ns: u64) {
        if !self.is_protected {
            self.drain(media, scheme, at_ns);
        }
    }

    /// Writes out the whole buffer.
    fn drain<M: Simulation>(&mut self, media: &mut M, scheme: &mut dyn Scheme<M>, at_ns: u64) {
        while self.buffer.as_ref().is_some_and(WriteBuffer::has_waiting) {
            self.write_out(media, scheme, at_ns);
        }
    }

    fn reset_counts(&mut self) {
        self.counts = Counts::default();
        self.link.reset_counts();
        if let Some(cache) = &mut self.map_cache {
            cache.reset_counts();
        }
    }

    fn servers(&self) -> Vec<Server> {
        let commands = Nanos(self.counts.commands * self.command_ns);
        vec![
            Server { kind: ServerKind::Controller, count: 1, busy: commands },
            Server { kind: ServerKind::Link, count: 1, busy: self.link.busiest() },
        ]
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let Counts { written_sectors, overwritten_sectors, read_sectors, hit_sectors, waited_ns, wordlines, .. } =
            self.counts;
        metrics.push("link_busy_s", self.link.busy_s());
        metrics.push("buffer_overwrite_ratio", ratio(overwritten_sectors, written_sectors));
        metrics.push("buffer_read_hit_ratio", ratio(hit_sectors, read_sectors));
        metrics.push("buffer_wait_s", waited_ns as f64 / 1e9);
        metrics.count("buffer_wordlines", wordlines);
        if let Some(cache) = &self.map_cache {
            metrics.push("map_cache_hit_ratio", cache.hit_ratio());
        }
    }
}

impl Controller {
    fn read<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        start_ns: u64,
    ) -> u64 {
        self.counts.read_sectors += u64::from(request.sectors);
        let Some(buffer) = &mut self.buffer else {
            let ready_ns = self.pass_on(media, scheme, request, start_ns);
            return self.link.send(request, start_ns, ready_ns) + self.read_latency_ns;
        };
        buffer.retire(start_ns);
        let (mut ready_ns, mut sector) = (start_ns, request.sector);
        while sector < request.end() {
            let buffer = self.buffer.as_ref();
            let (is_hit, end) = buffer.map_or((false, request.end()), |buffer| buffer.run(sector, request.end()));
            let sectors = (end - sector) as u32;
            if is_hit {
                self.counts.hit_sectors += u64::from(sectors);
            } else {
                let missed = Request { sector, sectors, ..*request };
                ready_ns = ready_ns.max(self.pass_on(media, scheme, &missed, start_ns));
            }
            sector = end;
        }
        self.link.send(request, start_ns, ready_ns) + self.read_latency_ns
    }

    fn write<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        start_ns: u64,
    ) -> u64 {
        self.counts.written_sectors += u64::from(request.sectors);
        if self.buffer.is_none() {
            let there_ns = self.link.receive(request.sectors, start_ns, start_ns);
            return self.pass_on(media, scheme, request, there_ns) + self.write_latency_ns;
        }
        let (mut there_ns, mut sector) = (start_ns, request.sector);
        while sector < request.end() {
            let in_unit = (sector % u64::from(UNIT_SECTORS)) as u32;
            let sectors = (UNIT_SECTORS - in_unit).min((request.end() - sector) as u32);
            there_ns = self.link.receive(sectors, start_ns, there_ns);
            there_ns = self.wait_for_room(media, scheme, sector, there_ns);
            if let Some(buffer) = &mut self.buffer {
                self.counts.overwritten_sectors += u64::from(buffer.put(sector, sectors, request.handle));
            }
            while self.buffer.as_ref().is_some_and(WriteBuffer::is_due) {
                self.write_out(media, scheme, there_ns);
            }
            sector += u64::from(sectors);
        }
        there_ns + self.write_latency_ns
    }

    /// Time at which the buffer has room for a sector that has arrived at `at_ns`.
    fn wait_for_room<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        sector: u64,
        at_ns: u64,
    ) -> u64 {
        let mut now_ns = at_ns.max(self.admitted_ns);
        while let Some(buffer) = self.buffer.as_mut().filter(|buffer| !buffer.has_room_for(sector)) {
            match buffer.next_room_ns() {
                Some(room_ns) => {
                    now_ns = now_ns.max(room_ns);
                    buffer.retire(now_ns);
                }
                None => self.write_out(media, scheme, now_ns),
            }
        }
        self.counts.waited_ns += now_ns - at_ns;
        self.admitted_ns = now_ns;
        now_ns
    }

    /// Writes the oldest wordline of data in the buffer to the flash.
    fn write_out<M: Simulation>(&mut self, media: &mut M, scheme: &mut dyn Scheme<M>, at_ns: u64) {
        let Some(mut batch) = self.buffer.as_mut().and_then(WriteBuffer::take_batch) else { return };
        let mut end_ns = at_ns;
        if let Some(buffer) = &self.buffer {
            let unit = |sector| Request { arrival_ns: at_ns, sector, sectors: UNIT_SECTORS, op: Op::Write, handle: 0 };
            buffer.soon_and_now(&batch).for_each(|(soon, now)| scheme.prefetch(&unit(soon), &unit(now)));
        }
        while let Some((sector, sectors, handle)) = self.buffer.as_mut().and_then(|buffer| buffer.next_run(&mut batch))
        {
            let request = Request { arrival_ns: at_ns, sector, sectors, op: Op::Write, handle };
            end_ns = end_ns.max(self.pass_on(media, scheme, &request, at_ns));
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.is_written(batch, end_ns);
        }
        self.counts.wordlines += 1;
    }

    /// Gives a request to the scheme once its part of the map is in memory. Returns when the flash has served it.
    #[inline]
    fn pass_on<M: Simulation>(
        &mut self,
        media: &mut M,
        scheme: &mut dyn Scheme<M>,
        request: &Request,
        at_ns: u64,
    ) -> u64 {
        let at_ns = match &mut self.map_cache {
            Some(cache) => cache.load(media, request, at_ns),
            None => at_ns,
        };
        media.begin(request, at_ns);
        scheme.serve(media, request);
        media.end()
    }
}

#[cfg(test)]
mod tests;
