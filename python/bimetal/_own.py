"""Schemes that are written in Python: what an author derives from, and what a scheme is told of its device."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from bimetal import _core
from bimetal._core import Media
from bimetal._errors import SchemeError, SettingError, check_whole

#: Regions that a scheme asks for, in the words of :func:`bimetal.schemes`.
Regions = Literal["one", "fast and slow", "one, in two cell modes"]


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """A region of the device: blocks of one kind of cell."""

    #: ``slc``, ``pslc``, ``mlc``, ``tlc`` or ``qlc``.
    cell: str
    #: The numbers of its blocks. No other region has them.
    blocks: range
    #: Pages of a block. Pages have the same size in all regions: :attr:`Shape.page_bytes`.
    pages_per_block: int
    #: Pages of a block in SLC mode; 0 where the chip has no such mode.
    slc_pages_per_block: int
    #: Dies that the blocks lie on in turn: those of die ``d`` are ``blocks[d::dies]``.
    dies: int
    #: Program/erase cycles that a block lasts.
    endurance: int


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """A device as a scheme sees it."""

    #: Pages that the host sees, numbered from 0.
    pages: int
    #: Bytes of a page, the largest flash page of the device. In regions of smaller ones a page is several of them.
    page_bytes: int
    #: The fast region first, the slow one last.
    regions: tuple[Region, ...]
    #: Seed of everything pseudo-random: ``random.Random(shape.seed)``.
    seed: int
    _stride: int

    def block(self, place: int) -> int:
        """Return the block of a place, as :meth:`Media.program` and :meth:`Media.copy` return places."""
        return place // self._stride


class OwnScheme:
    """What a scheme in Python derives from. ``write`` is all that has to be written.

    Each replay makes an object of its own. The host's requests are cut into pages, and the methods are called page by
    page. They decide by what the scheme knows of its device and of the requests so far; there is no clock and no data.
    A page of which the host writes a part is read before the call and programmed whole, and pages without data are read
    as zeros without a call.
    """

    #: Its name in tables; by default that of the class.
    name: ClassVar[str] = ""
    #: Regions that it asks of a device, in the words of :func:`bimetal.schemes`: ``one``, ``fast and slow`` or
    #: ``one, in two cell modes``.
    regions: ClassVar[Regions] = "one"

    def __init__(self, shape: Shape) -> None:
        """Begin with an erased device. An exception says why the device does not suit the scheme."""
        self.shape = shape

    def write(self, media: Media, page: int) -> None:
        """Serve a write of the host: decide where ``page`` goes, and call :meth:`Media.program`.

        The copy of the page so far is invalid from here on. If there is no room the scheme makes some: it copies the
        valid pages of a block and erases the block.
        """
        raise NotImplementedError(f"`{type(self).__name__}` has no `write`")

    def read(self, media: Media, page: int) -> None:
        """Serve a read of the host, of a page that has data. By default the newest copy is read."""
        place = media.place(page)
        if place is not None:
            media.read(place)

    def trim(self, media: Media, page: int) -> None:
        """Take note that the host has trimmed a whole page. Its copy is invalid, and reads of it give zeros."""

    def idle(self, media: Media, pages: int) -> None:
        """Do background work in idle time, as much as ``pages`` copies of a page take."""

    def fill(self, media: Media, page: int) -> None:
        """Write a page before the first request: each page of the device once, in order. By default as a write."""
        self.write(media, page)

    def figures(self) -> dict[str, float]:
        """Return figures of its own for ``metrics`` of results, always those of the same names."""
        return {}


#: A scheme by its name or its class.
AnyScheme = str | type[OwnScheme]


def check_scheme(scheme: type[OwnScheme], *, requests: int = 1000, seed: int = 1) -> None:
    """Run the checks that every built-in scheme passes: data come back as written, and runs repeat to the bit.

    Small devices of all shapes, sound ones and ones with failing blocks, full or empty at the start, serve random
    writes, reads and trims of any length with idle time between them. The data of each sector are followed.

    Parameters
    ----------
    scheme
        A class that derives from :class:`OwnScheme`.
    requests
        Random requests on each device.
    seed
        Seed of the requests.

    Raises
    ------
    SchemeError
        The first violation, with the device, the request's number from 0, and the page. Where the scheme's code raised
        it, ``__cause__`` is the original exception.

    """
    check_whole(SettingError, 1, or_none=False, requests=requests)
    check_whole(SettingError, 0, or_none=False, seed=seed)
    _core.check_scheme(line(scheme), requests, seed)


_Line = tuple[str, str, type[OwnScheme]]


def line(scheme: object) -> _Line:
    """Return what is registered of a class: its name, its regions and itself."""
    if not (isinstance(scheme, type) and issubclass(scheme, OwnScheme)):
        hint = "hint: a name in `bimetal.schemes()`, or a class that derives from `bimetal.OwnScheme`, not an object"
        raise SchemeError(f"{scheme!r} is no scheme; {hint}")
    name = str(scheme.name or scheme.__name__)
    if name == "all" or not name.isprintable() or any(char in " ,`" for char in name):
        raise SchemeError(f"{name!r} is no name of a scheme; hint: letters, digits and `-`")
    return name, str(scheme.regions), scheme


def only_names(schemes: Iterable[object], what: str) -> None:
    """Refuse classes, for ``what`` runs schemes by their names alone."""
    for scheme in schemes:
        if isinstance(scheme, type | OwnScheme):
            name = scheme.__name__ if isinstance(scheme, type) else type(scheme).__name__
            hint = "hint: `bimetal.compare` and `bimetal.replay` take classes"
            raise SchemeError(f"`{name}`: {what} runs schemes by name, not classes of Python; {hint}")


def make(scheme: type[OwnScheme], shape: tuple[int, int, int, int, str]) -> OwnScheme:
    """Make a scheme on a device. Called for each replay."""
    pages, page_bytes, seed, stride, regions = shape
    return scheme(Shape(pages, page_bytes, tuple(map(_region, json.loads(regions))), seed, stride))


def _region(facts: dict[str, Any]) -> Region:
    first, count = facts.pop("first_block"), facts.pop("blocks")
    return Region(blocks=range(first, first + count), **facts)


def interrupt(threads: Iterable[int]) -> None:
    """Raise ``KeyboardInterrupt`` in the Python code of other threads, which Ctrl-C does not reach by itself."""
    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))
