"""The records of the command line's JSON, made from its schemas: ``crates/bimetal-cli/src/records.rs`` writes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from bimetal._device import Device
from bimetal._record import OMITTED, Record


@dataclasses.dataclass(frozen=True)
class Adaptation(Record):
    """A figure by which a scheme adapts to the requests. Reports plot it over time."""

    #: Its name in ``Metrics``. The scheme reports it at all times, with its default parameters at least.
    metric: str
    #: Title of its plot, with the symbol of the paper if there is one.
    title: str
    #: Its unit, or the things that it counts.
    unit: str
    #: What the scheme does with it, and what changes it, in a sentence.
    meaning: str


@dataclasses.dataclass(frozen=True)
class Addresses(Record):
    """Addresses of the trace on the devices."""

    #: Whether the touched extents were moved next to each other.
    compacted: bool
    #: 64-KiB extents that reads and writes touch.
    touched_extents: int
    #: End of the address space in the trace, in bytes.
    span_bytes: int
    #: End of the replayed address space, in bytes.
    replayed_span_bytes: int


@dataclasses.dataclass(frozen=True)
class Advice(Record):
    """The complete answer, as written to JSON."""

    #: Version of this program.
    bimetal: str
    #: The trace.
    trace: TraceFacts
    #: The replay of every simulation.
    replay: SweepReplay
    #: Goals for devices.
    goals: tuple[Goal, ...]
    #: Caveats that a user should know before trusting the answer.
    notes: tuple[str, ...]
    #: Host writes per day on which lives are based, in bytes; none if the trace has no duration.
    write_bytes_per_day: float | None
    #: Years on which drive writes per day are based: the lifetime goal, or 5.
    warranty_years: float
    #: Year of the price list.
    price_year: int
    #: Prices of the candidate parts.
    prices: tuple[Price, ...]
    #: Number of candidate devices.
    candidates: int
    #: The searched numbers of dies.
    dies: tuple[int, ...]
    #: Number of simulated candidates.
    simulations: int
    #: Number of simulations that failed.
    failed: int
    #: Whether it is unlikely that an unsimulated device is a cheaper answer.
    is_settled: bool
    #: The cheapest device that meets all goals.
    recommended: Choice | None
    #: If no device meets all goals: the devices that miss them by the smallest factor.
    closest: tuple[Choice, ...]
    #: The limit that rules out a cheaper device, or any device: ``latency``, ``wear`` or ``money``.
    binds: str | None
    #: For each goal: the cheapest device that meets this goal, and the cheapest that meets all others.
    by_goal: tuple[GoalAlone, ...]
    #: The Pareto front of price, response and life, cheapest first.
    front: tuple[Choice, ...]
    #: Changes of the answer with prices.
    sensitivity: tuple[Sensitivity, ...]
    #: Every simulated device, in the order of simulation.
    simulated: tuple[Choice, ...]
    #: Whole drives on the market instead of a composed device; none if the user excludes them.
    drives: DrivesToBuy | None


@dataclasses.dataclass(frozen=True)
class Applied(Record):
    """A setting of the user, and where it applied."""

    #: The scheme, or the generated trace.
    of: str
    #: A parameter of the scheme, a field of the device in the scheme's replays, or a parameter of the trace.
    key: str
    #: The value.
    value: str
    #: Number of replays in which it applied.
    replays: int


@dataclasses.dataclass(frozen=True)
class ArrivalProfile(Record):
    """Arrivals of requests."""

    #: From the first to the last arrival, in seconds.
    duration_s: float
    #: Requests per second; ``None`` if all arrive at once.
    requests_per_s: float | None
    #: Bytes read and written per second; ``None`` if all arrive at once.
    bytes_per_s: float | None
    #: Mean time between arrivals in microseconds.
    interval_mean_us: float
    #: Median time between arrivals in microseconds.
    interval_p50_us: float
    #: 99th percentile of the time between arrivals in microseconds.
    interval_p99_us: float
    #: Longest time between arrivals in microseconds.
    interval_max_us: float


@dataclasses.dataclass(frozen=True)
class Axis(Record):
    """An axis."""

    #: The quantity with its unit: ``SLC (MiB)``.
    label: str
    #: Whether the scale is logarithmic.
    logarithmic: bool


@dataclasses.dataclass(frozen=True)
class Change(Record):
    """A figure in both files."""

    #: Its name, as in the results: ``response_us.mean``, ``write_amplification``.
    name: str
    #: Value in the first file.
    a: float
    #: Value in the second file.
    b: float
    #: Change from the first to the second, in percent of the first; ``None`` if the first is 0 and the second is not.
    percent: float | None
    #: Whether the second is better; ``None`` if both are equal or neither direction is better.
    is_better: bool | None


@dataclasses.dataclass(frozen=True)
class Chip(Record):
    """A flash part with all its figures."""

    #: One-line description.
    summary: str
    #: Name in device files and on the command line.
    name: str
    #: Bits per cell: ``slc``, ``pslc``, ``mlc``, ``tlc`` or ``qlc``.
    cell: str
    #: Bytes of a page, without its spare area.
    page_bytes: int
    #: Bytes of a page's spare area; they take time on the channel.
    spare_bytes: int
    #: Pages of a block.
    pages_per_block: int
    #: Page read, in microseconds.
    read_us: float
    #: Page program, in microseconds.
    program_us: float
    #: Block erase, in microseconds.
    erase_us: float
    #: Channel rate in MB/s (10^6 bytes); 0 if the times above include the transfer.
    bus_mb_per_s: float
    #: Program/erase cycles that a block lasts.
    endurance: int
    #: Supply voltage.
    supply_v: float
    #: Current while an operation runs, in milliamperes.
    current_ma: float
    #: Price per GiB in US dollars. Prices moved fourfold within three years: see the source, and override them.
    usd_per_gib: float
    #: Where the figures come from, and which of them are derived.
    source: str
    #: Copy of a page within its die, in microseconds, from its sensing to the end of its program; it does not use the
    #: channel. If it is missing or 0, copies go through the controller.
    copyback_us: float | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Pages of different planes that a die reads at once at independent places: 1 if all planes read at the same place.
    independent_reads: int | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Planes of a die: their pages at the same place are read together, and their blocks are programmed and erased
    #: together.
    planes: int | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Pages of a plane that one program operation writes: the bits of a cell if a wordline is programmed at once. In
    #: SLC mode it is one.
    program_pages: int | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Figures with one bit per cell, if the part has this mode.
    slc_mode: SlcMode | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Time to suspend a program or an erase for a read of the host, in microseconds. Without it a read waits for their
    #: end.
    suspend_us: float | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Choice(Record):
    """A device with its figures."""

    #: The device in words.
    device: str
    #: Its scheme.
    scheme: str
    #: All of its flash in native mode, in bytes.
    flash_bytes: float
    #: Channels of all regions.
    channels: int
    #: Dies of all regions.
    dies: int
    #: Price, in US dollars.
    cost_usd: float
    #: Responses with the arrivals of the answer's ``replay``; none for an overloaded device.
    response_us: ResponseTimes | None
    #: Responses with one request at a time, so that none waits; none if ``response_us`` comes from a closed loop.
    service_us: ResponseTimes | None
    #: For an overloaded device: the time it took for the requests, relative to the time they took to arrive.
    overload: float | None
    #: Life in years; none if no page was programmed in the measured passes.
    life_years: float | None
    #: Host writes until wear-out, in bytes; none if no page was programmed in the measured passes.
    lifetime_host_bytes: float | None
    #: Number of times that the host overwrote the device in the measured passes. Life is extrapolated from them, and
    #: may be much shorter if they are less than 1.
    lifetime_overwrites: float
    #: Host writes until wear-out in terabytes of 10^12 bytes.
    tbw: float | None
    #: Drive writes per day: ``tbw`` divided by the logical capacity and the days of the warranty.
    dwpd: float | None
    #: For each goal, the factor by which it is missed: at most 1 if the goal is met, none if unknown.
    excess: tuple[float | None, ...]
    #: Whether all goals are met.
    meets: bool
    #: The command that repeats its figures; none if no command can read the trace.
    command: str | None


@dataclasses.dataclass(frozen=True)
class Claim(Record):
    """A claim of a paper, and its verdict."""

    #: Name of the paper on the command line.
    paper: str
    #: Name of the figure on the command line.
    figure: str
    #: The acceptance target of the specification to which it belongs, such as ``T20``.
    target: str | None
    #: Kind of statement: ``result``, ``arithmetic``, ``generator`` or ``ours``.
    kind: str
    #: The stand-ins of the paper's traces on which it was judged: ``first`` or ``calibrated``.
    stand_in: str
    #: The claim in a few words.
    claim: str
    #: The paper's value, with the tolerance within which the claim counts as held.
    expected: str
    #: The measured value.
    measured: str
    #: Whether it held: ``held``, ``not held`` or ``not judged``.
    verdict: str
    #: Reason for the verdict, in a line.
    reason: str
    #: The user's trace, if it was judged on that instead of the paper's traces.
    trace: str | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Comparison(Record):
    """The JSON output of ``compare`` and ``replay``."""

    #: Version of this program.
    bimetal: str
    #: Version of the results schema. It increases if a field is removed, renamed or changes its meaning.
    schema: int
    #: The trace.
    trace: TraceFacts
    #: Digest of the trace's requests as 16 hexadecimal digits, identical on every machine.
    trace_digest: str
    #: Addresses of the trace on the devices.
    addresses: Addresses
    #: The replay.
    replay: ReplayFacts
    #: Caveats that a user should know before trusting a figure.
    warnings: tuple[str, ...]
    #: One entry for each scheme.
    results: tuple[Result, ...]


@dataclasses.dataclass(frozen=True)
class DeviceSource(Record):
    """A device of a study."""

    #: The name of a preset, or the path of a device file relative to the study file.
    name: str
    #: The text of the device file.
    file: str | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Diff(Record):
    """The JSON output of ``bimetal diff``."""

    #: The first file.
    a: Side
    #: The second file.
    b: Side
    #: Other possible causes of the changes than the schemes: different traces, replays, devices or programs.
    differences: tuple[str, ...]
    #: Each scheme that is in both files, in the order of the second.
    schemes: tuple[SchemeDiff, ...]
    #: Schemes that are only in the first file.
    only_in_a: tuple[str, ...]
    #: Schemes that are only in the second file.
    only_in_b: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class DiskFacts(Record):
    """Facts about a home disk."""

    #: Name.
    name: str
    #: Name of the drive.
    drive: str
    #: Model of its access times: ``constant`` or ``mechanical``.
    model: str
    #: Logical capacity on it.
    capacity_bytes: int
    #: Share of the simulated time in which it was busy.
    busy: float
    #: Energy while it was spinning and idle, in joules, which is not part of the energy of operations.
    idle_j: float


@dataclasses.dataclass(frozen=True)
class DiskRow(Record):
    """A disk of a row."""

    #: Name.
    name: str
    #: Name of the drive.
    drive: str
    #: Logical capacity on this disk.
    capacity_bytes: int


@dataclasses.dataclass(frozen=True)
class Drive(Record):
    """A hard disk with all its figures."""

    #: One-line description.
    summary: str
    #: Name in device files and on the command line.
    name: str
    #: Capacity as sold.
    capacity: str
    #: Model of its access times: ``constant`` or ``mechanical``.
    model: str
    #: Mean time to reach the first sector of a read, in microseconds: the papers' ``C_D_RPOS``.
    read_position_us: float
    #: Mean time to reach the first sector of a write, in microseconds: the papers' ``C_D_WPOS``.
    write_position_us: float
    #: Rate of consecutive sectors in MB/s (10^6 bytes): the papers' ``B``.
    mb_per_s: float
    #: Destages that the controller may hold for it while it works for the host; 0: the host waits for each.
    queue: int
    #: The order in which these are served: ``elevator`` or ``fcfs``.
    scheduler: str
    #: Price per GiB in US dollars.
    usd_per_gib: float
    #: Power during accesses, in watts.
    active_w: float
    #: Power while it only spins, in watts.
    idle_w: float
    #: Where the figures come from, and which of them are derived.
    source: str
    #: Arm and platters; a drive without them has only the constant model.
    mechanics: Mechanics | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class DriveToBuy(Record):
    """A drive on the market."""

    #: Name on the command line.
    name: str
    #: Maker and model.
    title: str
    #: Year of its release, if known.
    released: int | None
    #: Logical capacity, in bytes.
    capacity_bytes: int
    #: Host writes that its warranty covers, in terabytes of 10^12 bytes, if known.
    rated_tbw: float | None
    #: MB/s of sequential reads, claimed or measured.
    read_mb_per_s: float | None
    #: MB/s of sequential writes, claimed or measured, into its cache if it has one.
    write_mb_per_s: float | None
    #: Random 4-KiB reads per second with many outstanding, claimed or measured.
    read_iops: float | None
    #: Random 4-KiB writes per second with many outstanding, claimed or measured.
    write_iops: float | None
    #: Whether the user gave a price for the drive, so that its price is not the price of its flash.
    is_quoted: bool
    #: Size relative to the simulated device. Life and TBW are the values that the command prints, times this factor.
    scale: float
    #: Its figures. Price, life, TBW and DWPD are those of the whole drive.
    choice: Choice


@dataclasses.dataclass(frozen=True)
class DrivesToBuy(Record):
    """The drives on the market."""

    #: The simulated drives, cheapest first; at equal price, fastest first.
    offered: tuple[DriveToBuy, ...]
    #: Bytes that a drive must hold: the bytes that the trace touches, or the requested capacity.
    least_bytes: int
    #: Drives with less capacity.
    too_small: tuple[str, ...]
    #: Drives whose flash has no price in the year of the prices.
    unpriced: tuple[str, ...]
    #: Drives whose simulation failed, with the reasons.
    failed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class EraseBin(Record):
    """Blocks of a region with erase counts in one range."""

    #: Lowest erase count of the range.
    from_: int
    #: Highest erase count of the range.
    to: int
    #: Number of blocks.
    blocks: int


@dataclasses.dataclass(frozen=True)
class Failure(Record):
    """Reason why a point has no figures."""

    #: Kind of failure: ``refused``, ``trace``, ``memory``, ``panic``, ``worker`` or ``stopped``.
    kind: str
    #: The error, in a line.
    what: str


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
    #: Failures without a replacement block: a real device would be read-only from the first on.
    failures_unreplaced: int


@dataclasses.dataclass(frozen=True)
class Figure(Record):
    """The reproduction of one table or figure."""

    #: Name of the paper on the command line.
    paper: str
    #: Name of the figure on the command line, such as ``fig8a``.
    figure: str
    #: One-line description of its content.
    title: str
    #: The stand-ins of the paper's traces in this run: ``first`` or ``calibrated``.
    stand_in: str
    #: The experiment and remarks on its results, in a few sentences.
    caption: str
    #: The diagrams; none if the paper has only numbers.
    plots: tuple[Plot, ...]
    #: Commands that repeat every point.
    commands: tuple[str, ...]
    #: The user's trace, if the figure is about that instead of the paper's traces.
    trace: str | None = dataclasses.field(default=None, metadata=OMITTED)


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
    #: From byte 0 to the end of the last page: the smallest disk that the trace fits on.
    span_bytes: int


@dataclasses.dataclass(frozen=True)
class Format(Record):
    """A trace format."""

    #: Its name.
    name: str
    #: One-line description.
    summary: str
    #: The fields of a record, in a line.
    layout: str
    #: Other names.
    aliases: tuple[str, ...]
    #: Default unit of its time stamps; none if the format fixes the unit.
    time_unit: str | None
    #: Whether Bimetal can write traces in this format.
    written: bool


@dataclasses.dataclass(frozen=True)
class Goal(Record):
    """A bound on a measure: the least life, or the most of any other measure."""

    #: The measure, written as the name of its option.
    measure: str
    #: The bound, in microseconds, years, terabytes, drive writes per day or US dollars.
    limit: float


@dataclasses.dataclass(frozen=True)
class GoalAlone(Record):
    """The effect of a single goal."""

    #: The goal.
    goal: Goal
    #: The cheapest device that meets this goal.
    alone: Choice | None
    #: The cheapest device that meets all other goals.
    without: Choice | None
    #: Additional cost of this goal, in US dollars.
    costs_usd: float | None


@dataclasses.dataclass(frozen=True)
class HitClass(Record):
    """Sectors that are hit at least ``hits`` times, up to the next class."""

    #: Smallest count of the class: a power of two.
    hits: int
    #: Number of sectors.
    sectors: int


@dataclasses.dataclass(frozen=True)
class HitRatePoint(Record):
    """Hit rates of caches of one size."""

    #: Size of the cache in bytes.
    cache_bytes: int
    #: Share of reads that hit in a cache of the pages read and written; ``None`` without reads.
    reads: float | None
    #: Share of writes that hit in it; ``None`` without writes.
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

    #: Share of the pages that were sampled; at 1 the figures are exact.
    sampling_rate: float
    #: From the smallest to the largest cache.
    points: tuple[HitRatePoint, ...]


@dataclasses.dataclass(frozen=True)
class HotSet(Record):
    """Concentration of writes on 4-KiB pages. A request writes each page that it touches once."""

    #: Share of page writes that go to the hottest pages, by percent of the pages ever written.
    hottest: tuple[HotShare, ...]
    #: Fewest bytes that get half of the page writes.
    bytes_for_half: int
    #: Fewest bytes that receive 90 % of the page writes.
    bytes_for_90_percent: int
    #: Writes of the page that is written most.
    writes_max: int


@dataclasses.dataclass(frozen=True)
class HotShare(Record):
    """One point of the concentration curve."""

    #: Hottest pages, in percent of the pages ever written.
    percent_of_pages: int
    #: Share of page writes that go to them.
    share_of_writes: float


@dataclasses.dataclass(frozen=True)
class Interval(Record):
    """An interval of the measured passes."""

    #: Measured requests up to its end.
    requests: int
    #: Reads of the host within it.
    reads: int
    #: Writes of the host within it.
    writes: int
    #: Bytes that the host read within it.
    read_bytes: int
    #: Bytes that the host wrote within it.
    write_bytes: int
    #: Simulated time at its end, in seconds since measuring started.
    end_s: float
    #: Mean response within it, in microseconds; 0 if it served no request.
    response_mean_us: float
    #: Longest response within it, in microseconds.
    response_max_us: float
    #: Operations within it, by region and mode; only regions and modes with operations in the measured passes.
    ops: tuple[IntervalOps, ...]
    #: The scheme's own figures at its end, in the order of the result's ``metrics``.
    metrics: tuple[float | None, ...]
    #: Accesses within it, by disk.
    disks: tuple[IntervalAccesses, ...] = dataclasses.field(default=(), metadata=OMITTED)


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
class IntervalOps(Record):
    """Operations of a region and cell mode within an interval."""

    #: Region; ``:slc`` behind its name marks blocks in SLC mode.
    region: str
    #: Page reads.
    read: int
    #: Page programs.
    program: int
    #: Block erases.
    erase: int
    #: Bytes of the pages that were read.
    read_bytes: int
    #: Bytes of the pages that were programmed.
    program_bytes: int


@dataclasses.dataclass(frozen=True)
class Load(Record):
    """Load of a device."""

    #: Busiest part: a region's dies (``mlc``), its channels (``mlc channels``), a disk, or ``device`` if the device
    #: does one operation at a time.
    bottleneck: str
    #: Share of the simulated time in which this part was busy, the mean over all of its dies or channels.
    utilisation: float
    #: Open loop: time from the last arrival to the last completion, in seconds.
    backlog_s: float
    #: Mean responses of the first to the last eighth of the measured requests, in microseconds.
    response_trend_us: tuple[float, ...]
    #: Whether responses measure the queue more than the device: ``none``, ``bursts`` or ``growing``.
    overload: str


@dataclasses.dataclass(frozen=True)
class Mechanics(Record):
    """Figures from which a drive's access times are computed."""

    #: Revolutions per minute.
    rpm: int
    #: Positions of the arm.
    cylinders: int
    #: Surfaces with data: tracks of a cylinder.
    surfaces: int
    #: Sectors of a track at the outer edge. The number falls evenly to ``inner_sectors``.
    outer_sectors: int
    #: Sectors of a track at the inner edge.
    inner_sectors: int
    #: Time to switch to another track of the same cylinder, in microseconds.
    head_switch_us: float
    #: Additional time for which the arm settles before a write, in microseconds.
    write_settle_us: float
    #: Seek curve: cylinders, and milliseconds to seek as far and settle. It is linear between these points.
    seek_ms: tuple[tuple[int, float], ...]
    #: Length of a drive's read-ahead, in KiB.
    buffer_kib: int
    #: Rate from the drive's buffer in MB/s (10^6 bytes).
    bus_mb_per_s: float


@dataclasses.dataclass(frozen=True)
class OpProfile(Record):
    """Requests of one kind."""

    #: Number of requests.
    requests: int
    #: Their bytes.
    bytes: int
    #: Mean size in bytes; 0 without any.
    mean_bytes: float
    #: Share of them that begin where the previous one of their kind ended; ``None`` with fewer than two of them.
    sequential_share: float | None


@dataclasses.dataclass(frozen=True)
class Operations(Record):
    """One kind of operation, for one cause, in one region and cell mode."""

    #: Region or disk; ``:slc`` behind the name of a region marks blocks in SLC mode.
    region: str
    #: ``read``, ``program`` or ``erase``; of a disk ``read`` or ``write``.
    op: str
    #: Why: ``host``, ``gc``, ``fold``, ``migrate_up`` and so on.
    cause: str
    #: How often.
    count: int
    #: Bytes of the pages read or programmed, or of the blocks erased, in this cell mode; for a disk, bytes read or
    #: written.
    bytes: int
    #: Array and channel time, in microseconds; for a disk, time of the accesses.
    time_us: float


@dataclasses.dataclass(frozen=True)
class Paper(Record):
    """A paper that is reproduced."""

    #: Its name.
    name: str
    #: Its systems, in a line.
    summary: str
    #: Authors, title, venue and year.
    citation: str
    #: Its tables and figures.
    figures: tuple[PaperFigure, ...]


@dataclasses.dataclass(frozen=True)
class PaperFigure(Record):
    """A table or figure of a paper."""

    #: Its name.
    name: str
    #: One-line description of its content.
    title: str
    #: Names of the traces that it needs.
    traces: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Parameter(Record):
    """One parameter as ``list schemes`` shows it."""

    #: Key of ``--set key=value`` and of a device file.
    name: str
    #: Meaning, unit and source.
    summary: str
    #: Default value, as it would be written.
    default: str
    #: Values that are accepted.
    accepts: str


@dataclasses.dataclass(frozen=True)
class Plot(Record):
    """One diagram."""

    #: Its title, which is unique within a figure.
    title: str
    #: How points are drawn: ``lines``, ``marks``, ``front``, ``bars`` or ``stacked_bars``.
    kind: str
    #: The horizontal axis.
    x: Axis
    #: The vertical axis.
    y: Axis
    #: The series, in the order of the legend.
    series: tuple[Series, ...]


@dataclasses.dataclass(frozen=True)
class Preset(Record):
    """A device preset."""

    #: Name of the preset.
    name: str
    #: One-line description.
    summary: str
    #: The complete device description.
    device: Device


@dataclasses.dataclass(frozen=True)
class Price(Record):
    """A price as printed."""

    #: Name of the chip or drive.
    part: str
    #: Its kind of cells, or ``disk``.
    kind: str
    #: US dollars per GiB.
    usd_per_gib: float


@dataclasses.dataclass(frozen=True)
class PriceStep(Record):
    """The answer at other prices."""

    #: Factor on the prices.
    factor: float
    #: Price of the cheapest device that meets all goals, in US dollars.
    cost_usd: float | None
    #: The device, if it differs from the device at the next step towards a factor of 1.
    changes_to: Choice | None
    #: Whether no device meets all goals any more.
    is_none: bool


@dataclasses.dataclass(frozen=True)
class Profile(Record):
    """Figures of a workload."""

    #: Requests of all kinds.
    requests: int
    #: Reads.
    reads: OpProfile
    #: Writes.
    writes: OpProfile
    #: Trims.
    trims: OpProfile
    #: Reads and writes by size, as Chang (2010, figures 7a and 7b) shows them.
    sizes: tuple[SizeClass, ...]
    #: Sectors written divided by distinct sectors written; ``None`` without writes.
    update_ratio: float | None
    #: Number of sectors by how often they are written (Chang 2010, figure 7c).
    write_hits: tuple[HitClass, ...]
    #: Number of sectors by how often they are read (Chang 2010, figure 7d).
    read_hits: tuple[HitClass, ...]
    #: Writes of the sector that is written most.
    sector_writes_max: int
    #: Reads of the sector that is read most.
    sector_reads_max: int
    #: Distinct bytes touched.
    footprint: Footprint
    #: Concentration of writes; ``None`` without writes.
    hot_set: HotSet | None
    #: Hit rates of caches; ``None`` without reads and writes, or with too many of them.
    hit_rates: HitRates | None
    #: Share of reads and writes that begin where the previous read or write ended; ``None`` with fewer than two of
    #: them.
    sequential_share: float | None
    #: Share of reads and writes whose start and end are multiples of 4 KiB; ``None`` without any.
    aligned_share: float | None
    #: Arrivals of all requests; ``None`` with fewer than two of them.
    arrivals: ArrivalProfile | None


@dataclasses.dataclass(frozen=True)
class RegionFacts(Record):
    """Facts about a region."""

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
    #: Year of the part; none if the catalogue does not state it.
    year: int | None
    #: Year of the catalogue's price; none if the price is not the catalogue's.
    price_year: int | None
    #: Share of the simulated time in which its dies were busy.
    busy: float


@dataclasses.dataclass(frozen=True)
class RegionRow(Record):
    """A region of a row."""

    #: Name.
    name: str
    #: Name of the part.
    chip: str
    #: Blocks.
    blocks: int
    #: Raw capacity.
    capacity_bytes: int


@dataclasses.dataclass(frozen=True)
class Relative(Record):
    """A scheme relative to the first one of a comparison."""

    #: The first scheme.
    to: str
    #: Total response of the first scheme divided by that of this one: Chang's RS. None if one of the two is overloaded.
    response_speedup: float | None
    #: Energy of this scheme divided by that of the first: Chang's ES.
    energy: float | None
    #: Price of this scheme's flash divided by that of the first: Chang's EC.
    cost: float | None


@dataclasses.dataclass(frozen=True)
class ReplayFacts(Record):
    """The replay of a trace."""

    #: ``closed:DEPTH`` or ``trace:SPEED``.
    arrivals: str
    #: Whether each scheme was also replayed with one request at a time for service times.
    service: bool
    #: Number of passes over the trace.
    passes: int
    #: Number of last passes that were measured.
    measured_passes: int
    #: Data on the devices before the first pass: ``device``, ``trace`` or ``none``.
    fill: str


@dataclasses.dataclass(frozen=True)
class Reproduction(Record):
    """The JSON output of ``bimetal paper``."""

    #: Version of this program.
    bimetal: str
    #: ``quick`` or ``full``.
    scale: str
    #: File names of the user's traces, by the names of the traces that they replace.
    traces: dict[str, str]
    #: Settings of the user for all experiments.
    settings: tuple[Applied, ...]
    #: Claims by kind and verdict, for each paper: first on calibrated stand-ins, if there are any, then on the first
    #: ones.
    scoreboard: tuple[Score, ...]
    #: Every claim, in the order of the figures.
    claims: tuple[Claim, ...]
    #: The figures.
    figures: tuple[Figure, ...]


@dataclasses.dataclass(frozen=True)
class ResponseTimes(Record):
    """Responses of reads and writes, in microseconds."""

    #: Mean.
    mean: float
    #: Median.
    p50: float
    #: 95th percentile.
    p95: float
    #: 99th percentile.
    p99: float
    #: 99.9th percentile.
    p999: float


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
class Result(Record):
    """The result of one scheme."""

    #: Registry name.
    scheme: str
    #: Responses of reads and writes.
    response_us: Responses
    #: Responses of reads.
    read_us: Responses
    #: Responses of writes.
    write_us: Responses
    #: Simulated time of the measured passes, in seconds.
    simulated_s: float
    #: Load of the device, and whether it was overloaded.
    load: Load
    #: Operations by region, mode, operation and cause; only those that took place.
    ops: tuple[Operations, ...]
    #: Programs by region, mode and stream; only streams that were used.
    streams: tuple[Stream, ...]
    #: Erase counts by region.
    wear: tuple[Wear, ...]
    #: Bytes programmed into flash, for all causes, per byte that the host wrote. Less than 1 if writes bypass flash;
    #: ``None`` if the host wrote nothing.
    write_amplification: float | None
    #: Energy of all operations, in joules: supply voltage x current x array and channel time (Chang 2010, section 5),
    #: and for disks power x time of accesses.
    energy_j: float
    #: Price of all flash, spare area included, and of the part of a disk that holds data, in US dollars.
    cost_usd: float
    #: Bytes that the host can write until the mean erase count of the first region reaches its endurance. The mean is
    #: used, not the worst block: how evenly blocks wear is a separate figure, and a device replaces single blocks.
    #: Extrapolated from the measured passes, in which a block counts as erased once it is filled: a device that still
    #: has erased blocks erases fewer. ``None`` if they wrote or programmed nothing.
    lifetime_host_bytes: float | None
    #: Years of 365.25 days until the first region is worn out, at the write rate of the trace, whatever the speed of
    #: the replay; ``None`` also if the trace has no duration.
    lifetime_years: float | None
    #: The scheme's own figures, since the device was filled: passes that are not measured are included.
    metrics: dict[str, float | None]
    #: The controller's figures; none on a device without one.
    controller: dict[str, float | None]
    #: Figures over time, one entry for each interval of the plan.
    intervals: tuple[Interval, ...]
    #: Failures by region; only regions in which something failed.
    faults: tuple[Faults, ...]
    #: Arrival mode of the replay of these figures: ``closed:DEPTH`` or ``trace:SPEED``.
    arrivals: str
    #: Time by which the device took longer than the trace, in seconds; 0 in a closed loop.
    backlog_s: float
    #: Service times of reads and writes, measured in a closed loop with one request. None without such a replay.
    service_us: Responses | None
    #: Service times of reads.
    service_read_us: Responses | None
    #: Service times of writes.
    service_write_us: Responses | None
    #: How many times the host wrote the logical capacity in the measured passes. Lifetimes are extrapolated from it.
    lifetime_overwrites: float
    #: The complete device as configured: a device file.
    device: Device
    #: Facts about the regions.
    regions: tuple[RegionFacts, ...]
    #: Facts about the home disks; none if all data are in flash.
    disks: tuple[DiskFacts, ...]
    #: Capacity of the slow region beyond the logical capacity, as a share of the logical capacity.
    spare: float
    #: Wear of the fast region divided by wear of the slow one: Chang's BW.
    block_wearing: float | None
    #: Share of life used of the more worn region divided by the share of the other: WLAFTL's Φ.
    phi: float | None
    #: Comparison with the first scheme; none for the first scheme itself.
    relative: Relative | None
    #: Notes on rounding and adaptation.
    notes: tuple[str, ...]
    #: Speed of the simulation.
    speed: Speed
    #: Range of the mean response over the seeds, if there were several.
    spread: Spread | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Scheme(Record):
    """A scheme."""

    #: Registry name.
    name: str
    #: One-line description.
    summary: str
    #: The paper, or another definition.
    source: str
    #: The regions that it manages, in words.
    regions: str
    #: Its parameters.
    parameters: tuple[Parameter, ...]
    #: The figures by which it adapts to the requests.
    adapts: tuple[Adaptation, ...]


@dataclasses.dataclass(frozen=True)
class SchemeDiff(Record):
    """A scheme in both files."""

    #: Its name.
    scheme: str
    #: Every figure that both files have.
    figures: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class Score(Record):
    """A paper's claims of one kind by verdict, on one kind of stand-ins."""

    #: Name of the paper.
    paper: str
    #: Kind of claims: ``result``, ``arithmetic``, ``generator`` or ``ours``.
    kind: str
    #: The stand-ins on which they were judged; the calibrated group includes claims in which no calibrated stand-in is
    #: involved: ``first`` or ``calibrated``.
    stand_in: str
    #: Claims that held.
    held: int
    #: Claims that did not hold.
    not_held: int
    #: Claims that cannot be judged here.
    not_judged: int


@dataclasses.dataclass(frozen=True)
class Sensitivity(Record):
    """Changes of the answer with the prices of a kind of parts."""

    #: Kind of cells, or ``disk``.
    kind: str
    #: Steps from a quarter of the prices to four times the prices.
    steps: tuple[PriceStep, ...]


@dataclasses.dataclass(frozen=True)
class Series(Record):
    """Points that belong together."""

    #: The label in the legend.
    name: str
    #: The source of the points: ``measured`` or ``paper``.
    origin: str
    #: The points, from left to right: positions, which are numbers or names, and values.
    points: tuple[tuple[float | str, float | None], ...]


@dataclasses.dataclass(frozen=True)
class Side(Record):
    """A results file."""

    #: The file.
    file: str
    #: Version of the program that wrote it.
    bimetal: str
    #: Version of the results schema; 0 if the file does not state it.
    schema: int
    #: Name of the trace.
    trace: str
    #: Digest of the trace's requests; ``None`` if the file does not state it.
    trace_digest: str | None


@dataclasses.dataclass(frozen=True)
class SizeClass(Record):
    """Requests of at least ``sectors`` sectors, up to the next class."""

    #: Smallest size of the class in 512-byte sectors: a power of two.
    sectors: int
    #: Reads.
    reads: int
    #: Writes.
    writes: int
    #: Bytes that they write.
    write_bytes: int
    #: Sectors written by writes of this class, divided by the distinct ones; ``None`` without writes.
    update_ratio: float | None


@dataclasses.dataclass(frozen=True)
class SlcMode(Record):
    """The same silicon with one bit per cell."""

    #: Pages of a block in this mode.
    pages_per_block: int
    #: Page read, in microseconds.
    read_us: float
    #: Page program, in microseconds.
    program_us: float
    #: Block erase, in microseconds.
    erase_us: float
    #: Program/erase cycles that a block lasts in this mode.
    endurance: int


@dataclasses.dataclass(frozen=True)
class Speed(Record):
    """Speed of the simulation. No other figures differ between runs."""

    #: Duration of all passes on this machine, without filling the device.
    wall_s: float
    #: Requests per second of that time.
    requests_per_s: float
    #: Flash page reads and programs per second of that time. Unmeasured passes are assumed to have as many as measured
    #: ones.
    page_ops_per_s: float


@dataclasses.dataclass(frozen=True)
class Spread(Record):
    """The mean response over several consecutive seeds, starting with the seed of the device."""

    #: Number of seeds.
    seeds: int
    #: Lowest mean response.
    min_us: float
    #: Highest mean response.
    max_us: float
    #: Mean of the mean responses.
    mean_us: float


@dataclasses.dataclass(frozen=True)
class Stream(Record):
    """Programs of one stream in one region and cell mode.

    NVMe's Flexible Data Placement calls a stream a reclaim unit handle.
    """

    #: Region; ``:slc`` behind its name marks blocks in SLC mode.
    region: str
    #: Number of the stream, from 0.
    stream: int
    #: Pages that came from outside the region: from the host, or from another region.
    written_pages: int
    #: Pages that were copied within the region: by garbage collection, folding or wear levelling.
    copied_pages: int
    #: Sum of the two page counts divided by ``written_pages``; ``None`` if no page came from outside, as in a stream
    #: for copies.
    write_amplification: float | None


@dataclasses.dataclass(frozen=True)
class SweepFigures(Record):
    """The figures of a point. Times are in microseconds unless stated otherwise."""

    #: Requests of the trace.
    requests: int
    #: Logical capacity.
    logical_bytes: int
    #: Spare area of the slow region, as a share of the logical capacity.
    spare: float
    #: Whether responses measure the queue more than the device: ``none``, ``bursts`` or ``growing``.
    overload: str
    #: The busiest part.
    bottleneck: str
    #: Share of the simulated time for which that part was busy.
    utilisation: float
    #: Responses of reads and writes.
    response_us: Responses
    #: Responses of reads.
    read_us: Responses
    #: Responses of writes.
    write_us: Responses
    #: Simulated time of the measured passes, in seconds.
    simulated_s: float
    #: Requests divided by the simulated time. For a closed loop it is the device's throughput.
    throughput_per_s: float | None
    #: Bytes programmed into flash, for all causes, per byte that the host wrote. Less than 1 if writes bypass flash;
    #: ``None`` if the host wrote nothing.
    write_amplification: float | None
    #: Energy of all operations, in joules: supply voltage x current x array and channel time (Chang 2010, section 5),
    #: and for disks power x time of accesses.
    energy_j: float
    #: Price of all flash, spare area included, and of the part of a disk that holds data, in US dollars.
    cost_usd: float
    #: Bytes that the host can write until the mean erase count of the first region reaches its endurance. The mean is
    #: used, not the worst block: how evenly blocks wear is a separate figure, and a device replaces single blocks.
    #: Extrapolated from the measured passes, in which a block counts as erased once it is filled: a device that still
    #: has erased blocks erases fewer. ``None`` if they wrote or programmed nothing.
    lifetime_host_bytes: float | None
    #: Years of 365.25 days until the first region is worn out, at the write rate of the trace, whatever the speed of
    #: the replay; ``None`` also if the trace has no duration.
    lifetime_years: float | None
    #: How many times the host wrote the logical capacity in the measured passes. Lives are extrapolated from it.
    lifetime_overwrites: float
    #: The regions.
    regions: tuple[RegionRow, ...]
    #: Wear of the regions. Blocks that always stay in SLC mode have their own entry.
    wear: tuple[WearRow, ...]
    #: The disks.
    disks: tuple[DiskRow, ...]
    #: The scheme's own figures, such as hit rates.
    metrics: tuple[tuple[str, float | None], ...]
    #: Notes on rounding and adaptation.
    notes: tuple[str, ...]
    #: The complete device, as the text of a device file.
    device: str


@dataclasses.dataclass(frozen=True)
class SweepPoint(Record):
    """One point."""

    #: The requests.
    trace: TraceSource
    #: The device.
    device: DeviceSource
    #: Registry name of the scheme.
    scheme: str
    #: Settings of the device and of the scheme. The scheme has every parameter among them.
    set: dict[str, str]
    #: The replay of the requests.
    replay: SweepReplay


@dataclasses.dataclass(frozen=True)
class SweepReplay(Record):
    """Parameters of a replay."""

    #: ``closed:DEPTH`` or ``trace:SPEED``.
    arrivals: str
    #: Number of passes over the trace.
    repeat: int
    #: Number of last passes that are measured.
    measure: int
    #: Data on the device before the first pass: ``device``, ``trace`` or ``none``.
    fill: str


@dataclasses.dataclass(frozen=True)
class SweepRow(Record):
    """The result of a point."""

    #: Key of the point in results.
    key: str
    #: The point itself.
    point: SweepPoint
    #: Fingerprint of the trace; empty if the trace cannot be read.
    trace_fingerprint: str
    #: Version of the scheme.
    scheme_version: int
    #: Version of this program.
    bimetal: str
    #: The command that repeats the point, in the folder of the study file.
    command: str
    #: Reason why there are no figures.
    failure: Failure | None = dataclasses.field(default=None, metadata=OMITTED)
    #: The figures, unless the point failed.
    figures: SweepFigures | None = dataclasses.field(default=None, metadata=OMITTED)
    #: Speed of the simulation: the only fields that may differ when the point is repeated.
    speed: Speed | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Target(Record):
    """A published characteristic of a workload."""

    #: The measured quantity, with its unit.
    name: str
    #: The paper with its section, table or figure.
    source: str
    #: The value in the source.
    published: float
    #: Required accuracy of the generated value.
    goal: str | dict[str, Any]


@dataclasses.dataclass(frozen=True)
class TraceFacts(Record):
    """Facts about the trace, in every result file."""

    #: File name or workload.
    name: str
    #: Format it was read from, or ``generated``.
    format: str
    #: Requests of all kinds.
    requests: int
    #: Read requests.
    reads: int
    #: Write requests.
    writes: int
    #: Trim requests.
    trims: int
    #: Bytes read.
    read_bytes: int
    #: Bytes written.
    write_bytes: int
    #: Bytes of the distinct aligned 4-KiB pages that are read or written.
    footprint_bytes: int
    #: From the first to the last arrival, in seconds.
    duration_s: float


@dataclasses.dataclass(frozen=True)
class TraceSource(Record):
    """A trace of a study."""

    #: Name in results.
    name: str
    #: Source of its requests.
    from_: str | dict[str, Any]
    #: Use only this number of first requests.
    limit: int | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Wear(Record):
    """Erase counts of a region's blocks since the device was filled."""

    #: Region. Blocks that always stay in SLC mode are listed separately, with ``:slc`` behind its name.
    region: str
    #: Number of blocks.
    blocks: int
    #: Sum of erase counts.
    erases_total: int
    #: Mean erase count.
    erases_mean: float
    #: Highest erase count.
    erases_max: int
    #: Standard deviation of the erase counts over all blocks.
    erases_stddev: float
    #: Cycles that a block lasts. If blocks change between cell modes: the mean that results from their mix of erases.
    endurance: float
    #: Share of the region's life that is used up: mean erase count divided by endurance.
    used: float
    #: Number of blocks by erase count, in bins of equal width from the least to the most worn block.
    erase_counts: tuple[EraseBin, ...]


@dataclasses.dataclass(frozen=True)
class WearRow(Record):
    """Wear of blocks of a row."""

    #: Name of the region, with suffix ``:slc`` for blocks that stay in SLC mode.
    name: str
    #: Mean erase count.
    erases_mean: float
    #: Used share of their life.
    used: float


@dataclasses.dataclass(frozen=True)
class Workload(Record):
    """A generated workload."""

    #: Its name.
    name: str
    #: One-line description.
    summary: str
    #: The paper, or another definition.
    source: str
    #: Its parameters.
    parameters: tuple[Parameter, ...]
    #: Published characteristics of the original workload.
    targets: tuple[Target, ...]
