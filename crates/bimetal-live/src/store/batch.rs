//! Batches: the changes that one commit makes durable.

use std::sync::Arc;

use super::event::Event;
use super::home_disk::{Image, Written};
use super::region::Leaving;
use super::write_buffer::FrameRun;

/// The changes that one commit makes durable.
pub struct Batch {
    /// Number of its first event, and the last sequence number that was in use before that event.
    pub first_event: u64,
    /// See `first_event`.
    pub first_sequence: u64,
    /// For each batch that became durable during the events of this one, oldest first: the number of events before that
    /// moment.
    pub releases: Vec<u32>,
    /// The events.
    pub events: Vec<Event>,
    /// Sectors of the home disk.
    pub disk: Option<Arc<Written>>,
    pub(super) image: Option<Image>,
    pub(super) pages: Vec<Leaving>,
    /// Whether its pages are few enough to be part of it in the journal.
    pub(super) has_pages: bool,
}

impl Batch {
    /// A batch of events alone.
    #[cfg(test)]
    pub fn of_events(first_event: u64, events: Vec<Event>) -> Self {
        let (first_sequence, releases, pages) = (0, Vec::new(), Vec::new());
        Self { first_event, first_sequence, releases, events, disk: None, image: None, pages, has_pages: true }
    }

    /// Number of its last event plus 1.
    pub(super) fn end(&self) -> u64 {
        self.first_event + self.events.len() as u64
    }

    /// Runs of pages that are part of the batch, with their regions.
    pub fn runs(&self) -> impl Iterator<Item = (u8, &FrameRun)> {
        let pages = self.pages.iter().filter(|_| self.has_pages);
        pages.flat_map(|leaving| leaving.runs.iter().map(|run| (leaving.region, run.as_ref())))
    }
}
