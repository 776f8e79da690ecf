"""Writes the tables of ``experiments.md``: claims whose verdicts change with other settings.

``python docs/papers/experiments.py`` makes the tables from ``experiments.json``. With ``--run`` it first runs the
program ``BIMETAL`` for each experiment and compares the claims with those in ``reproduction.json``, which takes ten
minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Paper, figure, and settings of schemes and generated traces.
EXPERIMENTS: list[tuple[str, str, str]] = [
    ("chang", "fig8a", "ext3.hot_extent=64KiB"),
    ("chang", "fig8a", "ext3.hot_extent=128KiB"),
    ("chang", "fig8a", "ext3.run=2MiB"),
    ("chang", "fig8a", "ntfs.hot_set=64MiB ntfs.theta=0.7"),
    ("chang", "fig8a", "ntfs.theta=0.9"),
    ("chang", "fig8a", "ntfs.run=1MiB ntfs.hot_share=0.9"),
    ("chang", "table3", "ntfs.hot_share=0.85 ext3.hot_share=0.85"),
    ("chang", "table3", "chang.hash_entries=4096 chang.map_cache_chains=768"),
    ("chang", "table3", "ext3.hot_extent=64KiB ext3.run=512KiB"),
    ("chang", "table3", "ext3.hot_extent=64KiB ext3.hot_share=0.99"),
    ("chang", "fig11", "ntfs.hot_extent=16MiB ext3.hot_extent=16MiB"),
    ("chang", "fig11", "ntfs.hot_share=0.99 ext3.hot_share=0.99"),
    ("chang", "fig11", "ntfs.hot_extent=16MiB ext3.hot_extent=16MiB ntfs.hot_share=0.99 ext3.hot_share=0.99"),
    ("chang", "fig12b", "ntfs.theta=0.5"),
    ("chang", "fig12b", "ntfs.theta=0.4"),
    ("chang", "fig12b", "ntfs.theta=0.7"),
    ("chang", "table4", "ext3.hot_extent=64KiB"),
    ("chang", "table4", "ext3.hot_extent=256KiB"),
    ("chang", "table4", "ntfs.hot_share=0.92"),
    ("chang", "abstract", "ntfs.hot_share=0.92"),
    ("comboftl", "fig10", "pc.theta=1.1"),
    ("comboftl", "fig10", "iozone.theta=1.2"),
    ("comboftl", "fig10", "iozone.theta=1.5"),
    ("comboftl", "fig10", "iozone.warm_kib=64 iozone.large_kib=64"),
    ("comboftl", "fig10", "comboftl.unit_blocks=16"),
    ("comboftl", "fig10", "comboftl.migration_target=0.02 comboftl.migration_tolerance=0.01"),
    ("comboftl", "fig10", "comboftl.threshold_mode=fixed"),
    ("comboftl", "fig11", "comboftl.detection=none"),
    ("comboftl", "fig11", "phone.extent_kib=16384"),
    ("comboftl", "fig12", "pc.theta=1.1"),
    ("comboftl", "fig12", "pc.theta=1"),
    ("comboftl", "fig12", "iozone.warm_kib=64 iozone.large_kib=64"),
    ("comboftl", "fig12", "comboftl.threshold_mode=fixed"),
    ("comboftl", "fig15", "phone.theta=0.8 pc.theta=0.8 iozone.theta=0.9"),
    ("comboftl", "fig15", "phone.theta=0.7 pc.theta=0.8 iozone.theta=0.9"),
    ("comboftl", "fig15", "phone.theta=0.7 pc.theta=0.7 iozone.theta=0.8"),
    ("comboftl", "fig15", "comboftl.threshold_mode=fixed comboftl.threshold=8KiB"),
    ("comboftl", "fig16", "iozone.extent_kib=4096"),
    ("comboftl", "abstract", "pc.theta=1.1"),
    ("opfcl", "fig6a", "opfcl.curve_keep=0"),
    ("opfcl", "fig6a", "financial.popular_share=0.3"),
    ("opfcl", "fig6c", "search.used=276MiB"),
    ("opfcl", "fig7", "fpfcl.cache.erase_us=0 rwfcl.cache.erase_us=0"),
    ("opfcl", "fig9", "opfcl.disk.write_position_us=1500"),
    ("opfcl", "fig9", "opfcl.disk.write_position_us=500"),
    ("opfcl", "fig10", "exchange.popular_share=1 msn.popular_share=1"),
    ("opfcl", "fig11", "exchange.recency=0.8"),
    ("opfcl", "fig12", "rwfcl.rates=period"),
    ("opfcl", "fig12", "rwfcl.rates=period msn.recency=1.2"),
    ("opfcl", "fig13", "msn.popular_share=1"),
    ("opfcl", "fig13", "opfcl.curve_keep=0.9"),
    ("opfcl", "fig14", "msn.popular_share=1"),
    ("opfcl", "fig14", "financial.popular_share=1 financial.popularity=0"),
    ("opfcl", "fig14", "financial.popular_share=1 financial.popularity=0 financial.used=180MiB"),
    ("opfcl", "fig14", "financial.settled=true"),
    ("opfcl", "fig14", "search.settled=true search.popular_share=1 search.used=276MiB"),
    (
        "opfcl",
        "fig15a",
        "search.settled=true search.popular_share=1 exchange.settled=true exchange.popular_share=1 msn.settled=true "
        "msn.popular_share=1",
    ),
    ("opfcl", "fig15a", "msn.popular_share=1"),
    ("opfcl", "fig15b", "opfcl.curve_keep=0.99"),
    ("opfcl", "fig15b", "opfcl.curve_keep=0.95"),
    ("opfcl", "fig15b", "search.settled=true search.popular_share=1"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.5"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.25"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.1"),
    ("hyssd", "fig5c", "financial.popular_share=0"),
    ("hyssd", "fig5d", "exchange-third.popular_share=0.8"),
    ("wlaftl", "table3", "wlaftl.wear_compare=exact test2.footprint=0.2"),
    ("wlaftl", "table3", "wlaftl.threshold_max=16KiB"),
    ("wlaftl", "fig4", "wlaftl.mlc.spare=4% fin1.footprint=1 fin1.small_space=1 fin1.theta=0.99"),
    ("wlaftl", "rivals", "wlaftl.cycle_time=laps_and_writes"),
    ("wlaftl", "rivals", "wlaftl.threshold_max=16KiB"),
    (
        "wlaftl",
        "rivals",
        "wlaftl.threshold_max=16KiB wlaftl.max_cycle_time=0 cftl.threshold_mode=fixed cftl.initial_threshold=32",
    ),
    (
        "wlaftl",
        "rivals",
        "wlaftl.threshold_max=16KiB wlaftl.max_cycle_time=1 cftl.threshold_mode=fixed cftl.initial_threshold=32 "
        "comboftl.threshold_mode=fixed comboftl.threshold=16KiB comboftl.detection=none",
    ),
]
#: Distinguishes the claims of a paper.
KEYS = ("paper", "figure", "claim", "stand_in")
HELD = "held"

Claim = dict[str, Any]


def command(paper: str, figure: str, settings: str) -> str:
    """Return the command of an experiment."""
    words = [word for one in settings.split() for word in ("--set", one)]
    return " ".join(["bimetal", "paper", paper, figure, "--quick", *words])


def run() -> list[dict[str, Any]]:
    """Run every experiment. Return the results whose verdicts differ from those without the settings."""
    default: list[Claim] = json.loads((HERE / "reproduction.json").read_text())["claims"]
    known = {tuple(claim[key] for key in KEYS): claim for claim in default}
    made = []
    for paper, figure, settings in EXPERIMENTS:
        text = command(paper, figure, settings)
        print(text, file=sys.stderr)
        _, *words = text.split()
        program = os.environ.get("BIMETAL", "bimetal")
        ran = subprocess.run([program, *words, "--quiet", "--json", "-"], check=True, stdout=subprocess.PIPE)
        found = json.loads(ran.stdout)
        changed = []
        for claim in found["claims"]:
            before = known[tuple(claim[key] for key in KEYS)]
            if claim["kind"] == "result" and claim["verdict"] != before["verdict"]:
                figures = {"default": before["measured"], "changed": claim["measured"], "verdict": claim["verdict"]}
                changed.append({key: claim[key] for key in (*KEYS[1:], "expected")} | figures)
        made.append({"paper": paper, "command": text, "claims": changed})
    return made


def table(experiments: list[dict[str, Any]], paper: str) -> str:
    """Return the experiments of a paper with the claims that change; held figures are bold."""
    lines = ["| settings | figure | claim | traces | paper | default | changed |", "|---|---|---|---|---|---|---|"]
    for experiment in (experiment for experiment in experiments if experiment["paper"] == paper):
        settings = ", ".join(f"`{word}`" for word in experiment["command"].split() if "=" in word)
        for claim in experiment["claims"]:
            default, changed = claim["default"], claim["changed"]
            if claim["verdict"] == HELD:
                changed = f"**{changed}**"
            else:
                default = f"**{default}**"
            cells = [settings, claim["figure"], claim["claim"], claim["stand_in"], claim["expected"], default, changed]
            lines.append(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |")
            settings = ""
    return "\n".join(lines)


def main() -> None:
    """Run, if requested, and write the tables."""
    path, page = HERE / "experiments.json", HERE / "experiments.md"
    if "--run" in sys.argv[1:]:
        path.write_text(json.dumps(run(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    experiments = json.loads(path.read_text(encoding="utf-8"))
    text = page.read_text(encoding="utf-8")
    for paper in dict.fromkeys(experiment["paper"] for experiment in experiments):
        before, rest = text.split(f"<!-- experiments: {paper} -->")
        after = rest.split("<!-- end of experiments -->", 1)[1]
        made = table(experiments, paper)
        text = f"{before}<!-- experiments: {paper} -->\n\n{made}\n\n<!-- end of experiments -->{after}"
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
