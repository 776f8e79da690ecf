"""What requests are like."""

from __future__ import annotations

import dataclasses

from bimetal._record import Record


@dataclasses.dataclass(frozen=True)
class OpProfile(Record):
    """Requests of one kind."""

    #: Number of requests.
    requests: int
    #: Their bytes.
    bytes: int
    #: Mean size in bytes; 0 without any.
    mean_bytes: float
    #: Share of them that begin where the previous one of their kind ended.
    sequential_share: float | None


@dataclasses.dataclass(frozen=True)
class SizeClass(Record):
    """Requests from ``sectors`` sectors up to the next class."""

    #: Smallest size of the class in 512-byte sectors.
    sectors: int
    #: Reads.
    reads: int
    #: Writes.
    writes: int
    #: Bytes that they write.
    write_bytes: int
    #: Sectors that writes of this class wrote by distinct sectors that they wrote.
    update_ratio: float | None


@dataclasses.dataclass(frozen=True)
class HitClass(Record):
    """Sectors that are hit from ``hits`` times up to the next class."""

    #: Smallest count of the class.
    hits: int
    #: Number of sectors.
    sectors: int


@dataclasses.dataclass(frozen=True)
class Footprint(Record):
    """Distinct bytes in aligned 4-KiB pages."""

    #: Of pages that are read.
    read_bytes: int
    #: Of pages that are written.
    written_bytes: int
    #: Of pages that are read and written.
    both_bytes: int
    #: Of pages that are read or written.
    touched_bytes: int
    #: From byte 0 to the end of the last page.
    span_bytes: int


@dataclasses.dataclass(frozen=True)
class HotShare(Record):
    """One point of the concentration of writes."""

    #: Hottest pages, in percent of the pages ever written.
    percent_of_pages: int
    #: Share of page writes that go to them.
    share_of_writes: float


@dataclasses.dataclass(frozen=True)
class HotSet(Record):
    """How writes concentrate on 4-KiB pages."""

    #: Share of page writes that go to the hottest pages.
    hottest: tuple[HotShare, ...]
    #: Fewest bytes that take half of the page writes.
    bytes_for_half: int
    #: Fewest bytes that take nine tenths of the page writes.
    bytes_for_90_percent: int
    #: Writes of the page that is written most.
    writes_max: int


@dataclasses.dataclass(frozen=True)
class HitRatePoint(Record):
    """Hit rates of LRU caches of one size."""

    #: Size of the cache in bytes.
    cache_bytes: int
    #: Share of reads that hit in a cache of the pages read and written.
    reads: float | None
    #: Share of writes that hit in it.
    writes: float | None
    #: Share of reads and writes that hit in it.
    all: float | None
    #: Share of reads that hit in a cache of the pages written.
    reads_of_written: float | None
    #: Share of writes that hit in it.
    writes_of_written: float | None


@dataclasses.dataclass(frozen=True)
class HitRates(Record):
    """Hit rates by cache size."""

    #: Share of the pages that were looked at; at 1 the figures are exact.
    sampling_rate: float
    #: From the smallest to the largest cache.
    points: tuple[HitRatePoint, ...]


@dataclasses.dataclass(frozen=True)
class ArrivalProfile(Record):
    """When requests arrive."""

    #: From the first to the last arrival, in seconds.
    duration_s: float
    #: Requests per second.
    requests_per_s: float | None
    #: Bytes read and written per second.
    bytes_per_s: float | None
    #: Mean time between arrivals in microseconds.
    interval_mean_us: float
    #: Median time between arrivals in microseconds.
    interval_p50_us: float
    #: 99th percentile of the time between arrivals in microseconds.
    interval_p99_us: float
    #: Longest interval in microseconds.
    interval_max_us: float


@dataclasses.dataclass(frozen=True)
class Profile(Record):
    """What the requests of a trace are like: the ``profile`` of ``bimetal profile --json``."""

    #: Requests of all kinds.
    requests: int
    #: Reads.
    reads: OpProfile
    #: Writes.
    writes: OpProfile
    #: Trims.
    trims: OpProfile
    #: Reads and writes by size.
    sizes: tuple[SizeClass, ...]
    #: Sectors written by distinct sectors written.
    update_ratio: float | None
    #: Sectors by how often they are written.
    write_hits: tuple[HitClass, ...]
    #: Sectors by how often they are read.
    read_hits: tuple[HitClass, ...]
    #: Writes of the sector that is written most.
    sector_writes_max: int
    #: Reads of the sector that is read most.
    sector_reads_max: int
    #: Distinct bytes touched.
    footprint: Footprint
    #: How writes concentrate.
    hot_set: HotSet | None
    #: How often caches would hit.
    hit_rates: HitRates | None
    #: Share of reads and writes that begin where the previous one ended.
    sequential_share: float | None
    #: Share of reads and writes whose start and end are multiples of 4 KiB.
    aligned_share: float | None
    #: When requests arrive.
    arrivals: ArrivalProfile | None
