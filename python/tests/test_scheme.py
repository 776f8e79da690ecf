"""Schemes in Python: the figures of a built-in one, what is counted, and what is said of wrong ones."""

import collections
import contextlib
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ROOT, without_speed

import bimetal
from bimetal import Media, OwnScheme, SchemeError, Shape

#: The blocks of the docs, which have the schemes that are tried here.
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/own-schemes.md").read_text(), re.MULTILINE | re.DOTALL)


def of_docs(name: str) -> type[OwnScheme]:
    names: dict[str, Any] = {}
    for block in BLOCKS:
        if "class Greedy" in block or f"class {name}" in block:
            exec(block.split("\n\n\nbimetal.check_scheme")[0], names)
    scheme: type[OwnScheme] = names[name]
    return scheme


Greedy = of_docs("Greedy")
Ring = of_docs("Ring")

#: One die whose pages are as large as the requests' unit, as full as to be collected all the time.
DEVICE = bimetal.Device.preset("chang-c3")
FULL: dict[str, str | int] = {"logical": "64MiB", "slow.capacity": "72MiB"}


@pytest.mark.parametrize("options", [{}, {"repeat": 2, "measure": 1}, {"fill": "none"}, {"arrivals": "closed:4"}])
def test_a_page_map_has_the_figures_of_the_built_in_one(trace: bimetal.Trace, options: dict[str, Any]) -> None:
    compared = bimetal.compare(trace, ["pagemap", Greedy], device=DEVICE, set=FULL, intervals=5, **options)
    built_in, own = without_speed(compared.to_dict())["results"]
    assert own["scheme"] == "greedy"
    assert built_in["write_amplification"] > 1.05 or options.get("fill") == "none"
    for interval in own["intervals"] + built_in["intervals"]:
        del interval["metrics"]
    assert {key for key in own if own[key] != built_in[key]} <= {"scheme", "device", "metrics", "relative"}


Counter = collections.Counter[tuple[str, str]]


class Counting:
    """Media that count what is asked of them."""

    def __init__(self, media: Media, counts: Counter) -> None:
        self.media, self.counts = media, counts

    def program(self, block: int, *, stream: int = 0) -> int:
        self.counts["program", "host"] += 1
        return self.media.program(block, stream=stream)

    def copy(self, place: int, block: int, *, cause: str = "gc", stream: int = 0) -> int:
        self.counts["read", cause] += 1
        self.counts["program", cause] += 1
        return self.media.copy(place, block, cause=cause, stream=stream)  # type: ignore[arg-type]

    def erase(self, block: int, *, slc: bool = False, cause: str = "gc") -> None:
        self.counts["erase", cause] += 1
        self.media.erase(block, slc=slc, cause=cause)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.media, name)


def counted(base: type[OwnScheme], trace: bimetal.Trace, **options: Any) -> tuple[bimetal.Result, Counter]:
    """Replay a scheme that counts what it asks for in its last run."""
    made: list[Counter] = []

    class Counted(base):  # type: ignore[misc, valid-type]
        def __init__(self, shape: Shape) -> None:
            super().__init__(shape)
            self.counts = Counter()
            made.append(self.counts)

        def write(self, media: Media, page: int) -> None:
            super().write(Counting(media, self.counts), page)

    result = bimetal.replay(trace, Counted, device=DEVICE, arrivals="closed", fill="none", **options)
    assert not result.addresses.compacted
    return result.result, made[-1]


def host_pages(trace: bimetal.Trace, page_sectors: int = 8) -> Counter:
    """Count the pages that the host writes and that are read for it, of a page map."""
    counts, with_data = Counter(), set[int]()
    columns = trace.to_arrays()
    for op, first, sectors in zip(*(columns[name].tolist() for name in ("op", "sector", "sectors")), strict=True):
        for page in range(first // page_sectors, (first + sectors - 1) // page_sectors + 1):
            is_whole = first <= page * page_sectors and (page + 1) * page_sectors <= first + sectors
            if op == 0 or (op == 1 and not is_whole):
                counts["read", "host"] += page in with_data
            if op == 1:
                counts["program", "host"] += 1
                with_data.add(page)
            elif op == 2 and is_whole:
                with_data.discard(page)
    return counts


def uneven(count: int, pages: int) -> bimetal.Trace:
    """Make requests that begin and end within pages, and some trims."""
    draw = random.Random(7)
    sector = [draw.randrange(pages * 8 - 64) for _ in range(count)]
    op = draw.choices([0, 1, 2], [3, 6, 1], k=count)
    sectors = [draw.randrange(1, 64) for _ in range(count)]
    return bimetal.Trace.from_arrays(time_ns=list(range(count)), op=op, sector=sector, sectors=sectors)


def test_operations_are_those_of_an_independent_count() -> None:
    trace = uneven(12_000, 64 * 256)
    result, counts = counted(Greedy, trace, set=FULL)
    of_host = host_pages(trace)
    assert counts["program", "host"] == of_host["program", "host"]
    assert counts["erase", "gc"] > 100
    assert of_host["read", "host"] > 10_000
    counts.update({("read", "host"): of_host["read", "host"]})
    assert {(op.op, op.cause): op.count for op in result.ops} == counts
    assert result.wear[0].erases_total == counts["erase", "gc"]


def test_pages_move_between_regions_of_other_flash_pages() -> None:
    trace = uneven(6_000, 64 * 256)
    sizes = {"fast.capacity": "8MiB", "logical": "64MiB", "slow.capacity": "80MiB"}
    result, counts = counted(Ring, trace, set=sizes)
    found = {(op.region, op.op, op.cause): op.count for op in result.ops}
    moved = counts["program", "migrate_down"]
    # A page is two flash pages of the fast region and one of the slow one.
    assert found["slc", "program", "host"] == 2 * host_pages(trace)["program", "host"]
    assert found["slc", "read", "migrate_down"] == 2 * moved
    assert found["mlc", "program", "migrate_down"] == moved == result.metrics["demoted_pages"]
    assert found["slc", "erase", "migrate_down"] == counts["erase", "migrate_down"] > 50


class Folding(OwnScheme):
    """Blocks in SLC mode take what is written, and are folded into others while the host is idle."""

    name = "folding"
    regions = "one, in two cell modes"

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.region = shape.regions[0]
        self.slc_pages = self.region.slc_pages_per_block
        self.erased = collections.deque(self.region.blocks)
        self.native: list[int] = []
        self.slc: list[int] = []
        self.into: int | None = None
        self.idled = self.trimmed = 0

    def write(self, media: Media, page: int) -> None:
        if not self.slc or media.room(self.slc[-1]) == 0:
            while len(self.slc) > 2 or len(self.erased) < 4:
                self.make_room(media)
            block = self.erased.popleft()
            media.erase(block, slc=True, cause="fold")
            assert media.room(block) == self.slc_pages < self.region.pages_per_block
            self.slc.append(block)
        media.program(self.slc[-1], stream=1)

    def make_room(self, media: Media) -> None:
        victims = self.slc[:-1] or self.native
        if len(self.erased) < 4 and self.native:
            victims = sorted(self.native, key=media.valid)
        victim = victims[0]
        (self.slc if victim in self.slc else self.native).remove(victim)
        for place in media.places(victim):
            if self.into is None or media.room(self.into) == 0:
                self.native += [] if self.into is None else [self.into]
                self.into = self.erased.popleft()
                media.erase(self.into, cause="fold")
            assert media.page(place) is not None
            media.copy(place, self.into, cause="fold", stream=2)
        self.erased.append(victim)

    def idle(self, media: Media, pages: int) -> None:
        self.idled += 1
        if len(self.slc) > 1 and pages > self.slc_pages:
            self.make_room(media)

    def trim(self, media: Media, page: int) -> None:
        assert media.place(page) is None
        assert media.request is not None
        assert media.request.op == "trim"
        self.trimmed += 1

    def figures(self) -> dict[str, float]:
        return {"idle_periods": self.idled, "trims": self.trimmed, "slc_blocks": len(self.slc)}


def test_blocks_change_their_mode_and_idle_time_is_used(trace: bimetal.Trace) -> None:
    bimetal.check_scheme(Folding, requests=300)
    result = bimetal.replay(trace, Folding, arrivals="trace:0.01").result
    assert any((op.op, op.cause) == ("program", "fold") for op in result.ops)
    assert (result.metrics["idle_periods"] or 0) > 0
    assert {stream.stream for stream in result.streams} >= {1}
    assert bimetal.replay(uneven(500, 2000), Folding).result.metrics["trims"]


def test_a_class_is_a_row_like_any_other(trace: bimetal.Trace, tmp_path: Any) -> None:
    options: dict[str, Any] = {"repeat": 2, "measure": 1, "seeds": 2, "intervals": 4}
    compared = bimetal.compare(trace, ["pagemap", Greedy, Ring, "chang"], jobs=3, **options)
    assert [result.scheme for result in compared.results] == ["pagemap", "greedy", "ring", "chang"]
    again = bimetal.compare(trace, ["pagemap", Greedy, Ring, "chang"], jobs=1, **options)
    assert without_speed(again.to_dict()) == without_speed(compared.to_dict())
    assert {"greedy", "ring"} <= set(compared.to_pandas()["scheme"])
    assert "ring" in str(compared)
    assert "demoted_pages" in set(compared.to_pandas("metrics")["metric"])
    compared.html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "greedy" in page
    assert "Greedy, Ring" in page, "the call that makes it again"
    everything = bimetal.compare(trace, ["all", Greedy])
    assert {"greedy", "pagemap", "hyssd"} <= {result.scheme for result in everything.results}
    assert not {"greedy", "ring"} & {scheme.name for scheme in bimetal.schemes()}


class Wrong(Greedy):  # type: ignore[misc, valid-type]
    name = "wrong"
    writes = 0

    def write(self, media: Media, page: int) -> None:
        self.writes += 1
        if self.writes == 10:
            self.err(media, page)
        super().write(media, page)

    def err(self, media: Media, page: int) -> None: ...


def broken(err: Callable[[Any, Media, int], object]) -> type[OwnScheme]:
    return type("Broken", (Wrong,), {"err": err})


def overfill(scheme: Any, media: Media, page: int) -> None:
    while True:
        media.pad(scheme.erased[-1])


def collect_for_ever(scheme: Any, media: Media, page: int) -> None:
    while True:
        media.erase(scheme.erased[-1])


def swallow(scheme: Any, media: Media, page: int) -> None:
    with contextlib.suppress(SchemeError):
        media.erase(10**6)


WRONG = {
    "a full block": (overfill, r"block \d+ has no free page"),
    "endless": (collect_for_ever, r"more than \d+ operations in one call"),
    "no such block": (lambda self, media, page: media.program(10**6), r"there is no block 1000000: blocks are 0 to"),
    "no such place": (lambda self, media, page: media.copy(2**32 - 1, 0), r"there is no block"),
    "negative": (lambda self, media, page: media.program(-1), r"OverflowError: "),
    "not programmed": (lambda self, media, page: media.copy(127, 0), r"page 127 of block 0\) is not programmed"),
    "lost": (lambda self, media, page: media.erase(0), r"block 0 holds the only copy of page 0"),
    "no read": (lambda self, media, page: media.read(0), r"the host has not asked for a page"),
    "no mode": (lambda self, media, page: media.erase(10, slc=True), r"has no SLC mode"),
    "no cause": (lambda self, media, page: media.erase(10, cause="fun"), r"there is no cause `fun`; there are: host"),
    "no stream": (lambda self, media, page: media.program(0, stream=16), r"there is no stream 16"),
    "swallowed": (swallow, r"there is no block 1000000"),
    "raised": (lambda self, media, page: {}[page], r"KeyError: 9"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_write_is_an_error_that_says_where(case: str) -> None:
    err, message = WRONG[case]
    sector = list(range(0, 240, 8))
    trace = bimetal.Trace.from_arrays(time_ns=list(range(30)), op=[1] * 30, sector=sector, sectors=[8] * 30)
    device = DEVICE if case != "no mode" else bimetal.Device.preset("chang-c3")
    settings = FULL if case != "no mode" else FULL | {"slow.chip": "chang-slc"}
    with pytest.raises(SchemeError, match=message) as caught:
        bimetal.replay(trace, broken(err), device=device, set=settings, fill="none", arrivals="closed")
    # Pages of that chip are half as large.
    request = 4 if case == "no mode" else 9
    where = f"request {request} (write of 8 sectors at sector {8 * request}), page 9: "
    assert str(caught.value).startswith(f"`wrong`, {where}")
    assert (caught.value.__cause__ is None) == (case == "swallowed")


class NoProgram(Wrong):
    def write(self, media: Media, page: int) -> None: ...


class NoRead(Greedy):  # type: ignore[misc, valid-type]
    def read(self, media: Media, page: int) -> None: ...


class OtherPage(Greedy):  # type: ignore[misc, valid-type]
    def read(self, media: Media, page: int) -> None:
        place = media.place(page)
        assert place is not None
        media.read(place - 1 if place else place + 1)


class OldPage(Greedy):  # type: ignore[misc, valid-type]
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.map: dict[int, int] = {}

    def write(self, media: Media, page: int) -> None:
        super().write(media, page)
        self.map.setdefault(page, media.place(page) or 0)

    def read(self, media: Media, page: int) -> None:
        media.read(self.map[page])


class Keeps(Greedy):  # type: ignore[misc, valid-type]
    media: Media | None = None

    def write(self, media: Media, page: int) -> None:
        self.media = media
        super().write(media, page)

    def figures(self) -> dict[str, float]:
        return {} if self.media is None else {"place": self.media.pad(self.erased[-1])}


class OtherFigures(Greedy):  # type: ignore[misc, valid-type]
    calls = 0

    def figures(self) -> dict[str, float]:
        self.calls += 1
        return {f"figure{self.calls}": 1.0}


class UsesMedia(Keeps):
    """A scheme whose figures use the media of an earlier call, and catch what is said of it."""

    def figures(self) -> dict[str, float]:
        if self.media is not None:
            with contextlib.suppress(SchemeError):
                self.media.erase(0)
        return {"blocks": 1.0}


class NoFigure(Greedy):  # type: ignore[misc, valid-type]
    def figures(self) -> dict[str, float]:
        return {"share": float("nan")}


class NoDevice(Greedy):  # type: ignore[misc, valid-type]
    def __init__(self, shape: Shape) -> None:
        raise ValueError("the moon is full")


class Idles(Greedy):  # type: ignore[misc, valid-type]
    def idle(self, media: Media, pages: int) -> None:
        media.program(0)


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (NoProgram, r"`wrong`, when the device was filled, page 0: it returned, and page 0 is in no block; hint: "),
        (NoRead, r"`greedy`, request \d+ \(read .*page \d+: it returned, and page \d+ was not read"),
        (OtherPage, r"the host asks for page \d+, and place \d+ .* holds page \d+"),
        (OldPage, r"the host asks for page \d+, and place \d+ .* holds (an old copy of it|page \d+|no page)"),
        (Keeps, r"`greedy`, in `figures`: the media are used outside of a call"),
        (OtherFigures, r"it told of figure2, and before of figure1"),
        (UsesMedia, r"`greedy`, in `figures`: the media are used outside of a call of the scheme"),
        (NoFigure, r"`share` is nan"),
        (NoDevice, r"`greedy`, when it was made: ValueError: the moon is full"),
        (Idles, r"`greedy`, idle before request \d+: only `write` and `fill` program"),
        (OwnScheme, r"NotImplementedError: `OwnScheme` has no `write`"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_wrong_scheme_is_an_error(scheme: type[OwnScheme], message: str, trace: bimetal.Trace) -> None:
    with pytest.raises(SchemeError, match=message):
        bimetal.compare(trace, ["pagemap", scheme], arrivals="trace:0.001", jobs=2, set=FULL, device=DEVICE)
    with pytest.raises(SchemeError, match=scheme.name or scheme.__name__):
        bimetal.replay(trace, scheme, intervals=3, arrivals="trace:0.001", set=FULL, device=DEVICE)
    with pytest.raises(SchemeError, match=scheme.name or scheme.__name__):
        bimetal.check_scheme(scheme)


def test_figures_may_change_while_they_are_read(trace: bimetal.Trace) -> None:
    class Value:
        def __init__(self, figures: dict[str, Any]) -> None:
            self.figures = figures

        def __float__(self) -> float:
            self.figures.update(dict.fromkeys(map(str, range(1000)), 2.0))
            return 1.0

    class Changes(Greedy):  # type: ignore[misc, valid-type]
        def figures(self) -> dict[str, Any]:
            figures: dict[str, Any] = {}
            figures |= {"a": Value(figures), "b": Value(figures)}
            return figures

    assert bimetal.replay(trace, Changes).result.metrics == {"a": 1.0, "b": 1.0}


def test_the_cause_has_the_line_that_raised(trace: bimetal.Trace) -> None:
    def err(self: object, media: Media, page: int) -> None:
        raise ZeroDivisionError("here")

    with pytest.raises(SchemeError) as caught:
        bimetal.replay(trace, broken(err), fill="none")
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    step = cause.__traceback__
    names = []
    while step is not None:
        names.append(step.tb_frame.f_code.co_name)
        step = step.tb_next
    assert names == ["write", "err"]


def test_a_scheme_that_does_not_repeat_itself_is_found() -> None:
    shared = random.Random(1)

    class Dice(Greedy):  # type: ignore[misc, valid-type]
        def write(self, media: Media, page: int) -> None:
            if shared.random() < 0.01:
                self.collect(media)
            super().write(media, page)

    with pytest.raises(SchemeError, match="lead to other operations the second time"):
        bimetal.check_scheme(Dice)

    class Seeded(Greedy):  # type: ignore[misc, valid-type]
        def __init__(self, shape: Shape) -> None:
            super().__init__(shape)
            self.random = random.Random(shape.seed)

        def write(self, media: Media, page: int) -> None:
            if len(self.erased) > 1 and self.random.random() < 0.01:
                self.collect(media)
            super().write(media, page)

    bimetal.check_scheme(Seeded, requests=200)


def test_names_are_checked(trace: bimetal.Trace) -> None:
    def named(name: str, **members: object) -> Any:
        return type("Named", (Greedy,), {"name": name, **members})

    for scheme, message in [
        (named("pagemap"), "there are two schemes of the name `pagemap`"),
        (named("all"), "no name of a scheme"),
        (named("a b"), "no name of a scheme"),
        (named("x", regions="two"), "`x`: `regions` is `two`; for a scheme in Python it is one of `one`, `fast and"),
        (named("x", regions="one, over disks"), "`regions` is `one, over disks`"),
        (dict, "no scheme; hint"),
        (Greedy.__new__(Greedy), "no scheme; hint"),
    ]:
        with pytest.raises(SchemeError, match=re.escape(message)):
            bimetal.compare(trace, scheme)
    with pytest.raises(SchemeError, match="two schemes of the name `greedy`"):
        bimetal.compare(trace, [Greedy, named("greedy")])
    assert bimetal.replay(trace, named("")).result.scheme == "Named"
    with pytest.raises(SchemeError, match="there is no scheme `greedy`"):
        bimetal.replay(trace, "greedy")


def test_what_runs_schemes_by_name_refuses_a_class(trace: bimetal.Trace) -> None:
    message = "`Greedy`: {} runs schemes by name, not classes of Python; hint: `bimetal.compare`"
    with pytest.raises(SchemeError, match=message.format("a sweep")):
        bimetal.sweep({"grids": [{"scheme": ["pagemap", Greedy]}]})
    with pytest.raises(SchemeError, match=message.format("advice")):
        bimetal.advise(trace, mean="1ms", schemes=["pagemap", Greedy])  # type: ignore[list-item]
    with pytest.raises(SchemeError, match=message.format("advice")):
        bimetal.advise(trace, mean="1ms", schemes=Greedy)  # type: ignore[arg-type]


def test_runs_of_one_class_at_the_same_time_are_refused(trace: bimetal.Trace) -> None:
    raised: list[SchemeError] = []

    def nested(self: object, media: Media, page: int) -> None:
        try:
            bimetal.replay(trace, type("Again", (Greedy,), {"name": "wrong"}))
        except SchemeError as error:
            raised.append(error)

    bimetal.replay(trace, broken(nested), arrivals="closed")
    assert "two schemes of the name `wrong`" in str(raised[0])
