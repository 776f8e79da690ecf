"""The catalogue: schemes, parts, devices, trace formats, workloads, papers."""

from __future__ import annotations

import json
from typing import TypeVar

from bimetal import _core
from bimetal._record import Record
from bimetal._records import Chip, Drive, Format, Paper, Preset, Scheme, Workload

_Item = TypeVar("_Item", bound=Record)


def _items(kind: type[_Item], text: str) -> list[_Item]:
    return [kind._from_dict(item) for item in json.loads(text)]


def schemes() -> list[Scheme]:
    """Every scheme, with its parameters."""
    return _items(Scheme, _core.schemes())


def chips() -> list[Chip]:
    """Every flash part."""
    return _items(Chip, _core.chips())


def drives() -> list[Drive]:
    """Every hard disk, for flash caches over disks. SSDs to buy, as in ``advise(drives=...)``, are not among them."""
    return _items(Drive, _core.drives())


def devices() -> list[Preset]:
    """Every device preset."""
    return _items(Preset, _core.devices())


def formats() -> list[Format]:
    """Every trace format."""
    return _items(Format, _core.formats())


def workloads() -> list[Workload]:
    """Every workload, with its parameters and its published targets."""
    return _items(Workload, _core.workloads())


def papers() -> list[Paper]:
    """Every paper, with its figures and their traces."""
    return _items(Paper, _core.papers())
