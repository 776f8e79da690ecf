//! The two buffers of a connection. Both keep what they once grew to, so that a warm connection allocates nothing.

/// Bytes received and not yet consumed.
#[derive(Debug)]
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// An empty buffer with room for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a buffer that takes nothing");
        Self { bytes: vec![0; capacity], start: 0, end: 0 }
    }

    /// What was received and not consumed.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The first `count` bytes were dealt with.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.end - self.start, "more consumed than received");
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room to receive into, never empty, while the message at the head is `message_bytes` long and incomplete. A long
    /// message does not get its room at once: the buffer doubles as bytes arrive, so that announcing costs nothing.
    pub fn room(&mut self, message_bytes: usize) -> &mut [u8] {
        debug_assert!(message_bytes > self.end - self.start, "the message is complete");
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            let doubled = self.bytes.len() * 2;
            self.bytes.resize(doubled.min(message_bytes.max(self.end + 1)), 0);
        }
        &mut self.bytes[self.end..]
    }

    /// `count` bytes of the room were filled.
    pub fn received(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.end, "more received than there was room for");
        self.end += count;
    }

    /// Grows to `capacity` bytes.
    pub fn grow(&mut self, capacity: usize) {
        if capacity > self.bytes.len() {
            self.bytes.resize(capacity, 0);
        }
    }
}

/// Bytes to be sent.
#[derive(Debug)]
pub struct Output {
    /// Initialised throughout, so that a read need not clear what it is about to fill.
    bytes: Vec<u8>,
    filled: usize,
}

impl Output {
    /// An empty buffer with room for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], filled: 0 }
    }

    /// Grows to `capacity` bytes.
    pub fn grow(&mut self, capacity: usize) {
        if capacity > self.bytes.len() {
            self.bytes.resize(capacity, 0);
        }
    }

    /// What is to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Everything was sent.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// The next `count` bytes, holding anything; [`Output::fill`] makes them part of what is sent.
    pub(super) fn room(&mut self, count: usize) -> &mut [u8] {
        let end = self.filled + count;
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        &mut self.bytes[self.filled..end]
    }

    /// The next `count` bytes are to be sent.
    pub(super) fn fill(&mut self, count: usize) {
        assert!(count <= self.bytes.len() - self.filled, "more filled than there was room for");
        self.filled += count;
    }

    /// Appends `bytes`.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.fill(bytes.len());
    }

    /// What was put from place `from` on is not to be sent.
    pub(super) fn unfill(&mut self, from: usize) {
        self.filled = self.filled.min(from);
    }

    /// What was put from place `from` on, to be completed.
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
