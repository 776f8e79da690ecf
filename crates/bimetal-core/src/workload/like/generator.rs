//! Generation of requests from a model.

use super::arrivals::Pace;
use super::fit::{Extents, Streams, op};
use super::pages::{Age, Class, Known, Pages, positions};
use super::{EXTENT_PAGES, Model, PAGE_SECTORS, Place, STREAMS, Shape, continued, first_whole_page};
use crate::part::random;
use crate::request::{Op, Request};

/// Number of attempts to find a suitable place.
const TRIES: usize = 16;

/// Number of shapes that are tried for a request that continues another.
const SHAPES: usize = 8;

/// Number of pages that are searched for one of the wanted class.
const LOOKED_AT: usize = 64;

/// Weight of one quadrupling of the last page's age, relative to differences in the class of the first page.
const AGE_WEIGHT: u32 = 16;

/// The generator.
#[derive(Debug)]
pub(super) struct Generator {
    model: Model,
    left: u64,
    given: u64,
    /// Requests generated so far, by kind.
    given_of: [u64; 3],
    state: u64,
    now_ns: u64,
    pace: Pace,
    /// The previous kind, counted from 1; 0 before the first request.
    before: usize,
    pages: Pages,
    extents: Extents,
    /// Extents that were first touched by reads, and those first touched by writes, which may have untouched pages.
    open: [Vec<u32>; 2],
    streams: [Streams; 3],
    /// Unused places far from others.
    apart: Vec<u32>,
}

impl Generator {
    pub(super) fn new(model: Model, requests: u64, seed: u64) -> Self {
        let capacity = model.capacity(requests);
        Self {
            left: requests,
            given: 0,
            given_of: [0; 3],
            state: seed,
            now_ns: 0,
            pace: model.arrivals.pace(),
            before: 0,
            pages: Pages::new(capacity as u32),
            extents: Extents::new(model.span_pages),
            open: Default::default(),
            streams: Default::default(),
            apart: model.apart.clone(),
            model,
        }
    }

    /// First sector and length, and the rank of the stream that it continues.
    fn place(&mut self, kind: usize) -> (u64, u32, Option<usize>) {
        let of_kind = &self.model.of_kind[kind];
        let streams = &self.streams[kind];
        let by = &of_kind.streams[usize::from(self.before == kind + 1)][usize::from(streams.new)];
        let (rank, age, leaves) = by.draw(&mut self.state).unwrap_or((STREAMS as u8, Age::NEW, false));
        let mut unplaced = None;
        if usize::from(rank) < STREAMS {
            let shapes = &of_kind.shapes_continued[continued(age, leaves)];
            let drawn: [Option<Shape>; SHAPES] = std::array::from_fn(|_| shapes.draw(&mut self.state));
            // The end determines the alignment, and the touched pages after it restrict the length.
            let fits = |end: u64, shape: &Shape| {
                let last = (end + u64::from(shape.sectors) - 1) / PAGE_SECTORS;
                end % PAGE_SECTORS == u64::from(shape.offset)
                    && last < self.model.span_pages
                    && self.pages.age(last).distance(age) <= 1
                    && (age != Age::NEW || self.pages.contains(first_whole_page(end, shape.sectors)) == leaves)
            };
            for (from, end) in streams.from(usize::from(rank)) {
                if let Some(shape) = drawn.iter().flatten().find(|shape| fits(end, shape)) {
                    return (end, shape.sectors, Some(from));
                }
            }
            unplaced = drawn[0];
        }
        if let Some(shape) = unplaced.filter(|shape| leaves && shape.pages() > 1) {
            let (page, shape) = self.over_the_edge(kind, shape);
            return (u64::from(page) * PAGE_SECTORS + u64::from(shape.offset), shape.sectors, None);
        }
        let of_kind = &self.model.of_kind[kind];
        let is_new = match unplaced {
            Some(_) => age == Age::NEW,
            None => of_kind.is_new(self.given_of[kind], &mut self.state),
        };
        if (is_new || self.pages.len() == 0)
            && !self.pages.is_full()
            && let Some(shape) = unplaced.or_else(|| of_kind.shapes_new.draw(&mut self.state))
        {
            // A request that should continue another but finds no stream is placed next to touched pages.
            let beside = unplaced.map(|_| Place::Beside);
            let place = beside.or_else(|| of_kind.places.draw(&mut self.state)).unwrap_or(Place::Apart);
            let page = self.new_page(kind, place, shape.pages());
            return (page * PAGE_SECTORS + u64::from(shape.offset), shape.sectors, None);
        }
        let (page, shape) = self.reused(kind);
        (u64::from(page) * PAGE_SECTORS + u64::from(shape.offset), shape.sectors, None)
    }

    /// A page of the stack, and the request that begins there.
    fn reused(&mut self, kind: usize) -> (u32, Shape) {
        let len = self.pages.len();
        for _ in 0..TRIES {
            // With a small stack, only positions within it are accepted.
            let reused = self.model.of_kind[kind].reused(self.given_of[kind]);
            let drawn = reused.and_then(|reused| reused.draw(&mut self.state));
            let Some((class, bin, age)) = drawn else { break };
            let (from, to) = positions(bin);
            if from < len {
                let of_kind = &self.model.of_kind[kind];
                let leaving = if age == Age::NEW { of_kind.shapes_leaving.draw(&mut self.state) } else { None };
                let again = leaving.is_none() && of_kind.same[class.role()].draw(&mut self.state);
                let same = if again { of_kind.shapes_same[class.role()].draw(&mut self.state) } else { None };
                let other = leaving.or(same).unwrap_or_else(|| self.shape(kind, class.role()));
                let (distance, begin) = self.in_bin(class, age, (from, to.min(len)), (again, other));
                let reaches_out = age == Age::NEW && other.pages() > 1;
                let found = distance < AGE_WEIGHT * u32::from(u8::MAX / 2);
                return if reaches_out && !found { self.over_the_edge(kind, other) } else { begin };
            }
        }
        let page = self.any_page();
        (page, self.shape(kind, self.pages.known(page).map_or(0, Known::role)))
    }

    /// A request that begins at a page with this role. If the trace has none, a request with another role is drawn.
    fn shape(&mut self, kind: usize, role: usize) -> Shape {
        let (of_kind, state) = (&self.model.of_kind[kind], &mut self.state);
        let shape = of_kind.shapes_reused[role].draw(state);
        let shape = shape.or_else(|| of_kind.shapes_reused.iter().find_map(|shapes| shapes.draw(state)));
        let shape = shape.or_else(|| of_kind.shapes_new.draw(state));
        let shape = shape.or_else(|| of_kind.shapes_continued.iter().find_map(|shapes| shapes.draw(state)));
        shape.unwrap_or(Shape { sectors: PAGE_SECTORS as u32, offset: 0 })
    }

    /// Among a limited number of pages at these positions, the page whose class and request fit best. The request
    /// should end at a page of about this age. It repeats the request that last began there if `again` is set, and is
    /// `other` otherwise. Also returns the distance from the wanted class and age.
    fn in_bin(
        &mut self,
        class: Class,
        age: Age,
        (from, to): (u32, u32),
        (again, other): (bool, Shape),
    ) -> (u32, (u32, Shape)) {
        let at = from + random::below(&mut self.state, u64::from(to - from)) as u32;
        let towards_recent = self.pages.towards_recent_from(at).take((at - from + 1) as usize);
        let and_around = self.pages.towards_recent_from(to - 1).take((to - 1 - at) as usize);
        let mut nearest = (u32::MAX, (0, other));
        for page in towards_recent.chain(and_around).take(LOOKED_AT) {
            let Some(known) = self.pages.known(page) else { continue };
            // A page of another role would give the request another length.
            let shape = known.shape().filter(|_| again && known.role() == class.role()).unwrap_or(other);
            let last = u64::from(page) + shape.pages() - 1;
            let distance = known.class().distance(class) + AGE_WEIGHT * self.pages.age(last).distance(age);
            if distance < nearest.0 {
                nearest = (distance, (page, shape));
            }
            if distance == 0 {
                break;
            }
        }
        nearest
    }

    /// A touched page at which a request begins that ends at a new page.
    fn over_the_edge(&mut self, kind: usize, shape: Shape) -> (u32, Shape) {
        let inside = 1 + random::below(&mut self.state, shape.pages() - 1);
        let page = self.page_beside(kind).saturating_sub(inside);
        (page.min(self.model.span_pages.saturating_sub(shape.pages())) as u32, shape)
    }

    /// A random page of the stack; page 0 if the stack is empty.
    fn any_page(&mut self) -> u32 {
        let position = random::below(&mut self.state, u64::from(self.pages.len())) as u32;
        self.pages.towards_recent_from(position).next().unwrap_or(0)
    }

    /// A random page that was touched by a request of this kind, if one is found within a few attempts.
    fn any_page_of(&mut self, kind: usize) -> u32 {
        let mut page = self.any_page();
        for _ in 0..TRIES {
            if self.pages.is_of(page, op(kind as u8)) {
                break;
            }
            page = self.any_page();
        }
        page
    }

    /// A new page, such that the last page of the run is also new, if one is found within a few attempts.
    fn new_page(&mut self, kind: usize, place: Place, length: u64) -> u64 {
        let mut last = 0;
        for attempt in 0..TRIES {
            let is_late = attempt >= TRIES / 2;
            let page = match place {
                _ if self.pages.len() == 0 => self.page_apart(),
                Place::Beside if !is_late => self.page_beside(kind),
                Place::Apart if !is_late => self.page_apart(),
                _ => self.page_within(kind),
            };
            let taken = self.pages.contains(page) || self.pages.contains(page + length - 1);
            let beside = place == Place::Apart && !is_late && self.extents.contain(page);
            if !taken && !beside && page + length <= self.model.span_pages {
                return page;
            }
            last = page;
        }
        last
    }

    /// A new page in a touched extent, if one has room; otherwise any page far from others.
    fn page_within(&mut self, kind: usize) -> u64 {
        let own = kind.min(1);
        for list in [own, 1 - own] {
            while !self.open[list].is_empty() {
                let nth = random::below(&mut self.state, self.open[list].len() as u64) as usize;
                let first = u64::from(self.open[list][nth]) * EXTENT_PAGES;
                let start = random::below(&mut self.state, EXTENT_PAGES);
                let mut pages = (0..EXTENT_PAGES).map(|step| first + (start + step) % EXTENT_PAGES);
                match pages.find(|&page| page < self.model.span_pages && !self.pages.contains(page)) {
                    Some(page) => return page,
                    None => drop(self.open[list].swap_remove(nth)),
                }
            }
        }
        self.page_apart()
    }

    /// The first untouched page after a random touched one.
    fn page_beside(&mut self, kind: usize) -> u64 {
        let touched = u64::from(self.any_page_of(kind));
        // Doubling steps pass the end of the touched pages, and halving steps return to it.
        let mut step = 1;
        while self.pages.contains(touched + step) {
            step *= 2;
        }
        let (mut inside, mut beyond) = (touched + step / 2, touched + step);
        while beyond - inside > 1 {
            let middle = inside.midpoint(beyond);
            if self.pages.contains(middle) { inside = middle } else { beyond = middle }
        }
        beyond
    }

    /// An unused place of the trace, or a place between two of its places.
    fn page_apart(&mut self) -> u64 {
        if !self.apart.is_empty() {
            let nth = random::below(&mut self.state, self.apart.len() as u64) as usize;
            return u64::from(self.apart.swap_remove(nth));
        }
        let places = &self.model.apart;
        let nth = random::below(&mut self.state, places.len().max(2) as u64 - 1) as usize;
        let from = places.get(nth).map_or(0, |&page| u64::from(page));
        let to = places.get(nth + 1).map_or(self.model.span_pages, |&page| u64::from(page));
        from + random::below(&mut self.state, (to - from).max(1))
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.left = self.left.checked_sub(1)?;
        let next = self.model.kinds[self.before].draw(&mut self.state);
        // If the trace ended with this kind, nothing follows it, so the sequence starts again.
        let kind = usize::from(next.or_else(|| self.model.kinds[0].draw(&mut self.state))?);
        let (sector, sectors, from) = self.place(kind);
        let span = self.model.span_pages * PAGE_SECTORS;
        let sectors = u64::from(sectors).min(span) as u32;
        let sector = sector.min(span - u64::from(sectors));
        let request = Request { arrival_ns: self.now_ns, sector, sectors, op: op(kind as u8), handle: 0 };
        let last = (request.end() - 1) / PAGE_SECTORS;
        self.streams[kind].follow(from, request.end(), !self.pages.contains(last));
        if request.op != Op::Trim {
            self.pages.touch(&request);
            let open = &mut self.open[kind.min(1)];
            self.extents.touch(&request, |extent| open.push(extent as u32));
        }
        self.before = kind + 1;
        self.given += 1;
        self.given_of[kind] += 1;
        let gap_ns = self.model.arrivals.next_by(self.now_ns, self.given, &mut self.pace, &mut self.state);
        self.now_ns = self.now_ns.saturating_add(gap_ns);
        Some(request)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}
