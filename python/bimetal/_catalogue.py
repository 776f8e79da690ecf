"""What there is: schemes, parts, devices, trace formats, workloads, papers."""

from __future__ import annotations

import dataclasses
import json
from typing import TypeVar

from bimetal import _core
from bimetal._device import Device
from bimetal._record import OMITTED, Record

_Item = TypeVar("_Item", bound=Record)


@dataclasses.dataclass(frozen=True)
class Parameter(Record):
    """A parameter of a scheme or workload."""

    #: Key of ``set``.
    name: str
    #: Meaning, unit and source.
    summary: str
    #: Default value, as it would be written.
    default: str
    #: Values that are accepted.
    accepts: str


@dataclasses.dataclass(frozen=True)
class Scheme(Record):
    """A management scheme."""

    #: Registry name.
    name: str
    #: What it is, in a line.
    summary: str
    #: The paper, or what else defines it.
    source: str
    #: The regions that it manages, in words.
    regions: str
    #: Its parameters.
    parameters: tuple[Parameter, ...]


@dataclasses.dataclass(frozen=True)
class SlcMode(Record):
    """A part run with one bit per cell."""

    #: Pages of a block in this mode.
    pages_per_block: int
    #: Page read, in microseconds.
    read_us: float
    #: Page program, in microseconds.
    program_us: float
    #: Block erase, in microseconds.
    erase_us: float
    #: Cycles that a block lasts in this mode.
    endurance: int


@dataclasses.dataclass(frozen=True)
class Chip(Record):
    """A flash part."""

    #: Name in device files.
    name: str
    #: What it is, in a line.
    summary: str
    #: ``slc``, ``pslc``, ``mlc``, ``tlc`` or ``qlc``.
    cell: str
    #: Bytes of a page, without its spare area.
    page_bytes: int
    #: Bytes of a page's spare area.
    spare_bytes: int
    #: Pages of a block.
    pages_per_block: int
    #: Page read, in microseconds.
    read_us: float
    #: Page program, in microseconds.
    program_us: float
    #: Block erase, in microseconds.
    erase_us: float
    #: Channel rate in MB/s; 0 where the times above include the transfer.
    bus_mb_per_s: float
    #: Cycles that a block lasts.
    endurance: int
    #: Supply voltage.
    supply_v: float
    #: Current while an operation runs, in milliamperes.
    current_ma: float
    #: Price per GiB in US dollars.
    usd_per_gib: float
    #: Where the figures come from.
    source: str
    #: Copy of a page within its die, in microseconds, where it has that.
    copyback_us: float | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Planes of a die that work together, where there is more than one.
    planes: int | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Pages of a plane that one program writes, where that is more than one.
    program_pages: int | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Pages of different planes that a die reads at once, each at its own place, where that is more than one.
    independent_reads: int | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Time to suspend a program or an erase for a read, in microseconds, where that is possible.
    suspend_us: float | None = dataclasses.field(default=None, metadata=OMITTED)
    #: The part run with one bit per cell, where it can be.
    slc_mode: SlcMode | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Mechanics(Record):
    """What a drive's access times come from."""

    #: Revolutions in a minute.
    rpm: int
    #: Positions of the arm.
    cylinders: int
    #: Surfaces with data.
    surfaces: int
    #: Sectors of a track at the outer edge.
    outer_sectors: int
    #: Sectors of a track at the inner edge.
    inner_sectors: int
    #: From one track to another of its cylinder, in microseconds.
    head_switch_us: float
    #: How much longer the arm settles before a write than before a read, in microseconds.
    write_settle_us: float
    #: Seek curve: cylinders, and milliseconds to get as far and settle.
    seek_ms: tuple[tuple[int, float], ...]
    #: How far a drive reads ahead, in KiB.
    buffer_kib: int
    #: Rate from the drive's buffer in MB/s.
    bus_mb_per_s: float


@dataclasses.dataclass(frozen=True)
class Drive(Record):
    """A hard disk."""

    #: Name in device files.
    name: str
    #: What it is, in a line.
    summary: str
    #: Capacity as sold, as it would be written.
    capacity: str
    #: ``constant`` or ``mechanical``.
    model: str
    #: Mean time to reach the first sector of a read, in microseconds.
    read_position_us: float
    #: Mean time to reach the first sector of a write, in microseconds.
    write_position_us: float
    #: Rate of sectors that follow each other in MB/s.
    mb_per_s: float
    #: How many destages the controller holds for it.
    queue: int
    #: ``elevator`` or ``fcfs``.
    scheduler: str
    #: Price per GiB in US dollars.
    usd_per_gib: float
    #: Power while it works, in watts.
    active_w: float
    #: Power while it spins and waits, in watts.
    idle_w: float
    #: Where the figures come from.
    source: str
    #: Arm and platters, where they are known.
    mechanics: Mechanics | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Preset(Record):
    """A device preset."""

    #: Its name, for :meth:`Device.preset`.
    name: str
    #: What it is, in a line.
    summary: str
    #: The device in full.
    device: Device


@dataclasses.dataclass(frozen=True)
class Format(Record):
    """A trace format."""

    #: Its name.
    name: str
    #: What it is, in a line.
    summary: str
    #: Its records, in a line.
    layout: str
    #: Other names.
    aliases: tuple[str, ...]
    #: Unit of its time stamps unless another is given; none where it is fixed.
    time_unit: str | None
    #: Whether the command line can write it.
    written: bool


@dataclasses.dataclass(frozen=True)
class Target(Record):
    """A published characteristic of what a workload stands in for."""

    #: What is measured, with its unit.
    name: str
    #: The paper with its section, table or figure.
    source: str
    #: The value in the source.
    published: float
    #: ``at_least``, ``at_most``, or ``{"within": share}``.
    goal: str | dict[str, float]


@dataclasses.dataclass(frozen=True)
class Workload(Record):
    """A generated workload."""

    #: Its name, for :meth:`Trace.generate`.
    name: str
    #: What it is, in a line.
    summary: str
    #: The paper, or what else defines it.
    source: str
    #: Its parameters.
    parameters: tuple[Parameter, ...]
    #: What it is held against.
    targets: tuple[Target, ...]


@dataclasses.dataclass(frozen=True)
class PaperFigure(Record):
    """A table or figure of a paper."""

    #: Its name.
    name: str
    #: What it shows, in a line.
    title: str
    #: Names of the traces that it needs.
    traces: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Paper(Record):
    """A paper that is reproduced."""

    #: Its name, for :func:`bimetal.paper`.
    name: str
    #: Its systems, in a line.
    summary: str
    #: Authors, title, where and when.
    citation: str
    #: Its tables and figures.
    figures: tuple[PaperFigure, ...]


def _items(kind: type[_Item], text: str) -> list[_Item]:
    return [kind._from_dict(item) for item in json.loads(text)]


def schemes() -> list[Scheme]:
    """Every scheme, with its parameters."""
    return _items(Scheme, _core.schemes())


def chips() -> list[Chip]:
    """Every flash part."""
    return _items(Chip, _core.chips())


def drives() -> list[Drive]:
    """Every hard disk."""
    return _items(Drive, _core.drives())


def devices() -> list[Preset]:
    """Every device preset."""
    return _items(Preset, _core.devices())


def formats() -> list[Format]:
    """Every trace format."""
    return _items(Format, _core.formats())


def workloads() -> list[Workload]:
    """Every workload, with its parameters and what it is held against."""
    return _items(Workload, _core.workloads())


def papers() -> list[Paper]:
    """Every paper, with its figures and their traces."""
    return _items(Paper, _core.papers())
