//! The tables of a benchmark.

use bimetal_core::part::real::whole;
use bimetal_study::number::{NOTHING, SIZES, significant, thousands, with_unit};

use super::measure::median;
use super::schemes;
use crate::args::MeasureArgs;
use crate::benchmarked::Row;
use crate::table::{Align, bold, plain, remark};

/// Tables of the rows by backing, and of the schemes.
pub(super) fn nbd(args: &MeasureArgs, by_backing: &[Row], by_scheme: &[Row]) -> String {
    let mut text = backings(by_backing);
    if !by_scheme.is_empty() {
        text += &format!("\n{}\n", bold("A full store of each scheme, after random writes"));
        text += &of_schemes(by_scheme);
    }
    text + &explained(
        args,
        "of fio over a Unix socket",
        "Memory is compared with `nbdkit memory`, files with `nbdkit file` in the same directory",
    )
}

/// The table for a store as a file.
pub(super) fn fuse(args: &MeasureArgs, rows: &[Row]) -> String {
    backings(rows)
        + &explained(
            args,
            "of fio with `--direct=1` on a file of `serve --fuse` and of `nbdfuse`",
            "Both files show the same store. The processor time of `nbdfuse` includes that of the NBD server",
        )
}

/// The table for a store as a virtio disk.
pub(super) fn vhost_user(args: &MeasureArgs, rows: &[Row]) -> String {
    backings(rows)
        + &explained(
            args,
            "of a virtual machine's driver, with one queue",
            "Stores are compared with a file in the same directory behind `qemu-storage-daemon`",
        )
}

/// The table for a store as a disk of this machine.
pub(super) fn ublk(args: &MeasureArgs, rows: &[Row]) -> String {
    backings(rows)
        + &explained(
            args,
            "of fio with `--direct=1` on a disk of `serve --ublk` and on a loop device, with one queue each",
            "The loop device shows a file in the same directory. The kernel serves it in threads whose processor time is not \
             known, and which may run on the client's processor",
        )
}

fn backings(rows: &[Row]) -> String {
    let groups = rows.chunk_by(|one, next| one.backing == next.backing);
    groups.map(|group| format!("\n{}\n{}", bold(&format!("In {}", group[0].backing)), backing(group))).collect()
}

fn explained(args: &MeasureArgs, manner: &str, compared: &str) -> String {
    let size = with_unit(SIZES, args.bytes() as f64);
    format!(
        "\n{}",
        remark(&format!(
            "requests/s {manner}, anywhere in {size}: medians of {} rounds of {} s in turns, and the median of the rounds' ratios. \
             `CPU` is the processor time per request of the other server divided by that of `bimetal`: above 1, `bimetal` needs \
             less. Stores use the scheme `{}`; `written` is its write amplification. {compared}. A flush takes as long as the file \
             system in `--dir` needs.",
            args.rounds, args.seconds, args.scheme
        ))
    )
}

fn speed(rounds: &[f64]) -> String {
    thousands(whole(median(rounds.to_vec()).round()))
}

fn amplification(row: &Row) -> String {
    row.write_amplification.map_or_else(|| NOTHING.to_owned(), |value| format!("{} x", significant(value)))
}

fn backing(rows: &[Row]) -> String {
    let other = rows[0].other_program;
    let heads = [
        ("", Align::Left),
        ("bimetal", Align::Right),
        (other, Align::Right),
        ("ratio", Align::Right),
        ("CPU", Align::Right),
        ("p99 (µs)", Align::Right),
        (&format!("{other} p99"), Align::Right),
        ("written", Align::Right),
    ];
    let line = |row: &Row| {
        vec![
            row.workload.to_owned(),
            speed(&row.bimetal),
            speed(&row.other),
            format!("{:.2}", row.ratio),
            row.cpu_ratio.map_or_else(|| NOTHING.to_owned(), |ratio| format!("{ratio:.2}")),
            speed(&row.bimetal_p99_us),
            speed(&row.other_p99_us),
            amplification(row),
        ]
    };
    plain(&heads, rows.iter().map(line).collect())
}

/// Reads relative to those of a page map; writes multiplied by the write amplification of the scheme.
fn of_schemes(rows: &[Row]) -> String {
    let heads = [
        ("", Align::Left),
        ("4K reads", Align::Right),
        ("ratio to pagemap", Align::Right),
        ("1M writes", Align::Right),
        ("ratio to nbdkit", Align::Right),
        ("written", Align::Right),
        ("ratio x written", Align::Right),
    ];
    let page_map = rows.iter().find(|row| row.backing == "pagemap").map(|row| median(row.bimetal.clone()));
    let line = |rows: &[Row]| {
        let (reads, writes) = (&rows[0], &rows[1]);
        let of_page_map = page_map.map(|page_map| format!("{:.2}", median(reads.bimetal.clone()) / page_map));
        let without_moves = writes.write_amplification.map(|written| format!("{:.2}", writes.ratio * written));
        vec![
            reads.backing.clone(),
            speed(&reads.bimetal),
            of_page_map.unwrap_or_else(|| NOTHING.to_owned()),
            speed(&writes.bimetal),
            format!("{:.2}", writes.ratio),
            amplification(writes),
            without_moves.unwrap_or_else(|| NOTHING.to_owned()),
        ]
    };
    plain(&heads, rows.chunks_exact(schemes::WORKLOADS.len()).map(line).collect())
}
