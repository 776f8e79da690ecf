//! The media as a replay drives them: the time of requests, background work, the load, and the counts.

use super::{SimBlock, SimMedia};
use crate::ledger::{Counts, DiskCounts, Ledger, Row, Server, ServerKind};
use crate::media::clocks::NO_GROUP;
use crate::media::{Cause, CellMode, FlashOp, Simulation};
use crate::request::Request;

impl Simulation for SimMedia {
    #[inline]
    fn begin(&mut self, _request: &Request, issue_ns: u64) {
        self.now = issue_ns;
        self.completion = issue_ns;
        self.background = false;
        self.is_special = self.has_special;
    }

    #[inline]
    fn end(&mut self) -> u64 {
        self.completion
    }

    fn begin_background(&mut self) {
        self.background = true;
        self.is_special = true;
    }

    fn access_map(&mut self, op: FlashOp, map_page: u32, at_ns: u64) -> u64 {
        let Some(flash) = self.regions.last() else { return at_ns };
        // Block `d` lies on die `d`.
        let SimBlock { die, .. } = flash.blocks[(map_page % flash.geometry.dies) as usize];
        let (timing, mode) = (&flash.timing[CellMode::Native as usize], CellMode::Native as u8);
        self.ledger.rows[flash.rows[CellMode::Native as usize]].counts.add(op, Cause::Meta);
        match op {
            FlashOp::Read if flash.is_grouped => self.clocks.read_grouped((die, mode), at_ns, NO_GROUP, true, timing).0,
            FlashOp::Read => self.clocks.read((die, mode), at_ns, timing),
            FlashOp::Program | FlashOp::Erase => self.clocks.work(die, at_ns, timing.of_op(op)),
        }
    }

    fn background_pages(&self, idle_ns: u64) -> u64 {
        if let Some(pages) = self.disks.background_writes(idle_ns) {
            return pages;
        }
        // As a backlog counts them: pages that are sensed together share the time.
        let copy_ns = |Row { timing, .. }: &Row| {
            (timing.read.0 / u64::from(timing.read_group)) + timing.fold.max(timing.program).0 + 2 * timing.transfer.0
        };
        let longest_ns = self.ledger.rows.iter().map(copy_ns).max().unwrap_or(1).max(1);
        let dies = self.regions.last().map_or(1, |flash| if flash.on_one_die { 1 } else { flash.geometry.dies });
        (idle_ns / longest_ns).saturating_mul(u64::from(dies))
    }

    fn backlog_ns(&self, at_ns: u64) -> u64 {
        self.clocks.backlog_ns(at_ns).max(self.disks.backlog_ns(at_ns))
    }

    fn finish(&mut self) {
        self.disks.drain(&mut self.ledger.disks);
    }

    fn servers(&self) -> Vec<Server> {
        if self.serial {
            return vec![Server { kind: ServerKind::Device, count: 1, busy: self.ledger.busy() }];
        }
        let mut servers = Vec::new();
        for (region, flash) in self.regions.iter().enumerate() {
            let rows = || self.ledger.rows.iter().filter(|row| row.region == region);
            let (dies, channels) = (flash.geometry.dies, flash.channels);
            let (worked, moved) = (rows().map(Row::on_die).sum(), rows().map(Row::on_channel).sum());
            servers.push(Server { kind: ServerKind::Dies(region), count: dies, busy: worked });
            servers.push(Server { kind: ServerKind::Channels(region), count: channels, busy: moved });
        }
        let disk = |(disk, counts): (usize, &DiskCounts)| Server {
            kind: ServerKind::Disk(disk),
            count: 1,
            busy: counts.busy(),
        };
        servers.extend(self.ledger.disks.iter().enumerate().map(disk));
        servers
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn reset(&mut self) {
        self.reset_counts();
        for erases in &mut self.ledger.erases {
            erases.fill(0);
        }
        self.clocks.reset();
        self.disks.reset();
        self.now = 0;
        self.completion = 0;
    }

    fn reset_counts(&mut self) {
        for row in &mut self.ledger.rows {
            row.counts = Counts::default();
        }
        self.ledger.disks.fill(DiskCounts::default());
    }
}
