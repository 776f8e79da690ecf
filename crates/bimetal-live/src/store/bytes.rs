//! Buffers that are aligned for direct access to files, and numbers in them.

/// Alignment of direct reads and writes in bytes. A page of memory suits every device.
const ALIGNMENT: usize = 4096;

/// A buffer that grows and keeps its memory. Its first byte is aligned for direct access.
#[derive(Debug, Default)]
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// A buffer of `len` zeros.
    pub fn new(len: usize) -> Self {
        let mut buffer = Self::default();
        buffer.resize(len);
        buffer
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// Its bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Changes the length. New bytes are undefined.
    pub fn resize(&mut self, len: usize) {
        if self.start + len > self.memory.len() {
            let mut memory = vec![0; (len + ALIGNMENT).next_power_of_two()];
            let start = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
            memory[start..start + self.len].copy_from_slice(self.bytes());
            (self.memory, self.start) = (memory, start);
        }
        self.len = len;
    }

    /// Memory in bytes.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }
}

/// The little-endian number at byte `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

/// The little-endian number at byte `at`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Writes a little-endian number at byte `at`.
pub fn put_u32(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Writes a little-endian number at byte `at`.
pub fn put_u64(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_keeps_its_bytes_as_it_grows_and_stays_aligned() {
        let mut buffer = Buffer::new(512);
        buffer.bytes_mut().fill(7);
        for len in [4096, 513, 1 << 20] {
            buffer.resize(len);
            assert_eq!(buffer.bytes().as_ptr().align_offset(ALIGNMENT), 0);
            assert!(buffer.bytes()[..512].iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn numbers_come_back() {
        let mut bytes = [0; 16];
        put_u64(&mut bytes, 1, 0x0102_0304_0506_0708);
        put_u32(&mut bytes, 10, 0xffee_ddcc);
        assert_eq!((u64_at(&bytes, 1), u32_at(&bytes, 10), bytes[1]), (0x0102_0304_0506_0708, 0xffee_ddcc, 8));
    }
}
