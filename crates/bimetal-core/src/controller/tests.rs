use serde::{Deserialize, Serialize};

use super::*;
use crate::chip;
use crate::media::{Cause, Faults, FlashOp, Media, SimMedia, SimRegion, Stream};
use crate::part::random::below;
use crate::units::{Geometry, Ppa, RegionId};

const SECTORS: u64 = 1 << 14;

/// A scheme that only remembers which sectors it was given, and whether the host has written them since.
#[derive(Default, Serialize, Deserialize)]
struct Recorder {
    /// By sector: whether the flash has the host's last data.
    is_current: Vec<bool>,
    requests: Vec<(u64, u32)>,
    reads: u64,
}

impl Scheme<SimMedia> for Recorder {
    fn fill(&mut self, _media: &mut SimMedia) {}

    fn serve(&mut self, media: &mut SimMedia, request: &Request) {
        let sectors = request.sector as usize..request.end() as usize;
        match request.op {
            Op::Write => {
                self.requests.push((request.sector, request.sectors));
                self.is_current[sectors].fill(true);
                media.program(RegionId(0), Ppa(0), &[], Stream::ONLY, Cause::Host);
            }
            Op::Read => {
                self.reads += 1;
                // A unit of which the buffer has only a part is read, too: the rest of it is needed.
                for unit in (sectors.start / 8 * 8..sectors.end).step_by(8) {
                    let wanted = unit.max(sectors.start)..(unit + 8).min(sectors.end);
                    assert!(self.is_current[wanted].iter().any(|&is_current| is_current), "read past the buffer");
                }
                media.read(RegionId(0), Ppa(0), Cause::Host);
            }
            Op::Trim => self.is_current[sectors].fill(true),
        }
    }

    fn metrics(&self, _metrics: &mut Metrics) {}

    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// 200 µs to program a page of 2 KiB and 25 µs to read one, without the link.
fn parts(change: impl FnOnce(&mut ControllerSettings)) -> (SimMedia, Recorder, Controller) {
    let chip = chip::find("chang-slc").unwrap();
    let geometry = Geometry::new(2048, 64, 64, 1).unwrap();
    let media = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
    let mut settings = ControllerSettings {
        link_mb_per_s: 512.0,
        half_duplex: false,
        command_us: 1.0,
        us_per_4kib: 0.0,
        read_latency_us: 20.0,
        write_latency_us: 10.0,
        buffer: ByteSize(64 << 10),
        power_protected: true,
        map_cache: None,
        fold_efficiency: 1.0,
    };
    change(&mut settings);
    settings.check().unwrap();
    let spec = Spec { settings, wordline_sectors: 32, mapping_sectors: 8, logical_sectors: SECTORS };
    let recorder = Recorder { is_current: vec![true; SECTORS as usize], ..Recorder::default() };
    (media, recorder, Controller::new(&spec))
}

fn request(op: Op, sector: u64, sectors: u32) -> Request {
    Request { arrival_ns: 0, sector, sectors, op, handle: 0 }
}

#[test]
fn a_write_is_acknowledged_when_it_is_in_the_buffer() {
    let (mut media, mut scheme, mut controller) = parts(|_| ());
    let end = controller.serve(&mut media, &mut scheme, &request(Op::Write, 0, 8), 0);
    assert_eq!(end, (1 + 8 + 10) * 1000, "command, eight sectors at 1 us each, latency");
    let (mut media, mut scheme, mut controller) = parts(|settings| settings.us_per_4kib = 3.0);
    let end = controller.serve(&mut media, &mut scheme, &request(Op::Write, 0, 16), 0);
    assert_eq!(end, (1 + 16 + 2 * 3 + 10) * 1000, "and the time for each 4 KiB");
    let (mut media, mut scheme, mut controller) = parts(|settings| settings.buffer = ByteSize(0));
    let end = controller.serve(&mut media, &mut scheme, &request(Op::Write, 0, 8), 0);
    assert_eq!(end, (1 + 8 + 200 + 10) * 1000, "without one, when the flash has it");
}

#[test]
fn commands_follow_each_other_and_the_link_has_two_directions() {
    for (half_duplex, end_us) in [(false, 2 + 8 + 20), (true, 1 + 8 + 8 + 20)] {
        let (mut media, mut scheme, mut controller) = parts(|settings| settings.half_duplex = half_duplex);
        controller.serve(&mut media, &mut scheme, &request(Op::Write, 0, 8), 0);
        let end = controller.serve(&mut media, &mut scheme, &request(Op::Read, 0, 8), 0);
        assert_eq!(end, end_us * 1000, "half duplex: {half_duplex}");
    }
}

#[test]
fn a_link_is_free_while_a_write_waits_for_room_in_the_buffer() {
    let (mut media, mut scheme, mut controller) = parts(|settings| {
        settings.half_duplex = true;
        settings.buffer = ByteSize(32 << 10);
    });
    // Far more than the buffer takes.
    let written = controller.serve(&mut media, &mut scheme, &request(Op::Write, 0, 512), 0);
    assert!(written > 2_800_000, "{written}");
    // A read of data in the buffer: those of the write take 512 us on the link, its own 8 us.
    let read = controller.serve(&mut media, &mut scheme, &request(Op::Read, 504, 8), 0);
    assert_eq!(read, 1_000 + 512_000 + 8_000 + 20_000);
}

#[test]
fn the_controller_and_the_busier_direction_of_the_link_have_busy_times() {
    let (mut media, mut scheme, mut controller) = parts(|_| ());
    for (op, sector) in [(Op::Write, 16), (Op::Write, 0), (Op::Write, 8), (Op::Read, 0)] {
        if sector == 0 && op == Op::Write {
            controller.reset_counts();
        }
        controller.serve(&mut media, &mut scheme, &request(op, sector, 8), 0);
    }
    let busy: Vec<_> = controller.servers().iter().map(|server| (server.kind, server.busy.0)).collect();
    assert_eq!(busy, [(ServerKind::Controller, 3 * 1_000), (ServerKind::Link, 16 * 1_000)]);
}

#[test]
fn sectors_overwritten_in_a_protected_buffer_never_reach_the_flash() {
    let (mut media, mut scheme, mut controller) = parts(|_| ());
    for write in 0..100 {
        controller.serve(&mut media, &mut scheme, &request(Op::Write, write % 4 * 8, 8), write * 100_000);
    }
    assert_eq!(scheme.requests, []);
    controller.drain(&mut media, &mut scheme, 10_000_000);
    assert_eq!(scheme.requests, [(0, 32)], "a wordline, as one request");
    let mut metrics = Metrics::default();
    controller.metrics(&mut metrics);
    assert_eq!(metrics.get("buffer_overwrite_ratio"), Some(0.96));
}

#[test]
fn a_buffer_without_protection_is_written_out_by_wordlines_and_when_idle() {
    let (mut media, mut scheme, mut controller) = parts(|settings| settings.power_protected = false);
    for write in 0..5 {
        controller.serve(&mut media, &mut scheme, &request(Op::Write, write * 8, 8), 0);
    }
    assert_eq!(scheme.requests, [(0, 32)]);
    controller.idle(&mut media, &mut scheme, 10_000_000);
    assert_eq!(scheme.requests, [(0, 32), (32, 8)]);
}

#[test]
fn writes_wait_for_room() {
    let (mut media, mut scheme, mut controller) = parts(|_| ());
    let mut ends = Vec::new();
    for write in 0..200 {
        ends.push(controller.serve(&mut media, &mut scheme, &request(Op::Write, write * 8, 8), 0));
    }
    // A wordline of four writes takes one program of 200 us here.
    let last = ends[199] - ends[99];
    assert!((4_900_000..5_100_000).contains(&last), "the flash sets the pace: {last}");
    let mut metrics = Metrics::default();
    controller.metrics(&mut metrics);
    assert!(metrics.get("buffer_wait_s").unwrap() > 0.008);
}

#[test]
fn what_is_in_the_buffer_is_read_from_it() {
    let (mut media, mut scheme, mut controller) = parts(|_| ());
    controller.serve(&mut media, &mut scheme, &request(Op::Write, 8, 8), 0);
    let hit = controller.serve(&mut media, &mut scheme, &request(Op::Read, 8, 8), 1_000_000);
    assert_eq!((hit, scheme.reads), (1_000_000 + (1 + 8 + 20) * 1000, 0));
    let partly = controller.serve(&mut media, &mut scheme, &request(Op::Read, 0, 24), 2_000_000);
    assert_eq!(scheme.reads, 2, "what lies before and behind it");
    assert_eq!(partly, 2_000_000 + (1 + 50 + 8 + 20) * 1000, "two reads on one die, and the last piece over the link");
    assert_eq!(media.ledger().total(FlashOp::Read, Cause::Host), 2);
}

/// After any requests, the flash has the last data of every sector once the buffer is empty, and no read bypasses
/// waiting data: `Recorder` checks both.
#[test]
fn no_sector_is_lost_or_read_too_early() {
    for protected in [false, true] {
        let (mut media, mut scheme, mut controller) = parts(|settings| settings.power_protected = protected);
        let (mut state, mut now) = (11, 0);
        for _ in 0..20_000 {
            let sectors = 1 + below(&mut state, 40) as u32;
            let sector = below(&mut state, 600);
            let op = [Op::Write, Op::Write, Op::Read, Op::Trim][below(&mut state, 4) as usize];
            let request = request(op, sector, sectors);
            if op == Op::Write {
                scheme.is_current[sector as usize..(sector + u64::from(sectors)) as usize].fill(false);
            }
            now = controller.serve(&mut media, &mut scheme, &request, now + below(&mut state, 300_000));
            if below(&mut state, 500) == 0 {
                controller.idle(&mut media, &mut scheme, now);
            }
        }
        controller.drain(&mut media, &mut scheme, now);
        assert_eq!(scheme.is_current.iter().position(|is_current| !is_current), None);
        assert!(scheme.requests.len() > 1000 && scheme.reads > 1000);
    }
}

#[test]
fn a_page_of_the_map_that_is_not_cached_is_read_first() {
    let (mut media, mut scheme, mut controller) = parts(|settings| {
        settings.map_cache = Some(ByteSize(4096));
        settings.buffer = ByteSize(0);
    });
    let mut read = |sector, at| controller.serve(&mut media, &mut scheme, &request(Op::Read, sector, 8), at) - at;
    let hit_ns = (1 + 25 + 8 + 20) * 1000;
    // A page of the map covers 1024 units of 4 KiB, and the cache has room for one page.
    let times = [read(0, 0), read(8 * 1023, 1_000_000), read(8 * 1024, 2_000_000), read(0, 3_000_000)];
    assert_eq!(times, [hit_ns + 25_000, hit_ns, hit_ns + 25_000, hit_ns + 25_000]);
    let mut metrics = Metrics::default();
    controller.metrics(&mut metrics);
    assert_eq!(metrics.get("map_cache_hit_ratio"), Some(0.25));
    assert_eq!(media.ledger().total(FlashOp::Read, Cause::Meta), 3);
}

#[test]
fn a_changed_page_of_the_map_is_programmed_when_it_makes_room() {
    let (mut media, mut scheme, mut controller) = parts(|settings| settings.map_cache = Some(ByteSize(4096)));
    for write in 0..4 {
        controller.serve(&mut media, &mut scheme, &request(Op::Write, write % 2 * 8192, 8), 0);
        controller.drain(&mut media, &mut scheme, 0);
    }
    assert_eq!(media.ledger().total(FlashOp::Program, Cause::Meta), 3);
}

#[test]
fn figures_that_cannot_be_are_refused_by_name() {
    let settings = |text: &str| toml::from_str::<ControllerSettings>(text).unwrap().check();
    assert_eq!(settings("link_mb_per_s = 3500\nbuffer = \"8MiB\""), Ok(()));
    for (text, field) in [
        ("link_mb_per_s = 0", "link_mb_per_s"),
        ("link_mb_per_s = 500\ncommand_us = -1.0", "command_us"),
        ("link_mb_per_s = 500\nfold_efficiency = 0.0", "fold_efficiency"),
        ("link_mb_per_s = 500\nbuffer = \"1TiB\"", "buffer"),
    ] {
        assert_eq!(settings(text).unwrap_err().0, field);
    }
}
