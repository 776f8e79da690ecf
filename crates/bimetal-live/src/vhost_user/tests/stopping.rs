//! Queues that stop while their requests are executed.

use super::*;

/// A device that does something during its first read.
struct During(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl BlockDevice for During {
    fn sectors(&self) -> u64 {
        SECTORS
    }
    fn read_only(&self) -> bool {
        true
    }
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), IoError> {
        let act = self.0.lock().unwrap().take();
        act.into_iter().for_each(|act| act());
        Ok(())
    }
    fn write(&self, _: u64, _: &[u8], _: bool) -> Result<(), IoError> {
        Ok(())
    }
    fn trim(&self, _: u64, _: u64, _: bool) -> Result<(), IoError> {
        Ok(())
    }
    fn zero(&self, _: u64, _: u64, _: bool) -> Result<(), IoError> {
        Ok(())
    }
    fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }
    fn extents(&self, _: u64, _: u64, _: &mut dyn FnMut(u64, Extent) -> ControlFlow<()>) -> Result<(), IoError> {
        Ok(())
    }
}

/// Who stops a queue waits for the requests that were taken from it.
#[test]
fn requests_that_were_taken_are_answered_though_their_queue_stops() {
    let is_disabled = |bed: &Bed| bed.vring.set_enabled(false);
    let is_not_ready = |bed: &Bed| bed.vring.set_queue_ready(false);
    let is_closed = |bed: &Bed| bed.guest.close();
    let is_broken = |bed: &Bed| bed.vring.set_queue_info(TABLE, MEMORY_BYTES as u64, USED).unwrap();
    for stop in [is_disabled, is_not_ready, is_closed, is_broken] {
        let device = Arc::new(During(Mutex::default()));
        let mut bed = Bed::new(Arc::clone(&device) as _);
        bed.header(VIRTIO_BLK_T_IN, 0);
        for head in [0, 4, 8] {
            bed.describe(TABLE, head, Descriptor { at: DATA, bytes: 16, flags: NEXT, next: head + 1 });
            bed.describe(TABLE, head + 1, Descriptor { at: BUFFER, bytes: 513, flags: WRITE, next: 0 });
            bed.offer(head);
        }
        let (guest, vring, memory) = (Arc::clone(&bed.guest), bed.vring.clone(), bed.memory.clone());
        *device.0.lock().unwrap() = Some(Box::new(move || stop(&Bed { guest, memory, vring, offered: 0 })));
        bed.guest.handle_event(0, EventSet::IN, std::slice::from_ref(&bed.vring), 0).unwrap();
        assert_eq!(bed.used(), [(0, 513), (4, 513), (8, 513)]);
        bed.guest.drain();
    }
}
