//! The write cache that a connected guest sees: whether a write is durable only after a flush, or when it completes.
//!
//! A guest turns the cache off in the configuration space, and then sends no flushes. Its VMM does not repeat this
//! choice when it connects again. It does not ask for the mode after a reset either: QEMU remembers what the guest
//! wrote, and shows it to the next driver. So the choice outlives connections and resets. It ends with a new driver
//! whose VMM has read the configuration in the same connection: that driver knows of no other choice.

use std::sync::atomic::{AtomicBool, Ordering};

use super::config;

/// The write cache of a connected guest. `is_off` of its methods is the guest's choice, which outlives the connection.
#[derive(Debug)]
pub struct WriteCache {
    has_flush: AtomicBool,
    /// No queue has begun in this connection, and the mode was not set: the guest may be another one than before.
    is_open: AtomicBool,
    /// The VMM has read the mode meanwhile. It shows its guest a cache that is on.
    is_read: AtomicBool,
}

impl Default for WriteCache {
    fn default() -> Self {
        Self { has_flush: true.into(), is_open: true.into(), is_read: false.into() }
    }
}

impl WriteCache {
    /// Whether each write must be durable when it completes.
    pub fn is_writethrough(&self, is_off: &AtomicBool) -> bool {
        !self.has_flush.load(Ordering::Relaxed) || is_off.load(Ordering::Relaxed)
    }

    /// The driver has chosen these features.
    pub fn negotiate(&self, features: u64) {
        self.has_flush.store(config::has_flush(features), Ordering::Relaxed);
    }

    /// The features of the next driver are not known yet.
    pub fn reset(&self) {
        self.has_flush.store(true, Ordering::Relaxed);
    }

    /// The field `writeback` for a VMM that reads the configuration. `is_new` says whether the driver has made no
    /// request, as far as the indices of its queues are known.
    pub fn read(&self, is_off: &AtomicBool, is_new: bool) -> bool {
        if !is_new || !self.is_open.load(Ordering::Relaxed) {
            return !self.is_writethrough(is_off);
        }
        self.is_read.store(true, Ordering::Relaxed);
        self.has_flush.load(Ordering::Relaxed)
    }

    /// The guest turns the cache on or off.
    pub fn set(&self, is_off: &AtomicBool, writeback: bool) {
        self.is_open.store(false, Ordering::Relaxed);
        is_off.store(!writeback, Ordering::Relaxed);
    }

    /// The first queue begins. `is_new` says whether the driver has made no request before.
    pub fn begin(&self, is_off: &AtomicBool, is_new: bool) {
        let is_open = self.is_open.swap(false, Ordering::Relaxed);
        if is_open && is_new && self.is_read.load(Ordering::Relaxed) {
            is_off.store(false, Ordering::Relaxed);
        }
    }
}
