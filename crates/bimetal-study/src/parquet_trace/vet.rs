//! Checks of a Parquet file's metadata before the Parquet reader uses it.
//!
//! The reader allocates as many values and recurses as deep into a schema as a file demands. So counts, lengths and
//! depths are checked against the bytes that exist. File and page headers are structs in Thrift's compact protocol,
//! which can be traversed without knowledge of their fields.

use std::io::{self, Read};

use bytes::Bytes;

/// Largest nesting of structs, lists and maps. Parquet has about ten levels.
const NESTED_MAX: usize = 32;
/// Largest nesting of groups in a schema.
const DEPTH_MAX: usize = 64;
/// Largest page of values and largest dictionary, in bytes. The values of a dictionary take several times its bytes in
/// memory.
const PAGE_BYTES_MAX: i64 = 1 << 30;
const DICTIONARY_BYTES_MAX: i64 = 1 << 27;

/// The first and last bytes of a file.
const MAGIC: &[u8] = b"PAR1";

/// A result whose error is the reason of the rejection.
pub type Vetted<T> = Result<T, &'static str>;

/// An item that a walk finds. The callback also gets the numbers of the fields that lead to it.
enum Found {
    Struct,
    Number(i64),
}

/// A traversal of a struct.
struct Walk<'a> {
    rest: &'a [u8],
    path: Vec<i64>,
    found: &'a mut dyn FnMut(&[i64], Found),
}

const CUT: &str = "a header ends early";

impl Walk<'_> {
    fn byte(&mut self) -> Vetted<u8> {
        let (&byte, rest) = self.rest.split_first().ok_or(CUT)?;
        self.rest = rest;
        Ok(byte)
    }

    fn skip(&mut self, bytes: u64) -> Vetted<()> {
        let bytes = usize::try_from(bytes).map_err(|_| CUT)?;
        self.rest = self.rest.get(bytes..).ok_or(CUT)?;
        Ok(())
    }

    fn whole(&mut self) -> Vetted<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number in a header is too long")
    }

    fn number(&mut self) -> Vetted<i64> {
        let whole = self.whole()?;
        Ok((whole >> 1).cast_signed() ^ -(whole & 1).cast_signed())
    }

    /// Checks a count of items that take at least one byte each.
    fn count(&mut self, count: u64) -> Vetted<u64> {
        if count > self.rest.len() as u64 { Err("a count in a header exceeds the header") } else { Ok(count) }
    }

    fn structure(&mut self) -> Vetted<()> {
        (self.found)(&self.path, Found::Struct);
        let mut field = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => self.number()?,
                delta => field.saturating_add(i64::from(delta)),
            };
            self.path.push(field);
            match head & 0xf {
                1 => (self.found)(&self.path, Found::Number(1)),
                2 => (self.found)(&self.path, Found::Number(0)),
                kind => self.value(kind)?,
            }
            self.path.pop();
        }
    }

    /// Skips a value. Booleans are one byte; in a field, they are part of the field header.
    fn value(&mut self, kind: u8) -> Vetted<()> {
        if self.path.len() > NESTED_MAX {
            return Err("a header is nested too deep");
        }
        match kind {
            1..=3 => self.skip(1),
            4..=6 => {
                let number = self.number()?;
                (self.found)(&self.path, Found::Number(number));
                Ok(())
            }
            7 => self.skip(8),
            8 => {
                let bytes = self.whole()?;
                self.skip(bytes)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.whole()? } else { u64::from(head >> 4) };
                (0..self.count(count)?).try_for_each(|_| self.nested(head & 0xf))
            }
            11 => {
                let count = self.whole()?;
                let kinds = if count > 0 { self.byte()? } else { 0 };
                (0..self.count(count)?).try_for_each(|_| {
                    self.nested(kinds >> 4)?;
                    self.nested(kinds & 0xf)
                })
            }
            12 => self.structure(),
            13 => self.skip(16),
            _ => Err("a header has a field of an unknown type"),
        }
    }

    /// Skips an element of a list or a map.
    fn nested(&mut self, kind: u8) -> Vetted<()> {
        self.path.push(0);
        self.value(kind)?;
        self.path.pop();
        Ok(())
    }
}

/// Traverses the struct at the start of `bytes`, and returns its length.
fn walk(bytes: &[u8], found: &mut dyn FnMut(&[i64], Found)) -> Vetted<usize> {
    let mut walk = Walk { rest: bytes, path: Vec::new(), found };
    walk.structure()?;
    Ok(bytes.len() - walk.rest.len())
}

/// Checks that a file is complete, and that its footer and schema are valid.
pub fn file(bytes: &[u8]) -> Vetted<()> {
    if !bytes.starts_with(MAGIC) {
        return Err("it does not begin with `PAR1`");
    }
    let body = bytes[MAGIC.len()..].strip_suffix(MAGIC).ok_or("it does not end with `PAR1`")?;
    let (body, length) = body.split_last_chunk::<4>().ok_or(CUT)?;
    let length = u32::from_le_bytes(*length) as usize;
    let footer =
        body.len().checked_sub(length).map(|start| &body[start..]).ok_or("its footer is longer than the file")?;
    // Number of children of each schema element. The first element is the root.
    let mut children: Vec<i64> = Vec::new();
    walk(footer, &mut |path, found| match (path, found) {
        ([2, 0], Found::Struct) => children.push(0),
        ([2, 0, 5], Found::Number(count)) => {
            if let Some(last) = children.last_mut() {
                *last = count;
            }
        }
        _ => {}
    })?;
    let mut open: Vec<i64> = Vec::new();
    for count in children {
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if count < 0 || open.len() > DEPTH_MAX {
            return Err("its schema is nested too deep");
        }
        open.push(count);
    }
    Ok(())
}

/// The checked fields of a page header.
#[derive(Debug, Default)]
struct PageHeader {
    /// Bytes of the page uncompressed and as stored.
    bytes: i64,
    stored: i64,
    /// Number of values in a dictionary.
    dictionary_values: i64,
    /// Bytes of the uncompressed levels in front of the compressed data.
    levels: i64,
    is_plain: bool,
}

/// Checks the page whose header is at the start of `bytes`. The flags tell whether the column is compressed with gzip
/// or uncompressed.
pub fn page(bytes: &Bytes, is_gzip: bool, is_plain: bool) -> Vetted<()> {
    let mut header = PageHeader { is_plain, ..PageHeader::default() };
    let length = walk(bytes, &mut |path, found| {
        let Found::Number(number) = found else { return };
        match path {
            [2] => header.bytes = number,
            [3] => header.stored = number,
            [7, 1] => header.dictionary_values = number,
            [8, 5 | 6] => header.levels = header.levels.saturating_add(number),
            [8, 7] if number == 0 => header.is_plain = true,
            _ => {}
        }
    })?;
    // For an uncompressed page, only this field states its length.
    let size = if header.is_plain { header.stored } else { header.bytes };
    if size > PAGE_BYTES_MAX || header.bytes > PAGE_BYTES_MAX {
        return Err("a page is larger than 1 GiB");
    }
    if header.dictionary_values > 0 && size > DICTIONARY_BYTES_MAX {
        return Err("a dictionary is larger than 128 MiB");
    }
    if header.dictionary_values > size {
        return Err("a dictionary counts more values than it has bytes");
    }
    if is_gzip && !header.is_plain {
        let stored = usize::try_from(header.stored).ok().and_then(|stored| bytes.get(length..)?.get(..stored));
        let levels = usize::try_from(header.levels).ok();
        let compressed = stored.zip(levels).and_then(|(stored, levels)| stored.get(levels..)).ok_or(CUT)?;
        let expected = u64::try_from(header.bytes - header.levels).map_err(|_| CUT)?;
        // The reader would decompress everything before it checks the length.
        let mut undone = flate2::read::MultiGzDecoder::new(compressed).take(expected.saturating_add(1));
        match io::copy(&mut undone, &mut io::sink()) {
            Ok(held) if held > expected => return Err("a page in gzip is longer than its header says"),
            Ok(_) => {}
            Err(_) => return Err("a page in gzip is damaged"),
        }
    }
    Ok(())
}
