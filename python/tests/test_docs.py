"""Every block of Python in the docs runs as printed; the blocks of a page run in order."""

import re
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
from conftest import ROOT

mpl.use("Agg")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


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
