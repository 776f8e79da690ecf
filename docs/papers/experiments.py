"""Writes the tables of ``experiments.md``: claims whose verdicts change with other settings, and their number.

``python docs/papers/experiments.py`` makes the tables from ``experiments.json``. With ``--run`` it first runs the
program ``BIMETAL`` for each experiment and compares the claims with those in ``reproduction.json``, which takes up to
half an hour.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: Traces of WLAFTL but Fin1.
OF_WLAFTL = ("sys", "test1", "test2", "iotrace1", "iotrace2")
#: Paper, figure, and settings of schemes and generated traces.
EXPERIMENTS: list[tuple[str, str, str]] = [
    ("chang", "fig8a", "ext3.hot_extent=64KiB"),
    ("chang", "fig8a", "ext3.hot_extent=128KiB"),
    ("chang", "fig8a", "ext3.run=2MiB"),
    ("chang", "fig8a", "ntfs.hot_set=64MiB ntfs.theta=0.7"),
    ("chang", "fig8a", "ntfs.theta=0.9"),
    ("chang", "fig8a", "ntfs.run=1MiB ntfs.hot_share=0.9"),
    ("chang", "table3", "ntfs.hot_share=0.85 ext3.hot_share=0.85"),
    ("chang", "table3", "chang.hash_entries=4096 chang.map_cache_chains=768 conventional.map_cache_chains=768"),
    (
        "chang",
        "table3",
        "ntfs.hot_extent=64KiB ntfs.theta=0.7 ntfs.hot_share=0.93 "
        "ext3.hot_extent=64KiB ext3.theta=0.7 ext3.hot_share=0.93",
    ),
    ("chang", "table3", "chang.slc.capacity=96MiB"),
    ("chang", "table3", "ext3.hot_extent=64KiB ext3.run=512KiB"),
    ("chang", "table3", "ext3.hot_extent=64KiB ext3.hot_share=0.99"),
    ("chang", "fig11", "ntfs.hot_extent=16MiB ext3.hot_extent=16MiB"),
    ("chang", "fig11", "ntfs.hot_share=0.99 ext3.hot_share=0.99"),
    ("chang", "fig11", "ntfs.hot_extent=16MiB ext3.hot_extent=16MiB ntfs.hot_share=0.99 ext3.hot_share=0.99"),
    ("chang", "fig11", "ntfs.hot_share=0.99 ntfs.hot_extent=8KiB"),
    ("chang", "fig12b", "ntfs.theta=0.5 chang.slc_writeback=false"),
    ("chang", "fig12b", "ntfs.theta=0.7"),
    ("chang", "table4", "ext3.hot_extent=64KiB"),
    ("chang", "table4", "ext3.hot_extent=256KiB"),
    ("chang", "table4", "ntfs.hot_share=0.92"),
    ("chang", "abstract", "ntfs.hot_share=0.92"),
    ("comboftl", "fig10", "pc.theta=1.1"),
    ("comboftl", "fig10", "iozone.theta=1.2"),
    ("comboftl", "fig10", "iozone.warm_kib=64 iozone.large_kib=64"),
    ("comboftl", "fig10", "comboftl.threshold_mode=fixed"),
    ("comboftl", "fig11", "phone.warm_share=0.25 phone.extent_kib=16384"),
    ("comboftl", "fig12", "pc.theta=1.1"),
    ("comboftl", "fig12", "pc.theta=1"),
    ("comboftl", "fig12", "iozone.warm_kib=64 iozone.large_kib=64"),
    ("comboftl", "fig12", "comboftl.threshold_mode=fixed"),
    ("comboftl", "fig15", "phone.theta=0.8 pc.theta=0.85 iozone.theta=0.95"),
    ("comboftl", "fig15", "phone.theta=0.7 pc.theta=0.8 iozone.theta=0.9"),
    ("comboftl", "fig15", "phone.theta=0.7 pc.theta=0.7 iozone.theta=0.8"),
    ("comboftl", "fig16", "iozone.extent_kib=4096"),
    ("comboftl", "introduction", "pc.theta=1.1"),
    ("opfcl", "fig6a", "opfcl.curve_keep=0 rwfcl.curve_keep=0"),
    ("opfcl", "fig6a", "financial.popular_share=0.3"),
    ("opfcl", "fig6c", "search.used=276MiB"),
    ("opfcl", "fig6c", "search.used=460MiB"),
    ("opfcl", "fig6c", "search.requests=690430"),
    ("opfcl", "fig6c", "search.interval_us=24200"),
    ("opfcl", "fig7", "fpfcl.cache.erase_us=0 rwfcl.cache.erase_us=0"),
    ("opfcl", "fig8", "search.requests=690430"),
    ("opfcl", "fig9", "opfcl.disk.write_position_us=1500"),
    ("opfcl", "fig9", "opfcl.disk.write_position_us=500"),
    ("opfcl", "fig10", "exchange.popular_share=1 msn.popular_share=1"),
    ("opfcl", "fig10", "msn.interval_us=12900"),
    ("opfcl", "fig10", "rwfcl.period=1000000000"),
    ("opfcl", "fig11", "exchange.recency=0.8"),
    ("opfcl", "fig12", "rwfcl.rates=period"),
    ("opfcl", "fig12", "rwfcl.rates=period msn.recency=1.2"),
    ("opfcl", "fig13", "msn.popular_share=1"),
    ("opfcl", "fig13", "opfcl.curve_keep=0.9"),
    ("opfcl", "fig14", "rwfcl.period=1000000000"),
    ("opfcl", "fig14", "msn.popular_share=1"),
    ("opfcl", "fig14", "financial.popular_share=1 financial.popularity=0"),
    ("opfcl", "fig14", "financial.popular_share=1 financial.popularity=0 financial.used=180MiB"),
    ("opfcl", "fig14", "financial.settled=true"),
    ("opfcl", "fig14", "search.settled=true search.popular_share=1 search.used=276MiB"),
    (
        "opfcl",
        "fig14",
        "rwfcl.period=1000000000 exchange.popular_share=1 home.settled=true home.popularity=0 home.popular_share=1",
    ),
    (
        "opfcl",
        "fig15a",
        "search.settled=true search.popular_share=1 exchange.settled=true exchange.popular_share=1 msn.settled=true "
        "msn.popular_share=1",
    ),
    ("opfcl", "fig15a", "msn.popular_share=1"),
    ("opfcl", "fig15a", "opfcl.sequential_rule=as_long"),
    ("opfcl", "fig15a", "opfcl.sequential_rule=as_long search.used=172MiB"),
    ("opfcl", "fig15b", "opfcl.curve_keep=0.99"),
    ("opfcl", "fig15b", "opfcl.curve_keep=0.95"),
    ("opfcl", "fig15b", "msn.popular_share=1"),
    ("opfcl", "fig15b", "search.settled=true search.popular_share=1"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.5"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.25"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.2"),
    ("hyssd", "fig3", "hyssd.life_step_percent=0.1"),
    ("hyssd", "fig4", "hyssd.period=256 hyssd.timeout=256"),
    ("hyssd", "fig5", "hyssd.life_step_percent=0.25"),
    ("hyssd", "fig5a", "hyssd.period=256 hyssd.timeout=256"),
    ("hyssd", "fig5c", "hyssd.period=256 hyssd.timeout=256"),
    ("hyssd", "fig5c", "financial.popular_share=0"),
    ("hyssd", "fig5d", "exchange-third.popular_share=0.8"),
    ("wlaftl", "table3", "wlaftl.wear_compare=exact test2.footprint=0.2"),
    ("wlaftl", "table3", "wlaftl.keep_updates=false"),
    ("wlaftl", "table3", "wlaftl.threshold_max=16KiB"),
    (
        "wlaftl",
        "table3",
        "wlaftl.wear_compare=exact sys.theta=1.3 sys.small_space=0.6 test2.footprint=0.2 iotrace1.footprint=0.33 "
        "iotrace2.footprint=0.4 iotrace2.small_space=0.99 iotrace2.theta=1.2",
    ),
    ("wlaftl", "fig4", "wlaftl.keep_updates=false"),
    ("wlaftl", "fig4", "fin1.interval_us=1500"),
    (
        "wlaftl",
        "fig4",
        "wlaftl.mlc.spare=15% wlaftl.threshold_max=16KiB "
        + " ".join(f"{trace}.footprint=1 {trace}.small_space=1" for trace in OF_WLAFTL)
        + " "
        + " ".join(f"{trace}.theta={0.6 if trace == 'sys' else 0.99}" for trace in OF_WLAFTL),
    ),
    ("wlaftl", "fig4", "wlaftl.mlc.spare=4% fin1.footprint=1 fin1.small_space=1 fin1.theta=0.99"),
    ("wlaftl", "rivals", "wlaftl.cycle_time=laps_and_writes wlaftl.max_cycle_time=2"),
    (
        "wlaftl",
        "rivals",
        "comboftl.hot_percent=75 comboftl.chances_mode=fixed comboftl.chances=2 comboftl.early_migration=false "
        "comboftl.boundary_shift=false comboftl.detection=none",
    ),
    ("wlaftl", "rivals", "wlaftl.threshold_max=16KiB"),
    (
        "wlaftl",
        "rivals",
        "wlaftl.threshold_max=16KiB wlaftl.max_cycle_time=0 cftl.threshold_mode=fixed cftl.initial_threshold=32",
    ),
    (
        "wlaftl",
        "rivals",
        "wlaftl.threshold_max=16KiB wlaftl.max_cycle_time=0 cftl.threshold_mode=fixed cftl.initial_threshold=32 "
        "comboftl.threshold_mode=fixed comboftl.threshold=16KiB comboftl.detection=none",
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
HELD, NOT_HELD = "held", "not held"

Claim = dict[str, Any]


def command(paper: str, figure: str, settings: str) -> str:
    """Return the command of an experiment."""
    words = [word for one in settings.split() for word in ("--set", one)]
    return " ".join(["bimetal", "paper", paper, figure, "--quick", *words])


def reproduction() -> list[Claim]:
    """Return the claims without any setting."""
    claims: list[Claim] = json.loads((HERE / "reproduction.json").read_text(encoding="utf-8"))["claims"]
    return claims


def run() -> list[dict[str, Any]]:
    """Run every experiment. Return the results whose verdicts differ from those without the settings."""
    known = {tuple(claim[key] for key in KEYS): claim for claim in reproduction()}
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


def coverage(experiments: list[dict[str, Any]]) -> str:
    """Return how many results that do not hold have a setting with which they do, and a table of any others."""
    flipped = {
        (experiment["paper"], *(claim[key] for key in KEYS[1:]))
        for experiment in experiments
        for claim in experiment["claims"]
        if claim["verdict"] == HELD
    }
    results = [claim for claim in reproduction() if claim["kind"] == "result"]
    held = {tuple(claim[key] for key in KEYS) for claim in reproduction() if claim["verdict"] == HELD}
    failed = [claim for claim in results if claim["verdict"] == NOT_HELD]
    first = [claim for claim in failed if tuple(claim[key] for key in KEYS) not in flipped]
    others = [claim for claim in first if (*(claim[key] for key in KEYS[:3]), "calibrated") not in held | flipped]
    with_setting, on_calibrated = len(failed) - len(first), len(first) - len(others)
    summary = (
        f"Of {len(failed)} results that do not hold, {with_setting} hold with a setting in the tables above. "
        f"{on_calibrated} results of the first stand-ins hold on the calibrated ones, without a setting or with one."
    )
    if not others:
        return f"{summary} There are no others."
    heads = ["paper", "figure", "claim", "traces", "paper's figure", "measured", "reason"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for claim in others:
        cells = [claim[key] for key in (*KEYS, "expected", "measured", "reason")]
        lines.append(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |")
    table = "\n".join(lines)
    rest = "One other follows with its reason"
    if len(others) != 1:
        rest = f"The other {len(others)} follow with their reasons"
    return f"{summary} {rest}.\n\n{table}"


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
    before, rest = text.split("<!-- other results -->")
    after = rest.split("<!-- end of other results -->", 1)[1]
    page.write_text(
        f"{before}<!-- other results -->\n\n{coverage(experiments)}\n\n<!-- end of other results -->{after}",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
