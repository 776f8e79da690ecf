"""Every block of Python in the docs runs as printed; the blocks of a page run in order. Tables are up to date."""

import dataclasses
import inspect
import json
import re
import runpy
import typing
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from conftest import ROOT

import bimetal
from bimetal._record import Record, members

mpl.use("Agg")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def is_record(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Record)


def test_some_pages_have_blocks() -> None:
    found = {page.name for page in PAGES if BLOCK.search(page.read_text())}
    assert found >= {"README.md", "own-schemes.md", "python.md", "scripts.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name)
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate(BLOCK.findall(page.read_text())):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)
    plt.close("all")


@pytest.mark.parametrize("name", [name for name in bimetal.__all__ if is_record(getattr(bimetal, name))])
def test_help_has_every_attribute_of_a_record(name: str) -> None:
    record = getattr(bimetal, name)
    attributes = (inspect.getdoc(record) or "").partition("\n\nAttributes\n----------\n")[2]
    described = re.findall(r"^(\w+)\n    \S", attributes, re.MULTILINE)
    assert described == [field.name for field in dataclasses.fields(record)]


def test_records_of_results_are_public_and_in_the_reference() -> None:
    public = {name: getattr(bimetal, name) for name in bimetal.__all__}
    hints = [member.hint for record in public.values() if is_record(record) for member in members(record)]
    while any(map(typing.get_args, hints)):
        hints = [part for hint in hints for part in typing.get_args(hint) or (hint,)]
    assert {hint.__name__ for hint in hints if is_record(hint)} <= public.keys()
    reference = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^::: bimetal\.(\w+)$", reference, re.MULTILINE)} == {*public} - {"__version__"}


def test_experiments_are_those_of_the_reproduction() -> None:
    """The tables are made of the results, and these were compared with the reproduction in the docs."""
    folder = ROOT / "docs/papers"
    program = runpy.run_path(str(folder / "experiments.py"))
    experiments = json.loads((folder / "experiments.json").read_text(encoding="utf-8"))
    page = (folder / "experiments.md").read_text(encoding="utf-8")
    claims = json.loads((folder / "reproduction.json").read_text(encoding="utf-8"))["claims"]
    keys = ("paper", "figure", "claim", "stand_in")
    known = {tuple(claim[key] for key in keys): claim for claim in claims}
    made = [(experiment["paper"], experiment["command"]) for experiment in experiments]
    assert made == [
        (paper, program["command"](paper, figure, settings)) for paper, figure, settings in program["EXPERIMENTS"]
    ]
    for experiment in experiments:
        assert program["table"](experiments, experiment["paper"]) in page
        for claim in experiment["claims"]:
            before = known[experiment["paper"], claim["figure"], claim["claim"], claim["stand_in"]]
            assert (before["measured"], before["expected"]) == (claim["default"], claim["expected"])
            assert before["verdict"] != claim["verdict"]
    assert program["coverage"](experiments) in page
