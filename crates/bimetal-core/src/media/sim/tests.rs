//! Times, causes and failures of single operations.

use super::*;
use crate::chip;
use crate::media::Simulation;
use crate::request::{Op, Request};

const REGION: RegionId = RegionId(0);
const REQUEST: Request = Request { arrival_ns: 0, sector: 0, sectors: 8, op: Op::Write, handle: 0 };

/// 25 µs read, 200 µs program, 1500 µs erase, and 10 µs on the channel.
fn media(dies: u32, channels: u32) -> (SimMedia, Geometry) {
    let chip = Chip { bus_mb_per_s: 2048.0 / 10.0, spare_bytes: 0, ..chip::find("chang-slc").unwrap().clone() };
    let geometry = Geometry::new(2048, 64, 16, dies).unwrap();
    let region = SimRegion { chip, geometry, channels, faults: Faults::default() };
    (SimMedia::new(&[region], 1), geometry)
}

fn host_part(media: &SimMedia) -> [Part<u64>; 1] {
    [Part { data: media.host(), from: 0, to: 0, sectors: 4 }]
}

#[test]
fn a_copy_programs_only_after_its_read() {
    let (mut media, geometry) = media(2, 2);
    media.begin(&REQUEST, 1000);
    media.copy(REGION, geometry.ppa(BlockId(0), 0), geometry.ppa(BlockId(1), 0), Stream::ONLY, Cause::Gc);
    assert_eq!(media.end(), 1000 + (25 + 10 + 10 + 200) * 1000);
}

/// The same with a copyback of 240 µs.
fn media_with_copyback(dies: u32) -> (SimMedia, Geometry) {
    let chip = Chip { bus_mb_per_s: 204.8, copyback_us: Some(240.0), ..chip::find("chang-slc").unwrap() };
    let geometry = Geometry::new(2048, 64, 16, dies).unwrap();
    (SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1), geometry)
}

#[test]
fn a_copyback_takes_its_time_and_no_channel() {
    let (mut media, geometry) = media_with_copyback(2);
    media.begin(&REQUEST, 0);
    media.copy(REGION, geometry.ppa(BlockId(0), 0), geometry.ppa(BlockId(2), 0), Stream::ONLY, Cause::Gc);
    // The other die's page has the channel to itself meanwhile.
    assert_eq!(media.read(REGION, geometry.ppa(BlockId(1), 0), Cause::Host), 35_000);
    assert_eq!(media.end(), 240_000);
    let counts = &media.ledger().rows[0].counts;
    assert_eq!((counts.get(FlashOp::Read, Cause::Gc), counts.get(FlashOp::Program, Cause::Gc)), (1, 1));
    let times = [FlashOp::Read, FlashOp::Program].map(|op| media.ledger().rows[0].time(op, Cause::Gc));
    assert_eq!(times, [Nanos::from_us(25), Nanos::from_us(215)]);
    assert_eq!(media.ledger().busy(), Nanos::from_us(240 + 35));
    media.reset_counts();
    assert_eq!(media.ledger().busy(), Nanos(0));
}

#[test]
fn copies_between_dies_and_modes_go_through_the_controller() {
    // A serial device has one die for the clock.
    for serial in [false, true] {
        let (media, geometry) = media_with_copyback(2);
        let mut media = if serial { media.serial() } else { media };
        media.begin(&REQUEST, 0);
        media.copy_run(REGION, &[geometry.ppa(BlockId(0), 0)], geometry.ppa(BlockId(1), 0), Stream::ONLY, Cause::Gc);
        assert_eq!(media.end(), (25 + 10 + 10 + 200) * 1000);
    }
    let mut chip = chip::find("chang-mlc").unwrap();
    chip.copyback_us = Some(100.0);
    let geometry = Geometry::new(4096, 128, 4, 1).unwrap();
    let mut media = SimMedia::new(&[SimRegion { chip, geometry, channels: 1, faults: Faults::default() }], 1);
    media.erase(REGION, BlockId(1), CellMode::Slc, Cause::Gc);
    media.reset();
    media.begin(&REQUEST, 0);
    let [native, slc] = [0, 1].map(|block| geometry.ppa(BlockId(block), 0));
    media.copy_run(REGION, &[native, slc], geometry.ppa(BlockId(2), 0), Stream::ONLY, Cause::Gc);
    assert_eq!(media.end(), (100 + 50 + 800) * 1000);
    assert_eq!(media.ledger().busy(), Nanos(media.end()));
}

#[test]
fn copybacks_take_the_same_time_together_and_one_by_one() {
    let times = |together: bool, background: bool| {
        let (mut media, geometry) = media_with_copyback(1);
        media.begin(&REQUEST, 0);
        if background {
            media.begin_background();
        }
        let from: Vec<Ppa> = (0..5).map(|page| geometry.ppa(BlockId(0), page)).collect();
        if together {
            media.copy_run(REGION, &from, geometry.ppa(BlockId(1), 0), Stream::ONLY, Cause::Gc);
        } else {
            from.iter()
                .for_each(|&page| media.copy(REGION, page, geometry.ppa(BlockId(1), page.0), Stream::ONLY, Cause::Gc));
        }
        (media.end(), media.backlog_ns(0), media.ledger().busy())
    };
    assert_eq!(times(true, false), (1_200_000, 0, Nanos::from_us(1200)));
    assert_eq!(times(true, true), (0, 1_200_000, Nanos::from_us(1200)));
    for background in [false, true] {
        assert_eq!(times(true, background), times(false, background));
    }
}

#[test]
fn dies_work_at_once_and_share_a_channel() {
    let (mut media, geometry) = media(2, 1);
    media.begin(&REQUEST, 0);
    for block in 0..2 {
        let parts = host_part(&media);
        media.program(REGION, geometry.ppa(BlockId(block), 0), &parts, Stream::ONLY, Cause::Host);
    }
    // The second transfer waits for the first; the arrays overlap.
    assert_eq!(media.end(), (10 + 10 + 200) * 1000);
}

#[test]
fn a_channel_does_not_wait_for_a_busy_die() {
    let (mut media, geometry) = media(2, 1);
    media.begin(&REQUEST, 0);
    let mut ends = [0, 0, 1].map(|block| media.read(REGION, geometry.ppa(BlockId(block), 0), Cause::Host));
    // The channel is idle while die 0 senses its second page.
    assert_eq!(ends, [35_000, 70_000, 55_000]);
    // Copies keep die 0 busy for 10 ms, and the channel for 2 ms.
    for page in 0..32 {
        let (from, to) = (geometry.ppa(BlockId(0), page), geometry.ppa(BlockId(2), page));
        media.copy(REGION, from, to, Stream::ONLY, Cause::Gc);
    }
    media.begin(&REQUEST, 5_000_000);
    ends[0] = media.read(REGION, geometry.ppa(BlockId(1), 0), Cause::Host);
    assert_eq!(ends[0], 5_035_000);
}

#[test]
fn one_die_serves_one_operation_at_a_time() {
    let (mut media, geometry) = media(1, 1);
    media.begin(&REQUEST, 0);
    media.read(REGION, geometry.ppa(BlockId(0), 0), Cause::Host);
    media.erase(REGION, BlockId(1), CellMode::Native, Cause::Gc);
    assert_eq!(media.end(), (25 + 10 + 1500) * 1000);
    assert_eq!(media.ledger().busy(), Nanos::from_us(25 + 10 + 1500));
}

#[test]
fn background_work_yields_to_the_host() {
    let (mut media, geometry) = media(1, 1);
    media.begin_background();
    for _ in 0..3 {
        media.erase(REGION, BlockId(0), CellMode::Native, Cause::Gc);
    }
    // The host arrives in the middle of the second erase and waits for its end, not for the third erase.
    media.begin(&REQUEST, 2_000_000);
    media.read(REGION, geometry.ppa(BlockId(1), 0), Cause::Host);
    assert_eq!(media.end(), 3_000_000 + 35_000);
    // The third erase fits into the idle time that follows.
    media.begin(&REQUEST, 10_000_000);
    media.read(REGION, geometry.ppa(BlockId(1), 0), Cause::Host);
    assert_eq!(media.end(), 10_035_000);
}

#[test]
fn the_host_waits_for_the_operation_in_progress_and_not_for_the_longest_one() {
    // A collection of 64 pages: at a random time a copy is in progress nine times out of ten.
    let wait_ns = |at_ns: u64| {
        let (mut media, geometry) = media(1, 1);
        media.begin_background();
        for page in 0..64 {
            let (from, to) = (geometry.ppa(BlockId(0), page), geometry.ppa(BlockId(1), page));
            media.copy(REGION, from, to, Stream::ONLY, Cause::Gc);
        }
        media.erase(REGION, BlockId(0), CellMode::Native, Cause::Gc);
        media.begin(&REQUEST, at_ns);
        media.read(REGION, geometry.ppa(BlockId(2), 0), Cause::Host);
        media.end() - at_ns - 35_000
    };
    let moments = 1..1000u64;
    let mean_us = moments.clone().map(|moment| wait_ns(moment * 17_000)).sum::<u64>() as f64 / 999e3;
    // Copies of 35 and 210 us, an erase of 1,500 us: half of the sum of squares by the sum.
    let (squares, sum) = (64.0 * (35.0f64.powi(2) + 210.0f64.powi(2)) + 1500.0f64.powi(2), 64.0 * 245.0 + 1500.0);
    let expected_us = squares / sum / 2.0;
    assert!((mean_us / expected_us - 1.0).abs() < 0.05, "{mean_us} for {expected_us}");
}

#[test]
fn a_backlog_shrinks_while_its_die_is_idle() {
    let (mut media, geometry) = media(2, 1);
    media.begin(&REQUEST, 0);
    media.read(REGION, geometry.ppa(BlockId(0), 0), Cause::Host);
    media.begin_background();
    media.erase(REGION, BlockId(0), CellMode::Native, Cause::Gc);
    assert_eq!(media.backlog_ns(35_000), 1_500_000);
    assert_eq!(media.backlog_ns(1_035_000), 500_000);
    assert_eq!(media.backlog_ns(9_000_000), 0);
}

#[test]
fn failures_without_a_replacement_are_counted_too() {
    let (_, geometry) = media(1, 1);
    let faults = Faults { program_fail_ppm: 1_000_000, erase_fail_ppm: 1_000_000, ..Faults::default() };
    let region = SimRegion { chip: chip::find("chang-slc").unwrap(), geometry, channels: 1, faults };
    let mut media = SimMedia::new(&[region], 1);
    media.begin(&REQUEST, 0);
    for page in 0..2 {
        let parts = host_part(&media);
        media.program(REGION, geometry.ppa(BlockId(0), page), &parts, Stream::ONLY, Cause::Host);
    }
    media.erase(REGION, BlockId(0), CellMode::Native, Cause::Gc);
    let counts = media.ledger().faults[0];
    assert_eq!((counts.program_failures, counts.erase_failures, counts.failures_unreplaced), (2, 1, 3));
    // The block is worn, and takes no more time than a working one.
    assert_eq!(media.ledger().erases[0][0], 1);
    assert_eq!(media.end(), (200 * 2 + 1500) * 1000);
}

#[test]
fn foreground_operations_queue_behind_each_other() {
    let (mut media, geometry) = media(1, 1);
    media.begin(&REQUEST, 0);
    media.erase(REGION, BlockId(0), CellMode::Native, Cause::Gc);
    media.begin(&REQUEST, 1_000_000);
    media.read(REGION, geometry.ppa(BlockId(1), 0), Cause::Host);
    assert_eq!(media.end(), 1_535_000);
}
