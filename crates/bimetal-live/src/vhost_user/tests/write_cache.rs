//! Writes are durable when they complete, or after a flush.

use super::*;
use crate::vhost_user::config::WRITEBACK_AT;

const FLUSHES: u64 = 1 << VIRTIO_BLK_F_FLUSH;

fn turn_cache_off(guest: &Guest) {
    guest.set_config(WRITEBACK_AT, &[0]).unwrap();
    assert_eq!(guest.get_config(WRITEBACK_AT, 1), [0]);
}

/// Whether a write is durable when it completes.
fn writes_through(mut bed: Bed, device: &Slow) -> bool {
    bed.header(VIRTIO_BLK_T_OUT, 0);
    bed.chain(&[(DATA, 16, 0), (BUFFER, 512, 0), (DATA + 16, 1, WRITE)]);
    bed.serve();
    let calls = std::mem::take(&mut *device.calls.lock().unwrap());
    let [("write", fua)] = calls[..] else { panic!("{calls:?}") };
    fua
}

/// If the guest has no flushes, or turns its cache off, writes are durable when they complete.
#[test]
fn who_does_not_flush_writes_through() {
    let fua = |prepare: &dyn Fn(&Guest)| {
        let device = Arc::new(Slow { flushes: Barrier::new(1), calls: Mutex::default() });
        let bed = Bed::new(Arc::clone(&device) as _);
        prepare(&bed.guest);
        writes_through(bed, &device)
    };
    assert!(!fua(&|guest| guest.acked_features(FLUSHES)));
    assert!(fua(&|guest| guest.acked_features(0)));
    let off = |guest: &Guest| {
        guest.acked_features(FLUSHES);
        turn_cache_off(guest);
        guest.set_config(0, &[0]).unwrap_err();
        guest.set_config(WRITEBACK_AT, &[2]).unwrap_err();
    };
    assert!(fua(&off));
    let again = |guest: &Guest| {
        off(guest);
        guest.acked_features(FLUSHES);
    };
    assert!(fua(&again), "VMMs repeat the features at each start");
    let on = |guest: &Guest| {
        off(guest);
        guest.set_config(WRITEBACK_AT, &[1]).unwrap();
    };
    assert!(!fua(&on));
    // Firmware needs no flushes.
    let next_driver = |guest: &Guest| {
        guest.acked_features(0);
        assert_eq!(guest.get_config(WRITEBACK_AT, 1), [0]);
        guest.reset_device();
        guest.acked_features(FLUSHES);
        assert_eq!(guest.get_config(WRITEBACK_AT, 1), [1]);
    };
    assert!(!fua(&next_driver));
    let after_reset = |guest: &Guest| {
        off(guest);
        guest.reset_device();
        guest.acked_features(FLUSHES);
    };
    assert!(fua(&after_reset), "the VMM shows the mode that it knows to the next driver");
}

/// A VMM that connects again repeats nothing. One that reads the configuration has another guest, unless the guest has
/// made requests.
#[test]
fn a_cache_that_was_turned_off_stays_off_until_there_is_another_guest() {
    let device = Arc::new(Slow { flushes: Barrier::new(1), calls: Mutex::default() });
    for (reads, taken, is_off) in [(false, 7, true), (true, 7, true), (false, 0, true), (true, 0, false)] {
        let target = target(Arc::clone(&device) as _);
        let first = Bed::connected_to(&target);
        first.guest.acked_features(FLUSHES);
        turn_cache_off(&first.guest);
        let mut next = Bed::connected_to(&target);
        if reads {
            assert_eq!(next.guest.get_config(0, 60)[WRITEBACK_AT as usize], 1, "the guest is not known yet");
        }
        // Says nothing about the cache.
        assert_eq!(next.guest.get_config(0, 8), SECTORS.to_le_bytes());
        next.guest.acked_features(FLUSHES);
        next.vring.set_queue_next_avail(taken);
        next.offered = taken;
        if reads {
            assert_eq!(next.guest.get_config(WRITEBACK_AT, 1), [u8::from(taken == 0)]);
        }
        let guest = Arc::clone(&next.guest);
        assert_eq!(writes_through(next, &device), is_off, "{reads} {taken}");
        assert_eq!(guest.get_config(WRITEBACK_AT, 1), [u8::from(!is_off)]);
    }
}

/// A driver may turn its cache off before its first request.
#[test]
fn another_guest_turns_its_cache_off_before_it_begins() {
    let device = Arc::new(Slow { flushes: Barrier::new(1), calls: Mutex::default() });
    let bed = Bed::new(Arc::clone(&device) as _);
    assert_eq!(bed.guest.get_config(WRITEBACK_AT, 1), [1]);
    bed.guest.acked_features(FLUSHES);
    turn_cache_off(&bed.guest);
    assert!(writes_through(bed, &device));
}
