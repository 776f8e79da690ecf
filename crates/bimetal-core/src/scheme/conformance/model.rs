//! The simplest model of a device: the last written version of each sector.

use super::Media;
use crate::media::Simulation;
use crate::part::random::below;
use crate::request::{Op, Request};
use crate::scheme::Scheme;

/// Expected content of a sector.
#[derive(Clone, Copy, PartialEq)]
enum Content {
    /// Exactly this token.
    Token(u64),
    /// Never written, or trimmed: zeros, or the previous content, or undefined next to data in the same page.
    Free(u64),
}

/// The version of every sector, and the state of the random requests.
#[derive(Clone)]
pub struct Model {
    sectors: Vec<Content>,
    state: u64,
}

impl Model {
    /// A device whose sectors were all written, or none; requests follow from `seed`.
    pub fn new(sectors: u64, filled: bool, seed: u64) -> Self {
        let content = if filled { Content::Token(0) } else { Content::Free(0) };
        Self { sectors: vec![content; sectors as usize], state: seed }
    }

    fn draw(&mut self, bound: u64) -> u64 {
        below(&mut self.state, bound)
    }

    /// Small writes to a hot tenth, bulk writes, reads anywhere, some trims; the hot tenth moves with `phase`.
    pub fn request(&mut self, phase: u64) -> Request {
        let total = self.sectors.len() as u64;
        let hot = total / 10;
        let (op, small) = match self.draw(100) {
            0..55 => (Op::Write, true),
            55..68 => (Op::Write, false),
            68..90 => (Op::Read, true),
            90..97 => (Op::Read, false),
            _ => (Op::Trim, false),
        };
        let sectors = if small {
            if self.draw(3) == 0 { 1 + self.draw(16) } else { 8 }
        } else {
            let largest = if self.draw(8) == 0 { 1024 } else { 128 };
            1 + self.draw(largest)
        };
        let sector = match self.draw(10) {
            0..7 if small => (phase * hot + self.draw(hot)) % total,
            _ => self.draw(total),
        };
        let sector = if self.draw(4) == 0 { sector } else { sector / 8 * 8 };
        let sector = sector.min(total - sectors);
        Request { arrival_ns: 0, sector, sectors: sectors as u32, op, handle: 0 }
    }

    /// Serves a request, and compares the result of a read with the written data.
    ///
    /// # Errors
    /// The first sector with wrong content.
    pub fn step(&mut self, media: &mut Media, scheme: &mut dyn Scheme<Media>, request: &Request) -> Result<(), String> {
        let now = media.end();
        media.begin(request, now);
        scheme.serve(media, request);
        media.end();
        for index in 0..request.sectors {
            let sector = &mut self.sectors[request.sector as usize + index as usize];
            match (request.op, *sector) {
                (Op::Write, _) => *sector = Content::Token(media.written_token(index)),
                (Op::Trim, Content::Token(token) | Content::Free(token)) => *sector = Content::Free(token),
                (Op::Read, content) => {
                    let read = media.read_token(index);
                    let (is_right, kind) = match content {
                        Content::Token(token) => (read == token, "sector"),
                        Content::Free(token) => (read == token || read == Media::ZEROS || read == 0, "free sector"),
                    };
                    if !is_right {
                        let sector = request.sector + u64::from(index);
                        let (Content::Token(token) | Content::Free(token)) = content;
                        return Err(format!("{kind} {sector} of {request:?} reads {read} instead of {token}"));
                    }
                }
            }
        }
        Ok(())
    }
}
