//! Schemes that separate data, against an independent simulator: fallfish/sepbit, commit 1e4b664 (Java, FAST 2022), on a
//! recorded trace: the writes of a virtual machine's disk, one page at a time, in the third to sixth replay. Write
//! amplification with a share of garbage of 15 and 10 %, in segments of 128 pages of 4 KiB. `docs/checked.md` has the
//! table, and generated writes.

use std::io::Read;

use crate::support::{SimDevice, assert_documented, region};
use bimetal_core::media::Simulation;
use bimetal_core::request::{Op, Request};
use bimetal_core::trace;

const PAGES_PER_BLOCK: u32 = 128;

/// Pages of 4 KiB in the order of their writes, on a store of `pages` pages.
struct Writes {
    pages: u64,
    once: Vec<u64>,
}

impl Writes {
    /// The built-in trace. Its pages are numbered densely.
    fn virtual_machine() -> Self {
        let file = include_bytes!("../../../bimetal-study/sample/cloudphysics.vscsi.xz");
        let mut bytes = Vec::new();
        liblzma::read::XzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
        let trace = trace::decode("cloudphysics.vscsi", &bytes, &trace::Options::default()).unwrap();
        let writes = trace.requests.iter().filter(|request| request.op == Op::Write);
        let pages = |write: &Request| write.sector / 8..(write.sector + u64::from(write.sectors)).div_ceil(8);
        let once: Vec<u64> = writes.flat_map(pages).collect();
        let mut touched = once.clone();
        touched.sort_unstable();
        touched.dedup();
        let number = |page: &u64| touched.partition_point(|touched| touched < page) as u64;
        Self { pages: touched.len() as u64, once: once.iter().map(number).collect() }
    }

    /// Erased blocks, and half of each open block, beside those that a share of garbage fills: the share does not count
    /// open blocks, of which each stream has one, half full on average.
    fn blocks(&self, garbage: f64, streams: u32) -> u32 {
        let blocks = self.pages as f64 / (1.0 - garbage) / f64::from(PAGES_PER_BLOCK);
        blocks.round() as u32 + 1 + streams / 2
    }

    /// Write amplification of a scheme in the third to sixth replay.
    fn amplification(&self, scheme: &str, victim: &str, blocks: u32) -> f64 {
        let regions = [region("chang-mlc", PAGES_PER_BLOCK, blocks, 1)];
        let mut device = SimDevice::filled(scheme, &[("victim", victim)], &regions, self.pages * 8);
        for &page in &self.once.repeat(2) {
            device.write(page);
        }
        device.media.reset_counts();
        for &page in &self.once.repeat(4) {
            device.write(page);
        }
        device.write_amplification()
    }
}

struct Row {
    scheme: &'static str,
    victim: &'static str,
    streams: u32,
    theirs: f64,
}

const ROWS: [Row; 5] = [
    Row { scheme: "pagemap", victim: "greedy", streams: 2, theirs: 1.0992 },
    Row { scheme: "pagemap", victim: "cost-benefit", streams: 2, theirs: 1.13 },
    Row { scheme: "sepbit", victim: "greedy", streams: 6, theirs: 1.10 },
    Row { scheme: "sepbit", victim: "cost-benefit", streams: 6, theirs: 1.10 },
    Row { scheme: "dac", victim: "cost-benefit", streams: 6, theirs: 1.125 },
];

/// With 10 % garbage.
const THEIRS_STEEP: f64 = 1.4591;

#[test]
fn write_amplification_is_that_of_an_independent_simulator() {
    let machine = Writes::virtual_machine();
    let mut rows = Vec::new();
    for Row { scheme, victim, streams, theirs } in ROWS {
        let ours = machine.amplification(scheme, victim, machine.blocks(0.15, streams));
        let percent = (ours / theirs - 1.0) * 100.0;
        assert!(percent.abs() < 3.0, "{scheme}, {victim}: {ours:.3} against {theirs}");
        rows.push(format!(
            "| SepBIT | `{scheme}`, {victim}, 15 % garbage | {theirs:.3} | {ours:.3} | {percent:+.1} % | 3 % |"
        ));
    }
    // Their program collects once per request, not once per page, and does not count garbage in open blocks. With 10 %
    // garbage, where the figure is steep in the space, the difference is less than that of one percent of the space.
    let blocks = machine.blocks(0.10, 2);
    let [ours, with_less] =
        [blocks, blocks * 99 / 100].map(|blocks| machine.amplification("pagemap", "greedy", blocks));
    assert!((ours..with_less).contains(&THEIRS_STEEP), "{ours} to {with_less}");
    let percent = [ours, with_less].map(|ours| (ours / THEIRS_STEEP - 1.0) * 100.0);
    rows.push(format!(
        "| SepBIT | `pagemap`, greedy, 10 % garbage; with 1 % less space | {THEIRS_STEEP:.3} | {ours:.3}; {with_less:.3} | \
         {:+.1} %; {:+.1} % | between |",
        percent[0], percent[1]
    ));
    assert_documented(&rows);
}
