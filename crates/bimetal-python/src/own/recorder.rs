//! Records the operations of a scheme in Python, and checks them against the rules of flash and the data written by the
//! host.
//!
//! For every place it knows the programmed page, and whether it is a newest copy of this page. So it knows at once what
//! a read would return and what an erase would lose. The newest copies of a page form a list, the last one first:
//! `home` has its beginning and `older` the rest. A page has several of them after a copy, until the block of the first
//! is erased.

use std::sync::Arc;

use bimetal_core::chip::CellMode;
use bimetal_core::media::{Cause, Stream};

use super::layout::{Layout, NONE};

/// A recorded operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Reads the old copy of the page being written, which is overwritten in part.
    Merge { from: u32 },
    /// Programs the page being written.
    Program { to: u32, stream: Stream },
    /// Programs a page without host data.
    Pad { to: u32, stream: Stream, cause: Cause },
    /// Copies a page.
    Copy { from: u32, to: u32, stream: Stream, cause: Cause },
    /// Reads a page. With the host as its cause, the read answers the host's request.
    Read { from: u32, cause: Cause },
    /// Erases a block.
    Erase { block: u32, mode: CellMode, cause: Cause },
}

/// Purpose of a call of the scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// It is not being called.
    None,
    /// The host writes a page, all of it or a part.
    Write { page: u32, is_whole: bool },
    /// The host reads a page that has data.
    Read { page: u32, is_answered: bool },
    /// The host has trimmed a page.
    Trim { page: u32 },
    /// The host is idle.
    Idle,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    mode: CellMode,
    /// Number of programmed pages.
    written: u32,
    /// Number of pages whose last newest copy is here.
    valid: u32,
    erases: u32,
}

/// The recorder.
#[derive(Debug)]
pub struct Recorder {
    layout: Arc<Layout>,
    blocks: Vec<Block>,
    /// By place: the page programmed there since the erase.
    held: Vec<u32>,
    /// By place: whether it is a newest copy of the page.
    is_newest: Vec<bool>,
    /// By place of a newest copy: the one before it.
    older: Vec<u32>,
    /// By page: the last of its newest copies.
    home: Vec<u32>,
    task: Task,
    steps: Vec<Step>,
    /// Maximum number of steps of a call.
    limit: usize,
    /// The first broken rule.
    broken: Option<String>,
}

impl Recorder {
    /// An erased device.
    pub fn new(layout: Arc<Layout>) -> Self {
        let (blocks, places) = (layout.blocks() as usize, (layout.blocks() * layout.stride) as usize);
        let block = Block { mode: CellMode::Native, written: 0, valid: 0, erases: 0 };
        Self {
            blocks: vec![block; blocks],
            held: vec![NONE; places],
            is_newest: vec![false; places],
            older: vec![NONE; places],
            home: vec![NONE; layout.pages as usize],
            task: Task::None,
            steps: Vec::new(),
            limit: 8 * places + 1024,
            broken: None,
            layout,
        }
    }

    /// A call of the scheme begins.
    pub fn begin(&mut self, task: Task) {
        self.task = task;
        match task {
            Task::Write { page, is_whole } => {
                let old = self.home[page as usize];
                if old != NONE && !is_whole {
                    self.steps.push(Step::Merge { from: old });
                }
                self.forget(page);
            }
            Task::Trim { page } => self.forget(page),
            Task::None | Task::Read { .. } | Task::Idle => {}
        }
    }

    /// The call has ended. Exchanges the steps for an empty list.
    ///
    /// # Errors
    /// A rule was broken during the call, or a required operation is missing.
    pub fn end(&mut self, steps: &mut Vec<Step>) -> Result<(), String> {
        let task = std::mem::replace(&mut self.task, Task::None);
        if let Some(broken) = self.take_broken() {
            return Err(broken);
        }
        match task {
            Task::Write { page, .. } if self.home[page as usize] == NONE => {
                return Err(format!("it returned, and page {page} is in no block; hint: `media.program(block)`"));
            }
            Task::Read { page, is_answered: false } => {
                return Err(format!("it returned, and page {page} was not read; hint: `media.read(place)`"));
            }
            _ => {}
        }
        steps.clear();
        std::mem::swap(steps, &mut self.steps);
        Ok(())
    }

    /// The first rule that was broken since the last call of this or of [`Self::end`].
    pub fn take_broken(&mut self) -> Option<String> {
        self.broken.take()
    }

    /// Programs the page that the host writes. Returns the place.
    ///
    /// # Errors
    /// No page is being written, or the block has no free page.
    pub fn program(&mut self, block: u32, stream: Stream) -> Result<u32, String> {
        let Task::Write { page, .. } = self.task else {
            return self.fails(
                "only `write` and `fill` program a page of the host; hint: `copy` moves one, `pad` fills a block",
            );
        };
        let to = self.take(block)?;
        self.add_copy(page, to);
        self.steps.push(Step::Program { to, stream });
        Ok(to)
    }

    /// Programs a page without host data. Returns the place.
    ///
    /// # Errors
    /// The block has no free page.
    pub fn pad(&mut self, block: u32, stream: Stream, cause: Cause) -> Result<u32, String> {
        let to = self.take(block)?;
        self.steps.push(Step::Pad { to, stream, cause });
        Ok(to)
    }

    /// Copies a page to the next free one of a block. Returns the place.
    ///
    /// # Errors
    /// The place has no page, or the block has no free page.
    pub fn copy(&mut self, from: u32, block: u32, stream: Stream, cause: Cause) -> Result<u32, String> {
        self.check_programmed(from)?;
        let to = self.take(block)?;
        if self.is_newest[from as usize] {
            self.add_copy(self.held[from as usize], to);
        } else {
            self.held[to as usize] = self.held[from as usize];
        }
        self.steps.push(Step::Copy { from, to, stream, cause });
        Ok(to)
    }

    /// Reads a page; with the host as its cause it answers the host.
    ///
    /// # Errors
    /// The place has no page, or not the page that the host requests.
    pub fn read(&mut self, from: u32, cause: Cause) -> Result<(), String> {
        self.check_programmed(from)?;
        self.check_limit()?;
        if cause == Cause::Host {
            let Task::Read { page, is_answered } = &mut self.task else {
                return self.fails("the host has not asked for a page; hint: give the read another `cause`");
            };
            *is_answered = true;
            let (page, held) = (*page, self.held[from as usize]);
            if held != page || !self.is_newest[from as usize] {
                let place = self.named(from);
                return self.fails(&match held {
                    NONE => format!("the host asks for page {page}, and {place} holds no page of the host"),
                    _ if held == page => format!("the host asks for page {page}, and {place} holds an old copy of it"),
                    _ => format!("the host asks for page {page}, and {place} holds page {held}"),
                });
            }
        }
        self.steps.push(Step::Read { from, cause });
        Ok(())
    }

    /// Erases a block.
    ///
    /// # Errors
    /// There is no such block or mode, or data would be lost.
    pub fn erase(&mut self, block: u32, mode: CellMode, cause: Cause) -> Result<(), String> {
        self.check_block(block)?;
        self.check_limit()?;
        if self.layout.pages_per_block(block, mode) == 0 {
            return self.fails("the chip of this region has no SLC mode");
        }
        let first = block * self.layout.stride;
        for place in first..first + self.blocks[block as usize].written {
            if self.is_newest[place as usize] && !self.drop_copy(place) {
                let page = self.held[place as usize];
                return self.fails(&format!(
                    "block {block} holds the only copy of page {page}; hint: copy it before the erase"
                ));
            }
            self.held[place as usize] = NONE;
        }
        let state = &mut self.blocks[block as usize];
        *state = Block { mode, written: 0, valid: 0, erases: state.erases + 1 };
        self.steps.push(Step::Erase { block, mode, cause });
        Ok(())
    }

    /// The place of the last newest copy of a page.
    pub fn place(&self, page: u32) -> Option<u32> {
        self.home.get(page as usize).copied().filter(|&place| place != NONE)
    }

    /// The page whose newest copy is at a place.
    pub fn page(&self, place: u32) -> Option<u32> {
        let is_newest = *self.is_newest.get(place as usize)?;
        is_newest.then(|| self.held[place as usize])
    }

    /// The places of the valid pages of a block.
    ///
    /// # Errors
    /// There is no such block.
    pub fn places(&mut self, block: u32) -> Result<Vec<u32>, String> {
        self.check_block(block)?;
        let first = block * self.layout.stride;
        let places = first..first + self.blocks[block as usize].written;
        Ok(places.filter(|&place| self.page(place).is_some_and(|page| self.home[page as usize] == place)).collect())
    }

    /// Valid pages, free pages and erases of a block.
    ///
    /// # Errors
    /// There is no such block.
    pub fn block(&mut self, block: u32) -> Result<(u32, u32, u32), String> {
        self.check_block(block)?;
        let &Block { mode, written, valid, erases } = &self.blocks[block as usize];
        Ok((valid, self.layout.pages_per_block(block, mode) - written, erases))
    }

    fn fails<T>(&mut self, what: &str) -> Result<T, String> {
        self.broken.get_or_insert_with(|| what.to_owned());
        Err(what.to_owned())
    }

    fn check_block(&mut self, block: u32) -> Result<(), String> {
        let blocks = self.layout.blocks();
        if block < blocks {
            Ok(())
        } else {
            self.fails(&format!("there is no block {block}: blocks are 0 to {}", blocks - 1))
        }
    }

    fn check_limit(&mut self) -> Result<(), String> {
        if self.task == Task::None {
            return self.fails("the media are used outside of a call of the scheme");
        }
        if self.steps.len() < self.limit {
            return Ok(());
        }
        let limit = self.limit;
        self.fails(&format!("more than {limit} operations in one call: does it collect and win no room?"))
    }

    fn check_programmed(&mut self, place: u32) -> Result<(), String> {
        let block = self.layout.block_of(place);
        self.check_block(block)?;
        if place % self.layout.stride < self.blocks[block as usize].written {
            return Ok(());
        }
        let what = format!("{} is not programmed since the last erase", self.named(place));
        self.fails(&what)
    }

    /// The next free page of a block.
    fn take(&mut self, block: u32) -> Result<u32, String> {
        self.check_block(block)?;
        self.check_limit()?;
        let Block { mode, written, .. } = self.blocks[block as usize];
        if written >= self.layout.pages_per_block(block, mode) {
            return self.fails(&format!("block {block} has no free page; hint: erase it first"));
        }
        self.blocks[block as usize].written += 1;
        let place = block * self.layout.stride + written;
        (self.held[place as usize], self.is_newest[place as usize]) = (NONE, false);
        Ok(place)
    }

    /// A place in the terms of messages.
    fn named(&self, place: u32) -> String {
        format!("place {place} (page {} of block {})", place % self.layout.stride, self.layout.block_of(place))
    }

    fn valid_of(&mut self, place: u32) -> &mut u32 {
        let block = self.layout.block_of(place);
        &mut self.blocks[block as usize].valid
    }

    /// Marks the copies of a page as old.
    fn forget(&mut self, page: u32) {
        let mut place = std::mem::replace(&mut self.home[page as usize], NONE);
        if place != NONE {
            *self.valid_of(place) -= 1;
        }
        while place != NONE {
            self.is_newest[place as usize] = false;
            place = self.older[place as usize];
        }
    }

    /// Adds a newest copy of a page to the list.
    fn add_copy(&mut self, page: u32, place: u32) {
        let before = std::mem::replace(&mut self.home[page as usize], place);
        if before != NONE {
            *self.valid_of(before) -= 1;
        }
        *self.valid_of(place) += 1;
        (self.held[place as usize], self.is_newest[place as usize]) = (page, true);
        self.older[place as usize] = before;
    }

    /// Removes a newest copy. Returns whether there is another one.
    fn drop_copy(&mut self, place: u32) -> bool {
        let (page, before) = (self.held[place as usize] as usize, self.older[place as usize]);
        let last = self.home[page];
        if last == place {
            if before == NONE {
                return false;
            }
            self.home[page] = before;
            *self.valid_of(place) -= 1;
            *self.valid_of(before) += 1;
        } else {
            let mut at = last;
            while self.older[at as usize] != place {
                at = self.older[at as usize];
            }
            self.older[at as usize] = before;
        }
        self.is_newest[place as usize] = false;
        true
    }
}
