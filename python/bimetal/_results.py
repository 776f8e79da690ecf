"""What replays measured. Units are in the names; shares are from 0 to 1; ``None`` is what is not defined."""

from __future__ import annotations

import dataclasses
import html
import itertools
import json
import os
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bimetal import _core
from bimetal._device import Device
from bimetal._errors import BimetalError
from bimetal._record import OMITTED, Record
from bimetal._tables import Columns, Table, columns, html_table, numbered, to_arrow, to_pandas
from bimetal._trace import TraceFacts

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import pyarrow


@dataclasses.dataclass(frozen=True)
class Addresses(Record):
    """Where the trace's addresses lie on the devices."""

    #: Whether the touched extents were moved next to each other.
    compacted: bool
    #: 64-KiB extents that reads and writes touch.
    touched_extents: int
    #: End of the address space in the trace.
    span_bytes: int
    #: End of the address space as replayed.
    replayed_span_bytes: int


@dataclasses.dataclass(frozen=True)
class ReplayFacts(Record):
    """How a trace was replayed."""

    #: ``closed:DEPTH`` or ``trace:SPEED``.
    arrivals: str
    #: Whether each scheme was also replayed one request at a time, for service times.
    service: bool
    #: How often the trace was replayed.
    passes: int
    #: How many of the last passes were measured.
    measured_passes: int
    #: Whether the devices were filled before.
    filled: bool


@dataclasses.dataclass(frozen=True)
class Responses(Record):
    """Response times in microseconds; all 0 where ``count`` is 0."""

    #: Number of requests.
    count: int
    #: Mean, exact.
    mean: float
    #: Median; percentiles have three significant digits.
    p50: float
    #: 95th percentile.
    p95: float
    #: 99th percentile.
    p99: float
    #: 99.9th percentile.
    p999: float
    #: Longest, exact.
    max: float


@dataclasses.dataclass(frozen=True)
class Load(Record):
    """What was asked of a device, and whether it was too much."""

    #: What was busiest: a region's dies, its channels, a disk, or the ``device``.
    bottleneck: str
    #: Share of the simulated time for which that worked.
    utilisation: float
    #: Open loop: how much longer the device took than the trace, in seconds.
    backlog_s: float
    #: Mean responses of the first to the last eighth of the measured requests, in microseconds.
    response_trend_us: tuple[float, ...]
    #: ``none``, ``bursts`` or ``growing``: whether responses measure the queue more than the device.
    overload: str


@dataclasses.dataclass(frozen=True)
class Operations(Record):
    """One kind of operation, for one cause, in one region and cell mode."""

    #: Region or disk; where a region's blocks ran with one bit per cell, with ``:slc`` behind its name.
    region: str
    #: ``read``, ``program`` or ``erase``; of a disk ``read`` or ``write``.
    op: str
    #: Why: ``host``, ``gc``, ``fold``, ``migrate_up`` and so on.
    cause: str
    #: How often.
    count: int
    #: Bytes of the pages or blocks.
    bytes: int
    #: Array and channel time, in microseconds; of a disk the time of the accesses.
    time_us: float


@dataclasses.dataclass(frozen=True)
class Stream(Record):
    """Page programs of one stream in one region and cell mode: of a reclaim unit handle, in the words of NVMe's FDP."""

    #: Region; where its blocks ran with one bit per cell, with ``:slc`` behind its name.
    region: str
    #: Number of the stream, from 0 on.
    stream: int
    #: Pages that came from outside of the region: from the host, or from another region.
    written_pages: int
    #: Pages that were copied to it within the region: by garbage collection, folding or wear levelling.
    copied_pages: int
    #: Sum of the two by the former; none where nothing came from outside, as in a stream for copies.
    write_amplification: float | None


@dataclasses.dataclass(frozen=True)
class EraseBin(Record):
    """Blocks by how often they were erased."""

    #: Fewest erases of such a block; ``from`` in JSON.
    from_: int
    #: Most erases of such a block.
    to: int
    #: Number of blocks.
    blocks: int


@dataclasses.dataclass(frozen=True)
class Wear(Record):
    """Erase counts of a region."""

    #: Region. Blocks that stay in SLC mode for good are listed by themselves, with ``:slc`` behind its name.
    region: str
    #: Number of blocks.
    blocks: int
    #: Sum of erase counts.
    erases_total: int
    #: Mean erase count.
    erases_mean: float
    #: Highest erase count.
    erases_max: int
    #: Standard deviation of the erase counts.
    erases_stddev: float
    #: Cycles that a block lasts.
    endurance: float
    #: Share of the region's life that is used up.
    used: float
    #: How many blocks were erased how often.
    erase_counts: tuple[EraseBin, ...]


@dataclasses.dataclass(frozen=True)
class IntervalOps(Record):
    """Operations of a region and cell mode within an interval."""

    #: Region.
    region: str
    #: Page reads.
    read: int
    #: Page programs.
    program: int
    #: Block erases.
    erase: int


@dataclasses.dataclass(frozen=True)
class IntervalAccesses(Record):
    """Accesses to a disk within an interval."""

    #: The disk.
    disk: str
    #: Reads.
    read: int
    #: Writes.
    write: int


@dataclasses.dataclass(frozen=True)
class Interval(Record):
    """A stretch of the measured passes."""

    #: Measured requests up to its end.
    requests: int
    #: Simulated time at its end, in seconds since measuring started.
    end_s: float
    #: Mean response within it, in microseconds.
    response_mean_us: float
    #: Longest response within it, in microseconds.
    response_max_us: float
    #: Operations within it.
    ops: tuple[IntervalOps, ...]
    #: The scheme's own figures at its end, in the order of ``Result.metrics``.
    metrics: tuple[float | None, ...]
    #: Accesses within it, by disk.
    disks: tuple[IntervalAccesses, ...] = dataclasses.field(default=(), metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Faults(Record):
    """Failures of a region."""

    #: Region.
    region: str
    #: Programs that failed.
    program_failures: int
    #: Erases that failed.
    erase_failures: int
    #: Blocks replaced, factory-bad ones included.
    blocks_replaced: int
    #: Failures for which no replacement block was left.
    failures_unreplaced: int


@dataclasses.dataclass(frozen=True)
class RegionFacts(Record):
    """What a region amounts to."""

    #: Name.
    name: str
    #: Name of the part.
    chip: str
    #: Raw capacity.
    capacity_bytes: int
    #: Blocks.
    blocks: int
    #: Bytes of a block.
    block_bytes: int
    #: Dies, over all channels.
    dies: int
    #: Channels.
    channels: int
    #: Bits per cell: ``slc``, ``pslc``, ``mlc``, ``tlc`` or ``qlc``.
    cell: str
    #: Year of the part; none if the catalogue does not have it.
    year: int | None
    #: Year of the catalogue's price; none if the price is another.
    price_year: int | None
    #: Share of the simulated time in which its dies worked.
    busy: float


@dataclasses.dataclass(frozen=True)
class DiskFacts(Record):
    """What a home disk amounts to."""

    #: Name.
    name: str
    #: Name of the drive.
    drive: str
    #: How the time of its accesses was found: ``constant`` or ``mechanical``.
    model: str
    #: How much of the logical capacity is on it.
    capacity_bytes: int
    #: Share of the simulated time in which it worked.
    busy: float
    #: What it took, in joules, while it span and waited.
    idle_j: float


@dataclasses.dataclass(frozen=True)
class Relative(Record):
    """A scheme beside the first one of a comparison."""

    #: The first scheme.
    to: str
    #: Its total response by this one's: Chang's RS.
    response_speedup: float | None
    #: This one's energy by its: Chang's ES.
    energy: float | None
    #: The price of this one's flash by that of its: Chang's EC.
    cost: float | None


@dataclasses.dataclass(frozen=True)
class Spread(Record):
    """The mean response over several seeds: that of the device, the next one, and so on."""

    #: How many seeds were run.
    seeds: int
    #: Lowest mean response, in microseconds.
    min_us: float
    #: Highest mean response, in microseconds.
    max_us: float
    #: Mean of the mean responses, in microseconds.
    mean_us: float


@dataclasses.dataclass(frozen=True)
class Speed(Record):
    """How fast the simulation was: the only figures that differ from run to run."""

    #: Time of all passes, in seconds.
    wall_s: float
    #: Requests by that.
    requests_per_s: float
    #: Flash page reads and programs by that.
    page_ops_per_s: float


@dataclasses.dataclass(frozen=True, repr=False)
class Result(Record):
    """One scheme on one device."""

    #: Registry name.
    scheme: str
    #: Responses of reads and writes, in microseconds.
    response_us: Responses
    #: Responses of reads, in microseconds.
    read_us: Responses
    #: Responses of writes, in microseconds.
    write_us: Responses
    #: Simulated time of the measured passes, in seconds.
    simulated_s: float
    #: What was asked of the device, and whether it was too much.
    load: Load
    #: Operations by region, mode, operation and cause; only those that took place.
    ops: tuple[Operations, ...]
    #: Page programs by region, mode and stream; only streams that were used.
    streams: tuple[Stream, ...]
    #: Erase counts by region.
    wear: tuple[Wear, ...]
    #: Bytes programmed into flash, for whatever cause, per byte that the host wrote.
    write_amplification: float | None
    #: Energy of all operations, in joules.
    energy_j: float
    #: Price of all flash, spare area included, and of as much of a disk as data are on, in US dollars.
    cost_usd: float
    #: Bytes that the host can write until the first region's mean erase count reaches its endurance.
    lifetime_host_bytes: float | None
    #: The same in years at the rate at which the trace writes.
    lifetime_years: float | None
    #: The scheme's own figures.
    metrics: dict[str, float | None]
    #: The controller's figures; none on a device without one.
    controller: dict[str, float | None]
    #: Figures over time, as many as were asked for.
    intervals: tuple[Interval, ...]
    #: Failures by region; only regions in which something failed.
    faults: tuple[Faults, ...]
    #: When requests arrived in the replay of these figures: ``closed:DEPTH`` or ``trace:SPEED``.
    arrivals: str
    #: How much longer the device took than the trace, in seconds; 0 in a closed loop.
    backlog_s: float
    #: Service times of reads and writes, one request at a time, in microseconds; none where there was no such replay.
    service_us: Responses | None
    #: Service times of reads, in microseconds.
    service_read_us: Responses | None
    #: Service times of writes, in microseconds.
    service_write_us: Responses | None
    #: How many times the host wrote the logical capacity: what lifetimes are extrapolated from.
    lifetime_overwrites: float
    #: The device in full, as configured: it can be replayed on again.
    device: Device
    #: What the regions amount to.
    regions: tuple[RegionFacts, ...]
    #: What the home disks amount to.
    disks: tuple[DiskFacts, ...]
    #: Capacity of the slow region beyond the logical capacity, as a share of it.
    spare: float
    #: Wear of the fast region by that of the slow one: Chang's BW.
    block_wearing: float | None
    #: Share of life used of the more worn region by that of the other: WLAFTL's Φ.
    phi: float | None
    #: Beside the first scheme of the comparison; none for that one itself.
    relative: Relative | None
    #: What was rounded or adapted.
    notes: tuple[str, ...]
    #: How fast the simulation was.
    speed: Speed
    #: How the mean response differs from seed to seed, where more than one was run.
    spread: Spread | None = dataclasses.field(default=None, metadata=OMITTED)

    def __repr__(self) -> str:
        """Scheme, mean response and write amplification."""
        mean = "falls behind" if self.load.overload == "growing" else f"mean response {self.response_us.mean:,.4g} µs"
        if self.service_us is not None:
            mean = f"mean service time {self.service_us.mean:,.4g} µs, {mean}"
        figures = f"{mean}, write amplification {self.write_amplification}"
        return f"<Result {self.scheme!r}, {figures}>"


def _divisions(texts: Iterable[str]) -> str:
    return "".join(f"<div>{html.escape(text)}</div>" for text in texts)


@dataclasses.dataclass(frozen=True)
class _Shown:
    """The tables of a comparison as people read them."""

    verdict: list[str]
    headline: Table
    lines: list[str]
    remarks: list[str]
    order: list[int]
    operations: list[Table]
    wear: list[Table]


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Record):
    """Schemes side by side on the same requests: the object that ``--json`` writes."""

    #: Version of Bimetal.
    bimetal: str
    #: The trace.
    trace: TraceFacts
    #: Where its addresses lie on the devices.
    addresses: Addresses
    #: How it was replayed.
    replay: ReplayFacts
    #: What to know before trusting a figure.
    warnings: tuple[str, ...]
    #: One entry for each scheme, in the order in which they were asked for; what is shown has the best first.
    results: tuple[Result, ...]

    @classmethod
    def _of(cls, core: _core.Comparison, command: str) -> Self:
        made = cls._from_dict(json.loads(core.json()))
        texts = (core.verdict(), core.headline(), core.lines(), core.remarks())
        shown = _Shown(*texts, core.order(), core.operations(), core.wear())
        made.__dict__.update(_core=core, _command=command, _shown=shown)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what a report is made from: it is large, and of this process."""
        return {name: value for name, value in self.__dict__.items() if name != "_core"}

    def __getitem__(self, scheme: str) -> Result:
        """Return the result of a scheme."""
        for result in self.results:
            if result.scheme == scheme:
                return result
        raise KeyError(scheme)

    def html(self, path: str | os.PathLike[str]) -> None:
        """Write a report: one file with plots and tables that opens offline, as ``--html`` does.

        Figures over time are in it where ``intervals`` was asked for; 60 are usual.
        """
        core: _core.Comparison | None = self.__dict__.get("_core")
        if core is None:
            raise BimetalError("the report of a result from another process cannot be made; hint: make it there")
        Path(path).write_text(core.html(self.__dict__["_command"]), encoding="utf-8")

    def _columns(self, table: str) -> Columns:
        records = {"ops": Operations, "wear": Wear, "regions": RegionFacts, "intervals": Interval}
        if table == "results":
            return columns(Result, self.results)
        if table == "metrics":
            figures = [(result.scheme, *figure) for result in self.results for figure in result.metrics.items()]
            names = {"scheme": str, "metric": str, "value": float}
            return {name: (kind, [row[at] for row in figures]) for at, (name, kind) in enumerate(names.items())}
        if table not in records:
            raise ValueError(f"there is no table {table!r}; there are: {', '.join(['results', *records, 'metrics'])}")
        return numbered(records[table], [(result.scheme, getattr(result, table)) for result in self.results])

    def to_arrow(self, table: str = "results") -> pyarrow.Table:
        """Return a pyarrow Table: ``results`` has a row for each scheme.

        ``ops``, ``wear``, ``regions``, ``intervals`` and ``metrics`` have the rows of each scheme one after the other.
        """
        return to_arrow(self._columns(table))

    def to_pandas(self, table: str = "results") -> pandas.DataFrame:
        """Return a pandas DataFrame of the same rows as :meth:`to_arrow`."""
        return to_pandas(self._columns(table))

    def plot(self, figure: str = "response", *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw schemes side by side, in the order of the table.

        ``response`` has service times too where there are any; the others are ``operations``, ``write_amplification``,
        ``life`` and ``cost``.
        """
        from bimetal import _plot

        shown: _Shown = self.__dict__["_shown"]
        return _plot.comparison([self.results[at] for at in shown.order], self.trace.name, figure, ax)

    def __repr__(self) -> str:
        """Return the table of ``bimetal compare``."""
        shown: _Shown = self.__dict__["_shown"]
        remarks = (textwrap.wrap(remark, 78, break_on_hyphens=False) for remark in shown.remarks)
        verdict, legend = ([f"  {line}" for line in lines] for lines in (shown.verdict, itertools.chain(*remarks)))
        return "\n".join([self._title(), *verdict, *shown.lines, *legend])

    def _repr_html_(self) -> str:
        shown: _Shown = self.__dict__["_shown"]
        before = _divisions(filter(None, [self._title(), " ".join(shown.verdict)]))
        return f"{before}{html_table(shown.headline)}{_divisions([*shown.remarks, *self.warnings])}"

    def _title(self) -> str:
        trace, replay = self.trace, self.replay
        passes = f", {replay.passes} passes, {replay.measured_passes} measured" if replay.passes > 1 else ""
        both = " and closed:1" if replay.service and replay.arrivals != "closed:1" else ""
        return f"{trace.name}: {trace.requests:,} requests, {replay.arrivals}{both}{passes}"


@dataclasses.dataclass(frozen=True, repr=False)
class Replay(Comparison):
    """One scheme in full: a comparison of one."""

    @property
    def result(self) -> Result:
        """The only entry."""
        return self.results[0]

    def plot(self, figure: str = "response", *, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw figures over time: ``response``, ``operations``, or one of the scheme's own ``metrics`` by its name."""
        from bimetal import _plot

        return _plot.over_time(self, figure, ax)

    def _repr_html_(self) -> str:
        shown: _Shown = self.__dict__["_shown"]
        metrics = [[name, "–" if value is None else f"{value:,.4g}"] for name, value in self.result.metrics.items()]
        tables = [
            ("Operations", shown.operations[0]),
            ("Wear", shown.wear[0]),
            ("The scheme's own figures", (["figure", "value"], metrics)),
        ]
        parts = (f"<h4>{title}</h4>{html_table(table)}" for title, table in tables if table[1])
        return Comparison._repr_html_(self) + "".join(parts)
