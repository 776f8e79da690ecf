"""Progress of comparisons and of reproductions."""

from __future__ import annotations

import pytest

import bimetal

#: Short, since only calls are counted.
TRACE = bimetal.Trace.generate("zipf", set={"requests": 200, "span": "1MiB"})


def test_a_comparison_tells_how_many_schemes_are_done() -> None:
    told: list[tuple[int, int]] = []
    schemes = ["pagemap", "chang", "pslc-static"]
    bimetal.compare(TRACE, schemes, progress=lambda done, of: told.append((done, of)))
    assert sorted(told) == [(1, 3), (2, 3), (3, 3)]


def test_a_reproduction_tells_how_many_replays_are_done() -> None:
    told: list[tuple[int, int]] = []
    bimetal.paper("hyssd", on=TRACE, progress=lambda done, of: told.append((done, of)))
    assert max(told)[0] == max(told)[1] > 1
    assert all(done <= of for done, of in told)


def end(_done: int, _of: int) -> None:
    raise LookupError("enough")


def test_an_exception_of_the_function_ends_the_work() -> None:
    with pytest.raises(LookupError, match="enough"):
        bimetal.compare(TRACE, ["pagemap"], progress=end)
    with pytest.raises(LookupError, match="enough"):
        bimetal.paper("hyssd", on=TRACE, progress=end)
    with pytest.raises(LookupError, match="enough"):
        bimetal.paper("chang", "fig8", quick=True, progress=end)
