//! Batches: what one commit makes durable.

use std::sync::Arc;

use super::event::Event;
use super::home_disk::{Image, Written};
use super::region::Leaving;
use super::write_buffer::FrameRun;

/// What a commit makes durable.
pub struct Batch {
    /// Number of its first event, and the last sequence number in use before that.
    pub first_event: u64,
    /// See there.
    pub first_sequence: u64,
    /// For each batch that became durable while its events happened, oldest first, the events that had happened by then.
    pub releases: Vec<u32>,
    /// The events.
    pub events: Vec<Event>,
    /// Sectors of the home disk.
    pub disk: Option<Arc<Written>>,
    pub(super) image: Option<Image>,
    pub(super) pages: Vec<Leaving>,
    /// Whether its pages are so few that it has them itself.
    pub(super) has_pages: bool,
}

impl Batch {
    /// One of events alone.
    #[cfg(test)]
    pub fn of_events(first_event: u64, events: Vec<Event>) -> Self {
        let (first_sequence, releases, pages) = (0, Vec::new(), Vec::new());
        Self { first_event, first_sequence, releases, events, disk: None, image: None, pages, has_pages: true }
    }

    /// One past the number of its last event.
    pub(super) fn end(&self) -> u64 {
        self.first_event + self.events.len() as u64
    }

    /// Runs of pages that it has itself, with their regions.
    pub fn runs(&self) -> impl Iterator<Item = (u8, &FrameRun)> {
        let pages = self.pages.iter().filter(|_| self.has_pages);
        pages.flat_map(|leaving| leaving.runs.iter().map(|run| (leaving.region, run.as_ref())))
    }
}
