//! Fitting the model: counts over a trace.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::f64::consts::LN_2;

use super::arrivals::Arrivals;
use super::pages::{Age, Class, Pages, ROLES, bin};
use super::table::{Ratio, Table};
use super::{
    EXTENT_PAGES, FitError, Kind, Model, OPS, Place, REFERENCES_MAX, STREAMS, Shape, continued, first_whole_page,
};
use crate::hit_rates::{references, with_short_addresses};
use crate::part::random;
use crate::part::real::{ln, pow};
use crate::profile::distinct_pages;
use crate::request::{Op, Request, data};

/// Number of shapes in a table that are kept exactly. The others keep their first three binary digits.
const SHAPES_MAX: usize = 128;

/// Number of kept places far from others.
const APART_MAX: usize = 256;

type Counts<T> = BTreeMap<T, u64>;

fn add<T: Ord>(counts: &mut Counts<T>, value: T) {
    *counts.entry(value).or_default() += 1;
}

/// Counts of one kind of request.
#[derive(Default)]
struct KindCounts {
    streams: [[Counts<(u8, Age, bool)>; 2]; 2],
    new: Vec<Ratio>,
    places: Counts<Place>,
    reused: Vec<Counts<(Class, u8, Age)>>,
    same: [Ratio; ROLES],
    shapes_continued: [Counts<Shape>; 3],
    shapes_new: Counts<Shape>,
    shapes_same: [Counts<Shape>; ROLES],
    shapes_reused: [Counts<Shape>; ROLES],
    shapes_leaving: Counts<Shape>,
    requests: u64,
}

impl KindCounts {
    fn finish(self) -> Kind {
        let new = whole_powers(self.new);
        Kind {
            streams: self.streams.map(|counts| counts.map(Table::from)),
            fading: fading(&new),
            new,
            places: self.places.into(),
            reused: whole_quadruplings(self.reused).into_iter().map(Table::from).collect(),
            same: self.same,
            shapes_continued: self.shapes_continued.map(shapes),
            shapes_new: shapes(self.shapes_new),
            shapes_same: self.shapes_same.map(shapes),
            shapes_reused: self.shapes_reused.map(shapes),
            shapes_leaving: shapes(self.shapes_leaving),
            requests: self.requests,
        }
    }
}

/// Merges the last power of two into the previous one if it has fewer requests, because it is incomplete.
fn whole_powers(mut ratios: Vec<Ratio>) -> Vec<Ratio> {
    if let [.., before, last] = &mut ratios[..]
        && last.all() < before.all()
    {
        before.add(*last);
        ratios.pop();
    }
    ratios
}

/// The same for counts by quadrupling.
fn whole_quadruplings<T: Ord>(mut counts: Vec<Counts<T>>) -> Vec<Counts<T>> {
    let all = |counts: &Counts<T>| counts.values().sum::<u64>();
    if let [.., before, last] = &mut counts[..]
        && all(last) < all(before)
    {
        let last = std::mem::take(last);
        last.into_iter().for_each(|(value, count)| *before.entry(value).or_default() += count);
        counts.pop();
    }
    counts
}

/// The exponent of the power law between the last two powers of two: from 0, if new pages do not become rarer or come back
/// after a period without any, to 1.
fn fading(ratios: &[Ratio]) -> f64 {
    /// Least number of new pages for an estimate.
    const TOLD: u64 = 100;
    match ratios {
        [.., before, last] if before.so() > 0 && last.so() >= TOLD => {
            (ln(before.share() / last.share()) / LN_2).clamp(0.0, 1.0)
        }
        _ => 0.0,
    }
}

/// A table of shapes. Beyond the most frequent ones, shapes are rounded.
fn shapes(counts: Counts<Shape>) -> Table<Shape> {
    let mut by_count: Vec<(u64, Shape)> = counts.into_iter().map(|(shape, count)| (count, shape)).collect();
    by_count.sort_unstable_by(|a, b| b.cmp(a));
    let mut kept = Counts::new();
    for (at, (count, shape)) in by_count.into_iter().enumerate() {
        let dropped = (shape.sectors.max(1).ilog2() + 1).saturating_sub(3);
        let half = (1 << dropped) / 2;
        let rounded = (shape.sectors + half) >> dropped << dropped;
        let shape = if at < SHAPES_MAX { shape } else { Shape { sectors: rounded, ..shape } };
        *kept.entry(shape).or_default() += count;
    }
    kept.into()
}

/// Ends of the last requests of a kind from which no request has continued, most recent first.
#[derive(Debug, Default)]
pub(super) struct Streams {
    ends: Vec<u64>,
    /// Whether the last request of the kind ended at a new page.
    pub(super) new: bool,
}

impl Streams {
    /// The rank of the stream that ends at a sector.
    pub(super) fn find(&self, sector: u64) -> Option<usize> {
        self.ends.iter().position(|&end| end == sector)
    }

    /// The ends, starting from one rank, followed by those before it.
    pub(super) fn from(&self, rank: usize) -> impl Iterator<Item = (usize, u64)> {
        let ends = || self.ends.iter().copied().enumerate();
        ends().skip(rank).chain(ends().take(rank))
    }

    /// Records a request that continues from one of the ends, or from none, and its own end.
    pub(super) fn follow(&mut self, from: Option<usize>, end: u64, new: bool) {
        match from {
            Some(at) => drop(self.ends.remove(at)),
            None => self.ends.truncate(STREAMS - 1),
        }
        self.ends.insert(0, end);
        self.new = new;
    }
}

/// The touched extents.
#[derive(Debug)]
pub(super) struct Extents(Vec<u64>);

impl Extents {
    pub(super) fn new(span_pages: u64) -> Self {
        Self(vec![0; (span_pages / EXTENT_PAGES / 64 + 1) as usize])
    }

    pub(super) fn contain(&self, page: u64) -> bool {
        let extent = page / EXTENT_PAGES;
        self.0.get((extent / 64) as usize).is_some_and(|bits| bits >> (extent % 64) & 1 == 1)
    }

    /// Marks the extents of a request, and calls `fresh` with each newly marked one.
    pub(super) fn touch(&mut self, request: &Request, mut fresh: impl FnMut(u64)) {
        let (first, end) = request.pages();
        for extent in first / EXTENT_PAGES..end.div_ceil(EXTENT_PAGES) {
            if let Some(bits) = self.0.get_mut((extent / 64) as usize) {
                if *bits >> (extent % 64) & 1 == 0 {
                    fresh(extent);
                }
                *bits |= 1 << (extent % 64);
            }
        }
    }
}

/// Fits a model.
#[expect(clippy::too_many_lines, reason = "one pass, in which every count is of the state before the request")]
pub(super) fn fit(requests: &[Request]) -> Result<Model, FitError> {
    match references(requests) {
        0 => return Err(FitError::NoData),
        1..=REFERENCES_MAX => {}
        _ => return Err(FitError::TooLong),
    }
    let requests: Cow<'_, [Request]> = with_short_addresses(requests).ok_or(FitError::TooLarge)?;
    let span_pages = requests.iter().map(|request| request.pages().1).max().unwrap_or(0).min(u64::from(u32::MAX));
    let touched_pages = distinct_pages(data(&requests));
    let mut touched = Pages::new(touched_pages as u32);
    let mut extents = Extents::new(span_pages);
    let mut kinds: [Counts<u8>; 4] = Default::default();
    let mut counts: [KindCounts; 3] = Default::default();
    let mut streams: [Streams; 3] = Default::default();
    let mut apart = Vec::new();
    let mut before = 0;
    for request in requests.iter() {
        let op = request.op as usize;
        add(&mut kinds[before], op as u8);
        let (first, end) = request.pages();
        let shape = Shape::of(request);
        let (of_kind, streams) = (&mut counts[op], &mut streams[op]);
        let from = streams.find(request.sector);
        let by = &mut of_kind.streams[usize::from(before == op + 1)][usize::from(streams.new)];
        let age = touched.age(end - 1);
        // For a request that continues no other, the age is drawn together with the page.
        let leaves = age == Age::NEW && touched.contains(first_whole_page(request.sector, request.sectors));
        add(by, from.map_or((STREAMS as u8, Age::NEW, false), |from| (from as u8, age, leaves)));
        if from.is_some() {
            add(&mut of_kind.shapes_continued[continued(age, leaves)], shape);
        } else {
            let power = (of_kind.requests + 1).ilog2() as usize;
            of_kind.new.resize(of_kind.new.len().max(power + 1), Ratio::default());
            let found = touched.find(first);
            of_kind.new[power].count(found.is_none());
            if let Some((position, known)) = found {
                let role = known.role();
                of_kind.reused.resize_with(of_kind.reused.len().max(power / 2 + 1), Counts::new);
                add(&mut of_kind.reused[power / 2], (known.class(), bin(position), age));
                if age == Age::NEW {
                    add(&mut of_kind.shapes_leaving, shape);
                } else {
                    let again = known.shape() == Some(shape);
                    of_kind.same[role].count(again);
                    add(if again { &mut of_kind.shapes_same[role] } else { &mut of_kind.shapes_reused[role] }, shape);
                }
            } else {
                let place = match first {
                    _ if first > 0 && touched.contains(first - 1) => Place::Beside,
                    _ if extents.contain(first) => Place::Within,
                    _ => Place::Apart,
                };
                add(&mut of_kind.places, place);
                add(&mut of_kind.shapes_new, shape);
                if place == Place::Apart && request.op != Op::Trim {
                    apart.push(first as u32);
                }
            }
        }
        of_kind.requests += 1;
        streams.follow(from, request.end(), age == Age::NEW);
        if request.op != Op::Trim {
            touched.touch(request);
            extents.touch(request, |_| {});
        }
        before = op + 1;
    }
    Ok(Model {
        requests: requests.len() as u64,
        span_pages,
        touched_pages,
        kinds: kinds.map(Table::from),
        of_kind: counts.map(KindCounts::finish),
        apart: quantiles(apart),
        arrivals: Arrivals::of(&requests),
    })
}

/// A bounded number of evenly spaced quantiles of the places, in order.
fn quantiles(mut places: Vec<u32>) -> Vec<u32> {
    places.sort_unstable();
    let kept = places.len().min(APART_MAX);
    let last = places.len().saturating_sub(1);
    (0..kept).map(|nth| places[nth * last / (kept - 1).max(1)]).collect()
}

impl Kind {
    /// The table of first pages, by the number of previous requests of the kind.
    pub(super) fn reused(&self, before: u64) -> Option<&Table<(Class, u8, Age)>> {
        let quadrupling = (before + 1).ilog2() as usize / 2;
        self.reused.get(quadrupling).filter(|table| table.len() > 0).or(self.reused.last())
    }

    /// Draws whether a request begins at a new page, by the number of previous requests of its kind.
    pub(super) fn is_new(&self, before: u64, state: &mut u64) -> bool {
        let power = (before + 1).ilog2() as usize;
        let known = self.new.get(power).filter(|ratio| ratio.all() > 0);
        let is_new = known.or(self.new.last()).is_some_and(|ratio| ratio.draw(state));
        let fitted = self.requests;
        is_new && (before <= fitted || random::unit(state) < pow(fitted as f64 / before as f64, self.fading))
    }
}

/// The kind with this number.
pub(super) fn op(kind: u8) -> Op {
    OPS[usize::from(kind) % OPS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_pages_fade_only_from_a_period_that_had_some() {
        let ratio = |new: u64, all: u64| {
            let mut ratio = Ratio::default();
            (0..all).for_each(|number| ratio.count(number < new));
            ratio
        };
        assert_eq!(fading(&[ratio(400, 800), ratio(400, 1600)]), 1.0);
        assert_eq!(fading(&[ratio(400, 800), ratio(800, 1600)]), 0.0);
        assert_eq!(fading(&[ratio(0, 800), ratio(400, 1600)]), 0.0);
    }
}
