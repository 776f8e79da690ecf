"""Writes the tables in ``choosing.md`` from ``choosing.json``. With a folder of traces, first runs them.

``python docs/choosing.py [FOLDER]`` runs the program ``BIMETAL``. Traces that are not in the folder keep their results.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Schemes that also have more spare area, for the money of a hybrid.
SAME_MONEY = ("pagemap", "sepbit", "dac", "midas", "fdp")
#: Schemes of the tables of streams that have a fast region instead.
AS_THEY_ARE = ("csal",)
#: The mean, or the 99th percentile, of a hybrid is that of the page map up to these ratios.
ALIKE = {"mean_us": 1.015, "p99_us": 1.03}
#: Row of the tables, a workload with its settings or the file of a trace, number of passes, number of measured passes.
RUNS: list[tuple[str, str, list[str], int, int]] = [
    ("writes in turn, 128 KiB", "sequential", ["span=1GiB"], 3, 1),
    ("`iozone`: files rewritten", "iozone", ["scale=4"], 3, 1),
    ("phone installing an app (B)", "mobile_nexus5_Installing_log181.txt.xz", [], 9, 3),
    ("phone, writes only", "phone", ["scale=2", "requests=400000"], 3, 1),
    ("desktop, writes only", "pc", ["scale=2", "requests=400000"], 3, 1),
    ("aged NTFS disk", "bimodal-ntfs", ["scale=16", "requests=400000"], 3, 1),
    ("new ext3 disk", "bimodal-ext3", ["scale=16", "requests=400000"], 3, 1),
    ("PC, writes of 8 to 64 KiB", "wlaftl", ["scale=4", "trace=iotrace1", "requests=700000"], 3, 1),
    ("OLTP (`financial`)", "financial", ["used=1GiB", "span=2GiB", "requests=1000000"], 3, 1),
    ("OLTP (`wlaftl`)", "wlaftl", ["scale=4", "trace=fin1", "requests=1000000"], 3, 1),
    ("OLTP, Financial1 (U)", "flashsim_fin1.trace.xz", [], 30, 10),
    ("home directories", "home", ["used=1GiB", "span=2GiB", "requests=1000000"], 3, 1),
    ("mail server", "exchange", ["used=1GiB", "span=6GiB", "requests=600000"], 3, 1),
    ("storage server", "msn", ["used=1GiB", "span=6GiB", "requests=600000"], 3, 1),
    ("virtual machine (C)", "", [], 3, 1),
    ("2,038 cloud disks (T)", "caffeine_cloud_storage-sample.bz2", [], 60, 20),
    ("Zipf, 4 KiB", "zipf", ["span=1GiB"], 3, 1),
    ("uniform, 4 KiB", "uniform", ["span=1GiB"], 3, 1),
    ("object cache with handles (`kv-cache`)", "kv-cache", ["span=1GiB", "requests=1000000"], 3, 1),
    ("phone booting (B)", "mobile_nexus5_Booting_log176.txt.xz", [], 30, 10),
    ("release server (M)", "msprod_DTRS1K.trace.xz", [], 30, 10),
    ("search engine", "search", ["used=1GiB", "span=2GiB", "requests=200000"], 3, 1),
    ("search engine (U)", "mqsim_wsrch-small.trace.xz", [], 3, 1),
]
#: Rows that the first two tables leave out: no other scheme uses handles.
HANDLES = "object cache with handles (`kv-cache`)"

#: Figures by scheme; of the schemes as they are (`auto`) and of those with the spare area for the same money (`same`).
Figures = dict[str, dict[str, float]]
Row = dict[str, Figures]

PROGRAM = os.environ.get("BIMETAL", "bimetal")


def bimetal(*words: str) -> None:
    """Run the program."""
    subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL)


def regions() -> dict[str, str]:
    """Return the regions that each scheme uses."""
    listed = subprocess.run([PROGRAM, "list", "schemes", "--json", "-"], check=True, capture_output=True, text=True)
    return {scheme["name"]: scheme["regions"] for scheme in json.loads(listed.stdout)}


def compared(trace: list[str], passes: tuple[int, int], more: list[str], to: Path) -> Figures:
    """Return the figures of schemes under a trace."""
    replay = ["--arrivals", "closed", "--repeat", str(passes[0]), "--measure", str(passes[1])]
    bimetal("compare", *trace, *replay, *more, "--quiet", "--json", str(to))
    found = json.loads(to.read_text())
    share = found["trace"]["writes"] / (found["trace"]["reads"] + found["trace"]["writes"])
    return {"trace": {"writes": share}} | {result["scheme"]: figures(result) for result in found["results"]}


def figures(result: dict[str, Any]) -> dict[str, float]:
    """Return the figures of a result that are in the tables."""
    times = {"mean_us": result["response_us"]["mean"], "p99_us": result["response_us"]["p99"]}
    return times | {name: result[name] for name in ("write_amplification", "lifetime_host_bytes")}


def run(kept: dict[str, Row], folder: Path) -> None:
    """Replace the results of all available traces."""
    with tempfile.TemporaryDirectory() as scratch:
        to, generated = Path(scratch) / "out.json", Path(scratch) / "trace.bimetal"
        for row, source, settings, *passes in RUNS:
            trace = [str(folder / source)] if source else []
            if settings:
                bimetal(
                    "generate",
                    source,
                    str(generated),
                    "--force",
                    *(word for one in settings for word in ("--set", one)),
                )
                trace = [str(generated)]
            elif source and not (folder / source).exists():
                continue
            times = (passes[0], passes[1])
            spare = ["--set", "slow.spare=11%", "--schemes", ",".join(SAME_MONEY)]
            kept[row] = {"auto": compared(trace, times, [], to), "same": compared(trace, times, spare, to)}


def significant(value: float) -> str:
    """Format a number with at least three digits, as the program does."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:#.3g}"


def cell(figures: dict[str, float], names: tuple[str, str], scale: tuple[float, float]) -> str:
    """Return two figures of a scheme."""
    return " / ".join(significant(figures[name] / size) for name, size in zip(names, scale, strict=True))


def markdown(lines: list[list[str]]) -> str:
    """Return a table whose first line has the names of the columns."""
    lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def streams(kept: dict[str, Row], names: tuple[str, str], scale: tuple[float, float]) -> str:
    """Return two figures of each scheme with streams, the lowest of the first in bold."""
    schemes = (*SAME_MONEY, *AS_THEY_ARE)
    lines = [["workload", *(f"`{scheme}`" for scheme in schemes)]]
    for row, *_ in RUNS:
        if row.startswith("search"):
            continue
        of_row = kept[row]["same"] | {scheme: kept[row]["auto"][scheme] for scheme in AS_THEY_ARE}
        found = [cell(of_row[scheme], names, scale).split(" / ") for scheme in schemes]
        least = min((first for first, _ in found), key=lambda text: float(text.replace(",", "")))
        lines.append([row, *(f"**{one}** / {two}" if one == least else f"{one} / {two}" for one, two in found)])
    return markdown(lines)


def best(figures: Figures, schemes: list[str], name: str, *, most: bool = False) -> str:
    """Return the scheme with the least of a figure, or the most."""
    found = [scheme for scheme in schemes if scheme in figures and figures[scheme][name] is not None]
    # Of several with the same figure, the fastest.
    sign = -1 if most else 1
    return min(found, key=lambda scheme: (sign * figures[scheme][name], figures[scheme]["mean_us"]))


def times(kept: dict[str, Row], hybrids: list[str], caches: list[str]) -> str:
    """Return the table of service times."""
    names, scale = ("mean_us", "p99_us"), (1.0, 1.0)
    columns = ["`pagemap`", "same money", "`sepbit`, same money", "`unitmap`", "`conventional`", "fastest hybrid"]
    lines = [["workload", "writes", *columns, "shortest 99 %", "cache over a disk"]]
    for row, *_ in RUNS:
        if row == HANDLES:
            continue
        auto, same = kept[row]["auto"], kept[row]["same"]

        def named(scheme: str, auto: Figures = auto) -> str:
            return f"`{scheme}` {cell(auto[scheme], names, scale)}"

        cells = [cell(of, names, scale) for of in (auto["pagemap"], same["pagemap"], same["sepbit"])]
        cells += [cell(auto[scheme], names, scale) for scheme in ("unitmap", "conventional")]
        for name, ratio in ALIKE.items():
            chosen = best(auto, hybrids, name)
            apart = auto[chosen][name] / auto["pagemap"][name]
            cells.append("alike" if 1 / ratio <= apart <= ratio else named(chosen))
        writes = f"{auto['trace']['writes']:.0%}".replace("%", " %")
        lines.append([row, writes, *cells, named(best(auto, caches, "mean_us"))])
    return markdown(lines)


def lives(kept: dict[str, Row], hybrids: list[str], caches: list[str]) -> str:
    """Return the table of write amplifications and lives."""
    names, scale = ("write_amplification", "lifetime_host_bytes"), (1.0, 2.0**40)
    columns = ["`pagemap`", "same money", "`sepbit`, same money", "`unitmap`", "fastest hybrid", "least amplification"]
    lines = [["workload", *columns, "longest life", "`pslc-static`", "cache over a disk"]]
    for row, *_ in RUNS:
        if row == HANDLES or row.startswith("search"):
            continue
        auto, same = kept[row]["auto"], kept[row]["same"]
        cells = [cell(of, names, scale) for of in (auto["pagemap"], same["pagemap"], same["sepbit"], auto["unitmap"])]
        chosen = [
            best(auto, hybrids, "mean_us"),
            best(auto, hybrids, "write_amplification"),
            best(auto, hybrids, "lifetime_host_bytes", most=True),
        ]
        cells += [f"`{scheme}` {cell(auto[scheme], names, scale)}" for scheme in chosen]
        cache = best(auto, caches, "mean_us")
        cells += [cell(auto["pslc-static"], names, scale), f"`{cache}` {cell(auto[cache], names, scale)}"]
        lines.append([row, *cells])
    return markdown(lines)


def main() -> None:
    """Run, if a folder is given, and write the tables."""
    path, page = HERE / "choosing.json", HERE / "choosing.md"
    kept: dict[str, Row] = json.loads(path.read_text()) if path.exists() else {}
    if len(sys.argv) > 1:
        run(kept, Path(sys.argv[1]))
        path.write_text(json.dumps(kept, indent=1) + "\n")
    of = regions()
    hybrids = [
        name
        for name, used in of.items()
        if used in ("fast and slow", "one, in two cell modes") and name not in AS_THEY_ARE
    ]
    caches = [name for name, used in of.items() if used == "one, over disks"]
    tables = {
        "service time": times(kept, hybrids, caches),
        "writes and life": lives(kept, hybrids, caches),
        "streams: time": streams(kept, ("mean_us", "p99_us"), (1, 1)),
        "streams: writes": streams(kept, ("write_amplification", "lifetime_host_bytes"), (1, 2**40)),
    }
    text = page.read_text()
    for mark, made in tables.items():
        before, rest = text.split(f"<!-- {mark} -->")
        after = rest.split("<!-- end of table -->", 1)[1]
        text = f"{before}<!-- {mark} -->\n\n{made}\n\n<!-- end of table -->{after}"
    page.write_text(text)


if __name__ == "__main__":
    main()
