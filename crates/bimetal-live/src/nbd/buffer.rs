//! The two buffers of a connection. Both keep their largest size, so that a warm connection allocates nothing. For a
//! large message a larger buffer replaces one of them until the message is done.

use std::ops::Range;
use std::sync::Arc;

use super::MAX_PAYLOAD_BYTES;
use super::proto::EXTENDED_REQUEST_BYTES;
use crate::block_device::Payload;

/// Bytes of a buffer for a large message of any length. An allocation of more than 32 MiB has its own mapping: only
/// written pages take memory, and all memory returns to the system at once.
const LARGE_BYTES: usize = MAX_PAYLOAD_BYTES + (64 << 10);

/// Maximum number of bytes of an incomplete message that are moved to the front of the buffer only to gain room behind
/// them.
const MOVED_BYTES: usize = 4096;

/// Minimum length of a message that is received alone, with only the header of the next one: the message then starts at
/// the front of the buffer and stays in the processor's caches, and no part of the next message has to be moved.
const LONG_BYTES: usize = 32 << 10;

/// Bytes received and not yet consumed.
#[derive(Debug)]
pub struct Input {
    /// Not shared while data are received.
    bytes: Arc<Vec<u8>>,
    /// The normal buffer, while a large one is in use.
    kept: Option<Arc<Vec<u8>>>,
    start: usize,
    end: usize,
}

impl Input {
    /// An empty buffer with room for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a buffer that takes nothing");
        Self { bytes: Arc::new(vec![0; capacity]), kept: None, start: 0, end: 0 }
    }

    /// Bytes received and not consumed.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// A part of [`Input::bytes`], which may be shared until more is received.
    pub fn share(&self, range: Range<usize>) -> Payload {
        Payload::new(Arc::clone(&self.bytes), self.start + range.start..self.start + range.end)
    }

    /// Removes the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "more consumed than received");
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room to receive into, never empty, while the message at the head is `message_bytes` long and incomplete. A long
    /// message does not get all its room at once: the buffer doubles as bytes arrive, so that a client cannot cause
    /// allocations by announcing a length. A large buffer receives only the message for which it was allocated.
    pub fn room(&mut self, message_bytes: usize) -> &mut [u8] {
        debug_assert!(message_bytes > self.end - self.start, "the message is complete");
        // A long beginning is moved only if the rest of the message does not fit behind it.
        let held = self.end - self.start;
        let is_large = self.is_large();
        let is_long = message_bytes >= LONG_BYTES;
        let wanted = if is_long && !is_large { message_bytes + EXTENDED_REQUEST_BYTES } else { message_bytes };
        let bytes = Arc::make_mut(&mut self.bytes);
        if self.start > 0 && (held <= MOVED_BYTES || self.start + message_bytes > bytes.len()) {
            bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, held);
        }
        if self.end == bytes.len() {
            let doubled = bytes.len() * 2;
            bytes.resize(doubled.min(wanted.max(self.end + 1)), 0);
        }
        let end = if is_long || is_large { bytes.len().min(self.start + wanted) } else { bytes.len() };
        &mut bytes[self.end..end]
    }

    /// Whether the message at the head, `message_bytes` long, has filled the buffer and is longer than `keep` bytes, so
    /// that it needs a large buffer.
    pub(super) fn is_outgrown(&self, message_bytes: usize, keep: usize) -> bool {
        message_bytes > keep && self.end - self.start == self.bytes.len()
    }

    /// Whether a large buffer is in use.
    pub(super) fn is_large(&self) -> bool {
        self.kept.is_some()
    }

    /// Switches to a large buffer for the message at the head.
    pub(super) fn enlarge(&mut self) {
        let mut large = vec![0; LARGE_BYTES];
        let held = self.end - self.start;
        large[..held].copy_from_slice(self.bytes());
        (self.start, self.end) = (0, held);
        self.kept = Some(std::mem::replace(&mut self.bytes, Arc::new(large)));
    }

    /// Frees the large buffer if its message was consumed. Returns whether none is in use now.
    pub(super) fn shrink(&mut self) -> bool {
        if self.start == self.end
            && let Some(kept) = self.kept.take()
        {
            self.bytes = kept;
        }
        !self.is_large()
    }

    /// Records that `count` bytes of the room were filled.
    pub fn received(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.end, "more received than there was room for");
        self.end += count;
    }

    /// Grows to `capacity` bytes.
    pub fn grow(&mut self, capacity: usize) {
        if capacity > self.bytes.len() {
            Arc::make_mut(&mut self.bytes).resize(capacity, 0);
        }
    }
}

/// Bytes to be sent.
#[derive(Debug)]
pub struct Output {
    /// Always initialised, so that a read need not clear the bytes that it fills.
    bytes: Vec<u8>,
    /// The normal buffer, while a large one is in use.
    kept: Option<Vec<u8>>,
    filled: usize,
}

impl Output {
    /// An empty buffer with room for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], kept: None, filled: 0 }
    }

    /// Grows to `capacity` bytes.
    pub fn grow(&mut self, capacity: usize) {
        if capacity > self.bytes.len() {
            self.bytes.resize(capacity, 0);
        }
    }

    /// Bytes of room left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.filled
    }

    /// Whether a large buffer is in use.
    pub(super) fn is_large(&self) -> bool {
        self.kept.is_some()
    }

    /// Switches to a large buffer for the next reply. All earlier output was sent.
    pub(super) fn enlarge(&mut self) {
        debug_assert!(self.filled == 0 && self.kept.is_none(), "a large buffer is for one reply");
        self.kept = Some(std::mem::replace(&mut self.bytes, vec![0; LARGE_BYTES]));
    }

    /// Frees the large buffer if everything was sent. Returns whether none is in use now.
    pub(super) fn shrink(&mut self) -> bool {
        if self.filled == 0
            && let Some(kept) = self.kept.take()
        {
            self.bytes = kept;
        }
        !self.is_large()
    }

    /// The bytes to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Removes all bytes, which were sent.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// The next `count` bytes, with undefined content; [`Output::fill`] adds them to the bytes to be sent.
    pub(super) fn room(&mut self, count: usize) -> &mut [u8] {
        let end = self.filled + count;
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.filled..end]
    }

    /// Adds the next `count` bytes to the bytes to be sent.
    pub(super) fn fill(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.filled, "more filled than there was room for");
        self.filled += count;
    }

    /// Appends `bytes`.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// Removes all bytes from position `from` on.
    pub(super) fn unfill(&mut self, from: usize) {
        self.filled = self.filled.min(from);
    }

    /// The bytes from position `from` on, to be completed.
    pub(super) fn since(&mut self, from: usize) -> &mut [u8] {
        &mut self.bytes[from..self.filled]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_grows_with_what_arrives_and_not_with_what_is_announced() {
        let mut input = Input::new(16);
        assert_eq!(input.room(1 << 20).len(), 16);
        input.received(16);
        assert_eq!(input.room(1 << 20).len(), 16, "twice as much as arrived");
        input.received(10);
        input.consume(20);
        assert_eq!(input.bytes().len(), 6);
        assert_eq!(input.room(1 << 20).len(), 26, "what is left moved to the front");
        input.received(26);
        assert_eq!(input.room(40).len(), 8, "no more than the message needs");
    }

    #[test]
    fn a_long_message_is_received_by_itself_with_the_header_of_the_next_one() {
        let mut input = Input::new(4 * LONG_BYTES);
        assert_eq!(input.room(EXTENDED_REQUEST_BYTES).len(), 4 * LONG_BYTES, "short ones are received together");
        input.received(EXTENDED_REQUEST_BYTES);
        let message_bytes = EXTENDED_REQUEST_BYTES + LONG_BYTES;
        assert_eq!(input.room(message_bytes).len(), LONG_BYTES + EXTENDED_REQUEST_BYTES);
        input.received(LONG_BYTES + EXTENDED_REQUEST_BYTES);
        input.consume(message_bytes);
        assert_eq!(input.bytes().len(), EXTENDED_REQUEST_BYTES);
        assert_eq!(input.room(message_bytes).len(), LONG_BYTES + EXTENDED_REQUEST_BYTES);
        assert_eq!(input.start, 0, "it begins where the one before began");
    }

    #[test]
    fn what_is_shared_stays_as_it_is() {
        let mut input = Input::new(16);
        input.room(16)[..4].copy_from_slice(b"abcd");
        input.received(4);
        input.consume(1);
        let shared = input.share(1..3);
        assert_eq!(shared.bytes().as_ptr(), input.bytes()[1..].as_ptr(), "not a copy");
        input.consume(3);
        input.room(16).fill(0);
        assert_eq!(shared.bytes(), b"cd", "a share that outlives its message keeps its bytes");
    }

    #[test]
    fn a_large_buffer_is_for_one_message() {
        let mut input = Input::new(16);
        assert!(!input.is_outgrown(100, 64));
        input.room(100)[..16].copy_from_slice(&[7; 16]);
        input.received(16);
        assert!(input.is_outgrown(100, 64) && !input.is_outgrown(64, 64));
        let memory = input.bytes.as_ptr();
        input.enlarge();
        assert_eq!((input.bytes(), input.is_large()), (&[7; 16][..], true));
        assert_eq!(input.room(100).len(), 84, "nothing of the next message");
        input.received(84);
        assert!(!input.shrink());
        input.consume(100);
        assert!(input.shrink());
        assert_eq!((input.room(1).len(), input.bytes.as_ptr()), (16, memory));

        let mut output = Output::new(16);
        output.put(b"ab");
        assert_eq!(output.left(), 14);
        output.clear();
        output.enlarge();
        assert!(output.left() > MAX_PAYLOAD_BYTES && output.is_large());
        output.put(b"ab");
        assert!(!output.shrink());
        output.clear();
        assert!(output.shrink() && output.left() == 16);
    }

    #[test]
    fn output_keeps_its_memory() {
        let mut output = Output::new(4);
        output.put(b"abcdef");
        output.room(100)[0] = b'g';
        assert_eq!(output.bytes(), b"abcdef", "room is not filled");
        output.fill(1);
        assert_eq!(output.bytes(), b"abcdefg");
        output.since(6).copy_from_slice(b"h");
        assert_eq!(output.bytes(), b"abcdefh");
        output.unfill(3);
        assert_eq!(output.bytes(), b"abc");
        let memory = output.bytes.as_ptr();
        output.clear();
        output.put(&[1; 106]);
        assert_eq!(output.bytes.as_ptr(), memory);
    }
}
