use super::*;
use crate::chip;
use crate::media::{CellMode, Checked, Faults, FlashOp, SimMedia, SimRegion, Simulation};
use crate::part::random::below;
use crate::region::log::{Collection, Log};
use crate::region::ring::Ring;
use crate::request::Op;
use crate::units::{Geometry, RegionId};

type Device = (Checked<SimMedia>, Tiers<Log>, Ring);

const LOGICAL_PAGES: u64 = 64;

/// Fast pages of `fast_bytes` and 64 logical pages of `slow_bytes`.
fn device(fast_bytes: u32, slow_bytes: u32) -> Device {
    let region = |name: &str, page_bytes, blocks| {
        let mut chip = chip::find(name).unwrap();
        chip.page_bytes = page_bytes;
        let geometry = Geometry::new(page_bytes, 8, blocks, 1).unwrap();
        SimRegion { chip, geometry, channels: 1, faults: Faults::default() }
    };
    let regions = [region("chang-slc", fast_bytes, 8), region("chang-mlc", slow_bytes, 16)];
    let geometries: Vec<_> = regions.iter().map(|region| (region.geometry, 0)).collect();
    let unit = unit_bytes(fast_bytes, slow_bytes);
    let fast = FastTier::new(RegionId(0), regions[0].geometry, (CellMode::Native, 8), unit).unwrap();
    let settings = Collection { gc_free_blocks: 1, idle_gc: false };
    let slow = Log::new(RegionId(1), regions[1].geometry, LOGICAL_PAGES, settings).unwrap();
    let media = Checked::new(SimMedia::new(&regions, 1), &geometries);
    (media, Tiers::new(fast, slow).unwrap(), Ring::new(0..8, 8, 8, 1, 1))
}

fn begin(media: &mut Checked<SimMedia>, op: Op, sector: u64, sectors: u32) -> Request {
    let request = Request { arrival_ns: 0, sector, sectors, op, handle: 0 };
    media.reset_counts();
    media.begin(&request, 0);
    request
}

fn write(device: &mut Device, fast: bool, sector: u64, sectors: u32) {
    let (media, tiers, ring) = device;
    let request = begin(media, Op::Write, sector, sectors);
    let mut run = Run::whole(tiers.units(), &request);
    let unit_sectors = tiers.fast.unit_sectors();
    let group = if fast { tiers.fast.units_per_page() } else { tiers.units_per_slow_page() };
    while let Some(piece) = if fast { run.take(group, unit_sectors) } else { run.take_group(group, unit_sectors) } {
        if fast {
            if ring.needs_block() {
                if ring.erased() == 0 {
                    reclaim(media, tiers, ring);
                }
                ring.open_block();
            }
            let (block, page) = ring.next_page();
            let page = tiers.fast.slots().geometry().ppa(block, page);
            tiers.write_fast(media, &piece, page, Cause::Host);
        } else {
            tiers.write_slow(media, &piece, Cause::Host);
        }
    }
}

/// Everything in the tail block goes down.
fn reclaim(media: &mut Checked<SimMedia>, tiers: &mut Tiers<Log>, ring: &mut Ring) {
    let block = ring.tail().unwrap();
    let geometry = *tiers.fast.slots().geometry();
    for page in 0..geometry.pages_per_block {
        let slot = tiers.fast.slots().first_slot(geometry.ppa(block, page));
        for slot in slot..slot + tiers.fast.units_per_page() {
            if let Some(unit) = tiers.fast.slots().unit(slot) {
                assert!(tiers.demote(media, unit, |_| true) > 0);
            }
        }
    }
    tiers.fast.erase(media, block, Cause::Gc);
    ring.retire_tail();
}

fn ops(media: &Checked<SimMedia>) -> (u64, u64) {
    (media.ledger().total(FlashOp::Read, Cause::Host), media.ledger().total(FlashOp::Program, Cause::Host))
}

#[test]
fn the_unit_divides_both_pages_and_the_hosts_blocks() {
    for (fast, slow, unit) in [(2048, 4096, 2048), (16384, 16384, 4096), (8192, 2048, 2048), (1536, 4096, 512)] {
        assert_eq!(unit_bytes(fast, slow), unit);
    }
}

#[test]
fn only_what_a_page_lacks_is_read() {
    let mut device = device(16384, 16384);
    write(&mut device, false, 0, 32);
    assert_eq!(ops(&device.0), (0, 1), "a whole slow page");
    write(&mut device, false, 8, 8);
    assert_eq!(ops(&device.0), (1, 1), "the rest of the slow page is read");
    write(&mut device, true, 8, 8);
    assert_eq!(ops(&device.0), (0, 1), "a whole unit goes into the log as it is");
    write(&mut device, true, 9, 13);
    assert_eq!(ops(&device.0), (2, 1), "the rest of one unit is in the log, of the other in the slow region");
    write(&mut device, true, 25, 2);
    assert_eq!(ops(&device.0), (1, 1));
    write(&mut device, true, 0, 8);
    assert!(device.1.slow.lookup(0).is_none(), "all four units are in the log");
    device.1.check(device.2.iter_written()).unwrap();
    let (media, tiers, _) = &mut device;
    let request = begin(media, Op::Read, 0, 32);
    tiers.read(media, &request);
    assert_eq!(ops(&device.0), (3, 0), "units 1 and 2 are in one fast page");
    let (media, tiers, _) = &mut device;
    assert_eq!(tiers.demote(media, 2, |_| true), 4, "its siblings come along");
    assert!(tiers.slow.lookup(0).is_some());
    assert_eq!(media.ledger().total(FlashOp::Read, Cause::MigrateDown), 3);
}

#[test]
fn what_was_written_is_read_whatever_the_pages() {
    for (fast, slow) in [(2048, 4096), (4096, 4096), (4096, 8192), (8192, 2048), (16384, 16384), (1536, 4096)] {
        let mut device = device(fast, slow);
        let total = LOGICAL_PAGES * u64::from(slow / 512);
        let mut versions = vec![None; total as usize];
        let mut state = u64::from(fast + slow);
        for step in 0..4000 {
            let sectors = 1 + below(&mut state, 40);
            let sector = below(&mut state, total - sectors + 1);
            if below(&mut state, 3) > 0 {
                write(&mut device, below(&mut state, 2) == 0, sector, sectors as u32);
                for index in 0..sectors {
                    versions[(sector + index) as usize] = Some(device.0.written_token(index as u32));
                }
            } else if below(&mut state, 10) == 0 {
                device.1.trim(&begin(&mut device.0, Op::Trim, sector, sectors as u32));
                versions[sector as usize..(sector + sectors) as usize].fill(None);
            } else {
                let request = begin(&mut device.0, Op::Read, sector, sectors as u32);
                device.1.read(&mut device.0, &request);
                for index in 0..sectors {
                    if let Some(version) = versions[(sector + index) as usize] {
                        assert_eq!(device.0.read_token(index as u32), version, "step {step}, {fast}/{slow}");
                    }
                }
            }
            if step % 100 == 0 {
                device.1.check(device.2.iter_written()).unwrap();
            }
        }
    }
}
