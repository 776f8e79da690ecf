"""Writes the tables of streams in ``choosing.md`` from ``choosing.json``. With a folder of traces, first runs them.

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
#: Schemes with more spare area, for the money of a hybrid; and schemes without.
SAME_MONEY = ("pagemap", "sepbit", "dac", "midas", "fdp")
AS_THEY_ARE = ("csal",)
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
]

Row = dict[str, dict[str, float]]


def bimetal(*words: str) -> None:
    """Run the program."""
    subprocess.run([os.environ.get("BIMETAL", "bimetal"), *words], check=True)


def compared(trace: list[str], passes: tuple[int, int], schemes: tuple[str, ...], more: list[str], to: Path) -> Row:
    """Return the figures of schemes under a trace."""
    replay = ["--arrivals", "closed", "--repeat", str(passes[0]), "--measure", str(passes[1])]
    bimetal("compare", *trace, *replay, "--schemes", ",".join(schemes), *more, "--json", str(to))
    found: list[dict[str, Any]] = json.loads(to.read_text())["results"]
    return {result["scheme"]: figures(result) for result in found}


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
            spare = ["--set", "slow.spare=11%"]
            same = compared(trace, (passes[0], passes[1]), SAME_MONEY, spare, to)
            kept[row] = same | compared(trace, (passes[0], passes[1]), AS_THEY_ARE, [], to)


def significant(value: float) -> str:
    """Format a number with at least three digits, as the program does."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:#.3g}"


def table(kept: dict[str, Row], names: tuple[str, str], scale: tuple[float, float]) -> str:
    """Return two figures of each scheme, the lowest of the first in bold."""
    schemes = (*SAME_MONEY, *AS_THEY_ARE)
    lines = [["workload", *(f"`{scheme}`" for scheme in schemes)], ["---"] * (1 + len(schemes))]
    for row, *_ in RUNS:
        found = [
            [significant(kept[row][scheme][name] / size) for name, size in zip(names, scale, strict=True)]
            for scheme in schemes
        ]
        least = min((first for first, _ in found), key=lambda text: float(text.replace(",", "")))
        cells = [f"**{first}** / {second}" if first == least else f"{first} / {second}" for first, second in found]
        lines.append([row, *cells])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Run, if a folder is given, and write the tables."""
    path, page = HERE / "choosing.json", HERE / "choosing.md"
    kept: dict[str, Row] = json.loads(path.read_text()) if path.exists() else {}
    if len(sys.argv) > 1:
        run(kept, Path(sys.argv[1]))
        path.write_text(json.dumps(kept, indent=1) + "\n")
    tables = {
        "streams: time": table(kept, ("mean_us", "p99_us"), (1, 1)),
        "streams: writes": table(kept, ("write_amplification", "lifetime_host_bytes"), (1, 2**40)),
    }
    text = page.read_text()
    for mark, made in tables.items():
        before, rest = text.split(f"<!-- {mark} -->")
        text = (
            f"{before}<!-- {mark} -->\n\n{made}\n\n<!-- end of streams -->{rest.split('<!-- end of streams -->', 1)[1]}"
        )
    page.write_text(text)


if __name__ == "__main__":
    main()
