//! The rows of the drive catalogue.

use super::{Drive, Mechanics, Model, QUEUE, Scheduler};
use crate::units::ByteSize;

pub(super) fn drives() -> Vec<Drive> {
    vec![atlas_10k_iv(), nearline_18tb()]
}

fn atlas_10k_iv() -> Drive {
    Drive {
        name: "atlas-10k-iv".into(),
        capacity: ByteSize(286_749_479 * 512),
        model: Model::Mechanical,
        read_position_us: 4500.0,
        write_position_us: 4900.0,
        mb_per_s: 72.0,
        queue: QUEUE,
        scheduler: Scheduler::Elevator,
        usd_per_gib: 1.0,
        active_w: 12.0,
        idle_w: 9.0,
        mechanics: Some(Mechanics {
            rpm: 10_017,
            cylinders: 48_624,
            surfaces: 8,
            outer_sectors: 883,
            inner_sectors: 592,
            head_switch_us: 165.0,
            write_settle_us: 0.0,
            seek_ms: vec![
                (1, 0.517),
                (2, 0.590),
                (4, 0.755),
                (10, 0.978),
                (20, 1.182),
                (50, 1.264),
                (100, 1.386),
                (200, 1.580),
                (500, 1.769),
                (1_000, 1.971),
                (2_000, 2.192),
                (3_000, 2.563),
                (4_500, 3.008),
                (6_500, 3.410),
                (8_000, 3.665),
                (10_000, 4.049),
                (12_000, 4.349),
                (15_000, 4.878),
                (20_000, 5.540),
                (25_000, 6.128),
                (30_000, 6.576),
                (35_000, 7.115),
                (40_000, 7.631),
                (44_000, 8.150),
                (47_000, 8.493),
                (48_000, 8.791),
            ],
            buffer_kib: 460,
            bus_mb_per_s: 320.0,
        }),
        source: "Maxtor Atlas 10K IV, 146 GB, 2003: the disk of OP-FCL (FAST 2012), whose table 2 has the constants (its \
                 text says 4.4 ms for a read); mechanics: the model measured by DIXtrac that its authors' simulator has \
                 (seek curve, geometry, buffer), zones drawn as a line from its outermost one through its mean; price and \
                 power are assumed"
            .into(),
    }
}

/// Seek curve: 0.23 ms + b sqrt(cylinders - 1) over the first third and its tangent beyond, with the b that gives random
/// seeks a mean of 7.4 ms.
fn nearline_18tb() -> Drive {
    Drive {
        name: "nearline-18tb".into(),
        capacity: ByteSize(18_000_000_000_000),
        model: Model::Mechanical,
        read_position_us: 7_400.0 + 4_167.0,
        write_position_us: 8_200.0 + 4_167.0,
        mb_per_s: 270.0,
        queue: QUEUE,
        scheduler: Scheduler::Elevator,
        usd_per_gib: 0.025,
        active_w: 9.4,
        idle_w: 5.3,
        mechanics: Some(Mechanics {
            rpm: 7_200,
            cylinders: 573_000,
            surfaces: 18,
            outer_sectors: 4_516,
            inner_sectors: 2_304,
            head_switch_us: 230.0,
            write_settle_us: 800.0,
            seek_ms: vec![
                (1, 0.230),
                (1_000, 0.777),
                (4_000, 1.324),
                (10_000, 1.960),
                (20_000, 2.677),
                (40_000, 3.691),
                (70_000, 4.808),
                (110_000, 5.969),
                (150_000, 6.931),
                (191_000, 7.792),
                (572_999, 15.354),
            ],
            buffer_kib: 1_024,
            bus_mb_per_s: 600.0,
        }),
        source: "a helium drive of 18 TB at 7,200 rpm, 2020: rate, surfaces and power (random reads, idle) as Seagate's \
                 Exos X18, 270 MB/s and 4.16 ms of latency; seeks as the specification of Western Digital's Ultrastar DC \
                 HC310: 7.4 ms to read and 8.2 ms to write on average, 0.23 ms to the next track; derived: the curve in \
                 between, tracks from capacity and rate with an inner rate of half the outer; read-ahead of 1 MiB assumed; \
                 17 pounds per TB in February 2026 (terabyteprices.com)"
            .into(),
    }
}
