"""The records of the command line's JSON, made from its schemas: ``crates/bimetal-cli/src/records.rs`` writes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from bimetal._device import Device
from bimetal._record import OMITTED, Record


@dataclasses.dataclass(frozen=True)
class Adaptation(Record):
    """A figure by which a scheme adapts to the requests. Reports plot it over time.

    Attributes
    ----------
    metric
        Its name in ``Metrics``. The scheme reports it at all times, with its default parameters at least.
    title
        Title of its plot, with the symbol of the paper if there is one.
    unit
        Its unit, or the things that it counts.
    meaning
        What the scheme does with it, and what changes it, in a sentence.

    """

    metric: str
    title: str
    unit: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Addresses(Record):
    """Addresses of the trace on the devices.

    Attributes
    ----------
    compacted
        Whether the touched extents were moved next to each other.
    touched_extents
        64-KiB extents that reads and writes touch.
    span_bytes
        End of the address space in the trace, in bytes.
    replayed_span_bytes
        End of the replayed address space, in bytes.

    """

    compacted: bool
    touched_extents: int
    span_bytes: int
    replayed_span_bytes: int


@dataclasses.dataclass(frozen=True)
class Advice(Record):
    """The complete answer, as written to JSON.

    Attributes
    ----------
    bimetal
        Version of this program.
    trace
        The trace.
    replay
        The replay of every simulation.
    goals
        Goals for devices.
    notes
        Caveats that a user should know before trusting the answer.
    write_bytes_per_day
        Host writes per day on which lives are based, in bytes; none if the trace has no duration.
    warranty_years
        Years on which drive writes per day are based: the lifetime goal, or 5.
    price_year
        Year of the price list.
    prices
        Prices of the candidate parts.
    candidates
        Number of candidate devices.
    dies
        The searched numbers of dies.
    simulations
        Number of simulated candidates.
    failed
        Number of simulations that failed.
    is_settled
        Whether it is unlikely that an unsimulated device is a cheaper answer.
    recommended
        The cheapest device that meets all goals.
    closest
        If no device meets all goals: the devices that miss them by the smallest factor.
    binds
        The limit that rules out a cheaper device, or any device: ``latency``, ``wear`` or ``money``.
    by_goal
        For each goal: the cheapest device that meets this goal, and the cheapest that meets all others.
    front
        The Pareto front of price, response and life, cheapest first.
    sensitivity
        Changes of the answer with prices.
    simulated
        Every simulated device, in the order of simulation.
    drives
        Whole drives on the market instead of a composed device; none if the user excludes them.

    """

    bimetal: str
    trace: TraceFacts
    replay: SweepReplay
    goals: tuple[Goal, ...]
    notes: tuple[str, ...]
    write_bytes_per_day: float | None
    warranty_years: float
    price_year: int
    prices: tuple[Price, ...]
    candidates: int
    dies: tuple[int, ...]
    simulations: int
    failed: int
    is_settled: bool
    recommended: Choice | None
    closest: tuple[Choice, ...]
    binds: str | None
    by_goal: tuple[GoalAlone, ...]
    front: tuple[Choice, ...]
    sensitivity: tuple[Sensitivity, ...]
    simulated: tuple[Choice, ...]
    drives: DrivesToBuy | None


@dataclasses.dataclass(frozen=True)
class Applied(Record):
    """A setting of the user, and where it applied.

    Attributes
    ----------
    of
        The scheme, or the generated trace.
    key
        A parameter of the scheme, a field of the device in the scheme's replays, or a parameter of the trace.
    value
        The value.
    replays
        Number of replays in which it applied.

    """

    of: str
    key: str
    value: str
    replays: int


@dataclasses.dataclass(frozen=True)
class ArrivalProfile(Record):
    """Arrivals of requests.

    Attributes
    ----------
    duration_s
        From the first to the last arrival, in seconds.
    requests_per_s
        Requests per second; ``None`` if all arrive at once.
    bytes_per_s
        Bytes read and written per second; ``None`` if all arrive at once.
    interval_mean_us
        Mean time between arrivals in microseconds.
    interval_p50_us
        Median time between arrivals in microseconds.
    interval_p99_us
        99th percentile of the time between arrivals in microseconds.
    interval_max_us
        Longest time between arrivals in microseconds.

    """

    duration_s: float
    requests_per_s: float | None
    bytes_per_s: float | None
    interval_mean_us: float
    interval_p50_us: float
    interval_p99_us: float
    interval_max_us: float


@dataclasses.dataclass(frozen=True)
class Axis(Record):
    """An axis.

    Attributes
    ----------
    label
        The quantity with its unit: ``SLC (MiB)``.
    logarithmic
        Whether the scale is logarithmic.

    """

    label: str
    logarithmic: bool


@dataclasses.dataclass(frozen=True)
class Change(Record):
    """A figure in both files.

    Attributes
    ----------
    name
        Its name, as in the results: ``response_us.mean``, ``write_amplification``. The mean response is over all seeds.
    a
        Value in the first file.
    b
        Value in the second file.
    percent
        Change from the first to the second, in percent of the first; ``None`` if the first is 0 and the second is not.
    is_better
        Whether the second is better; ``None`` if both are equal or neither direction is better.

    """

    name: str
    a: float
    b: float
    percent: float | None
    is_better: bool | None


@dataclasses.dataclass(frozen=True)
class Chip(Record):
    """A flash part with all its figures.

    Attributes
    ----------
    summary
        One-line description.
    name
        Name in device files and on the command line.
    cell
        Bits per cell: ``slc``, ``pslc``, ``mlc``, ``tlc`` or ``qlc``.
    page_bytes
        Bytes of a page, without its spare area.
    spare_bytes
        Bytes of a page's spare area; they take time on the channel.
    pages_per_block
        Pages of a block.
    read_us
        Page read, in microseconds.
    program_us
        Page program, in microseconds.
    erase_us
        Block erase, in microseconds.
    bus_mb_per_s
        Channel rate in MB/s (10^6 bytes); 0 if the times above include the transfer.
    endurance
        Program/erase cycles that a block lasts.
    supply_v
        Supply voltage.
    current_ma
        Current while an operation runs, in milliamperes.
    usd_per_gib
        Price per GiB in US dollars. Prices moved fourfold within three years: see the source, and override them.
    source
        Where the figures come from, and which of them are derived.
    copyback_us
        Copy of a page within its die, in microseconds, from its sensing to the end of its program; it does not use the
        channel. If it is missing or 0, copies go through the controller.
    independent_reads
        Pages of different planes that a die reads at once at independent places: 1 if all planes read at the same
        place.
    planes
        Planes of a die: their pages at the same place are read together, and their blocks are programmed and erased
        together.
    program_pages
        Pages of a plane that one program operation writes: the bits of a cell if a wordline is programmed at once. In
        SLC mode it is one.
    slc_mode
        Figures with one bit per cell, if the part has this mode.
    suspend_us
        Time to suspend a program or an erase for a read of the host, in microseconds. Without it a read waits for their
        end.

    """

    summary: str
    name: str
    cell: str
    page_bytes: int
    spare_bytes: int
    pages_per_block: int
    read_us: float
    program_us: float
    erase_us: float
    bus_mb_per_s: float
    endurance: int
    supply_v: float
    current_ma: float
    usd_per_gib: float
    source: str
    copyback_us: float | None = dataclasses.field(default=None, metadata=OMITTED)
    independent_reads: int | None = dataclasses.field(default=None, metadata=OMITTED)
    planes: int | None = dataclasses.field(default=None, metadata=OMITTED)
    program_pages: int | None = dataclasses.field(default=None, metadata=OMITTED)
    slc_mode: SlcMode | None = dataclasses.field(default=None, metadata=OMITTED)
    suspend_us: float | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Choice(Record):
    """A device with its figures.

    Attributes
    ----------
    device
        The device in words.
    scheme
        Its scheme.
    flash_bytes
        All of its flash in native mode, in bytes.
    channels
        Channels of all regions.
    dies
        Dies of all regions.
    cost_usd
        Price, in US dollars.
    response_us
        Responses with the arrivals of the answer's ``replay``; none for an overloaded device.
    service_us
        Responses with one request at a time, so that none waits; none if ``response_us`` comes from a closed loop.
    overload
        For an overloaded device: the time it took for the requests, relative to the time they took to arrive.
    life_years
        Life in years; none if no page was programmed in the measured passes.
    lifetime_host_bytes
        Host writes until wear-out, in bytes; none if no page was programmed in the measured passes.
    lifetime_overwrites
        Number of times that the host overwrote the device in the measured passes. Life is extrapolated from them, and
        may be much shorter if they are less than 1.
    tbw
        Host writes until wear-out in terabytes of 10^12 bytes.
    dwpd
        Drive writes per day: ``tbw`` divided by the logical capacity and the days of the warranty.
    excess
        For each goal, the factor by which it is missed: at most 1 if the goal is met, none if unknown.
    meets
        Whether all goals are met.
    command
        The command that repeats its figures; none if no command can read the trace.

    """

    device: str
    scheme: str
    flash_bytes: float
    channels: int
    dies: int
    cost_usd: float
    response_us: ResponseTimes | None
    service_us: ResponseTimes | None
    overload: float | None
    life_years: float | None
    lifetime_host_bytes: float | None
    lifetime_overwrites: float
    tbw: float | None
    dwpd: float | None
    excess: tuple[float | None, ...]
    meets: bool
    command: str | None


@dataclasses.dataclass(frozen=True)
class Claim(Record):
    """A claim of a paper, and its verdict.

    Attributes
    ----------
    paper
        Name of the paper on the command line.
    figure
        Name of the figure on the command line.
    target
        The acceptance target of the specification to which it belongs, such as ``T20``.
    kind
        Kind of statement: ``result``, ``arithmetic``, ``generator`` or ``ours``.
    stand_in
        The stand-ins of the paper's traces on which it was judged: ``first`` or ``calibrated``.
    claim
        The claim in a few words.
    expected
        The paper's value, with the tolerance within which the claim counts as held.
    measured
        The measured value.
    verdict
        Whether it held: ``held``, ``not held`` or ``not judged``.
    reason
        Reason for the verdict, in a line.
    trace
        The user's trace, if it was judged on that instead of the paper's traces.

    """

    paper: str
    figure: str
    target: str | None
    kind: str
    stand_in: str
    claim: str
    expected: str
    measured: str
    verdict: str
    reason: str
    trace: str | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Comparison(Record):
    """The JSON output of ``compare`` and ``replay``.

    Attributes
    ----------
    bimetal
        Version of this program.
    schema
        Version of the results schema. It increases if a field is removed, renamed or changes its meaning.
    trace
        The trace.
    trace_digest
        Digest of the trace's requests as 16 hexadecimal digits, identical on every machine.
    addresses
        Addresses of the trace on the devices.
    replay
        The replay.
    warnings
        Caveats that a user should know before trusting a figure.
    results
        One entry for each scheme.

    """

    bimetal: str
    schema: int
    trace: TraceFacts
    trace_digest: str
    addresses: Addresses
    replay: ReplayFacts
    warnings: tuple[str, ...]
    results: tuple[Result, ...]


@dataclasses.dataclass(frozen=True)
class DeviceSource(Record):
    """A device of a study.

    Attributes
    ----------
    name
        The name of a preset, or the path of a device file relative to the study file.
    file
        The text of the device file.

    """

    name: str
    file: str | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Diff(Record):
    """The JSON output of ``bimetal diff``.

    Attributes
    ----------
    a
        The first file.
    b
        The second file.
    differences
        Other possible causes of the changes than the schemes: different traces, replays, devices or programs.
    schemes
        Each scheme that is in both files, in the order of the second.
    only_in_a
        Schemes that are only in the first file.
    only_in_b
        Schemes that are only in the second file.

    """

    a: Side
    b: Side
    differences: tuple[str, ...]
    schemes: tuple[SchemeDiff, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class DiskFacts(Record):
    """Facts about a home disk.

    Attributes
    ----------
    name
        Name.
    drive
        Name of the drive.
    model
        Model of its access times: ``constant`` or ``mechanical``.
    capacity_bytes
        Logical capacity on it.
    busy
        Share of the simulated time in which it was busy.
    idle_j
        Energy while it was spinning and idle, in joules, which is not part of the energy of operations.

    """

    name: str
    drive: str
    model: str
    capacity_bytes: int
    busy: float
    idle_j: float


@dataclasses.dataclass(frozen=True)
class DiskRow(Record):
    """A disk of a row.

    Attributes
    ----------
    name
        Name.
    drive
        Name of the drive.
    capacity_bytes
        Logical capacity on this disk.

    """

    name: str
    drive: str
    capacity_bytes: int


@dataclasses.dataclass(frozen=True)
class Drive(Record):
    """A hard disk with all its figures.

    Attributes
    ----------
    summary
        One-line description.
    name
        Name in device files and on the command line.
    capacity
        Capacity as sold.
    model
        Model of its access times: ``constant`` or ``mechanical``.
    read_position_us
        Mean time to reach the first sector of a read, in microseconds: the papers' ``C_D_RPOS``.
    write_position_us
        Mean time to reach the first sector of a write, in microseconds: the papers' ``C_D_WPOS``.
    mb_per_s
        Rate of consecutive sectors in MB/s (10^6 bytes): the papers' ``B``.
    queue
        Destages that the controller may hold for it while it works for the host; 0: the host waits for each.
    scheduler
        The order in which these are served: ``elevator`` or ``fcfs``.
    usd_per_gib
        Price per GiB in US dollars.
    active_w
        Power during accesses, in watts.
    idle_w
        Power while it only spins, in watts.
    source
        Where the figures come from, and which of them are derived.
    mechanics
        Arm and platters; a drive without them has only the constant model.

    """

    summary: str
    name: str
    capacity: str
    model: str
    read_position_us: float
    write_position_us: float
    mb_per_s: float
    queue: int
    scheduler: str
    usd_per_gib: float
    active_w: float
    idle_w: float
    source: str
    mechanics: Mechanics | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class DriveToBuy(Record):
    """A drive on the market.

    Attributes
    ----------
    name
        Name on the command line.
    title
        Maker and model.
    released
        Year of its release, if known.
    capacity_bytes
        Logical capacity, in bytes.
    rated_tbw
        Host writes that its warranty covers, in terabytes of 10^12 bytes, if known.
    read_mb_per_s
        MB/s of sequential reads, claimed or measured.
    write_mb_per_s
        MB/s of sequential writes, claimed or measured, into its cache if it has one.
    read_iops
        Random 4-KiB reads per second with many outstanding, claimed or measured.
    write_iops
        Random 4-KiB writes per second with many outstanding, claimed or measured.
    is_quoted
        Whether the user gave a price for the drive, so that its price is not the price of its flash.
    scale
        Size relative to the simulated device. Life and TBW are the values that the command prints, times this factor.
    choice
        Its figures. Price, life, TBW and DWPD are those of the whole drive.

    """

    name: str
    title: str
    released: int | None
    capacity_bytes: int
    rated_tbw: float | None
    read_mb_per_s: float | None
    write_mb_per_s: float | None
    read_iops: float | None
    write_iops: float | None
    is_quoted: bool
    scale: float
    choice: Choice


@dataclasses.dataclass(frozen=True)
class DrivesToBuy(Record):
    """The drives on the market.

    Attributes
    ----------
    offered
        The simulated drives, cheapest first; at equal price, fastest first.
    least_bytes
        Bytes that a drive must hold: the bytes that the trace touches, or the requested capacity.
    too_small
        Drives with less capacity.
    unpriced
        Drives whose flash has no price in the year of the prices.
    failed
        Drives whose simulation failed, with the reasons.

    """

    offered: tuple[DriveToBuy, ...]
    least_bytes: int
    too_small: tuple[str, ...]
    unpriced: tuple[str, ...]
    failed: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class EraseBin(Record):
    """Blocks of a region with erase counts in one range.

    Attributes
    ----------
    from_
        Lowest erase count of the range.
    to
        Highest erase count of the range.
    blocks
        Number of blocks.

    """

    from_: int
    to: int
    blocks: int


@dataclasses.dataclass(frozen=True)
class Failure(Record):
    """Reason why a point has no figures.

    Attributes
    ----------
    kind
        Kind of failure: ``refused``, ``trace``, ``memory``, ``panic``, ``worker`` or ``stopped``.
    what
        The error, in a line.

    """

    kind: str
    what: str


@dataclasses.dataclass(frozen=True)
class Faults(Record):
    """Failures of a region.

    Attributes
    ----------
    region
        Region.
    program_failures
        Programs that failed.
    erase_failures
        Erases that failed.
    blocks_replaced
        Blocks replaced, factory-bad ones included.
    failures_unreplaced
        Failures without a replacement block: a real device would be read-only from the first on.

    """

    region: str
    program_failures: int
    erase_failures: int
    blocks_replaced: int
    failures_unreplaced: int


@dataclasses.dataclass(frozen=True)
class Figure(Record):
    """The reproduction of one table or figure.

    Attributes
    ----------
    paper
        Name of the paper on the command line.
    figure
        Name of the figure on the command line, such as ``fig8a``.
    title
        One-line description of its content.
    stand_in
        The stand-ins of the paper's traces in this run: ``first`` or ``calibrated``.
    caption
        The experiment and remarks on its results, in a few sentences.
    plots
        The diagrams; none if the paper has only numbers.
    commands
        Commands that repeat every point.
    trace
        The user's trace, if the figure is about that instead of the paper's traces.

    """

    paper: str
    figure: str
    title: str
    stand_in: str
    caption: str
    plots: tuple[Plot, ...]
    commands: tuple[str, ...]
    trace: str | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Footprint(Record):
    """Distinct bytes in aligned 4-KiB pages.

    Attributes
    ----------
    read_bytes
        Of pages that are read.
    written_bytes
        Of pages that are written.
    both_bytes
        Of pages that are read and written.
    touched_bytes
        Of pages that are read or written.
    span_bytes
        From byte 0 to the end of the last page: the smallest disk that the trace fits on.

    """

    read_bytes: int
    written_bytes: int
    both_bytes: int
    touched_bytes: int
    span_bytes: int


@dataclasses.dataclass(frozen=True)
class Format(Record):
    """A trace format.

    Attributes
    ----------
    name
        Its name.
    summary
        One-line description.
    layout
        The fields of a record, in a line.
    aliases
        Other names.
    time_unit
        Default unit of its time stamps; none if the format fixes the unit.
    written
        Whether Bimetal can write traces in this format.

    """

    name: str
    summary: str
    layout: str
    aliases: tuple[str, ...]
    time_unit: str | None
    written: bool


@dataclasses.dataclass(frozen=True)
class Goal(Record):
    """A bound on a measure: the least life, or the most of any other measure.

    Attributes
    ----------
    measure
        The measure, written as the name of its option.
    limit
        The bound, in microseconds, years, terabytes, drive writes per day or US dollars.

    """

    measure: str
    limit: float


@dataclasses.dataclass(frozen=True)
class GoalAlone(Record):
    """The effect of a single goal.

    Attributes
    ----------
    goal
        The goal.
    alone
        The cheapest device that meets this goal.
    without
        The cheapest device that meets all other goals.
    costs_usd
        Additional cost of this goal, in US dollars.

    """

    goal: Goal
    alone: Choice | None
    without: Choice | None
    costs_usd: float | None


@dataclasses.dataclass(frozen=True)
class HitClass(Record):
    """Sectors that are hit at least ``hits`` times, up to the next class.

    Attributes
    ----------
    hits
        Smallest count of the class: a power of two.
    sectors
        Number of sectors.

    """

    hits: int
    sectors: int


@dataclasses.dataclass(frozen=True)
class HitRatePoint(Record):
    """Hit rates of caches of one size.

    Attributes
    ----------
    cache_bytes
        Size of the cache in bytes.
    reads
        Share of reads that hit in a cache of the pages read and written; ``None`` without reads.
    writes
        Share of writes that hit in it; ``None`` without writes.
    all
        Share of reads and writes that hit in it.
    reads_of_written
        Share of reads that hit in a cache of the pages written.
    writes_of_written
        Share of writes that hit in it.

    """

    cache_bytes: int
    reads: float | None
    writes: float | None
    all: float | None
    reads_of_written: float | None
    writes_of_written: float | None


@dataclasses.dataclass(frozen=True)
class HitRates(Record):
    """Hit rates by cache size.

    Attributes
    ----------
    sampling_rate
        Share of the pages that were sampled; at 1 the figures are exact.
    points
        From the smallest to the largest cache.

    """

    sampling_rate: float
    points: tuple[HitRatePoint, ...]


@dataclasses.dataclass(frozen=True)
class HotSet(Record):
    """Concentration of writes on 4-KiB pages. A request writes each page that it touches once.

    Attributes
    ----------
    hottest
        Share of page writes that go to the hottest pages, by percent of the pages ever written.
    bytes_for_half
        Fewest bytes that get half of the page writes.
    bytes_for_90_percent
        Fewest bytes that receive 90 % of the page writes.
    writes_max
        Writes of the page that is written most.

    """

    hottest: tuple[HotShare, ...]
    bytes_for_half: int
    bytes_for_90_percent: int
    writes_max: int


@dataclasses.dataclass(frozen=True)
class HotShare(Record):
    """One point of the concentration curve.

    Attributes
    ----------
    percent_of_pages
        Hottest pages, in percent of the pages ever written.
    share_of_writes
        Share of page writes that go to them.

    """

    percent_of_pages: int
    share_of_writes: float


@dataclasses.dataclass(frozen=True)
class Interval(Record):
    """An interval of the measured passes.

    Attributes
    ----------
    requests
        Measured requests up to its end.
    reads
        Reads of the host within it.
    writes
        Writes of the host within it.
    read_bytes
        Bytes that the host read within it.
    write_bytes
        Bytes that the host wrote within it.
    end_s
        Simulated time at its end, in seconds since measuring started.
    response_mean_us
        Mean response within it, in microseconds; 0 if it served no request.
    response_max_us
        Longest response within it, in microseconds.
    ops
        Operations within it, by region and mode; only regions and modes with operations in the measured passes.
    metrics
        The scheme's own figures at its end, in the order of the result's ``metrics``.
    disks
        Accesses within it, by disk.

    """

    requests: int
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    end_s: float
    response_mean_us: float
    response_max_us: float
    ops: tuple[IntervalOps, ...]
    metrics: tuple[float | None, ...]
    disks: tuple[IntervalAccesses, ...] = dataclasses.field(default=(), metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class IntervalAccesses(Record):
    """Accesses to a disk within an interval.

    Attributes
    ----------
    disk
        The disk.
    read
        Reads.
    write
        Writes.

    """

    disk: str
    read: int
    write: int


@dataclasses.dataclass(frozen=True)
class IntervalOps(Record):
    """Operations of a region and cell mode within an interval.

    Attributes
    ----------
    region
        Region; ``:slc`` behind its name marks blocks in SLC mode.
    read
        Page reads.
    program
        Page programs.
    erase
        Block erases.
    read_bytes
        Bytes of the pages that were read.
    program_bytes
        Bytes of the pages that were programmed.

    """

    region: str
    read: int
    program: int
    erase: int
    read_bytes: int
    program_bytes: int


@dataclasses.dataclass(frozen=True)
class Load(Record):
    """Load of a device.

    Attributes
    ----------
    bottleneck
        Busiest part: a region's dies (``mlc``), its channels (``mlc channels``), a disk, the ``controller``, the ``host
        link``, or ``device`` if the device does one operation at a time.
    utilisation
        Share of the simulated time in which this part was busy, the mean over all of its dies or channels.
    backlog_s
        Open loop: time from the last arrival to the last completion, in seconds.
    response_trend_us
        Mean responses of the first to the last eighth of the measured requests, in microseconds.
    overload
        Whether responses measure the queue more than the device: ``none``, ``bursts`` or ``growing``.

    """

    bottleneck: str
    utilisation: float
    backlog_s: float
    response_trend_us: tuple[float, ...]
    overload: str


@dataclasses.dataclass(frozen=True)
class Mechanics(Record):
    """Figures from which a drive's access times are computed.

    Attributes
    ----------
    rpm
        Revolutions per minute.
    cylinders
        Positions of the arm.
    surfaces
        Surfaces with data: tracks of a cylinder.
    outer_sectors
        Sectors of a track at the outer edge. The number falls evenly to ``inner_sectors``.
    inner_sectors
        Sectors of a track at the inner edge.
    head_switch_us
        Time to switch to another track of the same cylinder, in microseconds.
    write_settle_us
        Additional time for which the arm settles before a write, in microseconds.
    seek_ms
        Seek curve: cylinders, and milliseconds to seek as far and settle. It is linear between these points.
    buffer_kib
        Length of a drive's read-ahead, in KiB.
    bus_mb_per_s
        Rate from the drive's buffer in MB/s (10^6 bytes).

    """

    rpm: int
    cylinders: int
    surfaces: int
    outer_sectors: int
    inner_sectors: int
    head_switch_us: float
    write_settle_us: float
    seek_ms: tuple[tuple[int, float], ...]
    buffer_kib: int
    bus_mb_per_s: float


@dataclasses.dataclass(frozen=True)
class OpProfile(Record):
    """Requests of one kind.

    Attributes
    ----------
    requests
        Number of requests.
    bytes
        Their bytes.
    mean_bytes
        Mean size in bytes; 0 without any.
    sequential_share
        Share of them that begin where the previous one of their kind ended; ``None`` with fewer than two of them.

    """

    requests: int
    bytes: int
    mean_bytes: float
    sequential_share: float | None


@dataclasses.dataclass(frozen=True)
class Operations(Record):
    """One kind of operation, for one cause, in one region and cell mode.

    Attributes
    ----------
    region
        Region or disk; ``:slc`` behind the name of a region marks blocks in SLC mode.
    op
        ``read``, ``program`` or ``erase``; of a disk ``read`` or ``write``.
    cause
        Why: ``host``, ``gc``, ``fold``, ``migrate_up`` and so on.
    count
        How often.
    bytes
        Bytes of the pages read or programmed, or of the blocks erased, in this cell mode; for a disk, bytes read or
        written.
    time_us
        Array and channel time, in microseconds; for a disk, time of the accesses.

    """

    region: str
    op: str
    cause: str
    count: int
    bytes: int
    time_us: float


@dataclasses.dataclass(frozen=True)
class Paper(Record):
    """A paper that is reproduced.

    Attributes
    ----------
    name
        Its name.
    summary
        Its systems, in a line.
    citation
        Authors, title, venue and year.
    figures
        Its tables and figures.

    """

    name: str
    summary: str
    citation: str
    figures: tuple[PaperFigure, ...]


@dataclasses.dataclass(frozen=True)
class PaperFigure(Record):
    """A table or figure of a paper.

    Attributes
    ----------
    name
        Its name.
    title
        One-line description of its content.
    traces
        Names of the traces that it needs.

    """

    name: str
    title: str
    traces: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Parameter(Record):
    """One parameter as ``list schemes`` shows it.

    Attributes
    ----------
    name
        Key of ``--set key=value`` and of a device file.
    summary
        Meaning, unit and source.
    default
        Default value, as it would be written.
    accepts
        Values that are accepted.

    """

    name: str
    summary: str
    default: str
    accepts: str


@dataclasses.dataclass(frozen=True)
class Plot(Record):
    """One diagram.

    Attributes
    ----------
    title
        Its title, which is unique within a figure.
    kind
        How points are drawn: ``lines``, ``marks``, ``front``, ``bars`` or ``stacked_bars``.
    x
        The horizontal axis.
    y
        The vertical axis.
    series
        The series, in the order of the legend.

    """

    title: str
    kind: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


@dataclasses.dataclass(frozen=True)
class Preset(Record):
    """A device preset.

    Attributes
    ----------
    name
        Name of the preset.
    summary
        One-line description.
    device
        The complete device description.

    """

    name: str
    summary: str
    device: Device


@dataclasses.dataclass(frozen=True)
class Price(Record):
    """A price as printed.

    Attributes
    ----------
    part
        Name of the chip or drive.
    kind
        Its kind of cells, or ``disk``.
    usd_per_gib
        US dollars per GiB.

    """

    part: str
    kind: str
    usd_per_gib: float


@dataclasses.dataclass(frozen=True)
class PriceStep(Record):
    """The answer at other prices.

    Attributes
    ----------
    factor
        Factor on the prices.
    cost_usd
        Price of the cheapest device that meets all goals, in US dollars.
    changes_to
        The device, if it differs from the device at the next step towards a factor of 1.
    is_none
        Whether no device meets all goals any more.

    """

    factor: float
    cost_usd: float | None
    changes_to: Choice | None
    is_none: bool


@dataclasses.dataclass(frozen=True)
class Profile(Record):
    """Figures of a workload.

    Attributes
    ----------
    requests
        Requests of all kinds.
    reads
        Reads.
    writes
        Writes.
    trims
        Trims.
    sizes
        Reads and writes by size, as Chang (2010, figures 7a and 7b) shows them.
    update_ratio
        Sectors written divided by distinct sectors written; ``None`` without writes.
    write_hits
        Number of sectors by how often they are written (Chang 2010, figure 7c).
    read_hits
        Number of sectors by how often they are read (Chang 2010, figure 7d).
    sector_writes_max
        Writes of the sector that is written most.
    sector_reads_max
        Reads of the sector that is read most.
    footprint
        Distinct bytes touched.
    hot_set
        Concentration of writes; ``None`` without writes.
    hit_rates
        Hit rates of caches; ``None`` without reads and writes, or with too many of them.
    sequential_share
        Share of reads and writes that begin where the previous read or write ended; ``None`` with fewer than two of
        them.
    aligned_share
        Share of reads and writes whose start and end are multiples of 4 KiB; ``None`` without any.
    arrivals
        Arrivals of all requests; ``None`` with fewer than two of them.

    """

    requests: int
    reads: OpProfile
    writes: OpProfile
    trims: OpProfile
    sizes: tuple[SizeClass, ...]
    update_ratio: float | None
    write_hits: tuple[HitClass, ...]
    read_hits: tuple[HitClass, ...]
    sector_writes_max: int
    sector_reads_max: int
    footprint: Footprint
    hot_set: HotSet | None
    hit_rates: HitRates | None
    sequential_share: float | None
    aligned_share: float | None
    arrivals: ArrivalProfile | None


@dataclasses.dataclass(frozen=True)
class RegionFacts(Record):
    """Facts about a region.

    Attributes
    ----------
    name
        Name.
    chip
        Name of the part.
    capacity_bytes
        Raw capacity.
    blocks
        Blocks.
    block_bytes
        Bytes of a block.
    dies
        Dies, over all channels.
    channels
        Channels.
    cell
        Bits per cell: ``slc``, ``pslc``, ``mlc``, ``tlc`` or ``qlc``.
    year
        Year of the part; none if the catalogue does not state it.
    price_year
        Year of the catalogue's price; none if the price is not the catalogue's.
    busy
        Share of the simulated time in which its dies were busy.

    """

    name: str
    chip: str
    capacity_bytes: int
    blocks: int
    block_bytes: int
    dies: int
    channels: int
    cell: str
    year: int | None
    price_year: int | None
    busy: float


@dataclasses.dataclass(frozen=True)
class RegionRow(Record):
    """A region of a row.

    Attributes
    ----------
    name
        Name.
    chip
        Name of the part.
    blocks
        Blocks.
    capacity_bytes
        Raw capacity.

    """

    name: str
    chip: str
    blocks: int
    capacity_bytes: int


@dataclasses.dataclass(frozen=True)
class Relative(Record):
    """A scheme relative to the first one of a comparison.

    Attributes
    ----------
    to
        The first scheme.
    response_speedup
        Mean response of the first scheme divided by that of this one, over all seeds: Chang's RS, because both serve
        the same requests. None if one of the two is overloaded.
    energy
        Energy of this scheme divided by that of the first: Chang's ES.
    cost
        Price of this scheme's flash divided by that of the first: Chang's EC.

    """

    to: str
    response_speedup: float | None
    energy: float | None
    cost: float | None


@dataclasses.dataclass(frozen=True)
class ReplayFacts(Record):
    """The replay of a trace.

    Attributes
    ----------
    arrivals
        ``closed:DEPTH`` or ``trace:SPEED``.
    service
        Whether each scheme was also replayed with one request at a time for service times.
    passes
        Number of passes over the trace.
    measured_passes
        Number of last passes that were measured.
    fill
        Data on the devices before the first pass: ``device``, ``trace`` or ``none``.

    """

    arrivals: str
    service: bool
    passes: int
    measured_passes: int
    fill: str


@dataclasses.dataclass(frozen=True)
class Reproduction(Record):
    """The JSON output of ``bimetal paper``.

    Attributes
    ----------
    bimetal
        Version of this program.
    scale
        ``quick`` or ``full``.
    traces
        File names of the user's traces, by the names of the traces that they replace.
    settings
        Settings of the user for all experiments.
    scoreboard
        Claims by kind and verdict, for each paper: first on calibrated stand-ins, if there are any, then on the first
        ones.
    claims
        Every claim, in the order of the figures.
    figures
        The figures.

    """

    bimetal: str
    scale: str
    traces: dict[str, str]
    settings: tuple[Applied, ...]
    scoreboard: tuple[Score, ...]
    claims: tuple[Claim, ...]
    figures: tuple[Figure, ...]


@dataclasses.dataclass(frozen=True)
class ResponseTimes(Record):
    """Responses of reads and writes, in microseconds.

    Attributes
    ----------
    mean
        Mean.
    p50
        Median.
    p95
        95th percentile.
    p99
        99th percentile.
    p999
        99.9th percentile.

    """

    mean: float
    p50: float
    p95: float
    p99: float
    p999: float


@dataclasses.dataclass(frozen=True)
class Responses(Record):
    """Response times in microseconds; all 0 where ``count`` is 0.

    Attributes
    ----------
    count
        Number of requests.
    mean
        Mean, exact.
    p50
        Median; percentiles have three significant digits.
    p95
        95th percentile.
    p99
        99th percentile.
    p999
        99.9th percentile.
    max
        Longest, exact.

    """

    count: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float
    max: float


@dataclasses.dataclass(frozen=True)
class Result(Record):
    """The result of one scheme.

    Attributes
    ----------
    scheme
        Registry name.
    response_us
        Responses of reads and writes.
    read_us
        Responses of reads.
    write_us
        Responses of writes.
    simulated_s
        Simulated time of the measured passes, in seconds.
    load
        Load of the device, and whether it was overloaded.
    ops
        Operations by region, mode, operation and cause; only those that took place.
    streams
        Programs by region, mode and stream; only streams that were used.
    wear
        Erase counts by region.
    write_amplification
        Bytes programmed into flash, for all causes, per byte that the host wrote. Less than 1 if writes bypass flash;
        ``None`` if the host wrote nothing.
    energy_j
        Energy of all operations, in joules: supply voltage x current x array and channel time (Chang 2010, section 5),
        and for disks power x time of accesses.
    cost_usd
        Price of all flash, spare area included, and of the part of a disk that holds data, in US dollars.
    lifetime_host_bytes
        Bytes that the host can write until the mean erase count of the first region reaches its endurance. The mean is
        used, not the worst block: how evenly blocks wear is a separate figure, and a device replaces single blocks.
        Extrapolated from the measured passes, in which a block counts as erased once it is filled: a device that still
        has erased blocks erases fewer. ``None`` if they wrote or programmed nothing.
    lifetime_years
        Years of 365.25 days until the first region is worn out, at the write rate of the trace, whatever the speed of
        the replay; ``None`` also if the trace has no duration.
    metrics
        The scheme's own figures, since the device was filled: passes that are not measured are included.
    controller
        The controller's figures; none on a device without one.
    intervals
        Figures over time, one entry for each interval of the plan.
    faults
        Failures by region; only regions in which something failed.
    arrivals
        Arrival mode of the replay of these figures: ``closed:DEPTH`` or ``trace:SPEED``.
    backlog_s
        Time by which the device took longer than the trace, in seconds; 0 in a closed loop.
    service_us
        Service times of reads and writes, measured in a closed loop with one request. None without such a replay.
    service_read_us
        Service times of reads.
    service_write_us
        Service times of writes.
    lifetime_overwrites
        How many times the host wrote the logical capacity in the measured passes. Lifetimes are extrapolated from it.
    device
        The complete device as configured: a device file.
    regions
        Facts about the regions.
    disks
        Facts about the home disks; none if all data are in flash.
    spare
        Capacity of the slow region beyond the logical capacity, as a share of the logical capacity.
    block_wearing
        Wear of the fast region divided by wear of the slow one: Chang's BW.
    phi
        Share of life used of the more worn region divided by the share of the other: WLAFTL's Φ.
    relative
        Comparison with the first scheme; none for the first scheme itself.
    notes
        Notes on rounding and adaptation.
    speed
        Speed of the simulation.
    spread
        Range of the mean response over the seeds, if there were several.

    """

    scheme: str
    response_us: Responses
    read_us: Responses
    write_us: Responses
    simulated_s: float
    load: Load
    ops: tuple[Operations, ...]
    streams: tuple[Stream, ...]
    wear: tuple[Wear, ...]
    write_amplification: float | None
    energy_j: float
    cost_usd: float
    lifetime_host_bytes: float | None
    lifetime_years: float | None
    metrics: dict[str, float | None]
    controller: dict[str, float | None]
    intervals: tuple[Interval, ...]
    faults: tuple[Faults, ...]
    arrivals: str
    backlog_s: float
    service_us: Responses | None
    service_read_us: Responses | None
    service_write_us: Responses | None
    lifetime_overwrites: float
    device: Device
    regions: tuple[RegionFacts, ...]
    disks: tuple[DiskFacts, ...]
    spare: float
    block_wearing: float | None
    phi: float | None
    relative: Relative | None
    notes: tuple[str, ...]
    speed: Speed
    spread: Spread | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Scheme(Record):
    """A scheme.

    Attributes
    ----------
    name
        Registry name.
    summary
        One-line description.
    source
        The paper, or another definition.
    regions
        The regions that it manages, in words.
    parameters
        Its parameters.
    adapts
        The figures by which it adapts to the requests.

    """

    name: str
    summary: str
    source: str
    regions: str
    parameters: tuple[Parameter, ...]
    adapts: tuple[Adaptation, ...]


@dataclasses.dataclass(frozen=True)
class SchemeDiff(Record):
    """A scheme in both files.

    Attributes
    ----------
    scheme
        Its name.
    figures
        Every figure that both files have.

    """

    scheme: str
    figures: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class Score(Record):
    """A paper's claims of one kind by verdict, on one kind of stand-ins.

    Attributes
    ----------
    paper
        Name of the paper.
    kind
        Kind of claims: ``result``, ``arithmetic``, ``generator`` or ``ours``.
    stand_in
        The stand-ins on which they were judged; the calibrated group includes claims in which no calibrated stand-in is
        involved: ``first`` or ``calibrated``.
    held
        Claims that held.
    not_held
        Claims that did not hold.
    not_judged
        Claims that cannot be judged here.

    """

    paper: str
    kind: str
    stand_in: str
    held: int
    not_held: int
    not_judged: int


@dataclasses.dataclass(frozen=True)
class Sensitivity(Record):
    """Changes of the answer with the prices of a kind of parts.

    Attributes
    ----------
    kind
        Kind of cells, or ``disk``.
    steps
        Steps from a quarter of the prices to four times the prices.

    """

    kind: str
    steps: tuple[PriceStep, ...]


@dataclasses.dataclass(frozen=True)
class Series(Record):
    """Points that belong together.

    Attributes
    ----------
    name
        The label in the legend.
    origin
        The source of the points: ``measured`` or ``paper``.
    points
        The points, from left to right: positions, which are numbers or names, and values.

    """

    name: str
    origin: str
    points: tuple[tuple[float | str, float | None], ...]


@dataclasses.dataclass(frozen=True)
class Side(Record):
    """A results file.

    Attributes
    ----------
    file
        The file.
    bimetal
        Version of the program that wrote it.
    schema
        Version of the results schema; 0 if the file does not state it.
    trace
        Name of the trace.
    trace_digest
        Digest of the trace's requests; ``None`` if the file does not state it.

    """

    file: str
    bimetal: str
    schema: int
    trace: str
    trace_digest: str | None


@dataclasses.dataclass(frozen=True)
class SizeClass(Record):
    """Requests of at least ``sectors`` sectors, up to the next class.

    Attributes
    ----------
    sectors
        Smallest size of the class in 512-byte sectors: a power of two.
    reads
        Reads.
    writes
        Writes.
    write_bytes
        Bytes that they write.
    update_ratio
        Sectors written by writes of this class, divided by the distinct ones; ``None`` without writes.

    """

    sectors: int
    reads: int
    writes: int
    write_bytes: int
    update_ratio: float | None


@dataclasses.dataclass(frozen=True)
class SlcMode(Record):
    """The same silicon with one bit per cell.

    Attributes
    ----------
    pages_per_block
        Pages of a block in this mode.
    read_us
        Page read, in microseconds.
    program_us
        Page program, in microseconds.
    erase_us
        Block erase, in microseconds.
    endurance
        Program/erase cycles that a block lasts in this mode.

    """

    pages_per_block: int
    read_us: float
    program_us: float
    erase_us: float
    endurance: int


@dataclasses.dataclass(frozen=True)
class Speed(Record):
    """Speed of the simulation. No other figures differ between runs.

    Attributes
    ----------
    wall_s
        Duration of all passes on this machine, without filling the device.
    requests_per_s
        Requests per second of that time.
    page_ops_per_s
        Flash page reads and programs per second of that time. Unmeasured passes are assumed to have as many as measured
        ones.

    """

    wall_s: float
    requests_per_s: float
    page_ops_per_s: float


@dataclasses.dataclass(frozen=True)
class Spread(Record):
    """The mean response over several consecutive seeds, starting with the seed of the device.

    Attributes
    ----------
    seeds
        Number of seeds.
    min_us
        Lowest mean response.
    max_us
        Highest mean response.
    mean_us
        Mean of the mean responses.

    """

    seeds: int
    min_us: float
    max_us: float
    mean_us: float


@dataclasses.dataclass(frozen=True)
class Stream(Record):
    """Programs of one stream in one region and cell mode.

    NVMe's Flexible Data Placement calls a stream a reclaim unit handle.

    Attributes
    ----------
    region
        Region; ``:slc`` behind its name marks blocks in SLC mode.
    stream
        Number of the stream, from 0.
    written_pages
        Pages that came from outside the region: from the host, or from another region.
    copied_pages
        Pages that were copied within the region: by garbage collection, folding or wear levelling.
    write_amplification
        Sum of the two page counts divided by ``written_pages``; ``None`` if no page came from outside, as in a stream
        for copies.

    """

    region: str
    stream: int
    written_pages: int
    copied_pages: int
    write_amplification: float | None


@dataclasses.dataclass(frozen=True)
class SweepFigures(Record):
    """The figures of a point. Times are in microseconds unless stated otherwise.

    Attributes
    ----------
    requests
        Requests of the trace.
    logical_bytes
        Logical capacity.
    spare
        Spare area of the slow region, as a share of the logical capacity.
    overload
        Whether responses measure the queue more than the device: ``none``, ``bursts`` or ``growing``.
    bottleneck
        The busiest part.
    utilisation
        Share of the simulated time for which that part was busy.
    response_us
        Responses of reads and writes.
    read_us
        Responses of reads.
    write_us
        Responses of writes.
    simulated_s
        Simulated time of the measured passes, in seconds.
    throughput_per_s
        Reads and writes divided by the simulated time. For a closed loop it is the device's throughput.
    write_amplification
        Bytes programmed into flash, for all causes, per byte that the host wrote. Less than 1 if writes bypass flash;
        ``None`` if the host wrote nothing.
    energy_j
        Energy of all operations, in joules: supply voltage x current x array and channel time (Chang 2010, section 5),
        and for disks power x time of accesses.
    cost_usd
        Price of all flash, spare area included, and of the part of a disk that holds data, in US dollars.
    lifetime_host_bytes
        Bytes that the host can write until the mean erase count of the first region reaches its endurance. The mean is
        used, not the worst block: how evenly blocks wear is a separate figure, and a device replaces single blocks.
        Extrapolated from the measured passes, in which a block counts as erased once it is filled: a device that still
        has erased blocks erases fewer. ``None`` if they wrote or programmed nothing.
    lifetime_years
        Years of 365.25 days until the first region is worn out, at the write rate of the trace, whatever the speed of
        the replay; ``None`` also if the trace has no duration.
    lifetime_overwrites
        How many times the host wrote the logical capacity in the measured passes. Lives are extrapolated from it.
    regions
        The regions.
    wear
        Wear of the regions. Blocks that always stay in SLC mode have their own entry.
    disks
        The disks.
    metrics
        The scheme's own figures, such as hit rates.
    notes
        Notes on rounding and adaptation.
    device
        The complete device, as the text of a device file.

    """

    requests: int
    logical_bytes: int
    spare: float
    overload: str
    bottleneck: str
    utilisation: float
    response_us: Responses
    read_us: Responses
    write_us: Responses
    simulated_s: float
    throughput_per_s: float | None
    write_amplification: float | None
    energy_j: float
    cost_usd: float
    lifetime_host_bytes: float | None
    lifetime_years: float | None
    lifetime_overwrites: float
    regions: tuple[RegionRow, ...]
    wear: tuple[WearRow, ...]
    disks: tuple[DiskRow, ...]
    metrics: tuple[tuple[str, float | None], ...]
    notes: tuple[str, ...]
    device: str


@dataclasses.dataclass(frozen=True)
class SweepPoint(Record):
    """One point.

    Attributes
    ----------
    trace
        The requests.
    device
        The device.
    scheme
        Registry name of the scheme.
    set
        Settings of the device and of the scheme. The scheme has every parameter among them.
    replay
        The replay of the requests.

    """

    trace: TraceSource
    device: DeviceSource
    scheme: str
    set: dict[str, str]
    replay: SweepReplay


@dataclasses.dataclass(frozen=True)
class SweepReplay(Record):
    """Parameters of a replay.

    Attributes
    ----------
    arrivals
        ``closed:DEPTH`` or ``trace:SPEED``.
    repeat
        Number of passes over the trace.
    measure
        Number of last passes that are measured.
    fill
        Data on the device before the first pass: ``device``, ``trace`` or ``none``.

    """

    arrivals: str
    repeat: int
    measure: int
    fill: str


@dataclasses.dataclass(frozen=True)
class SweepRow(Record):
    """The result of a point.

    Attributes
    ----------
    key
        Key of the point in results.
    point
        The point itself.
    trace_fingerprint
        Fingerprint of the trace; empty if the trace cannot be read.
    scheme_version
        Version of the scheme.
    bimetal
        Version of this program.
    command
        The command that repeats the point, in the folder of the study file.
    failure
        Reason why there are no figures.
    figures
        The figures, unless the point failed.
    speed
        Speed of the simulation: the only fields that may differ when the point is repeated.

    """

    key: str
    point: SweepPoint
    trace_fingerprint: str
    scheme_version: int
    bimetal: str
    command: str
    failure: Failure | None = dataclasses.field(default=None, metadata=OMITTED)
    figures: SweepFigures | None = dataclasses.field(default=None, metadata=OMITTED)
    speed: Speed | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Target(Record):
    """A published characteristic of a workload.

    Attributes
    ----------
    name
        The measured quantity, with its unit.
    source
        The paper with its section, table or figure.
    published
        The value in the source.
    goal
        Required accuracy of the generated value.

    """

    name: str
    source: str
    published: float
    goal: str | dict[str, Any]


@dataclasses.dataclass(frozen=True)
class TraceFacts(Record):
    """Facts about the trace, in every result file.

    Attributes
    ----------
    name
        File name or workload.
    format
        Format it was read from, or ``generated``.
    requests
        Requests of all kinds.
    reads
        Read requests.
    writes
        Write requests.
    trims
        Trim requests.
    read_bytes
        Bytes read, in whole sectors as a device moves them.
    write_bytes
        Bytes written, in whole sectors.
    footprint_bytes
        Bytes of the distinct aligned 4-KiB pages that are read or written.
    duration_s
        From the first to the last arrival, in seconds.

    """

    name: str
    format: str
    requests: int
    reads: int
    writes: int
    trims: int
    read_bytes: int
    write_bytes: int
    footprint_bytes: int
    duration_s: float


@dataclasses.dataclass(frozen=True)
class TraceSource(Record):
    """A trace of a study.

    Attributes
    ----------
    name
        Name in results.
    from_
        Source of its requests.
    limit
        Use only this number of first requests.

    """

    name: str
    from_: str | dict[str, Any]
    limit: int | None = dataclasses.field(default=None, metadata=OMITTED)


@dataclasses.dataclass(frozen=True)
class Wear(Record):
    """Erase counts of a region's blocks since the device was filled.

    Attributes
    ----------
    region
        Region. Blocks that always stay in SLC mode are listed separately, with ``:slc`` behind its name.
    blocks
        Number of blocks.
    erases_total
        Sum of erase counts.
    erases_mean
        Mean erase count.
    erases_max
        Highest erase count.
    erases_stddev
        Standard deviation of the erase counts over all blocks.
    endurance
        Cycles that a block lasts. If blocks change between cell modes: the mean that results from their mix of erases.
    used
        Share of the region's life that is used up: mean erase count divided by endurance.
    erase_counts
        Number of blocks by erase count, in bins of equal width from the least to the most worn block.

    """

    region: str
    blocks: int
    erases_total: int
    erases_mean: float
    erases_max: int
    erases_stddev: float
    endurance: float
    used: float
    erase_counts: tuple[EraseBin, ...]


@dataclasses.dataclass(frozen=True)
class WearRow(Record):
    """Wear of blocks of a row.

    Attributes
    ----------
    name
        Name of the region, with suffix ``:slc`` for blocks that stay in SLC mode.
    erases_mean
        Mean erase count.
    used
        Used share of their life.

    """

    name: str
    erases_mean: float
    used: float


@dataclasses.dataclass(frozen=True)
class Workload(Record):
    """A generated workload.

    Attributes
    ----------
    name
        Its name.
    summary
        One-line description.
    source
        The paper, or another definition.
    parameters
        Its parameters.
    targets
        Published characteristics of the original workload.

    """

    name: str
    summary: str
    source: str
    parameters: tuple[Parameter, ...]
    targets: tuple[Target, ...]
