//! Common base of `hyssd` and `hyssd-static`: a fast SSD and a slow one, each page-mapped, and a target utilisation for
//! the share of the data in the fast one (*HySSD*, MSST 2013).
//!
//! ```text
//! write ─▶ fast SSD, the page written last      page written longest ago ─▶ slow SSD
//! read  ─▶ where the page is                    (while the fast SSD has more pages than its target)
//! ```
//!
//! The unit of placement is the larger of the two flash pages: a page is completely in one of the SSDs.
//! Readings: [`Reading`]; after the utilisation of the fast SSD was lowered, its excess pages are demoted with
//! the next writes, a few pages each, and in idle time if they were not written for long. `docs/papers/hyssd-2013.md`
//! lists all.

mod classifier;
mod pair;

use serde::{Deserialize, Serialize};

pub use classifier::{Classifier, ClassifierSettings};
pub use pair::Pair;

use super::{Adaptation, Metrics, Scheme, Shape, ratio};
use crate::media::Media;
use crate::model::hyssd::hybrid_life;
use crate::region::log::Collection;
use crate::request::{Op, Request};

/// The target of the utilisation.
pub const UTILISATION_TARGET: Adaptation = Adaptation {
    metric: "utilisation_target",
    title: "Target utilisation of the fast SSD",
    unit: "share of the fast SSD",
    meaning: "Data that the fast SSD is to hold in the next period, as the cost model chose for response or lifetime.",
};

/// The current utilisation.
pub const UTILISATION: Adaptation = Adaptation {
    metric: "utilisation",
    title: "Utilisation of the fast SSD",
    unit: "share of the fast SSD",
    meaning: "Data that the fast SSD holds.",
};

crate::choices! {
    /// Which writes go to the fast SSD.
    pub enum Reading {
        /// All writes, as in the equation for `C_PW_HY` (equation 3 and before it).
        WriteAllocate = "write_allocate",
        /// Writes to the most recently written pages, as many as the fast SSD's target; the others go to the slow SSD
        /// ("miss to the TLC SSD", section II-B).
        HotSet = "hot_set",
    }
}

/// Source of the fast SSD's target utilisation.
pub trait Steering: std::fmt::Debug + Send + Serialize {
    /// Page writes after which it is asked again; `None` if the target never changes.
    fn period(&self) -> Option<u32> {
        None
    }

    /// Called at the end of a period. Returns the utilisation of the fast SSD in the next one; `None` leaves it
    /// unchanged.
    fn end_period(&mut self, _pair: &Pair, _classifier: &Classifier) -> Option<f64> {
        None
    }

    /// Its own figures.
    fn metrics(&self, _metrics: &mut Metrics) {}
}

/// Common settings of the schemes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HybridSettings {
    /// Which writes go to the fast SSD.
    pub reading: Reading,
    /// Initial utilisation of the fast SSD, from 0 to 1.
    pub utilisation: f64,
    /// Pages that a write demotes in addition to the one that it replaces, while the fast SSD has more than its target.
    pub excess_pages: u32,
    /// Age of a page, in page writes, above which idle time demotes it while the fast SSD has more than its target.
    pub timeout: u64,
    /// Erased blocks of a die at or below which either SSD collects it.
    pub gc_free_blocks: u32,
    /// Settings of the classifier.
    pub classifier: ClassifierSettings,
}

/// Counters since the start.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Counts {
    writes: u64,
    write_hits: u64,
    reads: u64,
    read_hits: u64,
}

/// The state of a scheme.
#[derive(Debug, Serialize, Deserialize)]
pub struct HybridSsd<S> {
    pair: Pair,
    /// Kept if a policy uses it.
    classifier: Option<Classifier>,
    steering: S,
    #[serde(with = "crate::save::fixed")]
    settings: HybridSettings,
    /// Target number of pages in the fast SSD.
    target: u32,
    /// Page writes until the period ends.
    period_left: u32,
    counts: Counts,
}

/// Target number of pages in the fast SSD: `utilisation` times its raw capacity, but at most the pages that it can
/// hold, and at least the pages for which the slow SSD has no room.
fn target_pages(pair: &Pair, utilisation: f64) -> u32 {
    let (least, most) = pair.fast_limits();
    ((utilisation * pair.sizes().0) as u32).clamp(least, most)
}

impl<S: Steering> HybridSsd<S> {
    /// A scheme over the device's first region, the fast one, and its last.
    ///
    /// # Errors
    /// Regions that together cannot hold the data.
    pub fn over(shape: &Shape, settings: HybridSettings, steering: impl FnOnce(&Pair) -> S) -> Result<Self, String> {
        if settings.reading == Reading::HotSet && settings.classifier.sample_rate < 1.0 {
            return Err("reading hot_set must know of every page whether it is hot; set curve to exact".into());
        }
        let space = Collection { gc_free_blocks: settings.gc_free_blocks, idle_gc: false };
        let pair = Pair::new(shape, space)?;
        let steering = steering(&pair);
        let is_asked = settings.reading == Reading::HotSet || steering.period().is_some();
        let fast_pages = pair.sizes().0 as u32;
        if is_asked && !Classifier::holds(fast_pages, &settings.classifier) {
            return Err(format!("hit rates of {fast_pages} pages cannot be followed exactly; set curve to sampled"));
        }
        let classifier = is_asked.then(|| Classifier::new(fast_pages, &settings.classifier));
        let target = target_pages(&pair, settings.utilisation);
        let period_left = steering.period().unwrap_or(u32::MAX);
        Ok(Self { pair, classifier, steering, settings, target, period_left, counts: Counts::default() })
    }

    fn write<M: Media>(&mut self, media: &mut M, request: &Request) {
        for span in self.pair.pages().spans(request) {
            let now = self.counts.writes;
            self.counts.writes += 1;
            let position = self.classifier.as_mut().and_then(|classifier| classifier.write(span.page));
            let slot = self.pair.slot(span.page);
            self.counts.write_hits += u64::from(slot.is_some());
            let goes_to_fast = match self.settings.reading {
                Reading::WriteAllocate => true,
                Reading::HotSet => {
                    position.is_some_and(|position| position < self.target) || !self.pair.slow_takes(span.page)
                }
            };
            match (slot, goes_to_fast) {
                (Some(slot), true) => self.pair.write_hit(media, slot, &span, now),
                (Some(slot), false) => self.pair.move_down(media, slot, Some(&span)),
                (None, true) => {
                    self.make_room(media);
                    self.pair.write_miss(media, &span, now);
                }
                (None, false) => self.pair.write_slow(media, &span),
            }
            self.count_down();
        }
    }

    /// Makes room in the fast SSD for one more page.
    #[inline]
    fn make_room<M: Media>(&mut self, media: &mut M) {
        for _ in 0..=self.settings.excess_pages {
            if self.pair.fast_pages() < self.target {
                return;
            }
            let Some((slot, _)) = self.pair.oldest() else { return };
            self.pair.move_down(media, slot, None);
        }
    }

    /// Counts a page write of the period.
    #[inline]
    fn count_down(&mut self) {
        self.period_left -= 1;
        if self.period_left == 0 {
            self.end_period();
        }
    }

    #[cold]
    fn end_period(&mut self) {
        self.period_left = self.steering.period().unwrap_or(u32::MAX);
        if let Some(classifier) = &mut self.classifier {
            if let Some(utilisation) = self.steering.end_period(&self.pair, classifier) {
                self.target = target_pages(&self.pair, utilisation);
            }
            classifier.end_period();
        }
    }
}

impl<M: Media, S: Steering> Scheme<M> for HybridSsd<S> {
    /// The fast SSD gets the pages of its initial target, the slow one the rest.
    fn fill(&mut self, media: &mut M) {
        self.pair.fill(media, self.target);
    }

    fn serve(&mut self, media: &mut M, request: &Request) {
        match request.op {
            Op::Write => self.write(media, request),
            Op::Read => {
                for span in self.pair.pages().spans(request) {
                    if let Some(classifier) = &mut self.classifier {
                        classifier.read(span.page);
                    }
                    self.counts.reads += 1;
                    let slot = self.pair.slot(span.page);
                    self.counts.read_hits += u64::from(slot.is_some());
                    self.pair.read(media, slot, &span);
                }
            }
            Op::Trim => {
                for span in self.pair.pages().spans(request) {
                    if self.pair.trim(&span)
                        && let Some(classifier) = &mut self.classifier
                    {
                        classifier.forget(span.page);
                    }
                }
            }
        }
    }

    #[inline]
    fn prefetch(&self, far: &Request, near: &Request) {
        for page in self.pair.pages().pages_ahead(far) {
            self.pair.prefetch_page(page);
            if let Some(classifier) = &self.classifier {
                classifier.prefetch(page);
            }
        }
        for page in self.pair.pages().pages_ahead(near) {
            self.pair.prefetch_place(page);
        }
    }

    /// Demotes pages that were not written for long, while the fast SSD has more than its target.
    fn idle(&mut self, media: &mut M, budget_pages: u32) {
        for _ in 0..budget_pages {
            let Some((slot, written_at)) = self.pair.oldest() else { return };
            let is_old = self.counts.writes - written_at > self.settings.timeout;
            if !is_old || self.pair.fast_pages() <= self.target {
                return;
            }
            self.pair.move_down(media, slot, None);
        }
    }

    fn metrics(&self, metrics: &mut Metrics) {
        let (fast_size, _) = self.pair.sizes();
        metrics.push(UTILISATION_TARGET.metric, f64::from(self.target) / fast_size);
        metrics.push(UTILISATION.metric, f64::from(self.pair.fast_pages()) / fast_size);
        self.steering.metrics(metrics);
        let (fast, slow) = self.pair.lives();
        metrics.push("life_fast", fast);
        metrics.push("life_slow", slow);
        metrics.push("life", hybrid_life(fast, slow));
        metrics.push("write_hit_rate", ratio(self.counts.write_hits, self.counts.writes));
        metrics.push("read_hit_rate", ratio(self.counts.read_hits, self.counts.reads));
        metrics.count("promoted_pages", self.pair.promoted_pages());
        metrics.count("destaged_pages", self.pair.destaged_pages());
        let (blocks, pages) = self.pair.collected();
        metrics.count("gc_blocks", blocks);
        metrics.count("gc_copied_pages", pages);
        let classifier = self.classifier.as_ref().map_or(0, Classifier::metadata_bytes);
        metrics.count("metadata_bytes", self.pair.metadata_bytes() + classifier);
    }

    fn check(&self) -> Result<(), String> {
        self.pair.check(self.counts.writes)?;
        let (least, most) = self.pair.fast_limits();
        if self.target < least || self.target > most {
            return Err(format!("the fast SSD is to hold {} pages, from {least} to {most}", self.target));
        }
        self.classifier.as_ref().map_or(Ok(()), Classifier::check)
    }
}

#[cfg(test)]
mod tests;
