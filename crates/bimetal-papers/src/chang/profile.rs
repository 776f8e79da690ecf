//! Figs. 7 and 10: characteristics of the traces, and their writes to MLC.

use std::collections::BTreeMap;

use bimetal_core::profile::{CurvePlan, HitClass, Profile};
use bimetal_core::request::{Op, Request, SECTOR_BYTES};

use super::{BOTH, EXT3, NTFS, PAPER_WRITES, replay};
use crate::Drawn;
use crate::claim::Kind;
use crate::finding::{Finding, row};
use crate::lab::Lab;
use crate::reading::metric;
use bimetal_study::StudyError;
use bimetal_study::figure::{Axis, Plot, PlotKind, Series, short};

/// Least factor by which the update ratio of writes of 8 sectors exceeds that of large ones (fig. 7b).
pub(super) const MORE_UPDATES: f64 = 10.0;

/// The update ratio of writes of 8 sectors by that of the second most common size, 128 or 256 sectors.
pub(super) fn updates(profile: &Profile) -> f64 {
    update_ratio(profile, 8) / update_ratio(profile, 128).max(update_ratio(profile, 256))
}

/// Reason why some sectors get more writes than in the paper.
const TOO_POPULAR: &str = "the stand-ins' few most popular sectors get more; with a flatter popularity (`theta` 0.8 on NTFS, 0.7 on \
    ext3) it is 0.017; 0.017";

/// Fig. 7: writes by size, updates of data by size, and sectors by number of accesses.
#[expect(clippy::too_many_lines, reason = "most are a list of claims")]
pub(super) fn fig7(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let plan = CurvePlan { points: 0, ..CurvePlan::default() };
    let profiles = [lab.profile(&NTFS, &plan)?, lab.profile(&EXT3, &plan)?];
    let hybrids = lab.run(&[replay(lab, &NTFS, "chang-c3", "chang"), replay(lab, &EXT3, "chang-c3", "chang")])?;
    let [ntfs, ext3] = &profiles;
    let both = |value: &dyn Fn(&Profile) -> f64| profiles.each_ref().map(value);
    let thresholds = [0, 1].map(|trace| metric(&hybrids[trace], "threshold_sectors"));
    let eights = both(&|profile| writes_of(profile, 8) / profile.writes.requests.max(1) as f64);
    let updates = both(&updates);
    let written = both(&|profile| most_hits(&profile.write_hits) / profile.writes.requests.max(1) as f64);
    let read = both(&|profile| most_hits(&profile.read_hits));
    let findings = vec![
        peaks("write sizes are bimodal, NTFS: 8 and 128 sectors", ntfs, [8, 128]).of_kind(Kind::Generator),
        peaks("write sizes are bimodal, ext3: 8 and 256 sectors", ext3, [8, 256]).of_kind(Kind::Generator),
        Finding::fact(
            "ext3 has more writes of 8 sectors than NTFS",
            "a larger share",
            eights[1] > eights[0],
            format!("{} and {}", short(eights[1]), short(eights[0])),
        )
        .of_kind(Kind::Generator),
        Finding::fact(
            "small writes have high update ratios, large ones low",
            "8 sectors at least ten times 128 or 256, both traces",
            updates.iter().all(|&times| times >= MORE_UPDATES),
            row(updates) + " times",
        )
        .of_kind(Kind::Generator)
        .unless_calibrated("of fewer requests; over the month of the paper NTFS has 10.1 times (figure `fit`)"),
        Finding::fact(
            "some sectors are written 16,384 times and more, of 1,534,627 writes",
            "some get 0.0107 of the writes and none twice as many, both traces",
            written.iter().all(|&share| (1.0..2.0).contains(&(share * PAPER_WRITES / 16_384.0))),
            row(written) + " of them and more",
        )
        .of_kind(Kind::Generator)
        .unless(TOO_POPULAR)
        .unless_calibrated(TOO_POPULAR),
        Finding::fact("no sector is read more than 256 times, NTFS", "none", read[0] < 256.0, at_least(read[0]))
            .of_kind(Kind::Generator),
        Finding::fact("no sector is read more than 64 times, ext3", "none", read[1] < 64.0, at_least(read[1]))
            .of_kind(Kind::Generator),
        Finding::fact(
            "the threshold between small and large stays at 8 sectors (section 3.2)",
            "8, both traces",
            thresholds.iter().all(|&sectors| sectors == 8.0),
            row(thresholds),
        )
        .target("T5"),
    ];
    let curves = |value: fn(&Profile) -> Vec<(f64, f64)>| {
        ["NTFS", "ext3"].iter().zip(&profiles).map(|(name, profile)| Series::measured(*name, value(profile))).collect()
    };
    let plot = |title: &str, x: &str, y: Axis, series| Plot {
        title: title.into(),
        kind: PlotKind::Lines,
        x: Axis::logarithmic(x),
        y,
        series,
    };
    let writes =
        curves(|profile| profile.sizes.iter().map(|class| (f64::from(class.sectors), class.writes as f64)).collect());
    let ratios = curves(|profile| {
        let ratio = profile.sizes.iter().map(|class| (f64::from(class.sectors), class.update_ratio));
        ratio.filter_map(|(sectors, ratio)| ratio.map(|ratio| (sectors, ratio))).collect()
    });
    Ok(Drawn {
        caption:
            "The traces that stand in for the paper's are made after these very figures, so that all but the threshold \
                  checks the generators; with `--trace` it checks a trace."
                .into(),
        plots: vec![
            plot("Writes by size", "sectors", Axis::linear("writes"), writes),
            plot("Updates by size", "sectors", Axis::logarithmic("sectors written by distinct ones"), ratios),
            plot(
                "Sectors by writes",
                "times written, and more",
                Axis::logarithmic("sectors"),
                curves(|profile| hits(&profile.write_hits)),
            ),
            plot(
                "Sectors by reads",
                "times read, and more",
                Axis::logarithmic("sectors"),
                curves(|profile| hits(&profile.read_hits)),
            ),
        ],
        findings,
    })
}

fn at_least(hits: f64) -> String {
    format!("the most read {} times and more", short(hits))
}

fn writes_of(profile: &Profile, sectors: u32) -> f64 {
    profile.sizes.iter().filter(|class| class.sectors == sectors).map(|class| class.writes as f64).sum()
}

fn update_ratio(profile: &Profile, sectors: u32) -> f64 {
    let class = profile.sizes.iter().find(|class| class.sectors == sectors);
    class.and_then(|class| class.update_ratio).unwrap_or(f64::NAN)
}

fn hits(classes: &[HitClass]) -> Vec<(f64, f64)> {
    classes.iter().map(|class| (class.hits as f64, class.sectors as f64)).collect()
}

/// The highest non-empty class. Its sectors are accessed at least this number of times, and less than twice that.
fn most_hits(classes: &[HitClass]) -> f64 {
    classes.iter().filter(|class| class.sectors > 0).map(|class| class.hits as f64).fold(0.0, f64::max)
}

/// Checks that the two sizes with the most writes are the expected ones.
fn peaks(claim: &'static str, profile: &Profile, expected: [u32; 2]) -> Finding {
    let mut classes: Vec<_> = profile.sizes.iter().map(|class| (class.writes, class.sectors)).collect();
    classes.sort_unstable_by_key(|&(writes, _)| std::cmp::Reverse(writes));
    let found: Vec<u32> = classes.iter().take(2).map(|&(_, sectors)| sectors).collect();
    let numbers = |sizes: &[u32]| row(sizes.iter().map(|&size| f64::from(size)));
    Finding::fact(claim, format!("most writes: {}", numbers(&expected)), found == expected, numbers(&found))
}

/// Written bytes of the trace fragments in Fig. 10.
const FRAGMENT_BYTES: u64 = 3_500_000_000;

/// Size of the pieces into which the disk is divided.
const PIECE_BYTES: u64 = 1 << 30;

/// Bytes of a logical block in C3.
const BLOCK_BYTES: u64 = 512 << 10;

/// Fig. 10a and c: addresses of writes to MLC without SLC, where it gets all writes. Instead of 10b and d, MLC's writes with SLC,
/// the writes above the threshold: those that are rejected and those that leave SLC are not among them.
pub(super) fn fig10(lab: &Lab<'_>) -> Result<Drawn, StudyError> {
    let hybrids = lab.run(&[replay(lab, &NTFS, "chang-c3", "chang"), replay(lab, &EXT3, "chang-c3", "chang")])?;
    let mut series = Vec::new();
    let mut places = Vec::new();
    for (source, (name, hybrid)) in BOTH.iter().zip(["NTFS", "ext3"].iter().zip(&hybrids)) {
        let workload = lab.workload(source)?;
        let all = fragment(&workload.requests, FRAGMENT_BYTES);
        let threshold = metric(hybrid, "threshold_sectors");
        let large: Vec<&Request> = all.iter().copied().filter(|write| f64::from(write.sectors) > threshold).collect();
        for (which, writes) in [("all", &all), ("above the threshold", &large)] {
            series.push(Series::measured(format!("{name}, {which}"), by_piece(writes)));
        }
        places.push([all, large].map(|writes| Places::of(&writes)));
    }
    let [ntfs, ext3] = [&places[0], &places[1]];
    let weakened = ntfs[0].moves_per_gb / ntfs[1].moves_per_gb;
    let findings = vec![
        Finding::fact(
            "NTFS: writes are spread over the entire disk",
            "to every GiB of 20",
            ntfs[0].pieces >= 20,
            format!("to {}", ntfs[0].pieces),
        )
        .of_kind(Kind::Generator),
        Finding::fact(
            "ext3: writes stay in a region, 2.2 GB are in use",
            "within the first 2.3 GiB",
            ext3[0].end_bytes <= 23 * (PIECE_BYTES / 10),
            format!("within {} GiB", short(ext3[0].end_bytes as f64 / PIECE_BYTES as f64)),
        )
        .of_kind(Kind::Generator),
        Finding::fact(
            "NTFS: writes above the threshold are much less random",
            "goes to another logical block at most half as often per byte",
            weakened >= 2.0,
            format!("{} times less often", short(weakened)),
        )
        .of_kind(Kind::Generator),
    ];
    Ok(Drawn {
        caption: "3.5 GB of writes. Without SLC, MLC gets all. With SLC it gets those above the threshold, small ones that SLC \
                  rejects, and what leaves SLC; only the first are shown, so that figs. 10b and d are not reproduced. The \
                  paper draws each write; here they are counted by GiB."
            .into(),
        plots: vec![Plot {
            title: "Writes".into(),
            kind: PlotKind::Lines,
            x: Axis::linear("place on the disk (GiB)"),
            y: Axis::linear("writes"),
            series,
        }],
        findings,
    })
}

/// The first writes of a trace, up to `bytes` bytes.
fn fragment(requests: &[Request], bytes: u64) -> Vec<&Request> {
    let mut left = bytes;
    let writes = requests.iter().filter(|request| request.op == Op::Write);
    writes
        .take_while(|write| {
            let more = left > 0;
            left = left.saturating_sub(u64::from(write.sectors) * SECTOR_BYTES);
            more
        })
        .collect()
}

fn start(write: &Request) -> u64 {
    write.sector * SECTOR_BYTES
}

/// Writes by the piece of the disk where they begin.
fn by_piece(writes: &[&Request]) -> Vec<(f64, f64)> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    writes.iter().for_each(|write| *counts.entry(start(write) / PIECE_BYTES).or_default() += 1);
    let pieces = counts.last_key_value().map_or(0, |(last, _)| last + 1);
    (0..pieces).map(|piece| (piece as f64, counts.get(&piece).copied().map_or(0.0, f64::from))).collect()
}

/// Distribution of write addresses.
struct Places {
    /// Number of pieces of the disk with writes.
    pieces: usize,
    /// End of the last write.
    end_bytes: u64,
    /// Number of writes that begin in another logical block than the previous one, for each written GB.
    moves_per_gb: f64,
}

impl Places {
    fn of(writes: &[&Request]) -> Self {
        let block = |write: &Request| start(write) / BLOCK_BYTES;
        let bytes = |write: &Request| u64::from(write.sectors) * SECTOR_BYTES;
        let moves = writes.windows(2).filter(|pair| block(pair[0]) != block(pair[1])).count();
        Self {
            pieces: by_piece(writes).iter().filter(|&&(_, count)| count > 0.0).count(),
            end_bytes: writes.iter().map(|write| start(write) + bytes(write)).max().unwrap_or(0),
            moves_per_gb: moves as f64 * 1e9 / writes.iter().map(|write| bytes(write)).sum::<u64>().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_writes() {
        let write = |sector, sectors| Request { arrival_ns: 0, sector, sectors, op: Op::Write, handle: 0 };
        let read = Request { op: Op::Read, ..write(0, 8) };
        let gib = PIECE_BYTES / SECTOR_BYTES;
        let requests = [write(0, 8), read, write(8, 8), write(2 * gib, 8), write(5 * gib, 8)];
        let writes = fragment(&requests, 3 * 4096);
        assert_eq!(writes.len(), 3, "as many as write the bytes, without reads");
        assert_eq!(by_piece(&writes), [(0.0, 2.0), (1.0, 0.0), (2.0, 1.0)]);
        let places = Places::of(&writes);
        assert_eq!((places.pieces, places.end_bytes), (2, 2 * PIECE_BYTES + 4096));
        assert!((places.moves_per_gb * 3.0 * 4096.0 / 1e9 - 1.0).abs() < 1e-9, "one move");
    }
}
